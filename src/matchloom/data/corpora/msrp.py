"""MSRP: sentence pairs from the news, judged as paraphrases or not (Dolan and Brockett, 2005)."""

from __future__ import annotations

from pathlib import Path

from matchloom.data.corpora.lines import rows, zero_or_one
from matchloom.types import Pair

_COLUMNS = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")


def read_msrp(path: Path | str) -> list[Pair]:
    """Read `msr_paraphrase_train.txt` or `msr_paraphrase_test.txt`; ids are those of the two sentences."""
    return [
        Pair(first, second, zero_or_one(label, path, number), first_id, second_id)
        for number, (label, first_id, second_id, first, second) in rows(path, _COLUMNS, header=True)
    ]
