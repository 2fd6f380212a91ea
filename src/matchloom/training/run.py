"""One training from pairs to a matcher: what is asked is prepared, set up and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from matchloom.artifact import holds
from matchloom.basics.memory import keep_memory
from matchloom.data.formats import PairsLike
from matchloom.encoders.library import find_encoder
from matchloom.encoders.transformer import Transformer
from matchloom.matcher import Matcher
from matchloom.models import Argument, Kind
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.training.config import TrainConfig
from matchloom.training.development import independent, one_list
from matchloom.training.epochs import Training
from matchloom.training.prepare import HOLD_OUT, MAX_WORDS, prepare
from matchloom.training.setup import Ready, set_up
from matchloom.training.team import joined, own_device
from matchloom.types import MatchloomError


def train(
    pairs: PairsLike,
    development: PairsLike | None = None,
    *,
    model: Kind | None = None,
    arguments: Mapping[str, Argument] | None = None,
    encoder: Path | str | None = None,
    config: TrainConfig | None = None,
    paper: bool = False,
    hold_out: float = HOLD_OUT,
    columns: Mapping[str, str] | None = None,
    tokenizer: Tokenizer | None = None,
    vectors: WordVectors | Path | str = "skip-gram",
    dimensions: int = 50,
    min_count: int = 1,
    folder: Path | str | None = None,
    cache: Path | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "cpu",
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    progress: bool = False,
    **settings: int | float | str | bool,
) -> Matcher:
    """Train a model on pairs and return the matcher of its best epoch. `matchloom train` is this function.

    Positives alone are enough: negatives are drawn from the other texts while training goes on.
    Where pairs are labelled 1 and 0, the negatives are those of each query's list.

    The best epoch is the one with the highest `measure` on the development pairs, and training stops after `patience`
    epochs without a better one; with linear decay (`warmup`) it is the last. Development questions
    without negatives are ranked against the whole collection (the positives and the 100 nearest by BM25 where it
    holds more than 1,000). Independent labelled pairs (cross_entropy), such as paraphrases, are no lists: the measure
    is then the AP over all of them, and they also give the matcher its threshold and its probabilities.
    `check_every` evaluates on them more often; what is said here of epochs then holds for its rounds.
    With a folder the best matcher, a checkpoint after each epoch and a log are written there, and `resume` goes on
    from the checkpoint to exactly the weights of an uninterrupted run.
    Nothing depends on the order of the pairs. It needs the extra `networks`, and with an encoder `encoder`.

    Args:
        pairs: Positives, or pairs with labels: Pairs, tuples, dicts, a data frame or the path of a file.
        development: Pairs that choose the best epoch; by default some of the questions are held out.
        model: A name of `MODELS`; mv_lstm by default, and late_interaction with an encoder. Or a class of your own, a
            subclass of `PairModel` (docs/adding-a-model.md).
        arguments: Arguments of the model that differ from its defaults.
        encoder: A pretrained encoder in place of word vectors: its folder, or its name in `matchloom encoders`.
        config: All settings of the training; by default those that suit the model and the encoder, and the pairs: the
            loss is cross_entropy where no query has both labels.
        paper: Take arguments and settings as the model's paper has them, where the defaults are others.
        hold_out: Which part of the questions is held out where no development pairs are given. 0 holds none out: every
            epoch is then run and the last one kept.
        columns: Your names of the columns, such as {"query": "title", "text": "body"}.
        tokenizer: How a text becomes words; English, at most 200 of a text, by default.
        vectors: First word vectors, every word of which is then known: given, a file of them, "skip-gram" to train them
            on the training texts, or "random".
        dimensions: Length of skip-gram or random word vectors; given ones have their own.
        min_count: Words seen less often in the training texts are unknown.
        folder: Where the best matcher, a checkpoint of each epoch and a log are written.
        cache: Where the tokens of Parquet shards that do not fit into `config.window` are kept, for this run and later
            ones; the folder "tokens" in `folder` by default, and without that a temporary one.
        resume: Go on from the checkpoint in `folder`, to exactly the weights of an uninterrupted run.
        overwrite: Replace the matcher that `folder` holds.
        device: Where torch computes, such as cpu or cuda.
        on_epoch: Called with each new line of the log.
        on_note: Called with each line that says what was decided.
        progress: Whether to show a bar.
        settings: Fields of `TrainConfig`, such as epochs=5, on top of those that suit the model.
    """
    own, device = None if folder is None else Path(folder), own_device(device)
    with joined(device) as team:
        resume, overwrite = team.begin(own, resume, overwrite)

        def make() -> tuple[Ready, TrainConfig, bool]:
            check_folder(own, resume=resume, overwrite=overwrite)
            found = prepare(
                pairs,
                development,
                model=model,
                arguments=arguments,
                encoder=encoder,
                config=config,
                paper=paper,
                hold_out=hold_out,
                columns=columns,
                dimensions=dimensions,
                tokenizer=tokenizer,
                cache=cache,
                folder=own,
                device=device,
                settings=settings,
                on_note=on_note,
                progress=progress,
            )
            apart, chosen_by = independent(found.config, found.development), found.development
            if chosen_by is not None and apart:
                chosen_by = one_list(chosen_by)
            shared = replace(found.config, workers=max(found.config.workers, team.size))
            ready = set_up(
                found.pairs,
                chosen_by,
                model=found.model,
                arguments=found.arguments,
                config=shared,
                tokenizer=tokenizer or Tokenizer(max_words=MAX_WORDS),
                vectors=vectors,
                dimensions=dimensions,
                min_count=min_count,
                device=device,
                progress=progress,
                pretrained=None if encoder is None else Transformer.load(find_encoder(encoder)),
                processes=team.size,
            )
            return ready, shared, apart

        ready, chosen, apart = team.agree(make)
        keep_memory()
        return Training(ready, chosen, own, on_epoch, calibrate=apart, team=team).go(resume, progress)


def check_folder(folder: Path | None, *, resume: bool, overwrite: bool) -> None:
    """Refuse to write over what is there, or to go on where that makes no sense."""
    if folder is None:
        if resume or overwrite:
            raise MatchloomError(f"{'resume' if resume else 'overwrite'} needs the folder of the run", code="conflict")
        return
    if resume and overwrite:
        raise MatchloomError("resume goes on with a run and overwrite discards it; give one of them", code="conflict")
    if not overwrite and not resume and holds(folder, "matcher"):
        raise MatchloomError(
            f"{folder} already holds a matcher; go on with its run (resume=True), replace it (overwrite=True), or "
            "choose another folder",
            code="exists",
        )
