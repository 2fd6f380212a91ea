"""`matchloom encode`: the sentence vectors of texts, by shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchloom.cli.batches import do_batch
from matchloom.cli.options import AddressOption, ColumnsOption
from matchloom.cli.reading import parse_columns


def command(
    matcher: Annotated[
        Path, typer.Argument(metavar="MATCHER", help="A matcher with sentence vectors.", show_default=False)
    ],
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="A Parquet file, or a folder of them.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write shards to.", show_default=False)],
    side: Annotated[str, typer.Option(help="What is encoded: text or query.")] = "text",
    columns: ColumnsOption = None,
    engine: Annotated[str, typer.Option(metavar="ENGINE", help="local (in this process) or ray.")] = "local",
    address: AddressOption = None,
) -> None:
    """Write sentence vectors of the texts in Parquet files.

    MATCHER is a matcher of 'matchloom train' with sentence vectors, or an encoder without training ('matchloom encoders
    use'). Each Parquet file becomes a shard of the same name in --out, with all of its columns and the column vector. A
    shard is written completely or not at all, and finished shards are skipped when the command runs again. With
    --engine ray the work is done by the processors of this machine, or of a Ray cluster that shares the folders.

    \b
    Examples:
      matchloom encode runs/encoder shards --out vectors
      matchloom encode runs/encoder shards --side query --engine ray --address auto --out vectors
    """
    from matchloom.batch.works import EncodeWork

    do_batch(EncodeWork(str(matcher), side, parse_columns(columns)), pairs, out, engine, address)
