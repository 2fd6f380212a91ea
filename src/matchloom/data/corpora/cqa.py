"""Community questions with an answer (product questions, medical forums) as `source group question answer`."""

from __future__ import annotations

from pathlib import Path

from matchloom.data.corpora.lines import rows
from matchloom.data.corpora.repeats import once_each
from matchloom.data.ids import with_ids
from matchloom.types import Pair

_COLUMNS = ("source", "group", "question", "answer")


def read_cqa(path: Path | str) -> list[Pair]:
    """Read (question, answer) as positive pairs, each text once; the group is that of source and product or topic.

    The product questions repeat themselves over variants of a product. A pair is left out if its question or its
    answer, case and spacing apart, stands in a pair that was kept, so that no text can be on both sides of a split.
    """
    lines = rows(path, _COLUMNS, header=True)
    pairs = (Pair(query, text, 1.0, group=f"{source}/{group}") for _, (source, group, query, text) in lines)
    return list(with_ids(once_each(sorted(pairs))))
