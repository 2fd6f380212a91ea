"""Vectors in eight bits: every build of the kernel finds what a scan of all vectors finds, in the same order."""

from __future__ import annotations

import numpy as np
import pytest

from matchloom.kernels import native
from matchloom.lexical import coded
from matchloom.lexical.coded import Coded
from matchloom.lexical.columns import Floats, Ids, products
from matchloom.lexical.ranking import Owned


@pytest.fixture(params=native.suitable())
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernel of one build, in place of the fastest."""
    loaded = native.Library(request.param)
    monkeypatch.setattr(coded, "library", lambda: loaded)
    return str(request.param)


def scanned(table: np.ndarray, owned: Owned, vector: Floats, most: int, alive: np.ndarray | None) -> Ids:
    """The best by all products."""
    every = products(table, vector)
    scores = np.array([every[owned[n]].max() if len(owned[n]) else 0.0 for n in range(len(owned.starts) - 1)])
    best = np.argsort(-scores, kind="stable")
    return best[:most] if alive is None else best[alive[best]][:most]


@pytest.mark.parametrize("size", [8, 40, 384])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("build")
def test_what_is_found_is_what_a_scan_finds(seed: int, size: int) -> None:
    draw = np.random.default_rng(seed)
    table = draw.standard_normal((700, size)).astype(np.float32)
    table[: 350 * (seed % 2)] = draw.standard_normal(size) + 1e-3 * draw.standard_normal((350 * (seed % 2), size))
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    table[draw.integers(700, size=99)] = table[draw.integers(700, size=99)]  # equal ones
    table[5], table[6] = 0, 1e-30 * table[6]
    counts = draw.integers(4, size=600)  # some entries have none, some rows belong to several
    owned = Owned(np.concatenate([[0], np.cumsum(counts)]), draw.integers(700, size=int(counts.sum())))
    made = Coded.of(table, owned)
    assert made is not None
    saved = Coded.load(made.arrays())
    assert saved is not None
    for vector in (table[3].astype(np.float64), draw.standard_normal(size) * 1e3, np.zeros(size), -table[9] * 1e-9):
        for alive in (None, draw.random(600) < 0.5, np.zeros(600, dtype=bool)):
            for most in (1, 100, 1000):
                found = saved.best(table, owned, np.asarray(vector, np.float64), most, alive)
                assert found is not None
                assert found.tolist() == scanned(table, owned, np.asarray(vector, np.float64), most, alive).tolist()


def test_bounds_leave_out_most_of_what_is_far() -> None:
    """The codes are near enough to be of use: at most a few times as many rows as are wanted stay within the bounds."""
    draw = np.random.default_rng(0)
    table = draw.standard_normal((20_000, 384)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    owned = Owned(np.arange(20_001), np.arange(20_000))
    made = Coded.of(table, owned)
    assert made is not None
    arrays = made.arrays()
    scores = np.sort(products(table, table[0].astype(np.float64)))
    bound = 2 * float(arrays["errors"].max())
    assert (scores > scores[-100] - bound).sum() < 500


@pytest.mark.usefixtures("build")
def test_codes_that_do_not_fit_never_reach_the_kernel() -> None:
    table, owned = np.ones((4, 8), dtype=np.float32), Owned(np.arange(5), np.arange(4))
    made = Coded.of(table, owned)
    assert made is not None
    own = made.arrays()
    for other in ({"codes": own["codes"][:, :8]}, {"steps": own["steps"][:3]}, {"errors": own["errors"].astype(float)}):
        with pytest.raises(ValueError, match="codes of"):
            Coded.load(own | other)
    with pytest.raises(ValueError, match="codes of"):
        made.best(table, Owned(np.arange(4), np.arange(3)), np.ones(8), 2, None)
    with pytest.raises(ValueError, match="codes of"):
        made.best(table, owned, np.ones(7), 2, None)
    assert Coded.of(np.ones((4, 9), dtype=np.float32), owned) is None
    assert Coded.load({}) is None
