"""`matchloom import`: what a file or folder is understood to be, and the same as one pairs file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matchloom.cli.options import ColumnsOption
from matchloom.cli.printing import console, print_json, say, table
from matchloom.cli.reading import parse_columns

if TYPE_CHECKING:
    from matchloom.data.formats.understood import Understood

_REASONS = 10  # that are shown
_LETTERS = 60  # of a text


def command(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A file or a folder.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The pairs file to write: .tsv, .csv, .jsonl, .json or .parquet.", show_default=False
        ),
    ] = None,
    columns: ColumnsOption = None,
    examples: Annotated[int, typer.Option(min=0, help="How many pairs to show.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Show how a file or folder is read, and write it as pairs.

    Reads .xlsx and .ods, TSV and CSV in UTF-8 or UTF-16,
    JSON and JSONL (also nested, with several questions per answer, chats, and exports of Zendesk, Freshdesk and
    Intercom), Markdown and HTML whose headings are questions, Parquet, .zip archives and folders of all these. Columns
    are found by their names, in English and some twenty other languages.

    It shows the format, the columns, how many answers and questions there are, the first of them, and which rows were
    skipped, and why. With --out these pairs are written with your own columns, such as a URL; fit reads that file and
    SOURCE itself alike.

    \b
    Examples:
      matchloom import faq.xlsx
      matchloom import helpcenter.json --out faq.tsv
      matchloom import articles/ --out faq.jsonl
    """
    from matchloom.data.formats.understood import understand

    found = understand(source, columns=parse_columns(columns))
    if out is not None:
        found.write(out)
    if json:
        print_json(_plain(found, out))
        return
    _show(found, examples)
    if out is not None:
        say(f"\nwritten: {out}. Next: matchloom check {out}")


def _counts(found: Understood) -> dict[str, int]:
    from matchloom.data.entries import entries_of

    none: dict[str, str] = {}
    right = [(pair, none) for pair, _ in found.rows if pair.is_positive]
    entries = entries_of(right) if right else []
    return {
        "pairs": len(found.rows),
        "answers": len(entries),
        "questions": len({question for entry in entries for question in entry.questions}),
        "left_out": len(found.left_out),
    }


def _plain(found: Understood, out: Path | None) -> dict[str, object]:
    reasons = [{"reason": reason, "count": count, "first": first} for reason, count, first in found.reasons()]
    return {
        "source": str(found.source),
        "format": found.format,
        "columns": found.columns,
        "own_columns": found.own,
        **_counts(found),
        "reasons": reasons,
        "notes": found.notes,
        "out": None if out is None else str(out),
    }


def _show(found: Understood, examples: int) -> None:
    counts = _counts(found)
    shown = table("", "")
    shown.show_header = False
    shown.add_row("format", found.format)
    shown.add_row("columns", ", ".join(f"{ours} = {theirs}" for ours, theirs in found.columns.items()))
    shown.add_row("own columns", ", ".join(found.own) or "none")
    shown.add_row(
        "found", f"{counts['pairs']:,} pairs: {counts['answers']:,} answers, {counts['questions']:,} questions"
    )
    for line in found.notes:
        shown.add_row("assumed", line)
    for reason, count, first in found.reasons()[:_REASONS]:
        more = ", ..." if count > len(first) else ""
        shown.add_row("skipped", f"{count:,}: {reason} ({', '.join(first)}{more})")
    if len(found.reasons()) > _REASONS:
        shown.add_row("skipped", f"{len(found.reasons()) - _REASONS:,} other reasons; --json has all")
    printer = console()
    printer.print(shown)
    if examples:
        printer.print()
        printer.print(_examples(found, examples))


def _examples(found: Understood, count: int) -> object:
    shown = table("where", "question", "answer")
    for pair, row in found.rows[:count]:
        shown.add_row(row.place, _short(pair.query), _short(pair.text))
    return shown


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LETTERS else f"{line[:_LETTERS].rstrip()} ..."
