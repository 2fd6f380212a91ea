"""What users really have: other names, other separators, no header, JSON lists; and labels that mean something else."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.basics.files import max_line
from matchloom.data.formats import read_pairs
from matchloom.data.formats.columns import COLUMNS, find_columns
from matchloom.types import MatchloomError, Pair
from tests.data.test_formats import file, told
from tests.drawing import examples
from tests.refusing import refused


def first(path: Path, **arguments: Any) -> Pair:
    return next(read_pairs(path, fill_ids=False, **arguments))


# ---- names


@pytest.mark.parametrize(
    ("header", "pair"),
    [
        ("sentence1,sentence2,label", Pair("a", "b", 1.0)),
        ("premise,hypothesis,label", Pair("a", "b", 1.0)),
        ("text_a,text_b,label", Pair("a", "b", 1.0)),
        ("Text A,Text B,Label", Pair("a", "b", 1.0)),
        ("Query,Passage,Relevance", Pair("a", "b", 1.0)),
        ("question,passage,score", Pair("a", "b")),
        ("prompt,response,id", Pair("a", "b")),
        ("QUESTION 1,question-2,is_duplicate", Pair("a", "b", 1.0)),
        ("title,body,label", Pair("a", "b", 1.0)),
        ("query,body,text", Pair("a", "1")),
        ("question,answer,title", Pair("a", "b")),
        ("query,text,qid", Pair("a", "b", None, "1")),
        ("query,passage,pid", Pair("a", "b", None, "", "1")),
        ("question,sentence,Sentence ID", Pair("a", "b", None, "", "1")),
    ],
)
def test_names_that_data_sets_use(tmp_path: Path, header: str, pair: Pair) -> None:
    assert first(file(tmp_path, "p.csv", f"{header}\na,b,1\n")) == pair


def test_question_pairs_with_an_id_for_each(tmp_path: Path) -> None:
    path = file(
        tmp_path, "p.csv", '"id","qid1","qid2","question1","question2","is_duplicate"\n"0","1","2","a","b","0"\n'
    )
    assert first(path) == Pair("a", "b", 0.0, "1", "2")


def test_an_id_belongs_to_its_text(tmp_path: Path) -> None:
    header = "QuestionID\tQuestion\tDocID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    assert first(file(tmp_path, "p.tsv", header + "Q1\ta\tD1\tTitle\tD1-0\tb\t1\n")) == Pair(
        "a", "b", 1.0, "Q1", "D1-0"
    )


def test_two_for_one_name_both_and_the_remedy(tmp_path: Path) -> None:
    path = file(tmp_path, "p.csv", "question,answer,passage,qid\na,b,c,1\n")
    line = told(path)
    assert "'answer' and 'passage' could each be the column 'text'; choose with columns={'text': 'answer'}" in line
    assert first(path, columns={"text": "passage"}) == Pair("a", "c", None, "1")
    both = file(tmp_path, "q.csv", "query,text,docid,pid\na,b,1,2\n")
    assert "'docid' and 'pid' could each be the column 'text_id'" in told(both)
    assert first(both, columns={"text_id": "pid"}).text_id == "2"
    assert first(both, columns={"text_id": ""}).text_id == ""


def test_columns_as_the_user_says(tmp_path: Path) -> None:
    path = file(tmp_path, "p.tsv", "text\treply\tsubject\tok\nx\ta\tb\tyes\n")
    mine = {"query": "Subject", "text": "reply", "label": "ok"}
    assert first(path, columns=mine) == Pair("b", "a", 1.0)
    swapped = file(tmp_path, "q.tsv", "query\ttext\na\tb\n")
    assert first(swapped, columns={"query": "text", "text": "query"}) == Pair("b", "a")
    assert "the column 'answers' for 'text' is not there; found text, reply, subject, ok" in told(
        path, columns={"text": "answers"}
    )
    twice = file(tmp_path, "r.csv", "query,A,a\nq,b,c\n")
    assert first(twice, columns={"text": "a"}).text == "c"
    assert "the column ' a' for 'text' is there 2 times" in told(twice, columns={"text": " a"})
    for wrong, expected in [
        ({"answer": "a"}, "'answer' is unknown; expected some of query_id"),
        ({"text": ""}, "text is ''"),
    ]:
        with pytest.raises(MatchloomError, match=expected):
            read_pairs(path, columns=wrong)


def test_columns_of_json_and_parquet(tmp_path: Path) -> None:
    rows = [{"ask": "a", "reply": "b", "good": 1}]
    mine = {"query": "ask", "text": "reply", "label": "good"}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "p.parquet")
    for path in (
        file(tmp_path, "p.jsonl", json.dumps(rows[0])),
        file(tmp_path, "p.json", json.dumps(rows)),
        tmp_path / "p.parquet",
    ):
        assert first(path, columns=mine) == Pair("a", "b", 1.0)
        assert "if they have other names: columns={'query': 'NAME', 'text': 'NAME'}" in told(path)


def test_names_with_line_breaks_are_told_in_one_line(tmp_path: Path) -> None:
    assert "found the columns two lines, query; expected" in told(file(tmp_path, "p.csv", '"two\nlines",query\na,b\n'))
    assert "found the columns two lines; expected" in told(file(tmp_path, "p.json", '{\n"two\\nlines": 1}'))
    assert "columns={'text': 'te xt'}" in told(file(tmp_path, "p.jsonl", '{"query": "a", "te\\nxt": 1, "text": 2}'))


def test_every_name_is_found_beside_our_own() -> None:
    for role, names in COLUMNS.items():
        for name in names:
            others = [own for own in ("query", "text") if own != role]
            assert find_columns("f", [*others, name])[role] == len(others)


# ---- separators, headers, line ends


@pytest.mark.parametrize(
    "content",
    [
        "query;text;label\n",
        "query|text|label\n",
        "query\ttext\tlabel\n",
        "sep=;\nquery;text;label\n",
        "sep=|\r\nquery|text|label\r\n",
        '\ufeffsep=,\n"query","text","label"\n',
        '"sep=\t"\nquery\ttext\tlabel\n',
        "\n\nquery;text;label\n",
    ],
)
def test_separators_are_told_by_the_first_line(tmp_path: Path, content: str) -> None:
    separator = next(each for each in ";|\t," if f"query{each}text" in content.replace('"', ""))
    row = separator.join(['"a; b, c | d ""e""\n\tf"', "g", "1"])
    path = file(tmp_path, "p.csv", content + row + "\n")
    assert first(path) == Pair('a; b, c | d "e"\n\tf', "g", 1.0)
    path = file(tmp_path, "p.csv", content + row + f"\nx{separator}y{separator}perhaps\n")
    number = content.count("\n") + 3
    with refused("bad_row", number, "'perhaps'"):
        list(read_pairs(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.tsv", "how is it made\tby hand\t1\nand this\tso\t0\n"),
        ("p.txt", "how is it made\tby hand\t1\r\nand this\tso\t0"),
        ("p.csv", "how is it made,by hand,1\nand this,so,0\n"),
        ("p.csv", '"how is it made";"by hand";yes\nand this;so;no\n'),
        ("p.tsv", "\ufeffhow is it made\tby hand\t1\nand this\tso\t0\n"),
    ],
)
def test_without_a_header_the_first_line_is_a_pair_and_it_is_said(
    tmp_path: Path, name: str, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = file(tmp_path, name, content)
    with caplog.at_level(logging.WARNING, logger="matchloom"):
        assert [pair[:3] for pair in read_pairs(path)] == [("how is it made", "by hand", 1.0), ("and this", "so", 0.0)]
    assert "the first line names no column that is known; it is taken as a pair, the columns as query, text, label" in (
        caplog.text
    )
    assert "the column 'how' for 'query' is not there" in told(path, columns={"query": "how", "text": "made"})


def test_two_columns_without_a_header(tmp_path: Path) -> None:
    path = file(tmp_path, "p.txt.gz", gzip.compress(b"how is it made\tby hand\nand this\tso\tor so\n"))
    pairs = read_pairs(path, fill_ids=False)
    assert next(pairs) == Pair("how is it made", "by hand")
    assert "line 2: found 3 fields, expected 2 as in the first line" in told(path)


def test_a_header_of_unknown_names_is_told_where_it_can_be(tmp_path: Path) -> None:
    assert "found the columns left, right, gold; expected" in told(
        file(tmp_path, "p.tsv", "left\tright\tgold\na\tb\t1\n")
    )
    assert "found the columns question, reply; expected 'text'" in told(
        file(tmp_path, "p.tsv", "question\treply\na\tb\n")
    )
    assert "found the columns just a line; expected" in told(file(tmp_path, "p.txt", "just a line\nand another\n"))


# ---- JSON


@pytest.mark.parametrize(
    "content",
    [
        '[{"query": "a", "text": "b"}, {"query": "c", "text": "d"}]',
        '\ufeff \n[\r\n{"query": "a",\n "text": "b"}\n,\n{"query": "c", "text": "d"}\n]\n',
        '{"data": [{"query": "a", "text": "b"}, {"query": "c", "text": "d"}]}',
        '{"v": {"data": [1]}, "n": 12,\n"data": [{"query": "a", "text": "b"}, {"query": "c", "text": "d"}], "x": null}',
        '{"query": "a", "text": "b"}\n\n{"query": "c", "text": "d"}\n',
        '\n{"query": "a", "text": "b", "data": 1}\n{"query": "c", "text": "d"}',
    ],
)
def test_a_json_file_is_a_list_or_holds_one_or_has_lines(tmp_path: Path, content: str) -> None:
    for name, written in (("p.json", content.encode()), ("p.json.gz", gzip.compress(content.encode()))):
        found = read_pairs(file(tmp_path, name, written), fill_ids=False)
        assert list(found) == [Pair("a", "b"), Pair("c", "d")]


WRONG_JSON = {
    "": "holds no pairs",
    "[]": "holds no pairs",
    '{"data": []}': "holds no pairs",
    "{}": "found {}",
    "{\n}": 'expected a list of objects, or {"data": [...]}, found {}',
    "5": "found '5'",
    '{"query": {"0": 1}, "text": {"0": "b"}\n}': "object 1: query is 1; expected a text",
    '{"data": {}}\n5': "found the columns data",
    '[{"query": "a", "text": "b"}, 5]': "object 2: expected a JSON object, found 5",
    '[{"query": "a", "text": "b"} {}]': "object 1: this is no JSON (expected a comma or ], found '{')",
    '[{"query": "a", "text": "b"}': "object 1: this is no JSON (the end is missing)",
    '[{"query": "a", "te': "object 1: this is no JSON (Unterminated string starting at, is the file cut off?)",
    "[{'query': 'a'}]" + " " * 99: "object 1: this is no JSON (Expecting property name enclosed in double quotes)",
    '[{"query": "a", "text": "b"}] more': "and nothing after it, found 'm'",
    '[{"query": "a"}]': "object 1: found the columns query; expected 'text'",
    "[" * 100_000: "object 1: this is no JSON",
    '{\n"data" [': "expected a key and a colon",
    '{\n"data": [] 5': "expected a comma or }, found '5'",
    '{\n"data": []': "the end is missing",
}


@pytest.mark.parametrize("content", WRONG_JSON)
def test_wrong_json(tmp_path: Path, content: str) -> None:
    assert WRONG_JSON[content] in told(file(tmp_path, "p.json", content))


def test_json_in_other_encodings(tmp_path: Path) -> None:
    assert first(file(tmp_path, "q.json", '[{"query": "é", "text": "b"}]'.encode("utf-16"))) == Pair("é", "b")
    cut_off = '[{"query": "é", "text": "b"}]'.encode("utf-16")[:-1]
    assert "is damaged or cut off" in told(file(tmp_path, "p.json", cut_off))
    latin = '[{"query": "caf\xe9", "text": "b"}]'.encode("latin-1")
    assert "object 1: this is no JSON (byte 0xe9 is not UTF-8)" in told(file(tmp_path, "p.json", latin))


def test_one_long_object_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, "p.json", json.dumps([{"query": "a", "text": "b" * 500_000}]))
    assert len(first(path).text) == 500_000
    monkeypatch.setenv("MATCHLOOM_MAX_LINE", "100000")
    assert max_line() == 100_000
    assert "object 1: longer than 100,000 characters" in told(path)


@examples(40)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"query": st.text(max_size=5).map(lambda text: f"q{text}"), "text": st.text(max_size=9)},
            optional={"other": st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.lists(st.none())},
        ),
        min_size=1,
        max_size=8,
    ),
    chunk=st.integers(1, 40),
    indent=st.none() | st.just(1),
    plain=st.booleans(),
)
def test_json_read_in_pieces_is_json_read_whole(
    tmp_path: Path, rows: list[dict[str, Any]], chunk: int, indent: int | None, plain: bool
) -> None:
    path = file(tmp_path, "p.json", json.dumps(rows, indent=indent, ensure_ascii=plain))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matchloom.data.formats.json_list._CHUNK", chunk)
        found = [pair[:2] for pair in read_pairs(path)]
    assert found == [(row["query"], row["text"]) for row in rows]


# ---- labels


@pytest.mark.parametrize("name", ["p.tsv", "p.jsonl"])
def test_labels_below_zero_are_refused_with_the_remedy(tmp_path: Path, name: str) -> None:
    rows = {"p.tsv": "query\ttext\tlabel\na\tb\t-1\n", "p.jsonl": '\n{"query": "a", "text": "b", "label": -1}'}
    path = file(tmp_path, name, rows[name])
    for graded in (False, True):
        line = told(path, graded=graded)
        assert "line 2: label is " in line
        assert "labels start at 0: write 0 if the text is wrong" in line


def test_grades_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    path = file(tmp_path, "p.tsv", "query\ttext\tlabel\na\tb\t.8\nc\td\t2.5\n")
    assert [pair.label for pair in read_pairs(path, graded=True)] == [0.8, 2.5]
    assert "line 2: label is '.8'; expected 1 (right), 0 (wrong) or a whole number; grades" in told(path)


def test_a_missing_label_says_where_it_may_be(tmp_path: Path) -> None:
    line = told(file(tmp_path, "p.tsv", "query\ttext\tscore\na\tb\t1\n"), require_label=True)
    told_so = "in the column 'label' (or relevance, is_duplicate; if it has another name: columns={'label': 'NAME'})"
    assert told_so in line
