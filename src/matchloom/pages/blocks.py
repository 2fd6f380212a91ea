"""Sections, lists of facts and the one table. What they are given is HTML; see `markup` for text from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple


def section(name: str, inside: str, *, about: str = "") -> str:
    """A part of a page under its name, with a line about it."""
    note = f'<p class="note">{about}</p>\n' if about else ""
    return f'<section class="block"><h2>{name}</h2>\n{note}{inside}\n</section>'


def facts(pairs: Iterable[tuple[str, str]], css: str = "") -> str:
    """Names, each with what is said of it."""
    return f'<dl class="{css}">{"".join(f"<dt>{name}</dt><dd>{said}</dd>" for name, said in pairs)}</dl>'


def badge(said: str, kind: str = "") -> str:
    """A word or two that stand out; `kind` is good, bad or neither."""
    return f'<span class="badge {kind}">{said}</span>'


class Column(NamedTuple):
    """A column's name, and the classes of all its cells."""

    name: str
    css: str = ""


class Cell(NamedTuple):
    """What stands in a cell, its own classes, and how many columns it takes."""

    html: str = ""
    css: str = ""
    span: int = 1


class Row(NamedTuple):
    """The cells of a row, the first of which is its head."""

    cells: Sequence[Cell | str]
    css: str = ""


def table(
    label: str,
    columns: Sequence[Column],
    *bodies: Iterable[Row],
    css: str = "",
    narrow: Literal["scroll", "stack", ""] = "scroll",
) -> str:
    """A table of one body or several, between which there are lines.

    On a phone it scrolls, or each row becomes a block in which a figure carries the name of its column ("stack"), or
    `css` sees to it. Roles keep it a table for who hears it, whatever the style does.
    """
    head = "".join(f'<th scope="col" role="columnheader" class="{one.css}">{one.name}</th>' for one in columns)
    head = f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n' if any(one.name for one in columns) else ""
    rows = "\n".join(
        '<tbody role="rowgroup">\n'
        + "\n".join(_row(columns, Row(*row), names=narrow == "stack") for row in body)
        + "\n</tbody>"
        for body in bodies
    )
    inside = f'<table role="table" aria-label="{label}" class="{css}">\n{head}{rows}</table>'
    if narrow == "scroll":
        return f'<div class="scroll-x" tabindex="0" role="region" aria-label="{label}">{inside}</div>'
    return f'<div class="{narrow}">{inside}</div>'


def _row(columns: Sequence[Column], row: Row, *, names: bool) -> str:
    return f'<tr role="row" class="{row.css}">{"".join(_cells(columns, row, names))}</tr>'


def _cells(columns: Sequence[Column], row: Row, names: bool) -> Iterator[str]:
    at = 0
    for given in row.cells:
        cell = Cell(given) if isinstance(given, str) else given
        column = columns[at]
        css = f"{column.css} {cell.css}".strip()
        span = f' colspan="{cell.span}"' if cell.span > 1 else ""
        named = f' data-name="{column.name}"' if names and cell.html and cell.span == 1 else ""
        tag, role = ("td", "cell") if at else ("th", "rowheader") if cell.html else ("th", "cell")
        scope = ' scope="row"' if role == "rowheader" else ""  # an empty one heads nothing
        yield f'<{tag}{scope} role="{role}" class="{css}"{span}{named}>{cell.html}</{tag}>'
        at += cell.span
