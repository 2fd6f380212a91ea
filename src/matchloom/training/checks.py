"""Whether a run learns at all, and whether its model reads the texts to their end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from matchloom.data.batching import make_batch
from matchloom.evaluation.measures import measure
from matchloom.matcher import Matcher
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Examples
from matchloom.training.step import StepResult
from matchloom.types import MatchloomError, Pair

_log = logging.getLogger("matchloom")

CHANCES = 20
LOOKED_AT = 256  # pairs that tell whether a model still tells texts apart


def warn_of_long_texts(matcher: Matcher, examples: Examples) -> None:
    """Say so where a model that reads a text's first words only would miss many."""
    most, read = matcher.model.max_words, examples.read
    beyond = np.mean(np.concatenate([read.left.lengths, read.right.lengths]) > (most or np.inf))
    if beyond > 0.05:
        _log.warning(
            "%s reads the first %d words of a text, and %.0f%% of the training texts are longer; set max_words to "
            "read more of them",
            matcher.name,
            most,
            100 * beyond,
        )


def refuse_collapse(matcher: Matcher, examples: Examples, results: Sequence[StepResult], epoch: int) -> None:
    """Stop a run whose scores are all equal."""
    # Within a step: a bias that still moves makes dead scores differ between steps. These scores are older than the
    # steps' updates, and a model may start with equal ones, so that what it says now has the last word.
    if all(_equal(r.lowest, r.highest) for r in results) and _scores_are_equal(matcher, examples):
        loss = sum(r.loss for r in results) / sum(r.examples for r in results)
        raise MatchloomError(
            f"training collapsed in epoch {epoch + 1}: all scores are equal, nothing is learnt (loss {loss:.4f}); "
            "try another seed or a lower learning_rate, and check that the labels differ within each query",
            code="failed",
        )


def _scores_are_equal(matcher: Matcher, examples: Examples) -> bool:
    """Whether the model gives the first training pairs one score, as it is now."""
    left, right, left_rows, right_rows, features = examples.read
    some = slice(0, LOOKED_AT)
    known = None if features is None else features[some]
    batch = make_batch(left, right, left_rows[some], right_rows[some], known)
    model = matcher.model.eval()
    with torch.inference_mode():
        scores = model(batch.to(matcher.device))
    return _equal(float(scores.min()), float(scores.max()))


def _equal(lowest: float, highest: float) -> bool:
    return highest - lowest <= 1e-6 * max(1.0, abs(highest))


def nothing_learnt(
    history: Sequence[dict[str, Any]], config: TrainConfig, development: Sequence[Pair] | None
) -> str | None:
    """Why a run has learnt nothing: its best evaluation is no better than chance or, without any, its loss never fell.

    Chance is what scores drawn at random reach on the same development pairs, in CHANCES draws: a best evaluation
    within two deviations of their mean says nothing.
    """
    lowest = min((entry["loss"] for entry in history), default=0.0)
    if development is None or not history:
        if config.loss == "hinge" and lowest > 0.99 * config.margin:
            return f"the loss never fell below the margin ({lowest:.3f} of {config.margin:g})"
        return None
    best = max(entry[config.measure] for entry in history)
    draws = np.random.default_rng(0).random((CHANCES, len(development)))
    lucky = [measure(development, scores.tolist(), (config.measure,)).values[config.measure] for scores in draws]
    mean, spread = float(np.mean(lucky)), float(np.std(lucky))
    if best <= mean + 2 * spread:
        reached, luck = f"{config.measure} {best:.3f}", f"{mean:.3f}, give or take {spread:.3f}"
        return f"{reached} on the development pairs, where chance has {luck}"
    return None


def warn_of_nothing_learnt(reason: str) -> None:
    """Say so, and what may help."""
    _log.warning(
        "nothing is learnt yet: %s; try more epochs with more patience, another seed or another learning_rate", reason
    )
