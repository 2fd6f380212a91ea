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
            help="The name it was served under, where FILE has judgements of several.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="First take over what has changed in this file, if held-out questions are not worse for it.",
            show_default=False,
        ),
    ] = None,
    aside: Annotated[
        bool, typer.Option("--aside", help="Keep the new fit aside, measured and not used, for --promote.")
    ] = False,
    promote: Annotated[bool, typer.Option("--promote", help="Use the fit that --aside made.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Learn from what was added and removed since the last fit.

    It learns from all entries of the collection as they are now; searches and changes go on meanwhile. Known questions
    are left out one by one, and must find their answer among the others. The new fit takes the old one's place, whole,
    unless they find it less often than by the old weights, by more than chance. Files are written anew, without what
    was removed. The report of 'matchloom fit' stays as it is: fit anew to measure.

    With --feedback it learns from thumbs up and down, too. Up: the question is one more of that answer's. Down: that
    answer is not given to exactly that question any more; other questions are as they were. Your own questions stay
    with their answers, whoever calls them wrong. The last judgement of a person counts, of several people the majority.
    Judgements never make an answer: those of answers that were removed are counted and left aside. They are learnt
    only if held-out questions of your own do not find their answer less often by more than chance.

    With --from it follows a file: entries and questions that were added, changed or removed there since the last time
    are so here, and what was added here stays. --aside measures a new fit and waits; --promote takes it up.

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
        raise MatchloomError("--promote takes up what is there; give it alone", code="conflict")
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
    told = [
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
    show_status({}, plain, told, json)


def _used(done: Refit) -> str:
    if done.aside:
        return f"waits for --promote: {done.why}"
    return f"is used: {done.why}" if done.kept else f"is not used: {done.why}"


def _followed(done: Taken, source: str) -> str:
    figures = ""
    if done.before is not None and done.after is not None:
        figures = f" {done.questions:,} held-out questions: {done.before:.3f} answered before, {done.after:.3f} after."
    if not done.put and not done.removed:
        return f"{source} says what is here."
    said = f"{done.put:,} entries of {source} are new or changed, {done.removed:,} are gone."
    return f"{said} {'Taken over.' if done.taken else f'Not taken over: {done.why}.'}{figures}"


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
