"""`matchloom train`: from labelled pairs to a matcher."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import typer

from matchloom.artifact import holds, settings_of
from matchloom.cli.arguments import parse_arguments
from matchloom.cli.options import (
    ColumnsOption,
    DimensionsOption,
    FirstVectorsOption,
    MaxWordsOption,
    PairsArgument,
    TokenizerOption,
)
from matchloom.cli.printing import console, note, say, table
from matchloom.cli.reading import make_folder, parse_columns, tokenizer_of
from matchloom.cli.settings import is_given, with_settings
from matchloom.training.config import TrainConfig
from matchloom.types import MatchloomError, Pair


@with_settings
def command(
    ctx: typer.Context,
    pairs: PairsArgument,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to save the matcher; created if needed.", show_default=False)
    ],
    dev: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Pairs that choose the best epoch. Default: a tenth of the questions is held out.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Which model; see 'matchloom models'. Its own settings become the defaults. Default: "
            "mv_lstm, or late_interaction with --encoder.",
            show_default=False,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="ENCODER",
            help="A pretrained encoder in place of word vectors: a folder, or a name that 'matchloom encoders' lists.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="An argument of the model; may be repeated.", show_default=False
        ),
    ] = None,
    vectors: FirstVectorsOption = "skip-gram",
    dimensions: DimensionsOption = 50,
    tokenizer: TokenizerOption = "english",
    max_words: MaxWordsOption = 200,
    min_count: Annotated[int, typer.Option(min=1, help="Words that occur less often are unknown.")] = 1,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the tokens of a folder of Parquet shards are kept, for this run and later ones. Default: "
            "FOLDER/tokens.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in FOLDER; the result is that of an uninterrupted run.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the matcher in FOLDER.")] = False,
    device: Annotated[str, typer.Option(help="Device that torch uses.")] = "cpu",
    columns: ColumnsOption = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the paper's arguments and settings where our defaults differ.")
    ] = False,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, help="How many seeds to train, from --seed on, in FOLDER/seed-0 and so on; their spread is reported."
        ),
    ] = 1,
    **given: Any,
) -> None:
    """Train a matcher on pairs.

    Positive pairs alone are enough: negatives are drawn from the other texts during training, and held-out questions
    are ranked against all texts. With labels 1 and 0, the negatives are those of each question's list. After every
    epoch a checkpoint is written, and the matcher if it is the best so far. Ctrl-C or a crash loses at most one epoch:
    the same command with --resume ends with exactly the weights of an uninterrupted run. FOLDER/log.jsonl has the
    figures of all epochs. 'matchloom fit' chooses a model for your file.

    A folder of Parquet shards may hold more pairs than memory. If it has more pairs than --window, they are tokenised
    once into --cache and read as a stream, and the matcher and a checkpoint are written after each window. For several
    processes use 'torchrun --nproc-per-node 2 -m matchloom train ...'.

    \b
    Examples:
      matchloom train faq.tsv --out runs/faq
      matchloom train data/train.tsv --dev data/dev.tsv --out runs/m2s --model m2s_net --seeds 5
      matchloom train faq.tsv --out runs/minilm --encoder all-MiniLM-L6-v2
      matchloom train shards/ --out runs/large --window 200000 --epochs 2
      matchloom train faq.tsv --out runs/cosine --set interaction=cosine --vectors glove.6B.50d.txt --epochs 10
    """
    from matchloom.training.prepare import default_model
    from matchloom.training.seeds import train_seeds
    from matchloom.training.team import is_first

    for name in ("vectors", "dimensions"):
        if encoder is not None and is_given(ctx, name):
            raise MatchloomError(
                f"--{name} is for word vectors, which --encoder replaces; give one of them", code="conflict"
            )
    at, config, shown = out, TrainConfig(), is_first()
    if not shown:  # the first of several processes says it for all
        logging.getLogger("matchloom").setLevel(logging.ERROR)

    def begin(seed: int, folder: Path, settings: TrainConfig) -> None:
        nonlocal at, config
        at, config = make_folder(folder), settings
        if seeds > 1 and shown:
            say(f"seed {seed}, in {folder}")

    try:
        trained = train_seeds(
            pairs,
            dev,
            folder=out,
            seeds=seeds,
            model=model,
            arguments=parse_arguments(model or default_model(encoder), set_ or []),
            encoder=encoder,
            paper=paper,
            columns=parse_columns(columns),
            tokenizer=tokenizer_of(tokenizer, max_words),
            vectors=vectors,
            dimensions=dimensions,
            min_count=min_count,
            cache=cache,
            resume=resume,
            overwrite=overwrite,
            device=device,
            settings=given,
            on_seed=begin,
            on_epoch=(lambda entry: say(_line(entry, config))) if shown else None,
            on_note=note if shown else None,
            progress=shown,
        )
    except KeyboardInterrupt:
        if shown:
            note(_what_is_there(at))
        raise typer.Exit(130) from None
    if not shown:
        return
    measure, best = trained.config.measure, {seed: trained.best(seed) for seed in trained.matchers}
    if seeds > 1 and trained.development is not None:
        _print_spread(best, measure)
    chosen = trained.chosen
    reached = f", {measure} {best[chosen][measure]:.4f} on the development pairs" if trained.development else ""
    say(f"\nThe matcher is in {trained.folders[chosen]}: epoch {best[chosen]['epoch']}{reached}.")
    _say_what_next(trained.folders[chosen], pairs, dev, trained.development or trained.pairs)


def _print_spread(best: dict[int, dict[str, Any]], measure: str) -> None:
    """What each seed reached, and the mean and deviation of all."""
    shown = table("seed", "epoch", measure, right=("seed", "epoch", measure))
    for number, entry in best.items():
        shown.add_row(str(number), str(entry["epoch"]), f"{entry[measure]:.4f}")
    values = [entry[measure] for entry in best.values()]
    shown.add_row("mean", "", f"{mean(values):.4f}")
    shown.add_row("deviation", "", f"{stdev(values):.4f}")
    say()
    console().print(shown)


def _line(entry: dict[str, Any], config: TrainConfig) -> str:
    step = f"step {entry['step']:5d}  " if config.check_every else ""
    step = f"window {entry['window']:4d}  {step}" if "window" in entry else step
    reached = f"  {config.measure} {entry[config.measure]:.4f}" if config.measure in entry else ""
    return (
        f"epoch {entry['epoch']:3d}  {step}loss {entry['loss']:.4f}{reached}"
        f"  {entry['pairs_per_second']:8,.0f} pairs/s  {entry['seconds']:6.1f} s"
    )


def _what_is_there(folder: Path) -> str:
    settings = settings_of(folder, "matcher")
    if settings is None:
        return f"Stopped before anything was saved in {folder}."
    best = settings["training"].get("best")
    if best is None or not holds(folder, "checkpoint"):
        return f"Stopped in the first epoch: the matcher in {folder} is untrained; start again with --overwrite."
    return f"Stopped: {folder} holds the matcher of epoch {best['epoch']}; the same command with --resume continues."


def _say_what_next(folder: Path, pairs: Path, dev: Path | None, development: Sequence[Pair]) -> None:
    test = pairs.with_name(pairs.name.replace("train", "test"))
    unseen = test if test != pairs and test.is_file() else dev
    right = [p for p in development if p.is_positive and p.query.strip() and p.text.strip()]
    example = min(right, key=lambda pair: (len(pair.query) + len(pair.text), pair.query, pair.text), default=None)
    say("Next:")
    if unseen is not None:
        say("  " + shlex.join(["matchloom", "evaluate", str(folder), str(unseen)]))
    else:  # figures on pairs that were trained on would mean nothing
        say(f"  matchloom evaluate {shlex.quote(str(folder))} FILE    with pairs that are not in {pairs.name}")
    if example is not None:
        query, text = " ".join(example.query.split()), " ".join(example.text.split())
        say("  " + shlex.join(["matchloom", "rank", str(folder), query, str(unseen or pairs), "--top", "5"]))
        say("  " + shlex.join(["matchloom", "explain", str(folder), query, text]))
