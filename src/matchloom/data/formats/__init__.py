"""Files of pairs in the formats that people have (`readers.py` lists them), and TREC's runs and judgements."""

from matchloom.data.formats.pairs import FORMATS, WRITTEN, read_pairs, write_pairs
from matchloom.data.formats.sources import PairsLike, as_pairs, scorable
from matchloom.data.formats.trec import Judgement, RunLine, read_qrels, read_run, write_qrels, write_run

__all__ = [
    "FORMATS",
    "Judgement",
    "PairsLike",
    "RunLine",
    "WRITTEN",
    "as_pairs",
    "read_pairs",
    "read_qrels",
    "read_run",
    "scorable",
    "write_pairs",
    "write_qrels",
    "write_run",
]
