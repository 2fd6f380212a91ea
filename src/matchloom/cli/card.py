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
    show: Annotated[bool, typer.Option("--print", help="Print it, and write nothing.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a README.md that somebody else wrote.")] = False,
) -> None:
    """Write into a folder what it is, and how good.

    The card is README.md in the folder: what it is, the digest of its data and of itself, figures of its report with
    95% intervals beside the other systems', limits, and the licence of a pretrained encoder inside. It begins as the
    cards of model hubs do. No text of your data is in it. Write it again after a refit.

    \b
    Examples:
      matchloom card faq
      matchloom card runs/faq --print
    """
    from matchloom.runs.card import card, write_card

    if show:
        print(card(folder), end="")
    else:
        print(f"{write_card(folder, overwrite=overwrite)} is written; read it before you give the folder away.")
