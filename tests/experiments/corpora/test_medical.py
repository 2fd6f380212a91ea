from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.corpora.medical import forum_questions, medquad_questions
from matchloom.types import MatchloomError

PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<Document id="0000003" source="Guild" url="http://example.org/looms">
<Focus>Looms</Focus>
<QAPairs>
<QAPair pid="1">
<Question qid="0000003-1" qtype="information">What is (are) Looms ?</Question>
<Answer>A loom [lo\u00f6m] weaves cloth &amp;
                ribbons.</Answer>
</QAPair>
<QAPair pid="2"><Question>How to keep a loom ?</Question><Answer></Answer></QAPair>
<QAPair pid="3"><Question>How to oil a loom ?</Question></QAPair>
</QAPairs>
</Document>
"""


def test_medquad(tmp_path: Path) -> None:
    folder = tmp_path / "2_Guild_QA"
    folder.mkdir()
    (folder / "0000003.xml").write_text(PAGE, encoding="utf-8")
    assert [tuple(row) for row in medquad_questions(folder / "0000003.xml")] == [
        ("medquad:2_Guild_QA", "0000003", "What is (are) Looms ?", "A loom [loöm] weaves cloth & ribbons.")
    ]  # answers that were left out for their owners' rights are none


def test_medquad_malformed(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(PAGE[:300], encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"a\.xml, line \d+: no whole XML"):
        list(medquad_questions(path))
    path.write_text(PAGE.replace('id="0000003" ', ""), encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"a\.xml, line 2: a <Document> without an id"):
        list(medquad_questions(path))


def test_forums(tmp_path: Path) -> None:
    path = tmp_path / "weaversQAs.json"
    post = {
        "url": "http://x/1",
        "tags": ["wool"],
        "question": "is wool\n warm?",
        "answer": "it is",
        "question_text": "?",
    }
    path.write_text(json.dumps([post]), encoding="utf-8")
    assert [tuple(row) for row in forum_questions(path)] == [
        ("lasseregin:weaversQAs", "http://x/1", "is wool warm?", "it is")
    ]
    path.write_text('[{"question": "q"}]', encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"weaversQAs\.json: .*missing required field `answer`.*\$\[0\]"):
        list(forum_questions(path))
    path.write_text('[\n{"question": "q",\n', encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"weaversQAs\.json, line 3: .*truncated"):
        list(forum_questions(path))
