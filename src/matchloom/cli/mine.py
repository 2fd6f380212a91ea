"""`matchloom mine`: negatives for positive pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import matchloom
from matchloom.cli.batches import do_batch, refuse_without_engine
from matchloom.cli.options import (
    AddressOption,
    ColumnsOption,
    EngineOption,
    PairsArgument,
    SeedOption,
    TokenizerOption,
)
from matchloom.cli.printing import note, say
from matchloom.cli.reading import parse_columns, read_all, read_texts, tokenizer_of
from matchloom.cli.scorers import load_scorer
from matchloom.types import MatchloomError


def command(
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The pairs file to write.", show_default=False)],
    count: Annotated[int, typer.Option(min=1, help="How many negatives for each positive pair.")] = 4,
    source: Annotated[
        str,
        typer.Option(
            help="Where negatives come from: bm25 or cosine (near the positive), query (what BM25 finds for the "
            "query), random, or a matcher's folder."
        ),
    ] = "bm25",
    top: Annotated[int, typer.Option(min=1, help="How many of the nearest texts to draw from.")] = 1000,
    pool: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Texts to draw from, one per line or a pairs file. Default: the positives of PAIRS.",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = 0,
    tokenizer: TokenizerOption = "english",
    columns: ColumnsOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
) -> None:
    """Add negatives to positive pairs.

    A network learns from positive pairs (label 1, or no label) and negative ones (label 0). bm25 draws from the texts
    most similar to the positive, as the papers do. query draws from the texts that BM25 finds for the query, which a
    search would confuse with the positive. random draws from all texts. A matcher draws from the texts that it ranks
    highest for the query, and so finds its own errors. A positive of the same query is never drawn. Pairs with label 0
    are skipped.

    Lists made from similar texts leak a little: 'matchloom evaluate' measures how much.

    With --engine PAIRS is a Parquet file or a folder of them and --out a folder: each file becomes a shard of the same
    name, with the same draws as in one process. Each actor holds the whole pool: name a smaller one with --pool if
    memory is too small.

    \b
    Examples:
      matchloom mine faq.tsv --out faq.mined.tsv
      matchloom mine faq.tsv --out faq.hard.tsv --source runs/first --top 50
      matchloom mine shards --engine ray --out mined
    """
    from matchloom.data.formats import write_pairs
    from matchloom.data.negatives import SOURCES

    tokenize = tokenizer_of(tokenizer)
    if source not in SOURCES and not Path(source).exists():
        raise MatchloomError(
            f"--source {source} is neither {', '.join(SOURCES)} nor the folder of a matcher", code="unknown_name"
        )
    if engine is not None:
        from matchloom.batch.works import MineWork, positives_elsewhere

        named = parse_columns(columns)
        elsewhere = positives_elsewhere(sorted(pairs.glob("*.parquet")) if pairs.is_dir() else [pairs], named)
        work = MineWork(str(pool or pairs), count, source, top, seed, tokenizer, named, elsewhere)
        do_batch(work, pairs, out, engine, address)
        return
    refuse_without_engine(address)
    chosen = source if source in SOURCES else load_scorer(source, list, tokenizer=tokenize)
    found = read_all(pairs, columns=columns)
    positives = [pair for pair in found if pair.is_positive]
    if not positives:
        raise MatchloomError(
            f"{pairs} has no pair with a label above 0 (or without one) to find negatives for", code="no_data"
        )
    if len(positives) < len(found):
        note(f"{len(found) - len(positives)} of {len(found)} pairs have label 0 and were skipped.")
    texts = None if pool is None else read_texts(pool, columns)
    mined = matchloom.mine_negatives(
        positives, count=count, source=chosen, top=top, seed=seed, tokenizer=tokenize, pool=texts, progress=True
    )
    write_pairs(out, mined)
    say(f"{out}: {len(positives):,} positive pairs, each with {count} negatives")
