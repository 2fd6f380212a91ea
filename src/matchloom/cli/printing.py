"""What commands print: tables and JSON to standard output, notes to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH = 100  # where there is no terminal to ask


def console() -> Console:
    """Standard output, where brackets in a user's text are brackets; no colour and 100 columns in a pipe."""
    printer = Console(highlight=False, markup=False, emoji=False)
    if not printer.is_terminal:
        printer.width = WIDTH
    return printer


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """A plain table; the columns in `right` are numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        numbers = column in right
        made.add_column(column, justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
    return made


def note(text: str) -> None:
    """One line to standard error."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One line of JSON; its letters are escaped where standard output could not write them."""
    plain = str(sys.stdout.encoding).lower().replace("-", "") != "utf8"
    print(json.dumps(value, ensure_ascii=plain, allow_nan=False), flush=True)
