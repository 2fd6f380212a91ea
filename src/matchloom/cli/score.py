"""`matchloom score`: a score for each pair of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from matchloom import read_pairs
from matchloom.cli.options import (
    CollectionOption,
    PairsArgument,
    ScorerArgument,
    ScorerTokenizerOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.reading import read_texts, texts_of, tokenizer_of, vectors_for
from matchloom.cli.scorers import load_scorer
from matchloom.data.formats.pairs import COLUMNS
from matchloom.data.ids import both_sides
from matchloom.files import write_lines
from matchloom.progress import track
from matchloom.screen import printable_table
from matchloom.types import MatchloomError, Pair, Scorer

_CHUNK = 8192  # pairs in memory at a time


def command(
    scorer: ScorerArgument,
    pairs: PairsArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .tsv or .jsonl file. Default: TSV to standard output.", show_default=False
        ),
    ] = None,
    tokenizer: ScorerTokenizerOption = None,
    vectors: VectorsOption = None,
    collection: CollectionOption = None,
    seed: SeedOption = 0,
) -> None:
    """Score the pairs of a file.

    They are written with one more column, score: the higher, the better the text matches the query. Pairs are read,
    scored and written as a stream, so the file may be larger than memory. Labels are not needed. A lexical scorer
    first counts words in the texts of PAIRS, unless --collection is given.

    \b
    Examples:
      matchloom score runs/faq new.tsv --out new.scored.tsv
      matchloom score bm25 new.jsonl | sort -t "$(printf '\\t')" -k 7 -gr | head
    """
    ending = Path(out.name.lower().removesuffix(".gz")).suffix if out is not None else ".tsv"
    if ending not in (".tsv", ".jsonl"):
        raise MatchloomError(f"{out}: scores are written as .tsv or .jsonl (or with .gz); choose one of them")
    cut = tokenizer_of(tokenizer)
    chosen = load_scorer(
        scorer,
        lambda: texts_of(read_pairs(pairs)) if collection is None else read_texts(collection),
        tokenizer=cut,
        vectors=vectors_for(vectors, both_sides(read_pairs(pairs)) if vectors else (), cut),
        seed=seed,
    )
    lines = _tsv(chosen, pairs) if ending == ".tsv" else _jsonl(chosen, pairs)
    if out is not None:
        write_lines(out, lines)
    elif sys.stdout.isatty():
        for line in lines:
            print(printable_table(line.decode()), end="")
    else:
        sys.stdout.buffer.writelines(lines)  # the bytes of a file, whatever the locale's encoding


def _scored(scorer: Scorer, path: Path) -> Iterator[tuple[Pair, str]]:
    """Each pair with its score, as the shortest digits that make the same float32 again."""
    pairs = track(read_pairs(path), "Scoring")
    while chunk := list(islice(pairs, _CHUNK)):
        for pair, score in zip(chunk, scorer.score(chunk), strict=True):
            yield pair, str(score)


def _tsv(scorer: Scorer, path: Path) -> Iterator[bytes]:
    yield ("\t".join([*COLUMNS, "score"]) + "\n").encode()
    spaces = str.maketrans("\t\n\r", "   ")  # TSV has no way to quote
    for pair, score in _scored(scorer, path):
        label = "" if pair.label is None else str(pair.label).removesuffix(".0")
        cells = (pair.query_id, pair.text_id, pair.group, pair.query, pair.text, label, score)
        yield ("\t".join(cell.translate(spaces) for cell in cells) + "\n").encode()


def _jsonl(scorer: Scorer, path: Path) -> Iterator[bytes]:
    for pair, score in _scored(scorer, path):
        yield msgspec.json.encode({**{name: getattr(pair, name) for name in COLUMNS}, "score": float(score)}) + b"\n"
