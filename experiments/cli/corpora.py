"""What `matchloom corpus` can read beside pydocs: each corpus by its public files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from experiments.corpora.citations import read_citations, write_citations
from experiments.corpora.cqa import read_cqa, write_cqa, write_yahoo
from experiments.corpora.insuranceqa import read_insuranceqa, write_insuranceqa
from experiments.corpora.lcs import lcs_pairs
from experiments.corpora.msrp import msrp_files, read_msrp, write_msrp
from experiments.corpora.reuters import read_reuters, write_reuters
from experiments.corpora.semeval import read_semeval, semeval_files, write_semeval
from experiments.corpora.trecqa import read_trecqa, trecqa_files, write_trecqa
from experiments.corpora.wikiqa import read_wikiqa, wikiqa_files, write_wikiqa
from experiments.corpora.yahoo import read_yahoo
from matchloom.cli.corpus import Corpus, ForTables
from matchloom.types import Pair


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


def _name(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).stem


_INSURANCEQA = ForTables("insuranceqa", write_insuranceqa)
CORPORA = {
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
