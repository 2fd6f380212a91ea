"""`matchloom vectors`: word vectors from the task's own text, and how much of it vectors cover."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from matchloom.basics.screen import printable
from matchloom.cli.options import (
    ColumnsOption,
    SeedOption,
    TokenizerOption,
)
from matchloom.cli.printing import say
from matchloom.cli.reading import read_all, tokenizer_of
from matchloom.data.identity import both_sides
from matchloom.text.vectors import SKIP_GRAM_EPOCHS, WordVectors, coverage, read_vectors, train_vectors, write_vectors
from matchloom.types import MatchloomError


def command(
    pairs: Annotated[list[Path], typer.Argument(metavar="PAIRS...", help="Pairs files.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the vectors (word2vec text).", show_default=False),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="VECTORS",
            help="Train nothing; report how many words of the texts these vectors cover.",
            show_default=False,
        ),
    ] = None,
    dimensions: Annotated[int, typer.Option(min=1, help="Size of a word vector.")] = 50,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the texts.")] = SKIP_GRAM_EPOCHS,
    window: Annotated[int, typer.Option(min=1, help="How many words on either side are the context.")] = 5,
    min_count: Annotated[int, typer.Option(min=1, help="Words seen less often get no vector.")] = 1,
    tokenizer: TokenizerOption = "english",
    seed: SeedOption = 0,
    columns: ColumnsOption = None,
) -> None:
    """Train word vectors on your own texts.

    The vectors are trained by skip-gram on the texts of pairs files, and the share of words they cover is reported.
    Every distinct query and text counts once. 'matchloom train' does the same by itself; use this to share vectors
    among runs, to learn from more text than is labelled, or with --check to see how many words of your texts existing
    vectors cover (GloVe, word2vec text or binary, plain or gzip).

    \b
    Examples:
      matchloom vectors data/train.tsv --out data/vectors.txt.gz
      matchloom vectors data/train.tsv --check glove.6B.100d.txt
    """
    if (out is None) == (check is None):
        raise MatchloomError(
            "give either --out FILE to train vectors or --check VECTORS to check some", code="conflict"
        )
    tokenize = tokenizer_of(tokenizer)
    texts = both_sides(pair for path in pairs for pair in read_all(path, columns=columns, labels=False))
    words = [tokenize(text) for text in texts]
    counts = Counter(word for text in words for word in text)
    if check is not None:
        _report(check, read_vectors(check, keep=counts, progress=True), counts)
    elif out is not None:
        vectors = train_vectors(
            words,
            dimensions=dimensions,
            epochs=epochs,
            window=window,
            min_count=min_count,
            seed=seed,
            progress=True,
        )
        write_vectors(out, vectors)
        _report(out, vectors, counts)


def _report(path: Path, vectors: WordVectors, counts: Counter[str]) -> None:
    covered = coverage(vectors, counts)
    say(f"{path}: {len(vectors.words):,} words of the texts, {vectors.dimensions} dimensions")
    say(f"covered: {covered.running:.1%} of {counts.total():,} running words", end=", ")
    say(f"{covered.distinct:.1%} of {len(counts):,} distinct words")
    if covered.missing:
        say(f"most frequent without a vector: {printable(', '.join(covered.missing))}")
