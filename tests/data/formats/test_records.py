"""JSON of many shapes: help desks, chats, several questions, nested objects, columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from matchloom.data.formats import as_pairs, read_pairs
from tests.data.formats.reading import read
from tests.refusing import refused

ZENDESK = {
    "count": 3,
    "next_page": None,
    "articles": [
        {
            "id": 360001,
            "html_url": "https://example.org/hc/1",
            "draft": False,
            "section_id": 77,
            "title": "How do I reset?",
            "name": "How do I reset?",
            "locale": "en-us",
            "label_names": ["password"],
            "body": "<p>Click <b>Reset</b> &amp; wait.</p><ul><li>Done",
        },
        {"id": 2, "draft": True, "section_id": 77, "title": "Draft", "body": "<p>x</p>"},
        {"id": 3, "draft": False, "section_id": 77, "title": "Empty", "body": None},
    ],
    "sections": [{"id": 77, "name": "Account", "description": "All about accounts"}],
}
FRESHDESK = [
    {"id": 1, "folder_id": 4, "title": "May I?", "description": "<p>Any time.</p>", "status": 2, "tags": ["plan"]},
    {"id": 2, "folder_id": 4, "title": "If a < b?", "description": "", "description_text": "a < b", "status": 2},
    {"id": 3, "folder_id": 4, "title": "Old", "description": "<p>x</p>", "status": 1},
]
INTERCOM = {
    "type": "list",
    "total_count": 2,
    "data": [
        {"type": "article", "id": "6", "title": "Start", "body": "<p>Sign up.</p>", "state": "published", "url": "u"},
        {"type": "article", "id": "7", "title": "Later", "body": "<p>...</p>", "state": "draft"},
    ],
}


def test_zendesk(tmp_path: Path) -> None:
    found = read(tmp_path / "z.json", json.dumps(ZENDESK))
    assert found.pairs == [("How do I reset?", "Click Reset & wait.\nDone")]
    assert found.ids == ["360001"]
    assert found.own[0]["html_url"] == "https://example.org/hc/1"
    assert found.own[0]["label_names"] == '["password"]'
    assert [(one.place, one.error) for one in found.left_out] == [("object 2", None), ("object 3", None)]
    assert "Zendesk" in found.left_out[0].reason


def test_freshdesk_and_intercom(tmp_path: Path) -> None:
    fresh = read(tmp_path / "f.json", json.dumps(FRESHDESK))
    assert fresh.pairs == [("May I?", "Any time."), ("If a < b?", "a < b")]
    assert ["Freshdesk" in one.reason for one in fresh.left_out] == [True]
    inter = read(tmp_path / "i.json", json.dumps(INTERCOM))
    assert (inter.pairs, inter.ids) == ([("Start", "Sign up.")], ["6"])
    assert inter.own[0]["url"] == "u"


def test_help_desks_as_csv(tmp_path: Path) -> None:
    content = 'id,title,body,section_id,draft\n1,How?,"<p>So, <b>exactly</b>.</p>",7,false\n2,Draft,x,7,TRUE\n'
    found = read(tmp_path / "z.csv", content)
    assert (found.pairs, found.ids, len(found.left_out)) == ([("How?", "So, exactly.")], ["1"], 1)


def test_what_is_left_out_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "z.json").write_text(json.dumps(ZENDESK))
    assert len(list(read_pairs(tmp_path / "z.json"))) == 1
    assert "2 skipped" in caplog.text


SHAPES: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "several questions": ([{"questions": ["a", "b"], "answer": "x"}], [("a", "x"), ("b", "x")]),
    "question and more": ([{"question": "a", "questions": ["a", "b"], "answer": "x"}], [("a", "x"), ("b", "x")]),
    "several answers": ([{"question": "a", "answers": [{"text": "x"}, "y"]}], [("a", "x"), ("a", "y")]),
    "sections": (
        {"faq": {"Money": [{"q": "a", "a": "x"}], "Post": {"Abroad": [{"question": "b", "answer": "y"}]}}},
        [("a", "x"), ("b", "y")],
    ),
    "a dictionary": (
        {"How do I pay?": "By card.", "Open when?": "At nine."},
        [("How do I pay?", "By card."), ("Open when?", "At nine.")],
    ),
    "columns": ({"question": ["a", "b"], "answer": ["x", "y"]}, [("a", "x"), ("b", "y")]),
    "a frame": ({"question": {"0": "a", "1": "b"}, "answer": {"0": "x", "1": "y"}}, [("a", "x"), ("b", "y")]),
    "JSON-LD": (
        {"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "a", "acceptedAnswer": {"text": "<p>x"}}]},
        [("a", "x")],
    ),
    "SQuAD": (
        {
            "data": [
                {"title": "t", "paragraphs": [{"context": "c", "qas": [{"question": "a", "answers": [{"text": "x"}]}]}]}
            ]
        },
        [("a", "x")],
    ),
    "a chat": (
        [
            {
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "a"},
                    {"role": "assistant", "content": "x"},
                    {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "image"}]},
                    {"role": "assistant", "content": "y"},
                    {"role": "assistant", "content": "and another thing"},
                    {"role": "user", "content": "bye"},
                ]
            }
        ],
        [("a", "x"), ("b", "y")],
    ),
    "turns": ([{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "x"}]}], [("a", "x")]),
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(tmp_path: Path, shape: str, indent: int | None) -> None:
    content, pairs = SHAPES[shape]
    assert read(tmp_path / "p.json", json.dumps(content, indent=indent)).pairs == pairs


@pytest.mark.parametrize("shape", ["several questions", "several answers", "a chat", "turns"])
def test_shapes_on_lines(tmp_path: Path, shape: str) -> None:
    content, pairs = SHAPES[shape]
    lines = "".join(json.dumps(one) + "\n" for one in content)
    assert read(tmp_path / "p.jsonl", lines + lines).pairs == pairs + pairs


def test_sections_become_a_column(tmp_path: Path) -> None:
    content, _ = SHAPES["sections"]
    found = read(tmp_path / "p.json", json.dumps(content))
    assert [own["section"] for own in found.own] == ["Money", "Post / Abroad"]


def test_dicts_of_python_are_still_flat() -> None:
    assert next(as_pairs([{"question": "a", "answer": "x", "tags": ["t"]}]))[:2] == ("a", "x")


WRONG: dict[str, Any] = {
    "a number": [7],
    "other names": [{"wer": "a", "was": "b"}],
    "nothing inside": {"faq": {"Money": []}},
    "nested deeply": {"a": {"b": {"c": {"d": 1}}}},
    "a text": "no object",
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(WRONG[kind]))
    code = {"a number": "bad_row", "a text": "wrong_format"}.get(kind, "bad_columns")
    with refused(code, path):  # type: ignore[arg-type]
        list(read_pairs(path))


def test_objects_in_objects_without_end(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text('{"a":' * 400 + '{"question": "q", "answer": "a"}' + "}" * 400)
    with refused("bad_columns", path):
        list(read_pairs(path))
