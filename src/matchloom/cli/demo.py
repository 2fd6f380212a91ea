"""`matchloom demo`: the whole way once, through the front door, on texts that every Python has."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import matchloom
from matchloom.cli.hits import Asked, show_hits
from matchloom.cli.printing import console, note, say
from matchloom.cli.reading import make_folder
from matchloom.data.identity import digest
from matchloom.data.pydocs import python_version, read_pydocs

if TYPE_CHECKING:
    from matchloom import Fitted

_PAIRS = 1500  # of some 2,900: what `fit` does with them in a minute


def command(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to save pairs, system and report.")] = Path(
        "runs/demo"
    ),
    pairs: Annotated[int, typer.Option(min=20, help="How many pairs to use.")] = _PAIRS,
) -> None:
    """Try everything once, on Python's own documentation.

    It takes about a minute. The pairs are summaries and descriptions from the standard library; the task is to find the
    description that belongs to a summary among all of them. 'matchloom fit' tries a short list of systems, chooses one,
    measures it once on held-out summaries, and saves it with a report page. Then a question is answered, and the answer
    is explained.

    \b
    Example:
      matchloom demo --out runs/demo
    """
    from matchloom.data.formats import write_pairs

    start = time.perf_counter()
    make_folder(out)
    found = sorted(read_pydocs(), key=lambda pair: digest(pair.query, pair.text))[:pairs]
    file = out / "pydocs.tsv"
    write_pairs(file, [pair._replace(query_id="", text_id="", group="") for pair in found])
    say(f"{len(found):,} pairs (summary, description) from the documentation of Python {python_version()}: {file}")
    say(f"\n$ {shlex.join(['matchloom', 'fit', str(file), '--encoder', 'none', '--out', str(out / 'fitted')])}")
    fitted = matchloom.fit(
        file, out=out / "fitted", encoder=None, overwrite=True, on_note=note
    )  # the same on every machine
    console().print(fitted.report)
    asked = _question(fitted)
    say(f"\n$ {shlex.join(['matchloom', 'search', str(out / 'fitted'), asked, '--top', '2', '--explain'])}")
    shown = Asked(2, explain=True, html=out / "explained.html")
    show_hits(asked, fitted.rank(asked, top=2, explain=True), shown)
    shown.write_page()
    say(f"\nDone in {time.perf_counter() - start:.0f} seconds. Look at {out / 'fitted' / 'report.html'}; then")
    say("  matchloom fit YOUR_FILE --out faq      # columns query and text, or question and answer")


def _question(fitted: Fitted) -> str:
    """A summary that was answered well, or the first there is."""
    right = [one.question for one in fitted.report.best if one.rank == 1]
    return right[0] if right else "read a file line by line"
