"""`matchloom remove`: answers that are no longer valid."""

from __future__ import annotations

from typing import Annotated

import typer

from matchloom.cli.collections import Changes, open_collection, remove_ids, show_collection
from matchloom.cli.options import PlaceArgument


def command(
    folder: PlaceArgument,
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Ids of answers, or files with an id on each line.", show_default=False),
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print what was done and the status of the collection as JSON.")
    ] = False,
) -> None:
    """Remove answers from a collection by their ids.

    Their questions are removed with them. 'matchloom search' shows ids. When this command ends, no process finds the
    removed answers any more. Their texts are deleted from the disk by the next 'matchloom refit' (of a LanceDB archive:
    'matchloom index FOLDER --compact').

    \b
    Examples:
      matchloom remove faq norway
      matchloom remove faq outdated.txt
    """
    collection = open_collection(folder)
    changes = Changes.of(ids)
    done = {"removed": remove_ids(collection, changes)}
    show_collection(collection, done, json)
    changes.refuse_unknown()
