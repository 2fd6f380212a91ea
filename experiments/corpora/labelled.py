"""Questions with the id of their answer, in tables with a header: FAQs and intents (`query text text_id`)."""

from __future__ import annotations

import csv
from pathlib import Path

from matchloom import Pair


def rows_of(path: Path) -> list[dict[str, str]]:
    """The lines of a table, by the names in its header; quotes mean nothing."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def labelled_pairs(*paths: Path) -> list[Pair]:
    """Each question with its answer."""
    return [Pair(row["query"], row["text"], text_id=row["text_id"]) for path in paths for row in rows_of(path)]
