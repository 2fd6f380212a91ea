"""MSRP: sentence pairs from the news, judged as paraphrases or not (Dolan and Brockett, 2005)."""

from __future__ import annotations

from pathlib import Path

from experiments.corpora.lines import rows, write_table, zero_or_one
from matchloom.types import MatchloomError, Pair

_COLUMNS = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")


def read_msrp(path: Path | str) -> list[Pair]:
    """Read `msr_paraphrase_train.txt` or `msr_paraphrase_test.txt`; ids are those of the two sentences."""
    return [
        Pair(first, second, zero_or_one(label, path, number), first_id, second_id)
        for number, (label, first_id, second_id, first, second) in rows(path, _COLUMNS, header=True)
    ]


def msrp_files(path: Path) -> list[Path]:
    """The file, or the two of a folder."""
    if not path.is_dir():
        return [path]
    if found := sorted(path.glob("msr_paraphrase_t*.txt")):
        return found
    raise MatchloomError(f"{path} has no msr_paraphrase_t*.txt; give the folder, or one file, of the corpus")


def write_msrp(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write the release's files under their own names, read and checked.

    Args:
        source: One file, or a folder of them.
        folder: The folder to write to, which is there.
    """
    written = {}
    for path in msrp_files(Path(source)):
        lines = (
            ("1" if pair.label else "0", pair.query_id, pair.text_id, pair.query, pair.text) for pair in read_msrp(path)
        )
        to = folder / path.name.removesuffix(".gz")
        written[to] = write_table(to, (_COLUMNS, *lines)) - 1
    return written
