from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom.data.corpora.semeval import read_semeval
from matchloom.types import MatchloomError, Pair


def write(folder: Path, *records: dict[str, object]) -> Path:
    path = folder / "b.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def apart(rank: int, label: str, r_subject: str, r_body: str) -> dict[str, object]:
    query = {"qid": "Q1", "q_subject": "Wool", "q_body": "Where to buy?"}
    return query | {"rid": f"Q1_R{rank}", "rank": rank, "label": label, "r_subject": r_subject, "r_body": r_body}


def joined(qid: str, rank: int, subjects: str) -> dict[str, object]:
    query = {"qid": qid, "q_body": "Where to buy?", "rid": f"{qid}_R{rank}", "rank": None, "label": "Relevant"}
    return query | {"r_body": f"body {rank}", "subjects_concat": subjects}


def test_subjects_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        apart(4, "PerfectMatch", "Yarn", "Any shop?"),
        apart(2, "Relevant", "Silk", ""),
        apart(9, "Irrelevant", "", "Cars?"),
    )
    assert read_semeval(path) == [
        Pair("Wool Where to buy?", "Yarn Any shop?", 1.0, "Q1", "Q1_R4"),
        Pair("Wool Where to buy?", "Silk", 1.0, "Q1", "Q1_R2"),
        Pair("Wool Where to buy?", "Cars?", 0.0, "Q1", "Q1_R9"),
    ]


def test_subjects_joined_are_parted_where_the_lines_of_a_question_differ(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        joined("P1", 1, "Good wool Good yarn"),
        joined("P2", 1, "Felt Felt hats"),  # alone: nothing says where the first subject ends
        joined("P1", 2, "Good wool Where is silk"),
        joined("P1", 3, "Good wool"),
    )
    assert {pair.text_id: pair[:2] for pair in read_semeval(path)} == {
        "P1_R1": ("Good wool Where to buy?", "Good yarn body 1"),
        "P1_R2": ("Good wool Where to buy?", "Where is silk body 2"),
        "P1_R3": ("Good wool Where to buy?", "body 3"),
        "P2_R1": ("Where to buy?", "body 1"),
    }


def test_malformed(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match=r"b\.jsonl, line 2: label 'Maybe'; expected one of PerfectMatch"):
        read_semeval(write(tmp_path, apart(1, "Relevant", "a", "b"), apart(2, "Maybe", "a", "b")))
    with pytest.raises(MatchloomError, match=r"b\.jsonl, line 1: .*`q_body`"):
        read_semeval(write(tmp_path, {"qid": "Q1"}))


@pytest.mark.data
def test_published_counts(data_dir: Path) -> None:
    folder = data_dir / "semeval-cqa"
    parts = [read_semeval(folder / f"subtaskB_train_{part}.jsonl") for part in ("part1_fromcsv", "part2")]
    train, dev = [pair for part in parts for pair in part], read_semeval(folder / "subtaskB_dev.jsonl")
    for pairs, queries, count, positives in ((train, 267, 2628, 1063), (dev, 50, 500, 214)):
        assert len({pair.query_id for pair in pairs}) == len({pair[0::3] for pair in pairs}) == queries
        assert len({pair.text_id for pair in pairs}) == len(pairs) == count
        assert sum(pair.label or 0.0 for pair in pairs) == positives
