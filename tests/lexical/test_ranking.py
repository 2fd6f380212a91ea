"""The steps of a search: every build of the native kernel and numpy give the same bits, alone and among others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from matchloom.kernels import native
from matchloom.lexical import columns, ranking
from matchloom.lexical.bm25 import K1, B
from matchloom.lexical.bm25_matrix import TermStatistics, weights_of
from matchloom.lexical.columns import Rows, Sparse
from matchloom.lexical.ranking import CountRows, Owned, Weighing, best_of, fuse, nearest_of, scale, translated

BUILDS = native.suitable()


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernel of one build, in place of the fastest."""
    loaded = native.Library(request.param)
    for module in (columns, ranking):
        monkeypatch.setattr(module, "library", lambda: loaded)
    return str(request.param)


@contextmanager
def by_numpy() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (columns, ranking):
            patch.setattr(module, "library", lambda: None)
        yield


def same(one: object, other: object) -> None:
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, Sparse) and isinstance(other, Sparse):
        for name in ("bounds", "columns", "values"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    elif isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    else:
        assert one == other


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("build")
def test_texts_are_read_as_numpy_reads_them(seed: int, single: bool) -> None:
    draw = np.random.default_rng(seed)
    kinds = draw.integers(3, size=50).astype(np.uint8)
    weighing = Weighing(kinds, draw.random(50) * (draw.random(50) < 0.9), factor=1.0 + single, single=single)
    sizes = [0, 1, 30, 0, 2000, 7]
    ids = draw.integers(50, size=sum(sizes))
    found = weighing.read(sizes, ids.tobytes())
    with by_numpy():
        same(tuple(found), tuple(weighing.read(sizes, ids.tobytes())))
    alone = weighing.read([30], ids[1:31].tobytes())
    same(alone.vectors[0], found.vectors[2])
    same(alone.terms[0], found.terms[2])


@pytest.mark.parametrize("lacking", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("size", [1, 7, 8, 67, 200])
@pytest.mark.usefixtures("build")
def test_scores_are_fused_as_by_numpy_and_alone_as_among_others(size: int, lacking: float) -> None:
    draw = np.random.default_rng(size)
    raw = draw.normal(size=(5, 4, size)) * 100
    raw[draw.random(raw.shape) < lacking] = np.nan
    raw[0] = draw.normal(size=(4, size))  # whose entries lack nothing
    weights = np.array([0.3, 0.0, 2.0, 0.7])
    mean, spread = scale(raw)
    scores = fuse(raw, mean, spread, weights)
    with by_numpy():
        same((mean, spread), scale(raw))
        same(scores, fuse(raw, mean, spread, weights))
    for n in range(5):
        same((mean[n], spread[n]), [one[0] for one in scale(raw[n : n + 1])])
        same(scores[n : n + 1], fuse(raw[n : n + 1], mean[n : n + 1], spread[n : n + 1], weights))
    if not lacking:
        np.testing.assert_allclose(mean, raw.mean(axis=2), rtol=1e-9)
        expected = np.einsum("e,nec->nc", weights, (raw - mean[:, :, None]) / spread[:, :, None])
        np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("top", [1, 3, 10, 40, None])
@pytest.mark.usefixtures("build")
def test_the_best_are_the_highest_and_equal_ones_come_in_order(top: int | None) -> None:
    draw = np.random.default_rng(0)
    scores = draw.integers(5, size=(6, 40)).astype(np.float64)
    scores[2] = 1.0
    found = best_of(scores, top)
    assert found == [None if n == 2 else np.argsort(-scores[n], kind="stable")[:top].tolist() for n in range(6)]
    with by_numpy():
        assert found == best_of(scores, top)
    assert best_of(np.array([[3.0]]), top) == [[0]]


@pytest.mark.usefixtures("build")
def test_bm25_of_rows_is_that_of_their_counts() -> None:
    draw = np.random.default_rng(1)
    counts = sp.csr_array(draw.integers(4, size=(30, 20)).astype(np.float64))
    lengths = counts.sum(axis=1).astype(np.float64)
    statistics = TermStatistics.of(counts[:, :15])  # later terms have the idf of a new one
    table = CountRows(
        Rows(counts.astype(np.float32)),
        lengths,
        statistics.idf,
        (statistics.new_idf, statistics.mean_length, K1, B),
    )
    terms, times = np.array([2, 5, 16, 19]), np.array([1.0, 3.0, 1.0, 2.0])
    rows = np.array([4, 0, 29, 4])
    found = table.bm25(rows, terms, times)
    assert found is not None
    for row, score in zip(rows.tolist(), found.tolist(), strict=True):
        added = weights_of(statistics, terms, counts[[row]].toarray()[0, terms], lengths[row]) * times
        assert score == np.add.accumulate(added)[-1]
    assert table.bm25(np.empty(0, np.int64), terms, times) is not None
    with by_numpy():
        assert table.bm25(rows, terms, times) is None


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.usefixtures("build")
def test_the_nearest_of_an_entry_is_the_highest_product(kind: type) -> None:
    draw = np.random.default_rng(2)
    dense = draw.integers(3, size=(12, 9)).astype(kind)
    table, owned = Rows(sp.csr_array(dense)), Owned(np.array([0, 5, 5, 12]), np.arange(12, dtype=np.int32)[::-1].copy())
    questions = Sparse(np.array([0, 2, 2, 5]), np.array([1, 4, 0, 1, 8]), np.array([1.0, 2.0, 1.0, 1.0, 3.0]))
    pairs = ([0, 0, 1, 2, 2], [0, 1, 2, 2, 0])
    scratch = np.zeros(9)
    best, ties = nearest_of(table, owned, questions, pairs, scratch)
    assert not scratch.any()
    with by_numpy():
        assert (best, ties) == nearest_of(table, owned, questions, pairs, scratch)
    assert best[1] == -1
    assert ties[1:3] == [0, 7]  # nothing is known of the second question: all are equal
    assert nearest_of(table, owned, questions, ([], []), scratch) == ([], [])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.usefixtures("build")
def test_what_stands_for_a_stem_is_weighed_as_numpy_does(kind: type) -> None:
    draw = np.random.default_rng(3)
    table = Rows(sp.random_array((30, 40), density=0.2, rng=draw).tocsr().astype(kind))
    shares = Rows(sp.random_array((50, 40), density=0.3, rng=draw).tocsr())
    stems, entries, scratch = np.array([0, 7, 29, 35]), np.array([3, 49, 0, 3]), np.zeros(45)  # 35 is behind the table
    found = translated(table, shares, stems, 0.5, entries, scratch)
    assert not scratch.any()
    with by_numpy():
        same(found, translated(table, shares, stems, 0.5, entries, scratch))
    assert not scratch.any()
    rows = sp.csr_array((shares.data, shares.places, shares.starts), shape=(50, 40)).toarray()[entries]
    np.testing.assert_allclose(found[3], 0.5 * rows[:, 35])
    weights = 0.5 * sp.csr_array((table.data, table.places, table.starts), shape=(30, 40)).toarray()[7]
    weights[7] += 0.5
    np.testing.assert_allclose(found[1], rows @ weights, rtol=1e-6)
    assert translated(table, shares, stems[:0], 0.5, entries, scratch).shape == (0, 4)
