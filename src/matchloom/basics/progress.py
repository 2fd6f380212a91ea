"""One progress bar for everything that may take longer than two seconds. It writes to standard error only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from matchloom.basics.screen import screen

T = TypeVar("T")


def bar() -> Progress:
    """A bar with counts, elapsed and remaining time; silent where standard error is not a terminal."""
    console = screen(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def track(items: Iterable[T], label: str, *, total: int | None = None, show: bool = True) -> Iterator[T]:
    """Yield the items, moving a bar along when `show` is set."""
    if not show:
        yield from items
        return
    if total is None and isinstance(items, Sized):
        total = len(items)
    with bar() as progress:
        task = progress.add_task(label, total=total, note="")
        for item in items:
            yield item
            progress.advance(task)
