"""`matchloom refit`: learn from what was added and removed since the last fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchloom.artifact import kind_of
from matchloom.cli.collections import open_collection, show_status
from matchloom.cli.options import FolderArgument
from matchloom.cli.printing import note
from matchloom.types import MatchloomError


def command(
    folder: FolderArgument,
    feedback: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Judgements of answers, as 'matchloom serve' keeps them.", show_default=False
        ),
    ] = None,
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

    \b
    Examples:
      matchloom refit faq
      matchloom refit faq --feedback feedback.jsonl
    """
    if kind_of(folder) == "archive":
        raise MatchloomError(
            f"{folder} is a LanceDB archive, which has one weight; 'matchloom tune' finds it", code="not_supported"
        )
    collection = open_collection(folder)
    changed = collection.status()["changed_since_fit"]
    done = collection.refit(feedback=feedback, progress=True)
    told = [
        ("answers", f"{done.entries:,}"),
        ("questions", f"{done.questions:,}"),
        ("changed since the last fit", f"{changed:,} answers"),
        ("left-out questions answered, before", _share(done.before)),
        ("left-out questions answered, after", _share(done.after)),
        ("the new fit", f"is used: {done.why}" if done.kept else f"is not used: {done.why}"),
    ]
    judged = done.feedback
    for line in () if judged is None else judged.lines():
        note(line)
    plain = {**done._asdict(), "changed": changed}
    del plain["feedback"]
    if judged is not None:
        plain["feedback"] = judged._asdict()
    show_status({}, plain, told, json)


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
