"""WikiQA: sentences of Wikipedia for questions asked of a search engine (Yang et al., EMNLP 2015)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from experiments.corpora.lines import numbered_lines, rows, spaced, write_table, zero_or_one
from experiments.corpora.subsets import answered, both_labels
from matchloom.data.identity import with_ids
from matchloom.types import MatchloomError, Pair

_RELEASE = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")
_PLAIN = ("question", "sentence", "label")
_PART = re.compile(r"WikiQA(?:Sent)?-(train|dev|test)\.(?:tsv|txt)(?:\.gz)?")
# As the plain files have words: the conventions of the Penn Treebank, in this order.
_PARTING = [
    (re.compile(r'(?<![^\s(\[{<])"'), " `` "),
    (re.compile(r'"'), " '' "),
    (re.compile(r"(\.\.\.|--|[;@#$%&?!()\[\]{}<>]|[:,](?=[^\d]))"), r" \1 "),
    (re.compile(r"(?<![.\s])(\.)(?=[\])}>'\s]*$)"), r" \1 "),  # only the last full stop of a text: U.S. is a word
    (re.compile(r"(?<=[^'\s])('+)(?=\s|$)"), r" \1"),
    (re.compile(r"(?<=\w)(n't|'(?:s|m|d|ll|re|ve))\b", re.IGNORECASE), r" \1"),
]


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


def wikiqa_files(path: Path) -> list[Path]:
    """The file, or those of a folder: the release's where they are there, otherwise the plain ones."""
    if not path.is_dir():
        return [path]
    for pattern in ("WikiQA-*.tsv*", "WikiQA*-*.txt*"):
        if found := sorted(path.glob(pattern)):
            return found
    raise MatchloomError(f"{path} has no WikiQA-*.tsv and no WikiQA*-*.txt; give its folder, or one file")


def write_wikiqa(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write train, dev and test as the plain `WikiQASent-<part>.txt`.

    The plain files have their words parted by spaces, the release has not: its texts are parted here by the same
    conventions, in a few rules. All sentences of the plain test set stay as they are under them.

    Args:
        source: One file, or a folder of them; the plain ones are preferred.
        folder: The folder to write to, which is there.
    """
    source = Path(source)
    plain = sorted(source.glob("WikiQASent-*.txt*")) if source.is_dir() else []
    written = {}
    for path in plain or wikiqa_files(source):
        if not (part := _PART.fullmatch(path.name)):
            continue
        as_is = not path.name.startswith("WikiQA-")
        lines = (
            (pair.query if as_is else _parted(pair.query), pair.text if as_is else _parted(pair.text), str(int(label)))
            for pair in read_wikiqa(path)
            if (label := pair.label) is not None
        )
        to = folder / f"WikiQASent-{part[1]}.txt"
        written[to] = write_table(to, lines)
    if not written:
        raise MatchloomError(f"{source}: no WikiQA-train, -dev or -test here (.tsv or .txt)")
    return written


def _parted(text: str) -> str:
    for pattern, parted in _PARTING:
        text = pattern.sub(parted, text)
    return spaced(text)


def _read_release(path: Path | str) -> list[Pair]:
    return [
        Pair(question, sentence, zero_or_one(label, path, number), query_id, sentence_id)
        for number, (query_id, question, _, _, sentence_id, sentence, label) in rows(path, _RELEASE, header=True)
    ]


def _read_plain(path: Path | str) -> list[Pair]:
    lines = rows(path, _PLAIN, header=False)
    return list(with_ids(Pair(query, text, zero_or_one(label, path, number)) for number, (query, text, label) in lines))
