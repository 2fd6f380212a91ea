"""Work side by side on the machine's cores.

A recurrent network does not get faster with a second thread inside one call, but two calls on halves of the work do.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


@contextmanager
def side_by_side(workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads in which torch uses one core each; as many as torch would use, unless told otherwise.

    Inside, the calling thread has one core as well: its small operations would only wait for each other.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers or threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
