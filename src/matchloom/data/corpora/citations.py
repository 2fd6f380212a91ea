"""Papers that cite each other: does the second abstract belong to a paper that the first one cites?"""

from __future__ import annotations

from pathlib import Path

import msgspec

from matchloom.data.corpora.lines import records, rows
from matchloom.types import MatchloomError, Pair


class _Paper(msgspec.Struct):
    id: str
    abstract: str


def read_citations(folder: Path | str) -> list[Pair]:
    """Read (citing abstract, cited abstract) from `papers.jsonl.gz` and every `citations_*.tsv` of a folder.

    All pairs are positive. A few papers are cited hundreds of times, so pairs are grouped by the citing paper.
    """
    folder = Path(folder)
    abstracts = {paper.id: paper.abstract for _, paper in records(folder / "papers.jsonl.gz", _Paper)}
    files = sorted(folder.glob("citations_*.tsv"))
    if not files:
        raise MatchloomError(f"{folder}: no citations_*.tsv here; give the folder that holds papers and citations")
    pairs: dict[tuple[str, str], Pair] = {}
    for path in files:
        for number, (citing, cited) in rows(path, ("citing", "cited"), header=False):
            for paper in (citing, cited):
                if paper not in abstracts:
                    raise MatchloomError(f"{path}, line {number}: paper {paper!r} is not in papers.jsonl.gz")
            pairs[citing, cited] = Pair(abstracts[citing], abstracts[cited], 1.0, citing, cited, group=citing)
    return list(pairs.values())
