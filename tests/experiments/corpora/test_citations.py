from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from experiments.corpora.citations import read_citations
from matchloom.types import MatchloomError, Pair

PAPERS = (
    '{"id": "p:1", "title": "Looms", "abstract": "We weave.", "date": "1804"}\n'
    '{"id": "p:2", "title": "Wool", "abstract": "We spin."}\n'
    '{"id": "p:3", "title": "Silk", "abstract": "We wind."}\n'
)


def write(folder: Path, papers: str, **citations: str) -> Path:
    (folder / "papers.jsonl.gz").write_bytes(gzip.compress(papers.encode()))
    for name, content in citations.items():
        (folder / f"citations_{name}.tsv").write_text(content, encoding="utf-8")
    return folder


def test_read(tmp_path: Path) -> None:
    folder = write(tmp_path, PAPERS, b="p:3\tp:1\np:1\tp:2\n", a="p:1\tp:2\np:1\tp:3\n")
    assert set(read_citations(folder)) == {
        Pair("We weave.", "We spin.", 1.0, "p:1", "p:2", "p:1"),
        Pair("We weave.", "We wind.", 1.0, "p:1", "p:3", "p:1"),
        Pair("We wind.", "We weave.", 1.0, "p:3", "p:1", "p:3"),
    }
    assert len(read_citations(folder)) == 3  # a citation that stands in two files counts once


@pytest.mark.parametrize(
    ("papers", "citations", "message"),
    [
        (PAPERS, "p:1\tp:9\n", r"citations_a\.tsv, line 1: paper 'p:9' is not in papers"),
        (PAPERS, "p:1\tp:2\np:1\n", r"citations_a\.tsv, line 2: expected 2 columns .*citing, cited.* found 1"),
        (PAPERS + '{"id": "p:4"}', "p:1\tp:2\n", r"papers\.jsonl\.gz, line 4: .*`abstract`"),
    ],
)
def test_malformed(tmp_path: Path, papers: str, citations: str, message: str) -> None:
    with pytest.raises(MatchloomError, match=message):
        read_citations(write(tmp_path, papers, a=citations))


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match=r"papers\.jsonl\.gz cannot be read"):
        read_citations(tmp_path)
    with pytest.raises(MatchloomError, match=r"no citations_\*\.tsv here"):
        read_citations(write(tmp_path, PAPERS))


@pytest.mark.data
def test_published_counts(data_dir: Path) -> None:
    pairs = read_citations(data_dir / "citations")
    assert len(pairs) == 28393
    assert len({(pair.query_id, pair.text_id) for pair in pairs}) == 28393
    assert all(pair.group == pair.query_id and pair.query and pair.text for pair in pairs)
