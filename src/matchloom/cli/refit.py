"""`matchloom refit`: learn from what was added and removed since the last fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matchloom.artifact import kind_of
from matchloom.cli.collections import open_collection, show_status
from matchloom.cli.options import FolderArgument
from matchloom.cli.printing import note
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.search.collection import Refit
    from matchloom.search.source import Taken


def command(
    folder: FolderArgument,
    feedback: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Judgements of answers, as 'matchloom serve' keeps them.", show_default=False
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name under which it was served, if FILE has judgements of several collections.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="First take over what has changed in this file, if held-out questions do not get worse.",
            show_default=False,
        ),
    ] = None,
    aside: Annotated[
        bool, typer.Option("--aside", help="Measure the new fit and save it without using it, for --promote.")
    ] = False,
    promote: Annotated[bool, typer.Option("--promote", help="Use the fit that --aside made.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Learn from what was added and removed since the last fit.

    It learns from all current entries of the collection; searches and changes continue meanwhile. It is validated with
    held-out questions: each known question is held out, one at a time, and must find its answer among the others. The
    new fit replaces the old one, unless these questions find their answers significantly less often than with the old
    weights. The files are rewritten without what was removed. The report of 'matchloom fit' does not change: fit again
    to measure.

    With --feedback it learns from thumbs up and down, too. Up: the question is added to that answer. Down: that answer
    is no longer given to exactly this question; other questions are not affected. Your own questions keep their
    answers, even if somebody judges them wrong. The last judgement of a person counts; among several people, the
    majority decides. Judgements never create an answer: those of removed answers are counted and ignored. Judgements
    are used only if your own held-out questions do not find their answers significantly less often.

    With --from it follows a file: entries and questions that were added, changed or removed there since the last time
    are added, changed or removed here, and what was added here stays. --aside measures a new fit without using it;
    --promote uses it.

    \b
    Examples:
      matchloom refit faq
      matchloom refit faq --feedback feedback.jsonl
      matchloom refit faq --from faq.csv
      matchloom refit faq --aside
      matchloom refit faq --promote
    """
    if kind_of(folder) == "archive":
        raise MatchloomError(
            f"{folder} is a LanceDB archive, which has one weight; 'matchloom tune' finds it", code="not_supported"
        )
    if promote and (aside or source is not None or feedback is not None):
        raise MatchloomError("--promote uses the fit that --aside saved; give it alone", code="conflict")
    collection = open_collection(folder)
    followed = None
    if source is not None:
        from matchloom.search.source import take_source

        followed = take_source(collection, source)
        note(_followed(followed, str(source)))
    changed = collection.status()["changed_since_fit"]
    if promote:
        done = collection.promote()
    else:
        done = collection.refit(feedback=feedback, system=system, aside=aside, progress=True)
    rows = [
        ("answers", f"{done.entries:,}"),
        ("questions", f"{done.questions:,}"),
        ("changed since the last fit", f"{changed:,} answers"),
        ("held-out questions answered, before", _share(done.before)),
        ("held-out questions answered, after", _share(done.after)),
        ("the new fit", _used(done)),
    ]
    judged = done.feedback
    for line in () if judged is None else judged.lines():
        note(line)
    plain = {**done._asdict(), "changed": changed}
    del plain["feedback"]
    if judged is not None:
        plain["feedback"] = judged._asdict()
    if followed is not None:
        plain["followed"] = followed._asdict()
    show_status({}, plain, rows, json)


def _used(done: Refit) -> str:
    if done.aside:
        return f"waits for --promote: {done.why}"
    return f"is used: {done.why}" if done.kept else f"is not used: {done.why}"


def _followed(done: Taken, source: str) -> str:
    figures = ""
    if done.before is not None and done.after is not None:
        figures = f" {done.questions:,} held-out questions: {done.before:.3f} answered before, {done.after:.3f} after."
    if not done.put and not done.removed:
        return f"The collection is the same as {source}."
    changes = f"{done.put:,} entries of {source} are new or changed, {done.removed:,} were removed."
    return f"{changes} {'Taken over.' if done.taken else f'Not taken over: {done.why}.'}{figures}"


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
