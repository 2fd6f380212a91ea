"""`matchloom corpus`: known corpora as pairs files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from matchloom.basics.files import is_there
from matchloom.cli.experiments import experiment
from matchloom.cli.options import SeedOption
from matchloom.cli.printing import console, note, say, table
from matchloom.cli.reading import make_folder
from matchloom.data.pydocs import python_version, read_pydocs
from matchloom.types import MatchloomError, Pair


class ForTables(NamedTuple):
    """The folder in which 'matchloom reproduce' looks for a corpus, and how its files get there, with their lines."""

    folder: str
    write: Callable[[Path, Path], dict[Path, int]]


class Corpus(NamedTuple):
    """What a corpus is, what --data must name (nothing, where it needs none), and its files of pairs by name."""

    about: str
    data: str
    read: Callable[[Path, int], dict[str, Sequence[Pair]]]
    for_tables: ForTables | None = None  # None: the tables need no file of it


def _pydocs(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    from matchloom.data.grouping import grouped_lists
    from matchloom.data.splits import split_by_group

    note(f"Reading the documentation of Python {python_version()}: other versions have other texts.")
    lists = grouped_lists(read_pydocs(), seed=seed, progress=True)
    return dict(zip(("train", "dev", "test"), split_by_group(lists, seed=seed), strict=True))


PYDOCS = Corpus("Python's documentation: lists of five, whose order and texts give nothing away", "", _pydocs)


def corpora() -> dict[str, Corpus]:
    """Every corpus by name; refused where the folder that reads all but pydocs is not here."""
    return {"pydocs": PYDOCS, **experiment("cli.corpora").CORPORA}


def _readable() -> dict[str, Corpus]:
    """Those that can be read here, and a note where others cannot."""
    try:
        return corpora()
    except MatchloomError as error:
        note(f"{error}.")
        return {"pydocs": PYDOCS}


def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Which corpus; without a name all are listed.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write into; created if needed.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Where the public files are; nothing is downloaded.", show_default=False),
    ] = None,
    reproduce: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write what 'matchloom reproduce --data DIR' reads of this corpus, under DIR.",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Write a known corpus as pairs files.

    Without NAME the corpora are listed. pydocs needs no data: its pairs (summary, rest of the description) are read
    from the documentation of the running Python. It is written as lists of five, split 8:1:1. Each text is right
    once and wrong four times, so a scorer that ignores the query gets P@1 .200. All other corpora are read by the
    folder experiments/ of the repository: run this in a clone. If a corpus has positive pairs only, continue with
    'matchloom split' and 'matchloom mine'.

    --reproduce DIR writes the corpus to where 'matchloom reproduce' looks for it: one folder for all corpora.

    \b
    Examples:
      matchloom corpus pydocs --out data
      matchloom corpus trecqa --data ~/trecqa --out data/trecqa
      matchloom corpus trecqa --data ~/trecqa --reproduce ~/tables
    """
    if name is None:
        listed = table("name", "what it is", "--data")
        for each, corpus in _readable().items():
            listed.add_row(each, corpus.about, corpus.data or "none")
        console().print(listed)
        return
    known = {name: PYDOCS} if name == "pydocs" else corpora()
    if name not in known:
        raise MatchloomError(f"corpus {name!r} is unknown; choose one of {', '.join(known)}")
    chosen = known[name]
    if out is None and reproduce is None:
        raise MatchloomError(f"{name} needs a folder to write to; add --out DIR")
    if reproduce is not None and chosen.for_tables is None:
        raise MatchloomError(f"the tables need no file of {name}; leave out --reproduce")
    if chosen.data and data is None:
        raise MatchloomError(f"{name} is read from its public files; add --data PATH ({chosen.data})")
    if not chosen.data and data is not None:
        raise MatchloomError(f"{name} needs no data; leave out --data")
    if out is not None:
        _write_pairs(chosen.read(data or Path(), seed), out)
    if reproduce is not None and chosen.for_tables is not None and data is not None:
        _write_for_tables(chosen.for_tables, data, reproduce)


def _write_pairs(parts: dict[str, Sequence[Pair]], out: Path) -> None:
    from matchloom.data.formats import write_pairs

    make_folder(out)
    for part, pairs in parts.items():
        write_pairs(out / f"{part}.tsv", pairs)
    print_parts({out / f"{part}.tsv": pairs for part, pairs in parts.items()})


def _write_for_tables(tables: ForTables, data: Path, folder: Path) -> None:
    if not is_there(data):
        raise MatchloomError(f"{data} cannot be read: there is no such file or folder")
    home = folder / tables.folder
    if is_there(home) and home.samefile(data if data.is_dir() else data.parent):
        raise MatchloomError(f"{data} is where --reproduce {folder} would write; name another folder")
    make_folder(home)
    for path, count in tables.write(data, home).items():
        say(f"{path}: {count:,} entries")


def print_parts(parts: dict[Path, Sequence[Pair]]) -> None:
    """Say what was written, a line a file."""
    for path, pairs in parts.items():
        right = sum(pair.is_positive for pair in pairs)
        labels = f"{right:,} positive" if any(pair.label is not None for pair in pairs) else "without labels"
        say(f"{path}: {len({pair.query_id for pair in pairs}):,} questions, {len(pairs):,} pairs, {labels}")
