"""`matchloom split`: one pairs file into training, development and test files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchloom.cli.corpus import print_parts
from matchloom.cli.options import (
    ColumnsOption,
    PairsArgument,
    SeedOption,
)
from matchloom.cli.reading import make_folder, read_all
from matchloom.types import MatchloomError

_NAMES = {2: ("train", "test"), 3: ("train", "dev", "test")}


def command(
    pairs: PairsArgument,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write into; created if needed.", show_default=False)
    ],
    parts: Annotated[str, typer.Option(metavar="8,1,1", help="Proportions of train, dev and test.")] = "8,1,1",
    seed: SeedOption = 0,
    columns: ColumnsOption = None,
) -> None:
    """Split a pairs file into train, dev and test.

    No group (or question, if there are no groups) is in two of them. The split depends on the seed and the names of
    the groups, not on the order of the lines. Two proportions give train and test. The files have the format of
    PAIRS (TSV if that format cannot be written), with the column names query, text and so on. Labels may be grades,
    such as .8.

    \b
    Examples:
      matchloom split faq.tsv --out data
      matchloom split faq.jsonl --out data --parts 9,1 --seed 7
    """
    from matchloom.data.formats import WRITTEN, write_pairs
    from matchloom.data.formats.pairs import format_of
    from matchloom.data.splits import split_by_group

    shares = _shares(parts)
    found = read_all(pairs, columns=columns, graded=True)  # a split does not use the grades
    split = split_by_group(found, parts=shares, seed=seed, source=pairs)
    make_folder(out)
    ending = "".join(pairs.suffixes[-2:]) if pairs.suffix == ".gz" else pairs.suffix
    ending = ending if format_of(pairs) in WRITTEN else ".tsv"
    files = {out / f"{name}{ending}": part for name, part in zip(_NAMES[len(shares)], split, strict=True)}
    for path, part in files.items():
        write_pairs(path, part)
    print_parts(dict(files))


def _shares(parts: str) -> list[float]:
    try:
        shares = [float(part) for part in parts.split(",")]
    except ValueError:
        shares = []
    if len(shares) not in _NAMES:
        raise MatchloomError(
            f"--parts {parts!r}: expected two or three numbers separated by commas, such as 8,1,1", code="bad_value"
        )
    return shares
