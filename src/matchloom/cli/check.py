"""`matchloom check`: what is wrong with a file of pairs before anything learns from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchloom.cli.options import ColumnsOption
from matchloom.cli.printing import print_json, say
from matchloom.cli.reading import parse_columns


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A pairs file, or a folder.", show_default=False)],
    test: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Test pairs, whose questions must not be in FILE.", show_default=False),
    ] = None,
    columns: ColumnsOption = None,
    most: Annotated[int, typer.Option(min=0, help="How many problems of each kind to show.")] = 5,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with the problems.", show_default=False)
    ] = None,
    fix: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the pairs with fixable problems fixed.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON with all problems.")] = False,
) -> None:
    """Check a pairs file for problems.

    It looks for unreadable rows, empty questions and answers, one question with several answers, nearly the same
    question with another answer, nearly equal answers, repeated rows, HTML tags, broken characters, rows in another
    language than most, and, with --test, for test questions that are in FILE. Each problem is shown with its lines.
    'fit' shows the first lines of this.

    --fix removes tags, and removes rows that are unreadable, empty on one side, repeated, or in the test file. It keeps
    contradictions, which only you can decide. Nothing else is changed; FILE is never changed.

    \b
    Examples:
      matchloom check faq.tsv
      matchloom check faq.xlsx --test asked.tsv --html check.html --fix clean.tsv
    """
    from matchloom.basics.files import atomic_write
    from matchloom.data.checkup import check_file

    found, fixed = check_file(file, test=test, columns=parse_columns(columns), fix=fix)
    if html is not None:
        with atomic_write(html) as page:
            page.write(found.to_html())
    if json:
        more = {} if fixed is None else {"fixed": fixed.done, "left": len(fixed.rows)}
        print_json({**found.to_dict(), **more})
        return
    for line in found.lines(most):
        say(line)
    if fixed is not None:
        done = ", ".join(f"{name} {count:,}" for name, count in fixed.done.items()) or "nothing to do"
        say(f"\nwritten: {fix} with {len(fixed.rows):,} pairs ({done})")
