"""A report for people: the same rows for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


class Row(NamedTuple):
    """One scorer's figures. `alarm` is the part of the note that should stand out."""

    name: str
    values: Mapping[str, float]
    note: str = ""
    alarm: str = ""
    own: bool = False  # the scorer that the report is about


class Shown(NamedTuple):
    """Sections of rows, what they were measured on, and warnings."""

    sections: Sequence[Sequence[Row]]
    subset: str
    warnings: Sequence[str]

    def for_terminal(self) -> RenderableType:
        """A table, and lines below it."""
        table = Table(box=SIMPLE, pad_edge=False, show_edge=False, header_style="bold")
        table.add_column("", no_wrap=True)
        for name in self._measures:
            table.add_column(Text(name), justify="right")
        table.add_column("", style="dim")
        for number, section in enumerate(self.sections):
            if number:
                table.add_section()
            for row in section:
                style = "bold" if row.own else ""
                note = Text.assemble(row.note, (row.alarm, "red"))
                figures = (Text(_figure(value), style) for value in row.values.values())
                table.add_row(Text(row.name, style), *figures, note)
        lines = [Text(self.subset, style="dim"), *(Text(f"! {warning}", style="yellow") for warning in self.warnings)]
        return Group(table, *lines)

    def for_notebook(self) -> str:
        """The same as HTML, with no style that could reach beyond it."""
        heads = "".join(f'<th style="text-align: right">{escape(name)}</th>' for name in self._measures)
        bodies = "".join(f"<tbody>{''.join(map(_html_row, section))}</tbody>" for section in self.sections)
        lines = "".join(f"<p><b>!</b> {escape(warning)}</p>" for warning in self.warnings)
        return (
            f"<div><table><thead><tr><th></th>{heads}<th></th></tr></thead>{bodies}</table>"
            f"<p>{escape(self.subset)}</p>{lines}</div>"
        )

    def for_page(self, title: str) -> str:
        """A page that needs no other file."""
        style = "body{font:15px system-ui,sans-serif;margin:2em auto;max-width:60em}td,th{padding:.2em .8em .2em 0}"
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f"<style>{style}</style></head><body><h1>{escape(title)}</h1>{self.for_notebook()}</body></html>"
        )

    @property
    def _measures(self) -> list[str]:
        return list(self.sections[0][0].values)


def _html_row(row: Row) -> str:
    figures = "".join(f'<td style="text-align: right">{_figure(value)}</td>' for value in row.values.values())
    weight = ' style="font-weight: bold"' if row.own else ""
    alarm = f"<b>{escape(row.alarm)}</b>" if row.alarm else ""
    return (
        f'<tr{weight}><td style="text-align: left">{escape(row.name)}</td>{figures}'
        f'<td style="text-align: left">{escape(row.note)}{alarm}</td></tr>'
    )


def _figure(value: float) -> str:
    return "" if value != value else f"{value:.4f}"  # what is undefined is left open
