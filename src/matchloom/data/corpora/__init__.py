"""Readers of public data sets, one file each: a path in, pairs out. The project carries readers, never the data.

`pydocs` alone needs no path: it reads the documentation of the Python that runs it.
"""

from matchloom.data.corpora.citations import read_citations
from matchloom.data.corpora.cqa import read_cqa
from matchloom.data.corpora.insuranceqa import insuranceqa_answers, insuranceqa_lists, read_insuranceqa
from matchloom.data.corpora.lcs import is_lcs, lcs_length, lcs_pairs
from matchloom.data.corpora.msrp import read_msrp
from matchloom.data.corpora.pydocs import python_version, read_pydocs
from matchloom.data.corpora.reuters import read_reuters
from matchloom.data.corpora.semeval import read_semeval
from matchloom.data.corpora.trecqa import read_trecqa, trecqa_questions
from matchloom.data.corpora.wikiqa import read_wikiqa
from matchloom.data.corpora.yahoo import read_yahoo

__all__ = [
    "insuranceqa_answers",
    "insuranceqa_lists",
    "is_lcs",
    "lcs_length",
    "lcs_pairs",
    "python_version",
    "read_citations",
    "read_cqa",
    "read_insuranceqa",
    "read_msrp",
    "read_pydocs",
    "read_reuters",
    "read_semeval",
    "read_trecqa",
    "read_wikiqa",
    "read_yahoo",
    "trecqa_questions",
]
