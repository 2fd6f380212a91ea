"""`matchloom card`: what a folder is, for who gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="What 'fit', 'train', 'index' or 'trans-lm' made.", show_default=False),
    ],
    show: Annotated[bool, typer.Option("--print", help="Print the card, and write nothing.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a README.md that is not a card of matchloom.")] = False,
) -> None:
    """Write a card into a folder: what it is, and how good.

    The card is the README.md of the folder. It has a description, digests of the data and of the folder, the figures of
    its report with 95% intervals beside those of the other systems, limits, and the licence of a pretrained encoder. It
    begins with the metadata that model hubs expect. It holds no text of your data. Write it again after a refit.

    \b
    Examples:
      matchloom card faq
      matchloom card runs/faq --print
    """
    from matchloom.runs.card import card, write_card

    if show:
        print(card(folder), end="")
    else:
        print(f"{write_card(folder, overwrite=overwrite)} is written; read it before you share the folder.")
