"""`matchloom add`: more questions and answers for a collection that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matchloom.cli.collections import note_wrong, open_collection, show_collection
from matchloom.cli.options import ColumnsOption, PlaceArgument
from matchloom.cli.reading import parse_columns
from matchloom.types import MatchloomError, Pair

if TYPE_CHECKING:
    from matchloom import Collection


def command(
    folder: PlaceArgument,
    pairs: Annotated[Path | None, typer.Argument(metavar="PAIRS", help="A pairs file.", show_default=False)] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A question, in place of a file; may be repeated.", show_default=False),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Its answer; not needed with the --id of an answer.", show_default=False),
    ] = None,
    id: Annotated[  # noqa: A002
        str | None, typer.Option("--id", metavar="ID", help="The answer's id, old or new.", show_default=False)
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print what was done and the status of the collection as JSON.")
    ] = False,
    columns: ColumnsOption = None,
) -> None:
    """Add questions and answers to a collection.

    The next search of every process finds what was added, and it is kept even if the process is killed. If the answer
    exists already (the same text, or text_id), the question is added to it. If its text_id exists with another text,
    the new text replaces the old one. 'matchloom refit' then learns from what was added.

    \b
    Examples:
      matchloom add faq more.tsv
      matchloom add faq --question "Do you ship to Norway?" --answer "We do, within a week." --id norway
      matchloom add faq --question "Delivery to Oslo" --id norway
    """
    collection = open_collection(folder)
    if (pairs is None) == (not question and answer is None):
        raise MatchloomError("give a file of pairs, or --question and --answer (or --id)", code="conflict")
    if pairs is not None and id is not None:
        raise MatchloomError("--id: a file has a column text_id; leave out --id", code="conflict")
    if pairs is None:
        added = collection.add(_pairs(collection, question or [""], answer, id))
    else:
        added = collection.add(pairs, columns=parse_columns(columns), progress=True)
        note_wrong(added, pairs)
    done: dict[str, Any] = {"added": added.new, "replaced": added.replaced}
    show_collection(collection, done, json)


def _pairs(collection: Collection, questions: list[str], answer: str | None, name: str | None) -> list[Pair]:
    """The pairs that the options name; an existing answer need not be written again."""
    if answer is None:
        if name is None:
            raise MatchloomError("--question needs --answer, or the --id of an existing answer", code="conflict")
        answer = collection[name].text
    if not answer.strip():
        raise MatchloomError("--answer is empty; expected a text", code="no_data")
    return [Pair(question, answer, text_id=name or "") for question in questions]
