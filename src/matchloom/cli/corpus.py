"""`matchloom corpus`: known corpora as pairs files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from matchloom.cli.options import (
    SeedOption,
)
from matchloom.cli.printing import console, note, say, table
from matchloom.cli.reading import make_folder
from matchloom.data.corpora.citations import read_citations
from matchloom.data.corpora.cqa import read_cqa
from matchloom.data.corpora.insuranceqa import read_insuranceqa
from matchloom.data.corpora.lcs import lcs_pairs
from matchloom.data.corpora.msrp import read_msrp
from matchloom.data.corpora.pydocs import python_version, read_pydocs
from matchloom.data.corpora.reuters import read_reuters
from matchloom.data.corpora.semeval import read_semeval
from matchloom.data.corpora.trecqa import read_trecqa
from matchloom.data.corpora.wikiqa import read_wikiqa
from matchloom.data.formats import write_pairs
from matchloom.data.grouping import grouped_lists, split_by_group
from matchloom.types import MatchloomError, Pair


class Corpus(NamedTuple):
    """What a corpus is, what --data must name (nothing, where it needs none), and its files of pairs by name."""

    about: str
    data: str
    read: Callable[[Path, int], dict[str, Sequence[Pair]]]


def _pydocs(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    note(f"Reading the documentation of Python {python_version()}: other versions have other texts.")
    lists = grouped_lists(read_pydocs(), seed=seed, progress=True)
    return dict(zip(("train", "dev", "test"), split_by_group(lists, seed=seed), strict=True))


def _lcs(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    pairs = lcs_pairs(12_000, seed=seed)
    return {"train": pairs[:10_000], "dev": pairs[10_000:11_000], "test": pairs[11_000:]}


def _trecqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_trecqa(path) for path in _files(data, "*.tsv", "*.xml")}


def _wikiqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_wikiqa(path) for path in _files(data, "WikiQA-*.tsv", "WikiQA*-*.txt")}


def _msrp(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_msrp(path) for path in _files(data, "msr_paraphrase_t*.txt")}


def _semeval(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_semeval(path) for path in _files(data, "*.jsonl")}


def _cqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {_name(path): read_cqa(path) for path in _files(data, "*.tsv.gz", "*.tsv")}


def _reuters(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {"reuters": read_reuters(data)}


def _citations(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {"citations": read_citations(data)}


def _insuranceqa(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {split: read_insuranceqa(data, split) for split in ("train", "valid", "test")}


def _insuranceqa_zh(data: Path, seed: int) -> dict[str, Sequence[Pair]]:
    return {split: read_insuranceqa(data, split, language="zh") for split in ("train", "valid", "test")}


CORPORA = {
    "pydocs": Corpus("what Python's documentation says: lists of five, which leak nothing", "", _pydocs),
    "lcs": Corpus("random letters, labelled with the length of their longest common subsequence", "", _lcs),
    "trecqa": Corpus("answer sentences for factoid questions", "a file or folder, TSV or pseudo-XML", _trecqa),
    "wikiqa": Corpus("sentences of Wikipedia for questions", "a file or folder, either public layout", _wikiqa),
    "insuranceqa": Corpus("insurance questions, English; right answers only", "the folder of V2", _insuranceqa),
    "insuranceqa_zh": Corpus("insurance questions, Chinese; right answers only", "the folder of V2", _insuranceqa_zh),
    "cqa": Corpus("community questions; right answers only, each text once", "a file or folder", _cqa),
    "reuters": Corpus("sentence completion; right endings only", "a folder or tar archive of stories", _reuters),
    "citations": Corpus("abstracts of papers that cite each other; right ones only", "the folder", _citations),
    "msrp": Corpus("paraphrases in the news", "a file or folder", _msrp),
    "semeval": Corpus("related forum questions (2016, task 3B)", "a file or folder of JSONL", _semeval),
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
    seed: SeedOption = 0,
) -> None:
    """Write a known corpus as pairs files.

    Without NAME the corpora are listed. pydocs needs no data: its pairs (summary, rest of the description) are read
    from the documentation of the running Python. It is written as lists of five, split 8:1:1: each text is right
    once and wrong four times, so that a scorer that ignores the query gets P@1 .200. If a corpus has right pairs
    only, continue with 'matchloom split' and 'matchloom mine'.

    \b
    Examples:
      matchloom corpus pydocs --out data
      matchloom corpus trecqa --data ~/trecqa --out data/trecqa
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
    if out is None:
        raise MatchloomError(f"{name} needs a folder to be written to; add --out DIR")
    if chosen.data and data is None:
        raise MatchloomError(f"{name} is read from its public files; add --data PATH ({chosen.data})")
    if not chosen.data and data is not None:
        raise MatchloomError(f"{name} needs no data; leave out --data")
    parts = chosen.read(data or Path(), seed)
    make_folder(out)
    for part, pairs in parts.items():
        write_pairs(out / f"{part}.tsv", pairs)
    print_parts({out / f"{part}.tsv": pairs for part, pairs in parts.items()})


def print_parts(parts: dict[Path, Sequence[Pair]]) -> None:
    """Say what was written, a line a file."""
    for path, pairs in parts.items():
        right = sum(pair.label is None or pair.label > 0 for pair in pairs)
        told = f"{right:,} right" if any(pair.label is not None for pair in pairs) else "without labels"
        say(f"{path}: {len({pair.query_id for pair in pairs}):,} questions, {len(pairs):,} pairs, {told}")


def _files(data: Path, *patterns: str) -> list[Path]:
    """The file, or those of the folder that fit the first pattern that any fits."""
    if not data.is_dir():
        return [data]
    for pattern in patterns:
        if found := sorted(data.glob(pattern)):
            return found
    raise MatchloomError(f"{data} has no {' and no '.join(patterns)}; give the folder, or one file, of the corpus")


def _name(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).stem
