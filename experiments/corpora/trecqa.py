"""TREC-QA: answer sentences for factoid questions (Wang et al., EMNLP 2007), Penn tokens, cased."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from experiments.corpora.lines import numbered_lines, rows, write_table, zero_or_one
from experiments.corpora.subsets import both_labels
from matchloom.data.identity import with_ids
from matchloom.types import MatchloomError, Pair

_QUESTION_ID = re.compile(r"<QApairs id=(['\"])(.+)\1>")
_LABELS = {"<positive>": 1.0, "<negative>": 0.0}
_MARKS = ("<question>", "<positive>", "<negative>", "</QApairs>")
_COLUMNS = ("qid", "question", "answer", "label")
# The names of the release (jacana-qa-naacl2013-data-results) and those under which papers speak of its files.
_PARTS = {
    "train2393.cleanup": "TRAIN-ALL",
    "train-less-than-40.manual-edit": "TRAIN",
    "dev-less-than-40.manual-edit": "DEV",
    "test-less-than-40.manual-edit": "TEST",
}


def read_trecqa(path: Path | str, subset: Literal["raw", "clean"] = "raw") -> list[Pair]:
    """Read a file of TREC-QA, in the public pseudo-XML or as TSV with the header `qid question answer label`.

    `raw` has every pair. `clean` leaves out the questions whose candidates are all right or all wrong; a figure
    should name its subset, for the all-right ones lift every system. The public files list right answers first.
    """
    if subset not in ("raw", "clean"):
        raise MatchloomError(f"subset {subset!r} of TREC-QA is unknown; choose raw or clean")
    pairs = list(with_ids(_read(path)[1]))
    return pairs if subset == "raw" else both_labels(pairs)


def trecqa_questions(path: Path | str) -> dict[str, str]:
    """The text of every question by its id.

    Published question counts include the few that have no candidate at all: the pseudo-XML holds them, pairs and
    TSV files cannot.
    """
    return _read(path)[0]


def trecqa_files(path: Path) -> dict[str, Path]:
    """The file, or those of a folder, by the name of their part: the release's pseudo-XML, or TSV."""
    if not path.is_dir():
        return {_part(path): path}
    for pattern in ("*.tsv", "*.xml*"):
        if found := sorted(path.glob(pattern)):
            return {_part(file): file for file in found}
    raise MatchloomError(f"{path} has no *.tsv and no *.xml; give the folder, or one file, of the corpus")


def write_trecqa(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write TREC-QA as TSV, and DEV and TEST also without the questions whose candidates are all right or all wrong.

    Args:
        source: One file, or a folder of them.
        folder: The folder to write to, which is there.
    """
    written = {}
    for part, path in trecqa_files(Path(source)).items():
        pairs = read_trecqa(path)
        kept = {part: pairs}
        if part in ("DEV", "TEST"):
            kept[f"{part}.clean"] = both_labels(pairs)
        for name, some in kept.items():
            lines = ((pair.query_id, pair.query, pair.text, "1" if pair.label else "0") for pair in some)
            written[folder / f"{name}.tsv"] = write_table(folder / f"{name}.tsv", (_COLUMNS, *lines)) - 1
    return written


def _part(path: Path) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".xml").removesuffix(".tsv")
    return _PARTS.get(name, name)


def _read(path: Path | str) -> tuple[dict[str, str], list[Pair]]:
    first = next(numbered_lines(path), (0, ""))[1]
    return _read_xml(path) if first.lstrip().startswith("<") else _read_tsv(path)


def _read_tsv(path: Path | str) -> tuple[dict[str, str], list[Pair]]:
    questions: dict[str, str] = {}
    pairs = []
    for number, (qid, question, answer, label) in rows(path, _COLUMNS, header=True):
        if questions.setdefault(qid, question) != question:
            raise MatchloomError(f"{path}, line {number}: question {qid} had another text before")
        pairs.append(Pair(question, answer, zero_or_one(label, path, number), query_id=qid))
    return questions, pairs


def _read_xml(path: Path | str) -> tuple[dict[str, str], list[Pair]]:
    """No parser for XML can read it: `&` and `<` stand bare, and there is no root.

    Within <question>, <positive> and <negative> the first line has the words, separated by tabs; the other lines
    (tags, dependencies, entities) are not needed.
    """
    questions: dict[str, str] = {}
    pairs: list[Pair] = []
    qid = tag = ""
    want_words = False
    number = 0
    for number, line in numbered_lines(path):
        if want_words:
            words = " ".join(line.split())
            if not words or words == f"</{tag[1:]}":
                raise MatchloomError(f"{path}, line {number}: expected words, separated by tabs, after {tag}")
            if tag == "<question>":
                questions[qid] = words
            elif qid not in questions:
                raise MatchloomError(f"{path}, line {number}: a candidate before the words of question {qid!r}")
            else:
                pairs.append(Pair(questions[qid], words, _LABELS[tag], query_id=qid))
            want_words = False
        elif tag:
            if line in _MARKS:
                raise MatchloomError(f"{path}, line {number}: expected </{tag[1:]} before {line}")
            if line == f"</{tag[1:]}":
                tag = ""
        elif qid and line in _MARKS[:3]:
            tag, want_words = line, True
        elif line == "</QApairs>":
            qid = ""
        elif not line.strip():
            continue
        elif (found := _QUESTION_ID.fullmatch(line)) and not qid:
            qid = found[2]
            if qid in questions:
                raise MatchloomError(f"{path}, line {number}: question {qid} was there before")
        else:
            raise MatchloomError(
                f"{path}, line {number}: expected <QApairs id='...'> and in it {', '.join(_MARKS)}, found {line[:60]!r}"
            )
    if qid:
        raise MatchloomError(f"{path}, line {number}: the file ends within question {qid}; fetch it again")
    return questions, pairs
