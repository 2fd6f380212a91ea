"""Multinomial logistic regression, by L-BFGS in single precision.

loss(W, b) = C * sum over examples of -ln softmax(x W + b)[class]  +  |W|^2 / 2
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids

T = TypeVar("T")
R = TypeVar("R")
Singles = NDArray[np.float32]
_MEMORY = 6  # steps that L-BFGS remembers
_FLAT, _STEEP = 1e-6, 1e-3  # where it stops
_ENOUGH, _SHORTER = 1e-4, 20  # of the fall that the slope promises; how often a step that has less is made shorter


def side_by_side(work: Callable[[T], R], jobs: Iterable[T]) -> list[R]:
    """Do pieces of work on both cores, each with one thread: so results do not depend on how many cores there are.

    What they compute with lets go of Python's lock.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, jobs))


def learn_softmax(X: NDArray[Any] | sp.csr_array, classes: Ids, C: float, steps: int) -> tuple[Floats, Floats]:
    """The weights (F, A) and the bias (A,) of classes 0, 1, ..., of which each has an example."""
    count, size = X.shape
    width = int(classes.max()) + 1
    x: Any = X.astype(np.float32) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float32)
    turned = x.T.tocsr() if sp.issparse(X) else x.T
    examples = np.arange(count)

    def loss(w: Singles) -> tuple[float, Singles]:
        both = w.reshape(size + 1, width)
        logits = x @ both[:-1]
        logits += both[-1]
        logits -= logits.max(axis=1, keepdims=True)
        own = logits[examples, classes].astype(np.float64)
        gap = np.exp(logits, out=logits)
        total = gap.sum(axis=1, keepdims=True)
        lost = float((np.log(total[:, 0]).astype(np.float64) - own).sum())
        gap /= total
        gap[examples, classes] -= 1
        gap *= np.float32(C)
        slope = np.empty((size + 1, width), dtype=np.float32)
        np.add(turned @ gap, both[:-1], out=slope[:-1])
        slope[-1] = gap.sum(axis=0)
        return C * lost + 0.5 * float(np.vdot(both[:-1], both[:-1])), slope.ravel()

    both = _lowest(loss, np.zeros((size + 1) * width, dtype=np.float32), steps).reshape(size + 1, width)
    return both[:-1].astype(np.float64), both[-1].astype(np.float64)


def _lowest(loss: Callable[[Singles], tuple[float, Singles]], x: Singles, steps: int) -> Singles:
    """Where a convex loss is lowest, by L-BFGS: until a step gains next to nothing, or so many steps are done."""
    moves: deque[tuple[Singles, Singles, float]] = deque(maxlen=_MEMORY)  # of x, of the slope, 1 / their product
    value, slope = loss(x)
    for _ in range(steps):
        way = _way(slope, moves)
        length = 1.0 if moves else 1.0 / max(1.0, float(np.linalg.norm(slope)))
        fall = float(np.vdot(slope, way))
        for _ in range(_SHORTER):
            there = x + np.float32(length) * way
            found, its_slope = loss(there)
            if found <= value + _ENOUGH * length * fall:
                break
            length *= 0.4
        else:
            break  # rounding is all that is left
        gained, value = value - found, found
        product = float(np.vdot(there - x, its_slope - slope))
        if product > 0:
            moves.append((there - x, its_slope - slope, 1 / product))
        x, slope = there, its_slope
        if gained <= _FLAT * max(abs(value), 1.0) or float(np.abs(slope).max()) <= _STEEP:
            break
    return x


def _way(slope: Singles, moves: deque[tuple[Singles, Singles, float]]) -> Singles:
    """Downhill, with what the last steps say about how the slope changes."""
    way = -slope
    used = []
    for move, change, inverse in reversed(moves):
        share = inverse * float(np.vdot(move, way))
        used.append(share)
        way -= np.float32(share) * change
    if moves:
        _, change, inverse = moves[-1]
        way *= np.float32(1 / (inverse * float(np.vdot(change, change))))
    for (move, change, inverse), share in zip(moves, reversed(used), strict=True):
        way += np.float32(share - inverse * float(np.vdot(change, way))) * move
    return way
