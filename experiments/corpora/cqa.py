"""Community questions with an answer (product questions, medical forums), from the public files or as one table.

The table, `source group question answer`, is this project's own layout: its pairs have 5 to 50 words on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.corpora.amazon import amazon_questions
from experiments.corpora.lines import rows, write_table
from experiments.corpora.medical import forum_questions, medquad_questions
from experiments.corpora.question_answers import Answered, within_bounds
from experiments.corpora.yahoo import yahoo_files, yahoo_questions
from matchloom.basics.progress import track
from matchloom.data.identity import with_ids
from matchloom.data.repeats import once_each
from matchloom.types import MatchloomError, Pair

_COLUMNS = ("source", "group", "question", "answer")
_NAMES = "qa_*.json.gz (Amazon), *QAs.json (medical forums), *.xml in folders (MedQuAD), *.tsv.gz (as one table)"


def read_cqa(path: Path | str) -> list[Pair]:
    """Read (question, answer) as positive pairs, each text once; the group is that of source and product or topic.

    `path` is the table, one public file, or a folder with public files at any depth: Amazon's `qa_<Category>.json.gz`
    and `QA_<Category>.json.gz`, medical forums (`*QAs.json`) and MedQuAD's folders of XML; of these, pairs count whose
    texts both have 5 to 50 words. The product questions repeat themselves over variants of a product. A pair is left
    out if its question or its answer, case and spacing apart, stands in a pair that was kept, so that no text can be
    on both sides of a split.
    """
    pairs = (Pair(row.question, row.answer, 1.0, group=f"{row.source}/{row.group}") for row in _rows(Path(path)))
    return list(with_ids(once_each(sorted(pairs))))


def write_cqa(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write public files as the table `cqa_5_50.tsv.gz`, each pair once.

    Args:
        source: One file, or a folder of them.
        folder: The folder to write to, which is there.
    """
    return _write(folder, _rows(Path(source)))


def write_yahoo(source: Path | str, folder: Path, *, progress: bool = False) -> dict[Path, int]:
    """Write the English questions of Yahoo! Answers as that table, in which the papers' own corpus then stands.

    Args:
        source: The XML file, or the folder that holds it.
        folder: The folder to write to, which is there.
        progress: Whether to show a bar.
    """
    found = track(yahoo_questions(yahoo_files(Path(source))), "Reading questions", show=progress)
    return _write(folder, _within_bounds(found))


def _write(folder: Path, found: Iterable[Answered]) -> dict[Path, int]:
    path = folder / "cqa_5_50.tsv.gz"
    once: dict[tuple[str, str], Answered] = {}
    for row in found:
        once.setdefault((row.question, row.answer), row)
    return {path: write_table(path, (_COLUMNS, *once.values())) - 1}


def _rows(path: Path) -> Iterator[Answered]:
    if not path.is_dir():
        return _rows_of(path)
    known = [file for file in sorted(path.rglob("*")) if _is_public(file)]
    if not known:
        raise MatchloomError(f"{path} has no file of community questions; expected {_NAMES}")
    return (row for file in known for row in _rows_of(file))


def _is_public(path: Path) -> bool:
    name = path.name.removesuffix(".gz")
    return name.endswith(("QAs.json", ".xml")) or (name.lower().startswith("qa_") and name.endswith(".json"))


def _rows_of(path: Path) -> Iterator[Answered]:
    name = path.name.removesuffix(".gz")
    if name.endswith("QAs.json"):
        return _within_bounds(forum_questions(path))
    if name.endswith(".xml"):
        return _within_bounds(medquad_questions(path))
    if name.endswith(".json"):
        return _within_bounds(amazon_questions(path))
    return (Answered(*fields) for _, fields in rows(path, _COLUMNS, header=True))


def _within_bounds(found: Iterable[Answered]) -> Iterator[Answered]:
    return (row for row in found if within_bounds(row.question) and within_bounds(row.answer))
