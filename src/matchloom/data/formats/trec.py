"""TREC's two plain formats: runs (what a system ranked) and qrels (what people judged)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from matchloom.basics.files import atomic_write, read_lines, write_lines
from matchloom.types import MatchloomError, Pair, Scores


class RunLine(NamedTuple):
    """One line of a run: `query_id Q0 text_id rank score tag`."""

    query_id: str
    text_id: str
    rank: int
    score: float
    tag: str


class Judgement(NamedTuple):
    """One line of qrels: `query_id 0 text_id label`."""

    query_id: str
    text_id: str
    label: int


def read_run(path: Path | str) -> Iterator[RunLine]:
    """Yield the lines of a run as they stand: nothing is checked but their columns (NaN is a number here)."""
    for where, (query_id, _, text_id, rank, score, tag) in _fields(path, "query_id Q0 text_id rank score tag"):
        try:
            yield RunLine(query_id, text_id, int(rank), float(score), tag)
        except ValueError:
            raise MatchloomError(
                f"{where}: rank {rank[:40]!r} or score {score[:40]!r} is no number", code="bad_row"
            ) from None


def read_qrels(path: Path | str) -> Iterator[Judgement]:
    """Yield the judgements of a qrels file as they stand."""
    for where, (query_id, _, text_id, label) in _fields(path, "query_id 0 text_id label"):
        try:
            yield Judgement(query_id, text_id, int(label))
        except ValueError:
            raise MatchloomError(f"{where}: label {label[:40]!r} is no whole number", code="bad_row") from None


def write_run(path: Path | str, pairs: Sequence[Pair], scores: Scores, tag: str) -> None:
    """Write the ranking of every query: by score as float32, ties by text_id from the last, both as trec_eval does.

    A name that ends with .gz asks for gzip.
    """
    if len(pairs) != len(scores):
        raise MatchloomError(f"{path} was not written: {len(pairs)} pairs but {len(scores)} scores", code="mismatch")
    values = np.asarray(scores, dtype=np.float32)
    if not np.isfinite(values).all():
        first = pairs[int(np.argmin(np.isfinite(values)))]
        raise MatchloomError(
            f"{path} was not written: "
            f"the score of query {first.query_id!r}, text {first.text_id!r} is no finite number",
            code="bad_value",
        )
    _check_ids(path, pairs)
    if tag.split() != [tag]:
        raise MatchloomError(f"{path} was not written: the tag {tag!r} must be one word", code="bad_value")
    by_text = sorted(range(len(pairs)), key=lambda i: pairs[i].text_id, reverse=True)
    order = sorted(by_text, key=lambda i: (pairs[i].query_id, -values[i]))
    write_lines(path, _run_lines(pairs, values, order, tag))


def _run_lines(pairs: Sequence[Pair], values: Scores, order: Iterable[int], tag: str) -> Iterator[bytes]:
    rank, query_id = 0, ""
    for i in order:
        rank = rank + 1 if pairs[i].query_id == query_id else 1
        query_id = pairs[i].query_id
        # The shortest digits that give the same float32 again.
        yield f"{query_id} Q0 {pairs[i].text_id} {rank} {values[i]!s} {tag}\n".encode()


def write_qrels(path: Path | str, pairs: Iterable[Pair]) -> None:
    """Write the labels of pairs as judgements; qrels know whole numbers only."""
    pairs = list(pairs)
    _check_ids(path, pairs)
    for pair in pairs:
        if pair.label is None or not math.isfinite(pair.label) or pair.label != int(pair.label):
            raise MatchloomError(
                f"{path} was not written: query {pair.query_id!r}, text {pair.text_id!r} has the label {pair.label}; "
                "expected a whole number",
                code="bad_row",
            )
    with atomic_write(path) as file:
        for query_id, text_id, label in sorted((p.query_id, p.text_id, int(p.label or 0)) for p in pairs):
            file.write(f"{query_id} 0 {text_id} {label}\n")


def _fields(path: Path | str, expected: str) -> Iterator[tuple[str, list[str]]]:
    columns = len(expected.split())
    empty = True
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        empty = False
        if len(fields) != columns:
            remedy = "" if line.endswith("\n") else "; is the file cut off?"
            raise MatchloomError(
                f"{path}, line {number}: found {len(fields)} columns, expected {columns} ({expected}){remedy}",
                code="bad_row",
            )
        yield f"{path}, line {number}", fields
    if empty:
        raise MatchloomError(f"{path} is empty; expected lines of {expected}", code="no_data")


def _check_ids(path: Path | str, pairs: Iterable[Pair]) -> None:
    seen: set[tuple[str, str]] = set()
    for pair in pairs:
        ids = (pair.query_id, pair.text_id)
        for name, value in zip(("query_id", "text_id"), ids, strict=True):
            if value.split() != [value]:  # the same split that reads a line
                found = "has a space inside" if value else "is empty"
                raise MatchloomError(
                    f"{path} was not written: {name} {value!r} {found}; TREC ids are one word", code="bad_row"
                )
        if ids in seen:
            raise MatchloomError(
                f"{path} was not written: query_id {ids[0]!r} has text_id {ids[1]!r} twice", code="bad_row"
            )
        seen.add(ids)
