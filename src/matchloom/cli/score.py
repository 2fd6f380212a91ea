"""`matchloom score`: a score for each pair of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import matchloom
from matchloom.basics.progress import track
from matchloom.basics.screen import printable_table
from matchloom.cli.batches import do_batch, refuse_with_engine, refuse_without_engine
from matchloom.cli.options import (
    AddressOption,
    CollectionOption,
    ColumnsOption,
    EngineOption,
    PairsArgument,
    ScorerArgument,
    ScorerTokenizerOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.reading import read_texts, texts_of, tokenizer_of, vectors_for, without_labels
from matchloom.cli.scorers import load_scorer
from matchloom.data.identity import both_sides
from matchloom.types import Calibrates, MatchloomError, Scorer

if TYPE_CHECKING:
    from matchloom.data.formats.columns import Columns
    from matchloom.data.formats.scored import ScoredRow

_CHUNK = 8192  # pairs in memory at a time


def command(
    scorer: ScorerArgument,
    pairs: PairsArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A .tsv, .csv, .jsonl, .json or .parquet file. Default: TSV to standard output.",
            show_default=False,
        ),
    ] = None,
    tokenizer: ScorerTokenizerOption = None,
    vectors: VectorsOption = None,
    collection: CollectionOption = None,
    seed: SeedOption = 0,
    columns: ColumnsOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
) -> None:
    """Score the pairs of a file.

    The output has all columns of the file and one more, score: the higher, the better the text matches the query. If
    SCORER gives probabilities (fitted to labelled pairs, or trained with cross_entropy), there is a column probability,
    too. Pairs are read, scored and written as a stream, so the file may be larger than memory. Labels are neither
    needed nor used. A lexical scorer first counts words in the texts of PAIRS, unless --collection is given.

    With --engine PAIRS is a Parquet file or a folder of them and --out a folder: each file becomes a shard of the same
    name, scored by the processors of this machine or of a Ray cluster that shares the folder. Finished shards are
    skipped when the command runs again.

    \b
    Examples:
      matchloom score runs/faq new.tsv --out new.scored.tsv
      matchloom score bm25 new.csv --columns query=title,text=reply --out new.scored.parquet
      matchloom score runs/faq shards --engine ray --out scored
    """
    if engine is not None:
        from matchloom.batch.works import ScoreWork

        refuse_with_engine(vectors=vectors)
        given = without_labels(columns)
        where = None if collection is None else str(collection)
        do_batch(ScoreWork(scorer, where, tokenizer or "english", given, seed), pairs, out, engine, address)
        return
    refuse_without_engine(address)
    from matchloom.data.formats.scored import scored_lines, write_scored

    kind = _format(out)
    tokenize = tokenizer_of(tokenizer)
    named = without_labels(columns)
    chosen = load_scorer(
        scorer,
        lambda: (
            texts_of(matchloom.read_pairs(pairs, columns=named))
            if collection is None
            else read_texts(collection, columns)
        ),
        tokenizer=tokenize,
        vectors=vectors_for(
            vectors, both_sides(matchloom.read_pairs(pairs, columns=named)) if vectors else (), tokenize
        ),
        seed=seed,
    )
    calibrated = chosen if isinstance(chosen, Calibrates) and chosen.threshold is not None else None
    added = ["score", *(["probability"] if calibrated is not None else [])]
    rows = _scored(chosen, calibrated, pairs, named)
    if out is not None:
        write_scored(out, kind, rows, added, chosen.name)
        return
    lines = scored_lines(kind, rows, added, chosen.name)
    if sys.stdout.isatty():
        for line in lines:
            print(printable_table(line.decode()), end="")
    else:
        sys.stdout.buffer.writelines(lines)  # the bytes of a file, whatever the locale's encoding


def _format(out: Path | None) -> str:
    from matchloom.data.formats import FORMATS, WRITTEN

    if out is None:
        return "tsv"
    name = out.name.lower()
    kind = FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    if kind is None or kind not in WRITTEN or (kind == "parquet" and name.endswith(".gz")):
        raise MatchloomError(
            f"{out}: scores are written as .tsv, .csv, .jsonl or .json (each also with .gz) or .parquet; choose one",
            code="wrong_format",
        )
    return kind


def _scored(scorer: Scorer, calibrated: Calibrates | None, path: Path, columns: Columns) -> Iterator[ScoredRow]:
    """Each row with its score, as the shortest digits that make the same float32 again, and its probability."""
    from matchloom.data.formats.pairs import read_own_columns
    from matchloom.data.formats.scored import ScoredRow

    rows = track(read_own_columns(path, columns=columns), "Scoring")
    while chunk := list(islice(rows, _CHUNK)):
        scores = scorer.score([pair for pair, _ in chunk])
        likely = None if calibrated is None else calibrated.probabilities(scores)
        numbers = [scores] if likely is None else [scores, likely]
        for (_, own), *values in zip(chunk, *numbers, strict=True):
            yield ScoredRow(own, [str(value) for value in values])
