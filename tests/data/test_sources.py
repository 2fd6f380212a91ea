"""Whatever a Python user has becomes pairs, or one line that says which item does not."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.formats import as_pairs, write_pairs
from matchloom.types import MatchloomError, Pair
from tests.refusing import refused

ONE = Pair("how do I knit", "with two needles", 1.0, "q1", "t1", "g")


class Frame:
    """Any library's data frame: all that is known of it is that it speaks Arrow."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


Row = namedtuple("Row", ["Index", "question", "answer"])


@pytest.mark.parametrize(
    ("item", "pair"),
    [
        (ONE, ONE),
        (("a", "b"), Pair("a", "b")),
        (["a", "b", True], Pair("a", "b", 1.0)),
        (("a", "b", None), Pair("a", "b")),
        (("a", "b", np.int64(1)), Pair("a", "b", 1.0)),
        ((np.str_("a"), "b", np.bool_(False)), Pair("a", "b", 0.0)),
        ({"Question": "a", "Answer": "b", "relevance": "yes", "speed": object()}, Pair("a", "b", 1.0)),
        ({"sentence1": "a", "sentence2": "b", "qid": np.int32(7)}, Pair("a", "b", None, "7")),
        (Row(0, "a", "b"), Pair("a", "b")),
    ],
)
def test_one_item(item: Any, pair: Pair) -> None:
    assert list(as_pairs([item])) == list(as_pairs(iter([item]))) == [pair]


@pytest.mark.parametrize(("label", "told"), [(-1, "labels start at 0"), (0.8, "expected 1"), ("maybe", "a number")])
def test_a_pairs_label_is_one_too(label: Any, told: str) -> None:
    for item in (ONE._replace(label=label), ("a", "b", label)):
        with refused("bad_row", "item 1", told):
            list(as_pairs([item]))
    assert list(as_pairs([ONE._replace(label=0.8)], graded=True)) == [ONE._replace(label=0.8)]


def test_a_mixture_comes_as_a_stream() -> None:
    def items() -> Any:
        yield ("a", "b")
        yield {"query": "c", "text": "d"}
        raise KeyError("elsewhere")

    found = as_pairs(items())
    assert [next(found), next(found)] == [Pair("a", "b"), Pair("c", "d")]
    with pytest.raises(KeyError):
        next(found)


@pytest.mark.parametrize("wrapped", [lambda table: table, Frame, lambda table: table.to_batches()[0]])
def test_tables_and_data_frames(wrapped: Any) -> None:
    table = pyarrow.table(
        {
            "vector": [[1.0], [2.0], [3.0]],
            "question": pyarrow.array(["a", "a", "b"]).dictionary_encode(),
            "answer": pyarrow.array(["c", "d", "e"], pyarrow.string_view()),
            "is_duplicate": [True, None, False],
            "qid": [3.0, 3.0, None],  # what a column of whole numbers becomes where one is missing
        }
    )
    expected = [Pair("a", "c", 1.0, "3"), Pair("a", "d", None, "3"), Pair("b", "e", 0.0)]
    assert list(as_pairs(wrapped(table))) == expected
    assert next(as_pairs(wrapped(table), columns={"query": "answer", "text": "question"}))[:2] == ("c", "a")


def test_a_long_table_is_turned_into_objects_a_little_at_a_time() -> None:
    table = pyarrow.table({"query": ["q"] * 2_500, "text": [str(i) for i in range(2_500)]})
    assert [pair.text for pair in as_pairs(Frame(table))] == [str(i) for i in range(2_500)]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_of(library: str) -> None:
    frame = pytest.importorskip(library).DataFrame({"query": ["a", "b"], "text": ["c", "d"], "label": [1, 0]})
    assert list(as_pairs(frame)) == [Pair("a", "c", 1.0), Pair("b", "d", 0.0)]


def test_a_path_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    write_pairs(path, [ONE, Pair("a", "b", 0.5)])
    for source in (path, str(path)):
        assert list(as_pairs(source, graded=True)) == [ONE, Pair("a", "b", 0.5)]
    assert list(as_pairs(path, columns={"label": ""})) == [ONE._replace(label=None), Pair("a", "b")]
    with refused("bad_row", "line 3", "'0.5'"):
        list(as_pairs(path))


class OldFrame:
    columns = ("query", "text")

    def to_dict(self, kind: str) -> None: ...

    def __iter__(self) -> Any:
        return iter(self.columns)


EXPECTED = r"expected a Pair, \(query, text\), \(query, text, label\) or a dict with the columns query and text"
WRONG: list[tuple[Any, str]] = [
    (["a query"], f"pairs, item 1: found str 'a query'; {EXPECTED}"),
    (("a", "b"), "pairs, item 1: found str 'a'"),
    ([("a", "b"), ("a", "b", 1, 2)], f"pairs, item 2: found a tuple of 4; {EXPECTED}"),
    ([("a", "b"), None], "pairs, item 2: found nothing"),
    ([("a", 5)], "pairs, item 1: text is 5; expected a text"),
    ([("a", "b", "perhaps")], "pairs, item 1: label is 'perhaps'; expected a number"),
    ([("a", "b", -1)], "pairs, item 1: label is -1; labels start at 0"),
    ([("a", "b", 0.8)], r"pairs, item 1: label is 0.8; expected 1 \(right\)"),
    ([(" ", "")], "pairs, item 1: query and text are both empty"),
    ([Pair("a", None)], "pairs, item 1: query or text of Pair.* is no text"),  # type: ignore[arg-type]
    ([{"query": "a"}], "pairs, item 1: found the columns query; expected 'text'"),
    ([{1: "a"}], r"pairs, item 1: the keys are \[1\]; expected names of columns"),
    ({"query": ["a"], "text": ["b"]}, "pairs: found dict .*; expected a Pair"),
    (None, "pairs: found nothing; expected"),
    (5, "pairs: found int 5; expected"),
    (OldFrame(), "give frame.to_dict"),
    (pyarrow.table({"query": ["a"]}), "table: found the columns query; expected 'text'"),
    (pyarrow.table({"query": ["a", "b"], "text": ["c", None]}), "table, row 2: text is missing; expected a text"),
]


@pytest.mark.parametrize("n", range(len(WRONG)))
def test_what_is_no_pair_is_told_in_one_line(n: int) -> None:
    source, expected = WRONG[n]
    with pytest.raises(MatchloomError, match=expected) as caught:
        list(as_pairs(source))
    assert "\n" not in str(caught.value)


keys = st.text(max_size=3) | st.sampled_from(["query", "text", "label"])
anything = st.recursive(
    st.none() | st.text(max_size=3) | st.integers() | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3) | st.just("query"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(items=st.lists(anything | st.tuples(st.text(), st.text(), anything), max_size=4), graded=st.booleans())
def test_anything_gives_pairs_or_one_line(items: list[Any], graded: bool) -> None:
    line = ""
    try:
        assert all(isinstance(pair, Pair) for pair in as_pairs(items, graded=graded))
    except MatchloomError as error:
        line = str(error)
    assert "\n" not in line
