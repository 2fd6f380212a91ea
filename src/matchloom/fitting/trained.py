"""A network trained within a time: it stops by patience, or when another round would take it beyond."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matchloom.data.identity import both_sides, digest
from matchloom.matcher import Matcher
from matchloom.models import Argument
from matchloom.search.features.dense import encoding_seconds
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import SKIP_GRAM_EPOCHS, WordVectors, train_vectors
from matchloom.training.checks import nothing_learnt
from matchloom.training.config import COMPARING
from matchloom.training.prepare import settings_of
from matchloom.training.run import train
from matchloom.types import MatchloomError, Pair

MAX_WORDS = 100  # of a text that networks read
DIMENSIONS = 50
_WORDS_A_SECOND = 100_000  # that skip-gram reads, cautiously: what decides its epochs must not be measured
_TUNING, _TUNED = 3e-4, 220  # seconds for a letter of a text in a step, and how many letters of it are read, about
_ROUND = 100  # steps between two evaluations on the development pairs, where an epoch has many


class _OutOfTimeError(Exception):
    pass


def own_vectors(pairs: Sequence[Pair], tokenizer: Tokenizer, seconds: float, seed: int) -> WordVectors:
    """Skip-gram vectors of the pairs' own texts, with as many epochs as fit into a third of the time, at most ten."""
    texts = [tokenizer(text) for text in both_sides(pairs)]
    words = sum(map(len, texts))
    epochs = int(seconds / 3 * _WORDS_A_SECOND / max(1, words))
    return train_vectors(texts, dimensions=DIMENSIONS, epochs=min(SKIP_GRAM_EPOCHS, max(1, epochs)), seed=seed)


def train_within(
    seconds: float,
    pairs: Sequence[Pair],
    development: Sequence[Pair],
    folder: Path,
    *,
    model: str,
    arguments: Mapping[str, Argument],
    settings: Mapping[str, Any],
    tokenizer: Tokenizer,
    vectors: WordVectors | None = None,
) -> Matcher:
    """The matcher of the best round among those that the time allows; one that has learnt nothing is refused.

    `settings` are of TrainConfig and stand before what suits the model. `vectors` are trained here where none are
    given.
    """
    start = time.monotonic()
    tokenizer = tokenizer._replace(max_words=min(MAX_WORDS, tokenizer.max_words or MAX_WORDS))
    _, config = settings_of(model, {}, None, settings)
    if vectors is None:
        vectors = own_vectors(pairs, tokenizer, seconds, config.seed)
    positives = sum(pair.is_labelled_positive for pair in pairs)
    examples = positives * config.negatives if config.loss in COMPARING else len(pairs)
    steps = examples / config.batch
    if steps > 2 * _ROUND:  # with many development pairs an evaluation costs as much as the steps between two
        every = max(_ROUND, len(development) // config.batch)
        config = replace(config, check_every=every)
    longest, last = 0.0, 0.0
    history: list[dict[str, Any]] = []

    def look_at_clock(entry: dict[str, Any]) -> None:
        nonlocal longest, last
        history.append(entry)
        now = time.monotonic()
        # Before the first round the texts were read, which happens once.
        longest, last = max(longest, now - last if last else float(entry["seconds"])), now
        if now + longest - start > seconds:
            raise _OutOfTimeError

    try:
        matcher = train(
            pairs,
            development,
            model=model,
            arguments=arguments,
            config=config,
            tokenizer=tokenizer,
            vectors=vectors,
            folder=folder,
            overwrite=True,
            on_epoch=look_at_clock,
        )
    except _OutOfTimeError:
        matcher = Matcher.load(folder)  # the best so far; written before the clock is looked at
    reason = nothing_learnt(history, config, development)
    if reason is not None:
        raise MatchloomError(f"{model} has learnt nothing: {reason}")
    return matcher


def tune_within(
    seconds: float,
    pairs: Sequence[Pair],
    development: Sequence[Pair],
    folder: Path,
    *,
    encoder: Path,
    settings: Mapping[str, Any],
    tokenizer: Tokenizer,
) -> Matcher:
    """Late interaction over an encoder that is fine-tuned on as many questions as the time allows.

    Which questions is drawn by their digests. There is no stopping early: the learning rates decay linearly to 0.
    """
    cost: dict[str, float] = {}  # of a question: its own text, and those of its list that an epoch looks at
    for pair in pairs:
        cost.setdefault(pair.query_id, 0.0)
        cost[pair.query_id] += _TUNING * min(len(pair.text), _TUNED)
    sizes = Counter(pair.query_id for pair in pairs)
    _, config = settings_of("late_interaction", {}, None, settings, pretrained=True)
    left = seconds - encoding_seconds([pair.text for pair in development])
    kept: set[str] = set()
    for name in sorted(cost, key=digest):
        looked_at = min(1.0, (config.positives + config.negatives) / sizes[name])
        left -= config.epochs * cost[name] * looked_at
        if left < 0 and kept:
            break
        kept.add(name)
    return train(
        [pair for pair in pairs if pair.query_id in kept],
        development,
        model="late_interaction",
        config=config,
        tokenizer=tokenizer,
        encoder=encoder,
        folder=folder,
        overwrite=True,
    )
