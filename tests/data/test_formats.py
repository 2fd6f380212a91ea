"""Pairs, runs and judgements: what is written is read back, and every damaged file is told in one line."""

from __future__ import annotations

import gzip
import json
import math
import resource
import string
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.basics.files import atomic_write, read_lines
from matchloom.data.formats import (
    Judgement,
    RunLine,
    read_pairs,
    read_qrels,
    read_run,
    write_pairs,
    write_qrels,
    write_run,
)
from matchloom.data.identity import with_ids
from matchloom.types import MatchloomError, Pair
from tests.drawing import examples
from tests.refusing import refused

NAMES = ["p.tsv", "p.tsv.gz", "p.csv", "p.csv.gz", "p.jsonl", "p.jsonl.gz", "p.json", "p.json.gz", "p.parquet", "p.txt"]
ONE = Pair("how do I knit", "with two needles", 1.0, "q1", "t1", "g")


def told(path: Path, **arguments: Any) -> str:
    """The one line that reading this file gives."""
    with pytest.raises(MatchloomError) as caught:
        list(read_pairs(path, **arguments))
    line = str(caught.value)
    assert str(path) in line
    assert "\n" not in line
    return line


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---- round trips

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(characters, max_size=12) | st.sampled_from(
    ["a\tb", 'say "no", twice', "line\nbreak\r\n", "\x85 \u2028", "\ufeff"]
)
ids = st.text(characters.filter(lambda c: c not in "\t\n\r"), max_size=4)
labels = st.none() | st.floats(min_value=0, allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0])
any_pairs = st.lists(
    st.builds(Pair, texts, texts, labels, ids, ids, ids).filter(lambda p: bool(p.query.strip() or p.text.strip())),
    min_size=1,
    max_size=6,
    unique_by=lambda p: (p.query_id, p.text_id),
)


@pytest.mark.parametrize("name", NAMES)
@examples(60)
@given(pairs=any_pairs)
def test_what_is_written_is_read_back(tmp_path: Path, name: str, pairs: list[Pair]) -> None:
    write_pairs(tmp_path / name, pairs)
    if name.startswith(("p.tsv", "p.txt")):  # no quoting there: what would break a line or a field becomes a space
        fold = str.maketrans("\t\n\r", "   ")
        pairs = [p._replace(query=p.query.translate(fold), text=p.text.translate(fold)) for p in pairs]
    assert list(read_pairs(tmp_path / name, graded=True)) == list(with_ids(pairs))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_pairs_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    write_pairs(tmp_path / name, [ONE])
    before = (tmp_path / name).read_bytes()
    write_pairs(tmp_path / name, iter([ONE]))
    assert (tmp_path / name).read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_more_pairs_than_one_parquet_row_group(tmp_path: Path) -> None:
    pairs = [Pair(f"q{i}", f"t{i}", None, str(i), "x") for i in range(25_001)]
    write_pairs(tmp_path / "p.parquet", pairs)
    assert list(read_pairs(tmp_path / "p.parquet")) == pairs
    assert pyarrow.parquet.ParquetFile(tmp_path / "p.parquet").num_row_groups == 3


def test_a_numpy_or_whole_label_is_written_as_a_number(tmp_path: Path) -> None:
    pairs = [ONE._replace(label=np.float32(0.5)), ONE._replace(label=1, text_id="t2")]
    for name in NAMES:
        write_pairs(tmp_path / name, pairs)
        assert [p.label for p in read_pairs(tmp_path / name, graded=True)] == [0.5, 1.0]


# ---- what other programs write


def test_tsv_columns_by_their_other_names_in_any_order_and_case(tmp_path: Path) -> None:
    path = file(tmp_path, "p.tsv", 'Label\tanswer\tspeed\tQID\tQuestion\n1\t"ten" \t9\t7\t say\n\nno\tx\t9\t7\tsay\n')
    first, second = read_pairs(path)
    assert first[:4] == (" say", '"ten" ', 1.0, "7")
    assert second[:4] == ("say", "x", 0.0, "7")
    assert first.group == ""
    assert first.text_id != second.text_id


def test_our_own_column_name_goes_before_another(tmp_path: Path) -> None:
    path = file(tmp_path, "p.csv", "answer,text,query\nignored,taken,q\n")
    assert next(read_pairs(path)).text == "taken"


def test_csv_with_quotes_commas_line_breaks_and_windows_line_ends(tmp_path: Path) -> None:
    path = file(tmp_path, "p.csv", 'query,text\r\n"a ""b"", c","two\r\nlines"\r\nd,\r\n')
    assert [p[:2] for p in read_pairs(path)] == [('a "b", c', "two\r\nlines"), ("d", "")]


def test_jsonl_values_and_keys_may_differ_from_line_to_line(tmp_path: Path) -> None:
    rows = [
        {"query": "a", "text": "b", "label": True, "query_id": 5, "text_id": "x"},
        {"answer": "c", "question": "d", "label": "No", "group": None},
        {"text": "\u2028 e", "query": "f", "label": 2.0},
    ]
    path = file(tmp_path, "p.jsonl", "\n\n".join(json.dumps(row) for row in rows))
    found = list(read_pairs(path))
    assert [p[:3] for p in found] == [("a", "b", 1.0), ("d", "c", 0.0), ("f", "\u2028 e", 2.0)]
    assert found[0].query_id == "5"


def test_parquet_with_other_types(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "question": pyarrow.array(["a", "a"]).dictionary_encode(),
            "answer": pyarrow.array(["b", "c"], pyarrow.large_string()),
            "relevance": pyarrow.array([True, None]),
            "qid": pyarrow.array([3, 3], pyarrow.int32()),
            "vector": [[1.0], [2.0]],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet")
    assert [p[:4] for p in read_pairs(tmp_path / "p.parquet")] == [("a", "b", 1.0, "3"), ("a", "c", None, "3")]


def test_the_format_can_be_named(tmp_path: Path) -> None:
    path = file(tmp_path, "pairs.dat", "query\ttext\na\tb\n")
    assert next(read_pairs(path, format="tsv")).text == "b"
    assert "no format is known by this name" in told(path)
    with refused("unknown_name", "'xls'"):
        read_pairs(path, format="xls")


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    for name, content in {"p.tsv": "query\ttext\na\tb\n", "p.jsonl": '{"query": "a", "text": "b"}\n'}.items():
        assert next(read_pairs(file(tmp_path, name, b"\xef\xbb\xbf" + content.encode())))[:2] == ("a", "b")


def test_gzip_is_told_by_its_bytes(tmp_path: Path) -> None:
    assert next(read_pairs(file(tmp_path, "p.tsv", gzip.compress(b"query\ttext\na\tb\n"))))[:2] == ("a", "b")
    assert next(read_pairs(file(tmp_path, "p.tsv.gz", b"query\ttext\na\tb\n")))[:2] == ("a", "b")


@pytest.mark.parametrize("name", NAMES)
def test_a_text_of_100_000_words(tmp_path: Path, name: str) -> None:
    pair = ONE._replace(text="needle " * 100_000)
    write_pairs(tmp_path / name, [pair])
    assert list(read_pairs(tmp_path / name)) == [pair]


@pytest.mark.slow
def test_pairs_are_streamed(tmp_path: Path) -> None:
    for name in ("p.tsv", "p.csv", "p.jsonl", "p.json", "p.parquet"):
        path = tmp_path / name
        write_pairs(path, (Pair("q", "x" * 2_000, None, "", "") for _ in range(8_000)))  # 16 MB of text
        tracemalloc.start()
        count = sum(1 for _ in read_pairs(path))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == 8_000
        assert peak < 5e6, name


# ---- labels, ids, empty texts


@pytest.mark.parametrize(
    ("word", "label"),
    [
        ("1", 1),
        ("0", 0),
        ("4", 4),
        ("0.0", 0),
        ("1e3", 1000),
        (" 1 ", 1),
        ("YES", 1),
        ("no", 0),
        ("True", 1),
        ("", None),
    ],
)
def test_labels(tmp_path: Path, word: str, label: float | None) -> None:
    assert next(read_pairs(file(tmp_path, "p.tsv", f"query\ttext\tlabel\na\tb\t{word}\n"))).label == label


@pytest.mark.parametrize("word", ["good", "nan", "inf", "1,5", "1_0", "yes!"])
def test_unknown_labels_name_the_line(tmp_path: Path, word: str) -> None:
    line = told(file(tmp_path, "p.tsv", f"query\ttext\tlabel\na\tb\t1\nc\td\t{word}\n"))
    assert f"line 3: label is {word!r}; expected a number, yes, no, true or false" in line


def test_labels_can_be_required(tmp_path: Path) -> None:
    path = file(tmp_path, "p.tsv", "query\ttext\tlabel\na\tb\t1\nc\td\t\n")
    assert len(list(read_pairs(path))) == 2
    assert "line 3: there is no label" in told(path, require_label=True)


def test_one_side_may_be_empty_but_not_both(tmp_path: Path) -> None:
    path = file(tmp_path, "p.tsv", "query\ttext\na\t\n\tb\n \t \n")
    pairs = read_pairs(path)
    assert [next(pairs)[:2], next(pairs)[:2]] == [("a", ""), ("", "b")]
    assert "line 4: query and text are both empty" in told(path)


def test_the_same_two_ids_twice_name_the_second_line(tmp_path: Path) -> None:
    path = file(tmp_path, "p.csv", 'qid,docid,query,text\n1,a,q,"x\ny"\n2,a,q,x\n1,a,q,z\n')
    assert "line 5: query_id '1' with text_id 'a' was already given above" in told(path)


# ---- damaged files

DAMAGED = {
    "no columns": (
        "p.tsv",
        "id\tlabel\n1\t0\n",
        "found the columns id, label; expected 'query' (or question, question1",
    ),
    "one column": ("p.csv", "query,label\na,1\n", "expected 'text' (or answer, document, sentence"),
    "no header": ("p.tsv", "1\thow is it made\tby hand\n", "found the columns 1, how is it made, by hand; expected"),
    "no header of four": ("p.csv", "a,b,1,c\n", "found the columns a, b, 1, c; expected"),
    "two columns for one": ("p.csv", "query,answer,sentence\na,b,c\n", "'answer' and 'sentence' could each be"),
    "the same column twice": ("p.csv", "query,text,text\na,b,c\n", "'text' and 'text' could each be"),
    "latin-1": ("p.tsv", "query\ttext\na\tcaf\xe9\n".encode("latin-1"), "line 2: byte 6 (0xe9) is not UTF-8"),
    "utf-16 cut off": ("p.tsv", "query\ttext\na\tb\n".encode("utf-16")[:-1], "is damaged or cut off"),
    "utf-16 without a mark": ("p.csv", "query,text\n".encode("utf-16-le"), "line 1: found a NUL byte"),
    "a NUL byte": ("p.jsonl", b'{"query": "a", "text": "b"}\n\0\n', "line 2: found a NUL byte"),
    "empty": ("p.tsv", "", "holds no pairs"),
    "empty csv": ("p.csv", "\n\n", "holds no pairs"),
    "empty jsonl": ("p.jsonl", "", "holds no pairs"),
    "header only": ("p.csv", "query,text\n", "holds no pairs"),
    "cut off TSV": (
        "p.tsv",
        "query\ttext\tlabel\na\tb\t1\nc\tre",
        "line 3: found 2 fields, expected 3 as in the header; is",
    ),
    "a tab too many": (
        "p.tsv",
        "query\ttext\na\tb\tc\nd\te\n",
        "line 2: found 3 fields, expected 2 as in the header; TSV",
    ),
    "cut off CSV": ("p.csv", 'query,text\na,b\nc,"rest\nof it', "line 3: this row is no CSV (unexpected end of data)"),
    "open quote": ("p.csv", 'query,text\na,"b" c\n', "line 2: this row is no CSV"),
    "cut off CSV row": ("p.csv", "query,text,label\na,b,1\nc\n", "line 3: found 1 fields, expected 3"),
    "cut off JSON": (
        "p.jsonl",
        '{"query": "a", "text": "b"}\n{"query": "a", "te',
        "line 2: this is no JSON (Input data was",
    ),
    "broken JSON": ("p.jsonl", "{'query': 'a'}\n{}\n", "line 1: this is no JSON"),
    "deep JSON": ("p.jsonl", "[" * 100_000, "line 1: this is no JSON"),
    "a JSON list": ("p.jsonl", '["a", "b"]\n', 'line 1: expected a JSON object, found \'["a", "b"]\''),
    "JSON without text": (
        "p.jsonl",
        '{"query": "a", "text": "b"}\n{"query": "a"}\n',
        "line 2: found the columns query; exp",
    ),
    "a number as text": ("p.jsonl", '{"query": "a", "text": 5}\n', "line 1: text is 5; expected a text"),
    "null as query": ("p.jsonl", '{"query": null, "text": "b"}\n', "line 1: query is missing; expected a text"),
    "a list as id": (
        "p.jsonl",
        '{"query": "a", "text": "b", "qid": [1]}\n',
        "line 1: query_id is [1]; expected a text or",
    ),
    "a list as label": (
        "p.jsonl",
        '{"query": "a", "text": "b", "label": [1]}\n',
        "line 1: label is [1]; expected a number",
    ),
    "a huge id": ("p.jsonl", '{"query": "a", "text": "b", "qid": 1' + "0" * 9999 + "}\n", "line 1: "),
    "a huge label": ("p.jsonl", '{"query": "a", "text": "b", "label": 1' + "0" * 400 + "}\n", "line 1: label is 1000"),
    "cut off gzip": ("p.tsv.gz", gzip.compress(b"query\ttext\n" + b"a\tb\n" * 999)[:-20], "is damaged or cut off"),
    "cut off gzip tail": ("p.tsv.gz", gzip.compress(b"query\ttext\n" + b"a\tb\n" * 999)[:-2], "is damaged or cut off"),
    "no Parquet": ("p.parquet", b"query,text\na,b\n", "cannot be read as Parquet"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files(tmp_path: Path, kind: str) -> None:
    name, content, expected = DAMAGED[kind]
    assert expected in told(file(tmp_path, name, content))


def test_damaged_gzip_inside(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress("".join(f"{i}\t{i * i}\n" for i in range(5_000)).encode()))
    packed[len(packed) // 2] ^= 0xFF
    assert "is damaged or cut off" in told(file(tmp_path, "p.tsv", b"".join([bytes(packed)])))


@pytest.mark.parametrize("kept", [0.3, 0.95])
def test_cut_off_parquet(tmp_path: Path, kept: float) -> None:
    write_pairs(tmp_path / "whole.parquet", [ONE._replace(text_id=str(i)) for i in range(2_000)])
    content = (tmp_path / "whole.parquet").read_bytes()
    assert "is it cut off" in told(file(tmp_path, "p.parquet", content[: int(len(content) * kept)]))


def test_null_text_in_parquet(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"query": ["a", "b"], "text": ["c", None]}), tmp_path / "p.parquet")
    assert "row 2: text is missing; expected a text" in told(tmp_path / "p.parquet")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in told(tmp_path / "none.tsv")
    (tmp_path / "folder.tsv").mkdir()
    assert "cannot be read: Is a directory" in told(tmp_path / "folder.tsv")
    assert "Parquet is compressed inside" in told(tmp_path / "p.parquet.gz")


# ---- writing


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may grow beyond this: the write fails in the middle, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_pairs(path, [ONE])
    random = np.random.default_rng(0)
    letters = np.array(list(string.ascii_letters))
    big = [Pair("".join(random.choice(letters, 500)), "x", 1.0, str(i), "a") for i in range(500)]
    with (
        full_disk(100_000),
        pytest.raises(MatchloomError, match=r"was not written \(.*\); what was there .* unchanged") as e,
    ):
        write_pairs(path, big)
    assert "\n" not in str(e.value)
    assert list(read_pairs(path)) == [ONE]
    assert list(tmp_path.iterdir()) == [path]


def test_pairs_that_fail_half_way_leave_the_old_file(tmp_path: Path) -> None:
    def broken() -> Iterator[Pair]:
        yield ONE
        raise KeyError("elsewhere")

    for name in NAMES:
        write_pairs(tmp_path / name, [ONE])
        with pytest.raises(KeyError):
            write_pairs(tmp_path / name, broken())
        assert list(read_pairs(tmp_path / name)) == [ONE]
    assert len(list(tmp_path.iterdir())) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, name: str) -> None:
    for bad, expected in [
        (Pair(" ", ""), "query and text of pair 2 are both empty"),
        (Pair("a", "b", math.nan), "the label of pair 2 is nan"),
        (Pair("a", "b", -1.0), "the label of pair 2 is -1.0; labels start at 0"),
        (Pair("a", "half \ud83d"), "is half a character"),
    ]:
        with pytest.raises(MatchloomError, match=expected):
            write_pairs(tmp_path / name, [ONE, bad])
    nul = Pair("a\0", "b", None, "q", "t")
    if "json" not in name and "parquet" not in name:
        with refused("bad_row", "pair 2"):
            write_pairs(tmp_path / name, [ONE, nul])
        assert list(tmp_path.iterdir()) == []
    else:
        write_pairs(tmp_path / name, [ONE, nul])
        assert list(read_pairs(tmp_path / name)) == [ONE, nul]


def test_tsv_ids_with_tabs_are_refused(tmp_path: Path) -> None:
    with refused("bad_row", "pair 1"):
        write_pairs(tmp_path / "p.tsv", [ONE._replace(group="a\tb")])


def test_a_file_takes_its_name_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("old")
    with atomic_write(path) as stream:
        stream.write("new")
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    with atomic_write(path, "wb") as binary:
        binary.write(b"\0\1")
    assert path.read_bytes() == b"\0\1"


def test_links_stay_and_devices_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic_write(tmp_path / "link.txt") as stream:
        stream.write("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    with atomic_write("/dev/null") as stream:
        stream.write("gone")
    assert Path("/dev/null").is_char_device()


def test_no_folder_to_write_into(tmp_path: Path) -> None:
    with refused("unwritable", "create"):
        write_pairs(tmp_path / "none" / "p.tsv", [ONE])
    (tmp_path / "p.tsv").mkdir()
    with refused("unwritable", "directory"):
        write_pairs(tmp_path / "p.tsv", [ONE])


def test_a_new_file_has_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with atomic_write(tmp_path / "ours"):
        pass
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_errors_of_other_files_are_not_ours(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "ours"):
        (tmp_path / "other").read_text()


def test_lines_end_with_a_line_feed_only(tmp_path: Path) -> None:
    path = file(tmp_path, "t", "a\u2028b\x0cc\n\r\nlast")
    assert list(read_lines(path)) == [(1, "a\u2028b\x0cc\n"), (2, "\r\n"), (3, "last")]


def test_a_line_beyond_the_limit_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(b"query\ttext\na\tb\n" + bytes([32]) * 60_000_000)  # 60 KB on the disk
    path = file(tmp_path, "p.tsv.gz", packed)
    tracemalloc.start()
    assert "line 3: longer than 10,000,000 bytes; expected one row a line" in told(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25e6

    short = file(tmp_path, "t", "four\nfive5\n")
    assert [line for _, line in read_lines(short, max_bytes=6)] == ["four\n", "five5\n"]
    with refused("too_large", "line 2", "5"):
        list(read_lines(short, max_bytes=5))
    monkeypatch.setenv("MATCHLOOM_MAX_LINE", "5")
    with refused("too_large", "line 2", "5"):
        list(read_lines(short))
    monkeypatch.setenv("MATCHLOOM_MAX_LINE", "10 MB")
    with refused("bad_value", "MATCHLOOM_MAX_LINE", "'10 MB'"):
        list(read_lines(short))


# ---- TREC


def test_a_run_is_ranked_as_trec_eval_ranks(tmp_path: Path) -> None:
    names = [("q2", "a"), ("q1", "a"), ("q1", "c"), ("q1", "b"), ("q1", "d")]
    pairs = [Pair("", "x", None, query_id, text_id) for query_id, text_id in names]
    scores = np.array([0.1, 0.5, 1e8, 1e8 + 1, -3], dtype=np.float64)  # 1e8 and 1e8 + 1 are one float32
    write_run(tmp_path / "run", pairs, scores, "ours")
    assert (tmp_path / "run").read_text() == (
        "q1 Q0 c 1 1e+08 ours\nq1 Q0 b 2 1e+08 ours\nq1 Q0 a 3 0.5 ours\nq1 Q0 d 4 -3.0 ours\nq2 Q0 a 1 0.1 ours\n"
    )
    other = np.argsort([3, 1, 4, 2, 0])
    write_run(tmp_path / "other", [pairs[i] for i in other], scores[other], "ours")
    assert (tmp_path / "other").read_bytes() == (tmp_path / "run").read_bytes()


@given(
    rows=st.lists(
        st.tuples(
            st.text(characters, min_size=1, max_size=5).filter(lambda s: s.split() == [s] and "\ufeff" not in s),
            st.integers(0, 50).map(str),
            st.floats(width=32, allow_nan=False, allow_infinity=False),
            st.integers(-1, 4),
        ),
        min_size=1,
        unique_by=lambda row: row[:2],
    )
)
def test_runs_and_judgements_round_trip(tmp_path: Path, rows: list[tuple[str, str, float, int]]) -> None:
    pairs = [Pair("", "x", float(label), query_id, text_id) for query_id, text_id, _, label in rows]
    scores = np.array([row[2] for row in rows], dtype=np.float32)
    write_run(tmp_path / "run", pairs, scores, "tag")
    write_qrels(tmp_path / "qrels", pairs)
    found = {(line.query_id, line.text_id): np.float32(line.score) for line in read_run(tmp_path / "run")}
    assert found == {row[:2]: np.float32(row[2]) for row in rows}
    assert sorted(read_qrels(tmp_path / "qrels")) == sorted(Judgement(q, t, label) for q, t, _, label in rows)


def test_raw_rows_keep_what_a_doctor_must_see(tmp_path: Path) -> None:
    path = file(tmp_path, "run", "q1 Q0 a 1 nan x\n\nq1\tQ0\ta  9 0.5 x\n")
    first, second = read_run(path)
    assert math.isnan(first.score)
    assert second == RunLine("q1", "a", 9, 0.5, "x")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("q1 Q0 a 1 0.5\n", "line 1: found 5 columns, expected 6 (query_id Q0 text_id rank score tag)"),
        (
            "q1 Q0 a 1 0.5 x\nq1 Q0 b",
            "line 2: found 3 columns, expected 6 (query_id Q0 text_id rank score tag); is the fi",
        ),
        ("q1 Q0 a first 0.5 x\n", "line 1: rank 'first' or score '0.5' is no number"),
        ("q1 Q0 a 1 high x\n", "line 1: rank '1' or score 'high' is no number"),
        ("", "is empty; expected lines of query_id Q0"),
    ],
)
def test_malformed_runs(tmp_path: Path, content: str, expected: str) -> None:
    with pytest.raises(MatchloomError) as caught:
        list(read_run(file(tmp_path, "run", content)))
    assert expected in str(caught.value)


def test_malformed_qrels(tmp_path: Path) -> None:
    with refused("bad_row", "line 2", "'x'"):
        list(read_qrels(file(tmp_path, "qrels", "q 0 a 1\nq 0 b x\n")))


def test_what_trec_cannot_hold_is_refused(tmp_path: Path) -> None:
    one = np.ones(1, dtype=np.float32)
    for pair, expected in [
        (ONE._replace(query_id="two words"), "query_id 'two words' has a space inside; TREC ids are one word"),
        (ONE._replace(text_id=""), "text_id '' is empty"),
        (ONE._replace(text_id="a\u2003b"), "has a space inside"),
    ]:
        with pytest.raises(MatchloomError, match=expected):
            write_run(tmp_path / "run", [pair], one, "tag")
        with pytest.raises(MatchloomError, match=expected):
            write_qrels(tmp_path / "qrels", [pair])
    with refused("bad_value", "'my run'"):
        write_run(tmp_path / "run", [ONE], one, "my run")
    with refused("mismatch", "scores", "1", "2"):
        write_run(tmp_path / "run", [ONE], np.ones(2, dtype=np.float32), "tag")
    with refused("bad_value", "'q1'", "'t1'"):
        write_run(tmp_path / "run", [ONE], one * np.nan, "tag")
    with refused("bad_row", "query_id", "'q1'", "text_id", "'t1'"):
        write_run(tmp_path / "run", [ONE, ONE], np.ones(2, dtype=np.float32), "tag")
    for label in (None, 0.5, math.nan):
        with refused("bad_row", label):
            write_qrels(tmp_path / "qrels", [ONE._replace(label=label)])
    assert list(tmp_path.iterdir()) == []


# ---- real files


@pytest.mark.data
def test_real_tsv_files_are_read(data_dir: Path) -> None:
    assert sum(1 for _ in read_pairs(data_dir / "cqa" / "cqa_5_50.tsv.gz")) == 24_939
    trec = list(read_pairs(data_dir / "trecqa" / "TEST.clean.tsv", require_label=True))
    assert (len(trec), len({p.query_id for p in trec})) == (1_442, 68)


# ---- whatever the bytes


@pytest.mark.parametrize("name", ["p.tsv", "p.csv", "p.jsonl", "p.json", "p.parquet", "run", "qrels"])
@examples(150)
@given(data=st.data())
def test_any_bytes_give_rows_or_one_line(tmp_path: Path, name: str, data: st.DataObject) -> None:
    whole = tmp_path / "whole.parquet"
    if not whole.exists():  # once for all examples
        write_pairs(whole, [ONE])
    start = {
        "p.tsv": b"query\ttext\tlabel\na\tb\t1\n",
        "p.csv": b'query,text,label\n"a","b",1\n',
        "p.jsonl": b'{"query": "a", "text": "b", "label": 1, "qid": 3}\n',
        "p.json": b'{"data": [{"query": "a", "text": "b", "label": 1}, {"query": "c", "text": ""}], "n": 2}',
        "p.parquet": whole.read_bytes(),
        "run": b"q Q0 t 1 0.5 x\n",
        "qrels": b"q 0 t 1\n",
    }[name]
    cut = data.draw(st.integers(0, len(start)))
    content = start[:cut] + data.draw(st.binary(max_size=20) | st.text(max_size=20).map(str.encode)) + start[cut:]
    reader = {"run": read_run, "qrels": read_qrels}.get(name, read_pairs)
    path = file(tmp_path, name, content)
    try:
        assert list(reader(path))
    except MatchloomError as error:
        line = str(error)
    else:
        line = str(path)
    assert str(path) in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "content"),
    [("p.json", '[{"query": "a\\ud800", "text": "b"}]'), ("p.jsonl", '{"query": "a\\ud800", "text": "b"}\n')],
)
def test_half_a_character_is_no_json(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with refused("bad_row", "this"):
        list(read_pairs(tmp_path / name))
    (tmp_path / name).write_text(content.replace("ud800", "ud83d\\ude00"))
    assert next(iter(read_pairs(tmp_path / name))).query == "a\U0001f600"


def test_a_run_may_be_gzip_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    pairs = [Pair("q", "a", 1.0, "q", "a"), Pair("q", "b", 0.0, "q", "b")]
    for name in ("one.run.gz", "other.run.gz", "plain.run"):
        write_run(tmp_path / name, pairs, np.array([0.1, 0.7], np.float32), "tag")
    assert (tmp_path / "one.run.gz").read_bytes() == (tmp_path / "other.run.gz").read_bytes()
    assert (tmp_path / "one.run.gz").read_bytes().startswith(b"\x1f\x8b")
    assert list(read_run(tmp_path / "one.run.gz")) == list(read_run(tmp_path / "plain.run"))


@pytest.mark.parametrize("name", ["p.tsv.gz", "p.csv.gz", "p.jsonl.gz"])
def test_blank_lines_without_end_are_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A .gz of half a megabyte holds five hundred million of them."""
    monkeypatch.setattr("matchloom.basics.files._BLANK", 1000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"\n" * 5000))
    with refused("too_large", path, "line 1001"):
        list(read_pairs(path))
    some = gzip.compress(b"\n" * 900 + b"query\ttext\n" + b"\n" * 900 + b"a\tb\n")
    (tmp_path / "some.tsv.gz").write_bytes(some)
    assert [pair[:2] for pair in read_pairs(tmp_path / "some.tsv.gz")] == [("a", "b")]


def test_a_thousand_columns_of_one_name_are_one_short_line(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("question," * 1000 + "answer\n")
    with refused("bad_columns", path) as error:
        list(read_pairs(path))
    assert len(str(error.value)) < 1000
