"""`matchloom refit`: learn from what was added and removed since the last fit."""

from __future__ import annotations

from typing import Annotated

import typer

from matchloom.artifact import kind_of
from matchloom.cli.collections import open_collection, show_status
from matchloom.cli.options import FolderArgument
from matchloom.types import MatchloomError


def command(
    folder: FolderArgument,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Learn from what was added and removed since the last fit.

    It learns from all entries of the collection as they are now; searches and changes go on meanwhile. Known questions
    are left out one by one, and must find their answer among the others. The new fit takes the old one's place, whole,
    unless they find it less often than by the old weights, by more than chance. Files are written anew, without what
    was removed. The report of 'matchloom fit' stays as it is: fit anew to measure.

    \b
    Example:
      matchloom refit faq
    """
    if kind_of(folder) == "archive":
        raise MatchloomError(
            f"{folder} is a LanceDB archive, which has one weight; 'matchloom tune' finds it", code="not_supported"
        )
    collection = open_collection(folder)
    changed = collection.status()["changed_since_fit"]
    done = collection.refit(progress=True)
    told = [
        ("answers", f"{done.entries:,}"),
        ("questions", f"{done.questions:,}"),
        ("changed since the last fit", f"{changed:,} answers"),
        ("left-out questions answered, before", _share(done.before)),
        ("left-out questions answered, after", _share(done.after)),
        ("the new fit", f"is used: {done.why}" if done.kept else f"is not used: {done.why}"),
    ]
    show_status({}, {**done._asdict(), "changed": changed}, told, json)


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
