"""WikiQA: sentences of Wikipedia for questions asked of a search engine (Yang et al., EMNLP 2015)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from matchloom.data.corpora.lines import numbered_lines, rows, zero_or_one
from matchloom.data.corpora.subsets import answered, both_labels
from matchloom.data.ids import with_ids
from matchloom.types import MatchloomError, Pair

_RELEASE = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")
_PLAIN = ("question", "sentence", "label")


def read_wikiqa(path: Path | str, subset: Literal["raw", "answered", "clean"] = "raw") -> list[Pair]:
    """Read a file of WikiQA: the release (`WikiQA-test.tsv`, with a header) or the plain three columns without one.

    The release's own question and sentence ids are kept. `raw` has every pair, `answered` the questions with a right
    sentence (243 of 633 in the test set), `clean` those with a right and a wrong one (237).
    """
    if subset not in ("raw", "answered", "clean"):
        raise MatchloomError(f"subset {subset!r} of WikiQA is unknown; choose raw, answered or clean")
    first = next(numbered_lines(path), (0, ""))[1]
    pairs = _read_release(path) if first.startswith(f"{_RELEASE[0]}\t") else _read_plain(path)
    if subset == "answered":
        return answered(pairs)
    return both_labels(pairs) if subset == "clean" else pairs


def _read_release(path: Path | str) -> list[Pair]:
    return [
        Pair(question, sentence, zero_or_one(label, path, number), query_id, sentence_id)
        for number, (query_id, question, _, _, sentence_id, sentence, label) in rows(path, _RELEASE, header=True)
    ]


def _read_plain(path: Path | str) -> list[Pair]:
    lines = rows(path, _PLAIN, header=False)
    return list(with_ids(Pair(query, text, zero_or_one(label, path, number)) for number, (query, text, label) in lines))
