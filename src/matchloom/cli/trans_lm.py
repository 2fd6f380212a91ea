"""`matchloom trans-lm`: a translation-based language model from positive pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchloom.cli.options import (
    CollectionOption,
    ColumnsOption,
    PairsArgument,
    TokenizerOption,
)
from matchloom.cli.printing import say
from matchloom.cli.reading import read_all, read_texts, texts_of, tokenizer_of


def command(
    pairs: PairsArgument,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write; created if needed.", show_default=False)
    ],
    collection: CollectionOption = None,
    tokenizer: TokenizerOption = "english",
    max_words: Annotated[int, typer.Option(min=1, help="How many words of a text to read; the rest is cut.")] = 200,
    smoothing: Annotated[
        float, typer.Option(help="lambda: the part of each probability that comes from the collection.")
    ] = 0.2,
    beta: Annotated[float, typer.Option(help="How much translations count, compared with the words themselves.")] = 0.8,
    iterations: Annotated[int, typer.Option(min=1, help="Passes of IBM Model 1 over the pairs.")] = 5,
    columns: ColumnsOption = None,
) -> None:
    """Learn which words of a text answer which words of a query.

    IBM Model 1 learns translation probabilities from positive pairs (label 1 or no label; others are skipped). The
    result is a SCORER for all commands: TransLM, the strongest model of question retrieval before neural networks. It
    takes seconds and needs neither settings nor negatives. Translations with a probability below 0.0001 are dropped.

    \b
    Examples:
      matchloom trans-lm data/train.tsv --out faq.words
      matchloom evaluate faq.words data/test.tsv --against bm25
    """
    from matchloom.lexical import TransLM

    tokenize = tokenizer_of(tokenizer, max_words)
    found = read_all(pairs, columns=columns)
    texts = texts_of(found) if collection is None else read_texts(collection, columns)
    scorer = TransLM.fit(
        texts, found, tokenizer=tokenize, smoothing=smoothing, beta=beta, iterations=iterations, progress=True
    )
    scorer.save(out)
    say(f"{out}: {len(scorer.words):,} words, {len(scorer.translations.w):,} translations")
