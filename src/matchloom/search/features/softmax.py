"""Multinomial logistic regression, by L-BFGS in single precision.

loss(W, b) = C * sum over examples of -ln softmax(x W + b)[class]  +  |W|^2 / 2
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids

T = TypeVar("T")
R = TypeVar("R")
_MEMORY = 6  # steps that L-BFGS remembers
_FLAT, _STEEP = 1e-6, 1e-3  # where it stops


def side_by_side(work: Callable[[T], R], jobs: Iterable[T]) -> list[R]:
    """Do pieces of work on both cores, each with one thread: so results do not depend on how many cores there are.

    What they compute with lets go of Python's lock.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, jobs))


def learn_softmax(X: NDArray[Any], classes: Ids, C: float, steps: int) -> tuple[Floats, Floats]:
    """The weights (F, A) and the bias (A,) of classes 0, 1, ..., of which each has an example."""
    from scipy.optimize import minimize

    count, size = X.shape
    width = int(classes.max()) + 1
    x = np.ascontiguousarray(X, dtype=np.float32)
    y = np.zeros((count, width), dtype=np.float32)
    y[np.arange(count), classes] = 1

    def loss(w: Floats) -> tuple[float, Floats]:
        both = w.reshape(size + 1, width)
        logits = x @ both[:-1].astype(np.float32) + both[-1].astype(np.float32)
        logits -= logits.max(axis=1, keepdims=True)
        likely = np.exp(logits)
        total = likely.sum(axis=1, keepdims=True)
        lost = np.log(total[:, 0]).astype(np.float64) - (y * logits).sum(axis=1)
        gap = likely / total - y
        slope = np.empty((size + 1, width))
        slope[:-1] = C * (x.T @ gap) + both[:-1]
        slope[-1] = C * gap.sum(axis=0)
        return C * float(lost.sum()) + 0.5 * float((both[:-1] ** 2).sum()), slope.ravel()

    options = {"maxiter": steps, "maxcor": _MEMORY, "ftol": _FLAT, "gtol": _STEEP}
    found = minimize(loss, np.zeros((size + 1) * width), jac=True, method="L-BFGS-B", options=options)
    both = found.x.reshape(size + 1, width)
    return both[:-1], both[-1]
