"""SemEval-2016 Task 3B: a new forum question and ten retrieved ones, judged by people."""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile
from pathlib import Path

import msgspec

from matchloom.data.corpora.lines import records
from matchloom.types import MatchloomError, Pair

_LABELS = {"PerfectMatch": 1.0, "Relevant": 1.0, "Irrelevant": 0.0}


class _Record(msgspec.Struct):
    qid: str
    q_body: str
    rid: str
    label: str
    r_body: str
    q_subject: str = ""
    r_subject: str = ""
    subjects_concat: str = ""


def read_semeval(path: Path | str) -> list[Pair]:
    """Read a JSONL file of (new question, retrieved question); PerfectMatch and Relevant are positive.

    A text is subject and body. Part one of the training set has both subjects in one field, `subjects_concat`: the
    words with which that field starts in all lines of a question are taken as the question's own subject, the others
    as the retrieved one's. A question with a single such line keeps its bodies only.
    """
    lines: dict[str, list[_Record]] = defaultdict(list)
    for number, record in records(path, _Record):
        if record.label not in _LABELS:
            raise MatchloomError(f"{path}, line {number}: label {record.label!r}; expected one of {', '.join(_LABELS)}")
        lines[record.qid].append(record)
    pairs = []
    for qid, candidates in lines.items():
        for record in _with_subjects(candidates):
            query = f"{record.q_subject} {record.q_body}".strip()
            text = f"{record.r_subject} {record.r_body}".strip()
            pairs.append(Pair(query, text, _LABELS[record.label], qid, record.rid))
    return pairs


def _with_subjects(candidates: list[_Record]) -> list[_Record]:
    joined = [record.subjects_concat.split() for record in candidates]
    shared = [words[0] for words in takewhile(lambda words: len(set(words)) == 1, zip(*joined, strict=False))]
    if len(candidates) == 1 or not shared:
        return candidates
    return [
        msgspec.structs.replace(record, q_subject=" ".join(shared), r_subject=" ".join(words[len(shared) :]))
        for record, words in zip(candidates, joined, strict=True)
    ]
