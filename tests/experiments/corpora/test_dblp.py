from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.corpora.citations import read_citations, write_citations
from experiments.corpora.dblp import dblp_papers
from matchloom.types import MatchloomError, Pair

TEXT = """3
#*Looms
#@Ada, Ben
#t1999
#cCHI
#index1
#%2
#%3
#%2
#!We weave.

#*Wool
#index2
#!We spin
and we card.

#*Silk
#index3
#%1
"""
AMINER = "#index 1\n#* Looms\n#@ Ada;Ben\n#o Guild\n#t 1999\n#% 2\n#! We weave.\n\n#index 2\n#* Wool\n#! We spin.\n"
OBJECTS = [
    {"id": 1, "title": "Looms", "references": [2, 3, 9], "indexed_abstract": {"IndexLength": 3, "InvertedIndex": {}}},
    {"id": 2, "title": "Wool", "indexed_abstract": {"IndexLength": 3, "InvertedIndex": {"we": [0, 2], "spin,": [1]}}},
    {"id": "3", "title": "Silk", "abstract": "We  wind.", "references": ["2"], "year": 1999},
]


def write(folder: Path, content: str, name: str = "dblp.txt") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def test_text(tmp_path: Path) -> None:
    assert [(p.id, p.title, p.abstract, p.references) for p in dblp_papers(write(tmp_path, TEXT))] == [
        ("1", "Looms", "We weave.", ["2", "3", "2"]),
        ("2", "Wool", "We spin and we card.", []),
        ("3", "Silk", "", ["1"]),
    ]
    assert [(p.id, p.abstract, p.references) for p in dblp_papers(write(tmp_path, AMINER))] == [
        ("1", "We weave.", ["2"]),
        ("2", "We spin.", []),
    ]


@pytest.mark.parametrize("layout", ["lines", "array", "text within"])
def test_json(tmp_path: Path, layout: str) -> None:
    objects = OBJECTS
    if layout == "text within":
        objects = [one | {"indexed_abstract": json.dumps(one.get("indexed_abstract"))} for one in OBJECTS]
    lines = [json.dumps(one) for one in objects]
    content = "[\n" + "\n,".join(lines) + "\n]\n" if layout == "array" else "\n".join(lines)
    assert [(p.id, p.abstract, p.references) for p in dblp_papers(write(tmp_path, content))] == [
        ("1", "", ["2", "3", "9"]),
        ("2", "we spin, we", []),
        ("3", "We wind.", ["2"]),
    ]


def test_a_network_becomes_the_own_layout(tmp_path: Path) -> None:
    path, own = write(tmp_path, TEXT), tmp_path / "own"
    write(tmp_path, "What it is.", "README.txt")
    own.mkdir()
    assert {to.name: count for to, count in write_citations(path, own).items()} == {
        "papers.jsonl.gz": 2,
        "citations_dblp.tsv": 1,
    }
    pairs = [Pair("We weave.", "We spin and we card.", 1.0, "1", "2", "1")]  # paper 3 has no abstract
    assert read_citations(own) == read_citations(path) == read_citations(tmp_path) == pairs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("papers\n#*Looms", r"dblp\.txt: neither lines that start with #\* or #index nor JSON"),
        ("", r"dblp\.txt: neither"),
        (TEXT.replace("#index2\n", ""), r"dblp\.txt, line 12: a paper without #index"),
        ("#*a\n#index1\n\nstray", r"dblp\.txt, line 4: expected #\* or #index at the start, found 'stray'"),
        ('{"title": "a"}', r"dblp\.txt, line 1: .*missing required field `id`"),
        ('[\n{"id": 1, "title', r"dblp\.txt, line 2: .*truncated"),
        (
            '{"id": 1, "indexed_abstract": {"IndexLength": 1, "InvertedIndex": {"a": [99999999]}}}',
            r"dblp\.txt, line 1: an abstract with a word at place 99999999",
        ),
        ('{"id": 1, "indexed_abstract": "{"}', r"dblp\.txt, line 1: "),
    ],
)
def test_malformed(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(MatchloomError, match=message):
        list(dblp_papers(write(tmp_path, content)))


def test_without_abstracts_there_is_nothing_to_match(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match="no paper with an abstract in it"):
        read_citations(write(tmp_path, "#*a\n#index1\n"))
    with pytest.raises(MatchloomError, match="expected a file of AMiner"):
        write_citations(tmp_path / "none", tmp_path)
