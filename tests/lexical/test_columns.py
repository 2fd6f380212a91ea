"""Sparse tables: every build of the native kernel and numpy give the same bits; the best rows are those of all sums."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from matchloom.kernels import native
from matchloom.lexical import columns
from matchloom.lexical.columns import Columns, Rows, Sparse, Table, products
from tests.drawing import examples

BUILDS = native.suitable()


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernel of one build, in place of the fastest."""
    loaded = native.Library(request.param)
    monkeypatch.setattr(columns, "library", lambda: loaded)
    return str(request.param)


class Without:
    """numpy in place of the kernel, for as long as it is entered."""

    def __enter__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(columns, "library", lambda: None)

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def made(seed: int, kind: Any, rows: int = 40, width: int = 60) -> tuple[sp.csr_array, Sparse]:
    """A table and some questions, one of them empty."""
    draw = np.random.default_rng(seed)
    dense = draw.random((rows, width)) * (draw.random((rows, width)) < draw.choice([0.02, 0.2, 0.7]))
    asked = [np.sort(draw.choice(width, size, replace=False)) for size in (0, 1, 5, 20)]
    bounds = np.concatenate([[0], np.cumsum([len(one) for one in asked])])
    return sp.csr_array(dense.astype(kind)), Sparse(bounds, np.concatenate(asked), draw.normal(size=bounds[-1]))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("build")
def test_products_are_the_same_to_the_bit_with_and_without_the_kernel(seed: int, kind: Any) -> None:
    matrix, questions = made(seed, kind)
    by_columns, by_rows, dense = Columns(matrix), Rows(matrix), Table(matrix.toarray().T)
    some = np.random.default_rng(seed).integers(matrix.shape[0], size=7)
    vectors = np.zeros((questions.count, matrix.shape[1]))
    for n in range(questions.count):
        vectors[n, questions[n][0]] = questions[n][1]

    def every() -> list[Any]:
        return [
            by_columns.dots(questions).tolist(),
            dense.dots(questions).tolist(),
            [by_rows.dot(vector).tolist() for vector in vectors],
            [by_rows.dot(vector, some).tolist() for vector in vectors],
            [products(matrix.toarray().astype(np.float32), vector).tolist() for vector in vectors],
            [products(matrix.toarray().astype(np.float32), vector, some).tolist() for vector in vectors],
        ]

    found = every()
    with Without():
        assert every() == found
    assert found[0] == [by_columns.dot(*questions[n]).tolist() for n in range(questions.count)]
    np.testing.assert_allclose(found[0], vectors @ matrix.toarray().astype(np.float64).T, atol=1e-12)
    np.testing.assert_allclose(found[2], found[0], atol=1e-12)
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)
    assert [[one[row] for row in some] for one in found[2]] == found[3]
    assert [[one[row] for row in some] for one in found[4]] == found[5]


@st.composite
def inverted(draw: st.DrawFn) -> tuple[sp.csr_array, np.ndarray, np.ndarray, int, np.ndarray | None]:
    """A table of few different values, so that sums are equal often; columns that most rows have, and rare ones."""
    rows, width = draw(st.integers(1, 60)), draw(st.integers(1, 12))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    filled = random.random((rows, width)) < random.choice([0.05, 0.3, 0.95], size=width)
    table = random.integers(1, 4, size=(rows, width)) / 4 * filled
    asked = np.sort(random.choice(width, random.integers(0, width + 1), replace=False))
    times = random.integers(1, 3, size=len(asked)).astype(np.float64)
    alive = random.random(rows) < 0.7 if draw(st.booleans()) else None
    return (
        sp.csr_array(table.astype(draw(st.sampled_from([np.float32, np.float64])))),
        asked,
        times,
        draw(st.integers(1, 70)),
        alive,
    )


@examples(150)
@given(inverted(), st.sampled_from([1, 1 << 16]))
def test_the_best_rows_are_those_of_all_sums_equal_ones_by_row(case: Any, most_of: int) -> None:
    matrix, asked, times, most, alive = case
    table = Columns(matrix)
    sums = matrix.toarray().astype(np.float64)[:, asked] @ times if len(asked) else np.zeros(matrix.shape[0])
    there = np.flatnonzero((sums > 0) & (True if alive is None else alive))
    expected = there[np.argsort(-sums[there], kind="stable")][:most].tolist()
    assert table.best(asked, times, most, alive).tolist() == expected
    assert table.best(asked, times, most, alive).tolist() == expected  # nothing is left behind
    with Without():
        assert table.best(asked, times, most, alive).tolist() == expected


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("build")
def test_long_columns_that_are_left_out_change_nothing(seed: int, kind: Any) -> None:
    """So many rows that the kernel looks up columns that most rows have only where they can matter."""
    draw = np.random.default_rng(seed)
    rows = 60_000
    rare = sp.random_array((rows, 30), density=0.01, rng=draw, data_sampler=lambda size: draw.random(size) * 9 + 1)
    common = (draw.random((rows, 3)) * 0.2 + 0.01) * (draw.random((rows, 3)) < 0.9)
    table = Columns(sp.hstack([rare, sp.csr_array(common)], format="csr").astype(kind))
    alive = draw.random(rows) < 0.8
    for asked in ([0, 3, 30, 31, 32], [31, 32], [5, 30], list(range(33))):
        for mask in (None, alive):
            given_ = np.array(asked), draw.random(len(asked)) + 0.1
            found = table.best(*given_, 100, mask)
            with Without():
                assert table.best(*given_, 100, mask).tolist() == found.tolist()
            assert len(found) == 100


def test_columns_that_came_later_are_not_asked() -> None:
    questions = Sparse(np.array([0, 2, 2, 4]), np.array([1, 7, 8, 9]), np.array([1.0, 2.0, 3.0, 4.0]))
    below = questions.below(8)
    assert (below.bounds.tolist(), below.columns.tolist(), below.values.tolist()) == ([0, 2, 2, 2], [1, 7], [1.0, 2.0])
    assert questions.below(10) is questions
    nothing = questions.below(1)
    assert nothing.count == 3
    assert len(nothing.columns) == 0


def test_rows_and_weights_of_columns() -> None:
    matrix, _ = made(3, np.float64)
    table = Columns(matrix)
    asked = np.array([2, 9, 30])
    np.testing.assert_array_equal(table.row(5, asked), matrix.toarray()[5, asked])
    weights = np.random.default_rng(0).normal(size=matrix.shape[0])
    np.testing.assert_allclose(table.weighted(asked, weights), weights @ matrix.toarray()[:, asked])
    np.testing.assert_array_equal(table.highest, matrix.toarray().max(axis=0))


def bad_arrays() -> Iterator[tuple[str, dict[str, Any]]]:
    good = Columns(made(1, np.float32)[0]).arrays()
    starts, places, data = good["starts"], good["places"], good["data"]
    yield "starts of another type", {**good, "starts": starts.astype(np.int32)}
    yield "places of another type", {**good, "places": places.astype(np.int64)}
    yield "data of another type", {**good, "data": data.astype(np.int64)}
    yield "fewer data", {**good, "data": data[:-1]}
    yield "starts beyond the end", {**good, "starts": starts + np.int64(1)}
    yield "falling starts", {**good, "starts": np.concatenate([starts[:1], starts[:0:-1]])}
    yield "a row that is not there", {**good, "places": places + np.int32(2**30)}
    yield "a row before the first", {**good, "places": places - np.int32(2**30)}
    yield "no starts", {**good, "starts": starts[:0]}


@pytest.mark.parametrize("case", list(bad_arrays()), ids=lambda case: case[0])
def test_arrays_that_do_not_fit_never_reach_the_kernel(case: tuple[str, dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"arrays of types|do not fit|outside"):
        Columns(case[1], 40)
    with pytest.raises(ValueError, match=r"arrays of types|do not fit|outside"):
        Rows(case[1], 40)


def test_dense_tables_and_vectors_must_fit() -> None:
    with pytest.raises(ValueError, match="a table"):
        Table(np.zeros((2, 3), dtype=bool))
    with pytest.raises(ValueError, match="a vector"):
        products(np.zeros((2, 3), dtype=np.float32), np.zeros(4))


PROGRAM = """
import json
from matchloom.kernels.native import library
from matchloom.search.collection import Collection
from tests.search.collections import ENGLISH, as_large, many, pairs_of
found = [library() is not None]
for pairs in (pairs_of(ENGLISH), many(30, questions=2)):
    hits = Collection.fit(pairs).search(["strikethrogh a text", "claim thing3", "zzz"], top=None)
    found.append([[(hit.id, repr(hit.score), repr(hit.probability)) for hit in one] for one in hits])
with as_large():
    hits = Collection.fit(many(120)).search(["cancel thing8", "price of thing3"], top=None)
    found.append([[(hit.id, repr(hit.score)) for hit in one] for one in hits])
print(json.dumps(found))
"""


def test_a_collection_is_the_same_to_the_bit_with_the_kernel_switched_off() -> None:
    found = []
    for switch in ("", "none"):
        environment = {**os.environ, native.SWITCH: switch} if switch else dict(os.environ)
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        found.append(json.loads(run.stdout))
    assert [one[0] for one in found] == [bool(BUILDS), False]
    assert found[0][1:] == found[1][1:]
