"""Papers that cite each other: does the second abstract belong to a paper that the first one cites?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from experiments.corpora.dblp import Cited, dblp_papers
from experiments.corpora.lines import records, rows, write_records, write_table
from matchloom.types import MatchloomError, Pair


class _Paper(msgspec.Struct):
    id: str
    abstract: str


class _Written(msgspec.Struct):
    id: str
    title: str
    abstract: str


def read_citations(path: Path | str) -> list[Pair]:
    """Read (citing abstract, cited abstract) as positive pairs.

    `path` is this project's own folder (`papers.jsonl.gz` and every `citations_*.tsv`), or a file or folder of AMiner's
    citation networks (`.txt` or `.json`, plain or gzip), of which the citations count whose papers both have an
    abstract. A few papers are cited hundreds of times, so pairs are grouped by the citing paper.
    """
    path = Path(path)
    if _is_public(path):
        papers = _with_abstracts(path)
        return [_pair(one, other, papers[one].abstract, papers[other].abstract) for one, other in _between(papers)]
    abstracts = {paper.id: paper.abstract for _, paper in records(path / "papers.jsonl.gz", _Paper)}
    files = sorted(path.glob("citations_*.tsv"))
    if not files:
        raise MatchloomError(f"{path}: no citations_*.tsv here; give the folder that holds papers and citations")
    pairs: dict[tuple[str, str], Pair] = {}
    for file in files:
        for number, (citing, cited) in rows(file, ("citing", "cited"), header=False):
            for paper in (citing, cited):
                if paper not in abstracts:
                    raise MatchloomError(f"{file}, line {number}: paper {paper!r} is not in papers.jsonl.gz")
            pairs[citing, cited] = _pair(citing, cited, abstracts[citing], abstracts[cited])
    return list(pairs.values())


def write_citations(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write a citation network of AMiner in this project's own layout: the papers that stand in a pair, and the pairs.

    Args:
        source: One file, or a folder of them; all abstracts are held in memory.
        folder: The folder to write to, which is there.
    """
    source = Path(source)
    if not _is_public(source):
        raise MatchloomError(f"{source}: expected a file of AMiner, or a folder with .txt or .json files of it")
    papers = _with_abstracts(source)
    pairs = list(_between(papers))
    used = dict.fromkeys(paper for pair in pairs for paper in pair)
    named = (_Written(one, papers[one].title, papers[one].abstract) for one in used)
    both = folder / "papers.jsonl.gz", folder / "citations_dblp.tsv"
    return {both[0]: write_records(both[0], named), both[1]: write_table(both[1], pairs)}


def _pair(citing: str, cited: str, query: str, text: str) -> Pair:
    return Pair(query, text, 1.0, citing, cited, group=citing)


def _is_public(path: Path) -> bool:
    return path.is_file() or (not (path / "papers.jsonl.gz").exists() and bool(_public_files(path)))


def _public_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    named = (file for file in sorted(path.glob("*")) if not file.name.lower().startswith("readme"))
    return [file for file in named if file.name.removesuffix(".gz").endswith((".txt", ".json"))]


def _with_abstracts(path: Path) -> dict[str, Cited]:
    papers = {paper.id: paper for file in _public_files(path) for paper in dblp_papers(file) if paper.abstract}
    if not papers:
        raise MatchloomError(f"{path}: no paper with an abstract in it; take a version that has them (from 2 on)")
    return papers


def _between(papers: dict[str, Cited]) -> Iterator[tuple[str, str]]:
    for paper in papers.values():
        for cited in dict.fromkeys(paper.references):
            if cited in papers and cited != paper.id:
                yield paper.id, cited
