"""`matchloom train`: from labelled pairs to a matcher."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import torch
import typer

from matchloom import TrainConfig, train
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
from matchloom.cli.reading import make_folder, read_all, tokenizer_of
from matchloom.encoders import WordEmbedding
from matchloom.encoders.library import find_encoder
from matchloom.evaluation import measure as figure
from matchloom.files import is_there
from matchloom.models import build_model
from matchloom.text.vectors import read_vectors
from matchloom.training.development import hold_out, independent, right_alone, suited
from matchloom.training.run import CHECKPOINT, HOLD_OUT, default_model, settings_of
from matchloom.types import MatchloomError, Pair


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
            help="Which model; see 'matchloom models'. The settings that suit it become the defaults. Default: "
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
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in FOLDER; the result is that of an uninterrupted run.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the matcher in FOLDER.")] = False,
    device: Annotated[str, typer.Option(help="Device that torch uses.")] = "cpu",
    columns: ColumnsOption = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's own arguments and settings, where our defaults are others.")
    ] = False,
    loss: Annotated[
        str,
        typer.Option(
            help="hinge or softmax (a right text should win over wrong ones); cross_entropy or squared_error (on "
            "single pairs)."
        ),
    ] = "hinge",
    margin: Annotated[float, typer.Option(help="By how much a right text should win (hinge).")] = 1.0,
    optimizer: Annotated[str, typer.Option(help="adagrad, adadelta, adam or adamw.")] = "adagrad",
    learning_rate: Annotated[float, typer.Option(help="Learning rate of the optimizer.")] = 0.03,
    encoder_rate: Annotated[
        float, typer.Option(help="Learning rate of the word vectors or the encoder; 0: the same as of all else.")
    ] = 0.0,
    layers: Annotated[int, typer.Option(help="How many of the encoder's last layers learn; 0: all.")] = 0,
    layer_decay: Annotated[
        float, typer.Option(help="Rate of each of the encoder's layers, as a part of that of the layer above it.")
    ] = 1.0,
    epsilon: Annotated[
        float,
        typer.Option(help="Added to the root of squared gradients (adagrad, adam, adamw); 0: as torch has it."),
    ] = 0.0,
    warmup: Annotated[
        float, typer.Option(help="Part of the run in which rates rise from 0; then they fall to 0. 0: they stay.")
    ] = 0.0,
    batch: Annotated[int, typer.Option(help="Triples (hinge, softmax) or pairs in a step.")] = 128,
    negatives: Annotated[
        int, typer.Option(help="Wrong texts drawn for each right one in an epoch (hinge, softmax).")
    ] = 4,
    positives: Annotated[
        int,
        typer.Option(help="Right texts of a question's list in one example; 0: each is an example of its own."),
    ] = 0,
    in_batch: Annotated[
        bool, typer.Option(help="Texts of a step's other questions are wrong ones, too, where all pairs are right.")
    ] = False,
    questions: Annotated[
        bool, typer.Option(help="Two questions of one answer are a right pair, too, where all pairs are right.")
    ] = True,
    epochs: Annotated[int, typer.Option(help="Maximum number of epochs.")] = 20,
    patience: Annotated[int, typer.Option(help="Stop after this many epochs without improvement.")] = 3,
    check_every: Annotated[
        int,
        typer.Option(help="Also check the development pairs every this many steps; 0: at the end of each epoch only."),
    ] = 0,
    measure: Annotated[str, typer.Option(help="Measure that chooses the best epoch, by its ir-measures name.")] = "RR",
    clip: Annotated[float, typer.Option(help="Maximum norm of the gradient; 0 for no limit.")] = 5.0,
    weight_decay: Annotated[
        float, typer.Option(help="L2 penalty on all parameters but the word vectors, or on those the model names.")
    ] = 0.0,
    freeze_vectors: Annotated[
        bool, typer.Option("--freeze-vectors", help="Do not train the word vectors or the encoder.")
    ] = False,
    seed: Annotated[
        int, typer.Option(help="Seed of the parameters, the order, the draws and the held-out questions.")
    ] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, help="How many seeds to train, from --seed on, in FOLDER/seed-0 and so on; their spread is reported."
        ),
    ] = 1,
    workers: Annotated[int, typer.Option(help="Shards of a batch that are computed in parallel, or threads.")] = 2,
) -> None:
    """Train a matcher on pairs.

    Right pairs alone are enough: wrong texts are drawn from the others while training goes on, and held-out questions
    are ranked against all texts. With labels 1 and 0 the wrong texts are those of each question's list. The matcher of
    the best epoch is saved in a folder. After every epoch a checkpoint is written, and the matcher if it is better than
    before. Ctrl-C or a crash loses at most one epoch: the same command with --resume ends with exactly the weights of
    an uninterrupted run. FOLDER/log.jsonl has the figures of all epochs. Not sure which model? 'matchloom fit' tries
    what suits your file.

    \b
    Examples:
      matchloom train faq.tsv --out runs/faq
      matchloom train data/train.tsv --dev data/dev.tsv --out runs/m2s --model m2s_net --seeds 5
      matchloom train faq.tsv --out runs/minilm --encoder all-MiniLM-L6-v2
      matchloom train faq.tsv --out runs/cosine --set interaction=cosine --vectors glove.6B.50d.txt --epochs 10
    """
    given = _given(ctx)
    model = model or default_model(encoder)
    arguments, config = settings_of(
        model, parse_arguments(model, set_ or []), None, given, paper=paper, pretrained=encoder is not None
    )
    if encoder is not None:
        for name in ("vectors", "dimensions"):
            if (source := ctx.get_parameter_source(name)) is not None and source.name != "DEFAULT":
                raise MatchloomError(f"--{name} is for word vectors, which --encoder replaces; give one of them")
        find_encoder(encoder)  # refuses an unknown one now
    build_model(model, arguments, WordEmbedding(9, dimensions), seed=0)  # refuses wrong values now
    _say_settings(model, config, given)
    cut = tokenizer_of(tokenizer, max_words)
    _check_device(device)
    folders = {seed: out} if seeds == 1 else {seed + n: out / f"seed-{seed + n}" for n in range(seeds)}
    if resume and overwrite:
        raise MatchloomError("--resume continues a run and --overwrite discards it; give one of them")
    for folder in folders.values():
        if is_there(folder / "matcher.json") and not resume and not overwrite:
            raise MatchloomError(
                f"{folder} already holds a matcher; add --resume to continue, --overwrite, or choose another --out"
            )
    graded = config.loss == "squared_error"
    training = read_all(pairs, columns=columns, graded=graded)
    if "loss" not in given and suited(config, training) is not config:
        config = suited(config, training)
        note("No query has both a right and a wrong text: trained as independent pairs, with the loss cross_entropy.")
    if dev is not None:
        development: list[Pair] | None = read_all(dev, columns=columns, graded=graded)
    else:
        training, development = set_aside(training, seed)
    if independent(config, development):
        config = replace(config, measure="AP")
        note(
            "Independent labelled pairs: the AP over all that are held out chooses the epoch, and they give the "
            "matcher its threshold."
        )
    elif development is not None:  # refuse pairs and measure now, not after the first epoch
        judged = [Pair("", "", 1.0, "q"), Pair("", "", 0.0, "q")] if right_alone(development) else development
        figure(judged, [0.0] * len(judged), [config.measure])
    best: dict[int, dict[str, Any]] = {}
    start = (
        vectors if encoder is not None or vectors in ("skip-gram", "random") else read_vectors(vectors, progress=True)
    )
    for number, folder in folders.items():
        make_folder(folder)
        if seeds > 1:
            say(f"seed {number}, in {folder}")
        try:
            matcher = train(
                training,
                development,
                model=model,
                arguments=arguments,
                encoder=encoder,
                config=replace(config, seed=number),
                hold_out=0,
                tokenizer=cut,
                vectors=start,
                dimensions=dimensions,
                min_count=min_count,
                folder=folder,
                resume=resume and (seeds == 1 or is_there(folder / CHECKPOINT)),
                overwrite=overwrite,
                device=device,
                on_epoch=lambda entry: say(_line(entry, config)),
                progress=True,
            )
        except KeyboardInterrupt:
            note(_what_is_there(folder))
            raise typer.Exit(130) from None
        best[number] = matcher.training["best"]
    chosen = max(best, key=lambda number: (best[number].get(config.measure, 0.0), -number))
    if seeds > 1 and development is not None:
        _print_spread(best, config.measure)
    reached = f", {config.measure} {best[chosen][config.measure]:.4f} on the development pairs" if development else ""
    say(f"\nThe matcher is in {folders[chosen]}: epoch {best[chosen]['epoch']}{reached}.")
    _say_what_next(folders[chosen], pairs, dev, development or training)


def _given(ctx: typer.Context) -> dict[str, Any]:
    """The settings of `TrainConfig` that the user gave; the model's own hold otherwise."""
    found = {}
    for name in TrainConfig.__dataclass_fields__:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            found[name] = ctx.params[name]
    return found


def _say_settings(model: str, config: TrainConfig, given: dict[str, Any]) -> None:
    """Name the settings that suit the model and differ from the options' defaults."""
    plain, own = TrainConfig().as_dict(), config.as_dict()
    said = ", ".join(f"{name} {own[name]}" for name in own if own[name] != plain[name] and name not in given)
    if said:
        note(f"{model} is trained with settings of its own: {said}; options override them.")


def set_aside(pairs: list[Pair], seed: int) -> tuple[list[Pair], list[Pair] | None]:
    """Training and development pairs, as `train` holds them out, with a word about it."""
    training, development = hold_out(pairs, HOLD_OUT, seed)
    if development is not None:
        kept, aside = (len({pair.query_id or pair.query for pair in part}) for part in (training, development))
        against = ", ranked against the whole collection" if right_alone(development) else ""
        note(
            f"No --dev: {aside} of {kept + aside} questions (drawn by seed {seed}) are held out to choose the best "
            f"epoch{against}."
        )
    return training, development


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
    reached = f"  {config.measure} {entry[config.measure]:.4f}" if config.measure in entry else ""
    return (
        f"epoch {entry['epoch']:3d}  {step}loss {entry['loss']:.4f}{reached}"
        f"  {entry['pairs_per_second']:8,.0f} pairs/s  {entry['seconds']:6.1f} s"
    )


def _check_device(name: str) -> None:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise MatchloomError(f"--device {name!r} cannot be used ({reason}); cpu always can") from None


def _what_is_there(folder: Path) -> str:
    try:
        about = json.loads((folder / "matcher.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"Stopped before anything was saved in {folder}."
    best = about["training"].get("best")
    if best is None or not (folder / CHECKPOINT).exists():
        return f"Stopped in the first epoch: the matcher in {folder} is untrained; start again with --overwrite."
    return f"Stopped: {folder} holds the matcher of epoch {best['epoch']}; the same command with --resume continues."


def _say_what_next(folder: Path, pairs: Path, dev: Path | None, development: Sequence[Pair]) -> None:
    test = pairs.with_name(pairs.name.replace("train", "test"))
    unseen = test if test != pairs and test.is_file() else dev
    right = [p for p in development if (p.label is None or p.label > 0) and p.query.strip() and p.text.strip()]
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
