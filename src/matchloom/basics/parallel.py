"""Work side by side on the machine's cores.

A recurrent network does not get faster with a second thread inside one call, but two calls on halves of the work do.
What cannot be halved is done in turn, with torch's own threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def thread_pool(workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads in which torch uses one core each; as many as torch would use, unless told otherwise.

    Inside, the calling thread has one core as well: its small operations would only wait for each other.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers or threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def usable_cores() -> int:
    """How many cores this process may use: a container may have fewer, and OMP_NUM_THREADS, which bounds torch and
    numpy, bounds this too."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, max(1, int(told))) if told.isdecimal() else cores


@contextmanager
def fixed_sums() -> Iterator[None]:
    """Inside, numpy and scipy multiply with one thread: with two, sums have another order, and other last bits."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1, user_api="blas"):
        yield


def side_by_side(work: Callable[[T], R], pieces: Sequence[T], workers: int) -> Iterator[R]:
    """What work makes of each piece, in their order; without torch. What it computes must let go of Python's lock."""
    if min(workers, len(pieces)) < 2:
        yield from map(work, pieces)
        return
    pool = ThreadPoolExecutor(min(workers, len(pieces)), "matchloom-side")
    try:
        yield from pool.map(work, pieces)
    finally:
        pool.shutdown(cancel_futures=True)


class _InlinePool(Executor):
    """Does each piece of work where and when it is handed in."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """The finished work."""
        done: Future[Any] = Future()
        done.set_result(work(*given, **named))
        return done

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any], **waiting: Any) -> Iterator[T]:
        """Each piece when its result is asked for, so that no more than one is held."""
        return map(fn, *iterables)


@contextmanager
def inline_pool(threads: int) -> Iterator[Executor]:
    """A stand-in for the pool of `thread_pool`: one piece of work after the other, each with this many threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield _InlinePool()
    finally:
        torch.set_num_threads(before)
