"""The log of a run: a line of JSON for each evaluation, with what a clock said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matchloom.basics.files import atomic_write, read_lines
from matchloom.types import MatchloomError

LOG = "log.jsonl"


def write_log(folder: Path, log: list[dict[str, Any]]) -> None:
    """All lines, in place of those that are there."""
    with atomic_write(folder / LOG) as file:
        file.writelines(json.dumps(entry) + "\n" for entry in log)


def read_log(folder: Path, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The log of these epochs: its own lines where they are there, and else what is known without a clock."""
    try:
        lines = [json.loads(line) for _, line in read_lines(folder / LOG)]
    except (MatchloomError, ValueError, RecursionError):
        lines = []
    log = [{**entry, "pairs_per_second": 0.0, "seconds": 0.0} for entry in history]
    for n, (entry, line) in enumerate(zip(history, lines, strict=False)):
        if isinstance(line, dict) and line.keys() == log[n].keys() and entry.items() <= line.items():
            log[n] = line
    return log
