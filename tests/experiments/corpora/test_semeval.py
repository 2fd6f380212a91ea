from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.corpora.semeval import read_semeval, semeval_files, write_semeval
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


XML = """<?xml version="1.0" encoding="UTF-8"?>
<xml version="1.0">
<OrgQuestion ORGQ_ID="Q1">
\t<OrgQSubject>Wool</OrgQSubject>
\t<OrgQBody>Where to buy?</OrgQBody>
\t<Thread THREAD_SEQUENCE="Q1_R4">
\t\t<RelQuestion RELQ_ID="Q1_R4" RELQ_RANKING_ORDER="4" RELQ_CATEGORY="Crafts" RELQ_RELEVANCE2ORGQ="PerfectMatch">
\t\t\t<RelQSubject>Yarn</RelQSubject>
\t\t\t<RelQBody>Any shop? I&apos;m\u00a0 new</RelQBody>
\t\t</RelQuestion>
\t\t<RelComment RELC_ID="Q1_R4_C1"><RelCText>The mill.</RelCText></RelComment>
\t</Thread>
</OrgQuestion>
<OrgQuestion ORGQ_ID="Q1">
\t<OrgQSubject>Wool</OrgQSubject>
\t<OrgQBody>Where to buy?</OrgQBody>
\t<Thread THREAD_SEQUENCE="Q1_R9">
\t\t<RelQuestion RELQ_ID="Q1_R9" RELQ_RANKING_ORDER="9" RELQ_RELEVANCE2ORGQ="Irrelevant">
\t\t\t<RelQSubject>Cars?</RelQSubject>
\t\t\t<RelQBody></RelQBody>
\t\t</RelQuestion>
\t</Thread>
</OrgQuestion>
</xml>
"""


def test_the_release(tmp_path: Path) -> None:
    public, own = tmp_path / "public", tmp_path / "own"
    (public / "v3.2").mkdir(parents=True)
    own.mkdir()
    names = ("train-part1", "train-part2", "dev", "test")
    for part in (*names, "dev-with-multiline", "train-part1-subtaskA", "dev-subtaskA"):
        (public / "v3.2" / f"SemEval2016-Task3-CQA-QL-{part}.xml").write_text(XML, encoding="utf-8")
    pairs = read_semeval(public / "v3.2" / "SemEval2016-Task3-CQA-QL-dev.xml")
    assert pairs == [
        Pair("Wool Where to buy?", "Yarn Any shop? I'm\u00a0 new", 1.0, "Q1", "Q1_R4"),
        Pair("Wool Where to buy?", "Cars?", 0.0, "Q1", "Q1_R9"),
    ]
    assert len(semeval_files(public)) == 4
    written = write_semeval(public, own)
    assert {path.name for path in written} == {
        "subtaskB_train_part1_fromcsv.jsonl",
        "subtaskB_train_part2.jsonl",
        "subtaskB_dev.jsonl",
        "subtaskB_test.jsonl",
    }
    assert all(read_semeval(path) == pairs and count == 2 for path, count in written.items())
    record = json.loads((own / "subtaskB_dev.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert list(record) == ["qid", "q_subject", "q_body", "rid", "rank", "label", "r_subject", "r_body"]
    assert record["rank"] == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (XML.replace("Irrelevant", "?"), r"line 14: label '\?'; expected one of PerfectMatch"),
        (XML[:600], r"line \d+: no whole XML here"),
        (XML.replace("RelQuestion", "Question"), r"line 3: expected an ORGQ_ID and a <Thread> with a <RelQuestion>"),
        (XML.replace("OrgQuestion", "Question"), r"no <OrgQuestion> in it"),
        (XML.replace("<xml", "<!DOCTYPE xml>\n<xml"), r"line 2: a document type"),
    ],
)
def test_malformed_release(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "b.xml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MatchloomError, match=rf"b\.xml.*{message}"):
        read_semeval(path)


@pytest.mark.data
def test_published_counts(data_dir: Path) -> None:
    folder = data_dir / "semeval-cqa"
    parts = [read_semeval(folder / f"subtaskB_train_{part}.jsonl") for part in ("part1_fromcsv", "part2")]
    train, dev = [pair for part in parts for pair in part], read_semeval(folder / "subtaskB_dev.jsonl")
    for pairs, queries, count, positives in ((train, 267, 2628, 1063), (dev, 50, 500, 214)):
        assert len({pair.query_id for pair in pairs}) == len({pair[0::3] for pair in pairs}) == queries
        assert len({pair.text_id for pair in pairs}) == len(pairs) == count
        assert sum(pair.label or 0.0 for pair in pairs) == positives
