"""SemEval-2016 Task 3B: a new forum question and ten retrieved ones, judged by people."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from xml.etree.ElementTree import Element

import msgspec

from experiments.corpora.lines import numbered_lines, records, write_records
from experiments.corpora.xml_elements import elements
from matchloom.types import MatchloomError, Pair

_LABELS = {"PerfectMatch": 1.0, "Relevant": 1.0, "Irrelevant": 0.0}


# The parts of the release, and the names that this project gives them.
_PARTS = {
    "train-part1": "subtaskB_train_part1_fromcsv",
    "train-part2": "subtaskB_train_part2",
    "dev": "subtaskB_dev",
    "test": "subtaskB_test",
}
_RELEASE = re.compile(r"SemEval2016-Task3-CQA-QL-(train-part[12]|dev|test)\.xml(\.gz)?")


class _Record(msgspec.Struct, kw_only=True, omit_defaults=True):
    qid: str
    q_subject: str = ""
    q_body: str
    rid: str
    rank: int | None = None
    label: str
    r_subject: str = ""
    r_body: str
    subjects_concat: str = ""


def read_semeval(path: Path | str) -> list[Pair]:
    """Read a file of (new question, retrieved question); PerfectMatch and Relevant are positive.

    The file is the release's XML or this project's JSONL. A text is subject and body. Part one of the JSONL training
    set has both subjects in one field, `subjects_concat`: the words with which that field starts in all lines of a
    question are taken as the question's own subject, the others as the retrieved one's. A question with a single such
    line keeps its bodies only.
    """
    lines: dict[str, list[_Record]] = defaultdict(list)
    for where, record in _records(path):
        if record.label not in _LABELS:
            raise MatchloomError(f"{where}: label {record.label!r}; expected one of {', '.join(_LABELS)}")
        lines[record.qid].append(record)
    pairs = []
    for qid, candidates in lines.items():
        for record in _with_subjects(candidates):
            query = f"{record.q_subject} {record.q_body}".strip()
            text = f"{record.r_subject} {record.r_body}".strip()
            pairs.append(Pair(query, text, _LABELS[record.label], qid, record.rid))
    return pairs


def semeval_files(path: Path) -> list[Path]:
    """The file, or those of a folder of the release that hold task B: not those for task A, nor uncleaned texts."""
    if not path.is_dir():
        return [path]
    if found := sorted(file for file in path.rglob("*.xml*") if _RELEASE.fullmatch(file.name)):
        return found
    if found := sorted(path.glob("*.jsonl")):
        return found
    raise MatchloomError(f"{path} has no SemEval2016-Task3-CQA-QL-*.xml and no *.jsonl; give the folder, or one file")


def write_semeval(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write the release's XML as this project's JSONL, a file for each part.

    Args:
        source: One file of the release, or its folder.
        folder: The folder to write to, which is there.
    """
    written = {}
    for path in semeval_files(Path(source)):
        part = _RELEASE.fullmatch(path.name)
        to = folder / f"{_PARTS[part[1]] if part else path.name.removesuffix('.gz').rpartition('.')[0]}.jsonl"
        read_semeval(path)  # refuses what it would not read again
        written[to] = write_records(to, (record for _, record in _records(path)))
    return written


def _records(path: Path | str) -> Iterator[tuple[str, _Record]]:
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    if first.lstrip().startswith("<"):
        yield from (_of_thread(where, element) for where, element in elements([Path(path)], "OrgQuestion"))
    else:
        for number, record in records(path, _Record):
            yield f"{path}, line {number}", record


def _of_thread(where: str, question: Element) -> tuple[str, _Record]:
    """A new question comes once for each retrieved one, with that one's thread."""
    found = question.find("Thread/RelQuestion")
    rank = None if found is None else found.get("RELQ_RANKING_ORDER", "")
    if found is None or not question.get("ORGQ_ID") or not found.get("RELQ_ID"):
        raise MatchloomError(f"{where}: expected an ORGQ_ID and a <Thread> with a <RelQuestion> and its RELQ_ID")
    return where, _Record(
        qid=question.get("ORGQ_ID", ""),
        q_subject=question.findtext("OrgQSubject") or "",
        q_body=question.findtext("OrgQBody") or "",
        rid=found.get("RELQ_ID", ""),
        rank=int(rank) if rank and rank.isascii() and rank.isdigit() else None,
        label=found.get("RELQ_RELEVANCE2ORGQ", ""),
        r_subject=found.findtext("RelQSubject") or "",
        r_body=found.findtext("RelQBody") or "",
    )


def _with_subjects(candidates: list[_Record]) -> list[_Record]:
    joined = [record.subjects_concat.split() for record in candidates]
    shared = [words[0] for words in takewhile(lambda words: len(set(words)) == 1, zip(*joined, strict=False))]
    if len(candidates) == 1 or not shared:
        return candidates
    return [
        msgspec.structs.replace(record, q_subject=" ".join(shared), r_subject=" ".join(words[len(shared) :]))
        for record, words in zip(candidates, joined, strict=True)
    ]
