"""A line for each epoch of a run, printed as soon as its log has it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any

_PAUSE = 0.1  # seconds between two looks at the log


def epochs_of(log: Path) -> list[dict[str, Any]]:
    """The epochs that a log holds; none where there is no log."""
    try:
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []


class EpochLines:
    """Inside the `with`, every new epoch of the log is printed. Training replaces the log whole after each epoch."""

    def __init__(self, log: Path, measure: str, *, skip: int) -> None:
        self._log, self._measure, self._shown = log, measure, skip
        self._out = sys.stdout
        self._ended = Event()
        self._thread = Thread(target=self._follow, daemon=True)

    def __enter__(self) -> EpochLines:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._ended.wait(_PAUSE):
            self._show()
        self._show()

    def _show(self) -> None:
        for entry in epochs_of(self._log)[self._shown :]:
            self._shown += 1
            # The live bar stands in for a terminal's stdout, and prints above itself; a file stays a file.
            print(_line(entry, self._measure), file=sys.stdout if self._out.isatty() else self._out, flush=True)


def _line(entry: dict[str, Any], measure: str) -> str:
    value = f"  {measure} {entry[measure]:.4f}" if measure in entry else ""
    return (
        f"epoch {entry['epoch']:3d}  loss {entry['loss']:.4f}{value}"
        f"  {entry['pairs_per_second']:8,.0f} pairs/s  {entry['seconds']:6.1f} s"
    )
