"""A report for people: the same rows for a terminal, for a notebook and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from matchloom.pages import blocks
from matchloom.pages.blocks import Column, table
from matchloom.pages.document import document, frame
from matchloom.pages.markup import safe_text


class ScorerFigures(NamedTuple):
    """One scorer's figures. `alarm` is the part of the note that should stand out."""

    name: str
    values: Mapping[str, float]
    note: str = ""
    alarm: str = ""
    own: bool = False  # the scorer that the report is about


class RenderedReport(NamedTuple):
    """Sections of rows, what they were measured on, and warnings."""

    sections: Sequence[Sequence[ScorerFigures]]
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

    def for_notebook(self, title: str) -> str:
        """The page in a frame that is about as high."""
        rows = sum(map(len, self.sections))
        return frame(self.for_page(title), title, height=16 + 2.1 * rows + 3.2 * len(self.warnings))

    def for_page(self, title: str) -> str:
        """A page that needs no other file."""
        columns = [
            Column("scorer"),
            *(Column(safe_text(name), "number") for name in self._measures),
            Column("", "said"),
        ]
        bodies = ([_html_row(row) for row in section] for section in self.sections)
        warnings = "\n".join(f'<p class="warning">{safe_text(warning)}</p>' for warning in self.warnings)
        shown = table("Figures", columns, *bodies, css="figures", narrow="stack")
        return document(
            safe_text(title),
            f'<p class="kicker">Evaluation</p>\n<h1>{safe_text(title)}</h1>\n'
            f'<section class="block">{shown}\n<p class="note">{safe_text(self.subset)}</p>\n{warnings}</section>',
        )

    @property
    def _measures(self) -> list[str]:
        return list(self.sections[0][0].values)


def _html_row(row: ScorerFigures) -> blocks.Row:
    alarm = f'<b class="neg">{safe_text(row.alarm)}</b>' if row.alarm else ""
    figures = map(_figure, row.values.values())
    css = "is-chosen" if row.own else "part" if row.name.startswith(" ") else ""
    return blocks.Row([safe_text(row.name.strip()), *figures, f"{safe_text(row.note)}{alarm}"], css)


def _figure(value: float) -> str:
    return "" if value != value else f"{value:.4f}"  # what is undefined is left open
