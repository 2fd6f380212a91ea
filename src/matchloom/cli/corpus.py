"""`matchloom corpus`: known corpora as pairs files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from matchloom.cli.options import (
    SeedOption,
)
from matchloom.cli.printing import console, note, say, table
from matchloom.cli.reading import make_folder
from matchloom.data.corpora.citations import read_citations, write_citations
from matchloom.data.corpora.cqa import read_cqa, write_cqa, write_yahoo
from matchloom.data.corpora.insuranceqa import read_insuranceqa, write_insuranceqa
from matchloom.data.corpora.lcs import lcs_pairs
from matchloom.data.corpora.msrp import msrp_files, read_msrp, write_msrp
from matchloom.data.corpora.pydocs import python_version, read_pydocs
from matchloom.data.corpora.reuters import read_reuters, write_reuters
from matchloom.data.corpora.semeval import read_semeval, semeval_files, write_semeval
from matchloom.data.corpora.trecqa import read_trecqa, trecqa_files, write_trecqa
from matchloom.data.corpora.wikiqa import read_wikiqa, wikiqa_files, write_wikiqa
from matchloom.data.corpora.yahoo import read_yahoo
from matchloom.data.formats import write_pairs
from matchloom.data.grouping import grouped_lists, split_by_group
from matchloom.files import is_there
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
    note(f"Reading the documentation of Python {python_version()}: other versions have other texts.")
    lists = grouped_lists(read_pydocs(), seed=seed, progress=True)
    return dict(zip(("train", "dev", "test"), split_by_group(lists, seed=seed), strict=True))


def _lcs(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    pairs = lcs_pairs(12_000, seed=seed)
    return {"train": pairs[:10_000], "dev": pairs[10_000:11_000], "test": pairs[11_000:]}


def _trecqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {part: read_trecqa(path) for part, path in trecqa_files(data).items()}


def _wikiqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_wikiqa(path) for path in wikiqa_files(data)}


def _msrp(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_msrp(path) for path in msrp_files(data)}


def _semeval(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_semeval(path) for path in semeval_files(data)}


def _cqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    tables = [*sorted(data.glob("*.tsv.gz")), *sorted(data.glob("*.tsv"))] if data.is_dir() else []
    return {_name(path): read_cqa(path) for path in tables} or {"cqa": read_cqa(data)}


def _yahoo(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {"yahoo": read_yahoo(data, progress=True)}


def _reuters(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {"reuters": read_reuters(data)}


def _citations(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {"citations": read_citations(data)}


def _insuranceqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {split: read_insuranceqa(data, split) for split in ("train", "valid", "test")}


def _insuranceqa_zh(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {split: read_insuranceqa(data, split, language="zh") for split in ("train", "valid", "test")}


_INSURANCEQA = ForTables("insuranceqa", write_insuranceqa)
CORPORA = {
    "pydocs": Corpus("what Python's documentation says: lists of five, which leak nothing", "", _pydocs),
    "lcs": Corpus("random letters, labelled with the length of their longest common subsequence", "", _lcs),
    "trecqa": Corpus(
        "answer sentences for factoid questions",
        "a file or folder, TSV or pseudo-XML",
        _trecqa,
        ForTables("trecqa", write_trecqa),
    ),
    "wikiqa": Corpus(
        "sentences of Wikipedia for questions",
        "a file or folder, either public layout",
        _wikiqa,
        ForTables("wikiqa", write_wikiqa),
    ),
    "insuranceqa": Corpus(
        "insurance questions, English; right answers only",
        "the folder of V1, of V2 or of Chatopera's JSON",
        _insuranceqa,
        _INSURANCEQA,
    ),
    "insuranceqa_zh": Corpus(
        "insurance questions, Chinese; right answers only",
        "the folder of Chatopera's JSON",
        _insuranceqa_zh,
        _INSURANCEQA,
    ),
    "cqa": Corpus(
        "community questions; right answers only, each text once",
        "a folder of Amazon's, medical forums' and MedQuAD's files, or one of them",
        _cqa,
        ForTables("cqa", write_cqa),
    ),
    "yahoo": Corpus(
        "Yahoo! Answers in English; best answers only, each text once",
        "manner.xml (L5), FullOct2007.xml (L6), or their folder",
        _yahoo,
        ForTables("cqa", partial(write_yahoo, progress=True)),
    ),
    "reuters": Corpus(
        "sentence completion; right endings only",
        "a folder or tar archive of stories",
        _reuters,
        ForTables("reuters", write_reuters),
    ),
    "citations": Corpus(
        "abstracts of papers that cite each other; right ones only",
        "a file or folder of AMiner's citation network",
        _citations,
        ForTables("citations", write_citations),
    ),
    "msrp": Corpus("paraphrases in the news", "a file or folder", _msrp, ForTables("msrp", write_msrp)),
    "semeval": Corpus(
        "related forum questions (2016, task 3B)",
        "a file or folder of XML or JSONL",
        _semeval,
        ForTables("semeval-cqa", write_semeval),
    ),
}


def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Which corpus; without a name they are listed.", show_default=False),
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
    from the documentation of the running Python. It is written as lists of five, split 8:1:1: each text is right
    once and wrong four times, so that a scorer that ignores the query gets P@1 .200. If a corpus has right pairs
    only, continue with 'matchloom split' and 'matchloom mine'.

    --reproduce DIR puts the corpus where the papers' tables look for it: one folder for all of them.

    \b
    Examples:
      matchloom corpus pydocs --out data
      matchloom corpus trecqa --data ~/trecqa --out data/trecqa
      matchloom corpus trecqa --data ~/trecqa --reproduce ~/tables
    """
    if name is None:
        listed = table("name", "what it is", "--data")
        for known, corpus in CORPORA.items():
            listed.add_row(known, corpus.about, corpus.data or "none")
        console().print(listed)
        return
    if name not in CORPORA:
        raise MatchloomError(f"corpus {name!r} is unknown; choose one of {', '.join(CORPORA)}")
    chosen = CORPORA[name]
    if out is None and reproduce is None:
        raise MatchloomError(f"{name} needs a folder to be written to; add --out DIR")
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
        right = sum(pair.label is None or pair.label > 0 for pair in pairs)
        told = f"{right:,} right" if any(pair.label is not None for pair in pairs) else "without labels"
        say(f"{path}: {len({pair.query_id for pair in pairs}):,} questions, {len(pairs):,} pairs, {told}")


def _name(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).stem
