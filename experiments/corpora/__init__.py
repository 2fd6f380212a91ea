"""Readers of public data sets, one file each: a path in, pairs out. The project carries readers, never the data.

`pydocs`, which every Python has, is `matchloom.data.pydocs`.
"""

from experiments.corpora.citations import read_citations
from experiments.corpora.cqa import read_cqa
from experiments.corpora.insuranceqa import insuranceqa_answers, insuranceqa_lists, read_insuranceqa
from experiments.corpora.lcs import is_lcs, lcs_length, lcs_pairs
from experiments.corpora.msrp import read_msrp
from experiments.corpora.reuters import read_reuters
from experiments.corpora.semeval import read_semeval
from experiments.corpora.trecqa import read_trecqa, trecqa_questions
from experiments.corpora.wikiqa import read_wikiqa
from experiments.corpora.yahoo import read_yahoo

__all__ = [
    "insuranceqa_answers",
    "insuranceqa_lists",
    "is_lcs",
    "lcs_length",
    "lcs_pairs",
    "read_citations",
    "read_cqa",
    "read_insuranceqa",
    "read_msrp",
    "read_reuters",
    "read_semeval",
    "read_trecqa",
    "read_wikiqa",
    "read_yahoo",
    "trecqa_questions",
]
