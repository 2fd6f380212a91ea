"""Independent labelled pairs: each is told to match or not (MSRP, Quora, LCQMC)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from matchloom.data.grouping import split_by_group
from matchloom.data.ids import both_sides, digest, with_ids
from matchloom.evaluation.labelled import measure_labelled
from matchloom.fitting.calibrated import Calibrated
from matchloom.fitting.encoder import development_seconds
from matchloom.fitting.folders import LOADERS as _INSIDE
from matchloom.fitting.joined import group_texts
from matchloom.fitting.looked_at import moved_most
from matchloom.fitting.pair_classifier import PairClassifier, some_pairs
from matchloom.fitting.report import Asked
from matchloom.fitting.systems import Candidate, Data, Outcome
from matchloom.fitting.trained import train_within
from matchloom.fitting.word_scorers import WordScorer
from matchloom.matcher import Matcher
from matchloom.models import Argument
from matchloom.text.tokenize import Tokenizer
from matchloom.training.development import one_list
from matchloom.types import MatchloomError, Pair, Scorer

LOADERS: dict[str, Callable[[Path], Scorer]] = {
    **_INSIDE,
    "pair_classifier": PairClassifier.load,
    "calibrated": Calibrated.load,
}
LEAST = 6  # groups of pairs with either label
NETWORK_FROM = 2_000  # training pairs from which a network is worth its time
_ENOUGH = 20  # groups of either label to choose and to test on, where there are so many
_LOOKED_AT = 3_000  # development pairs that choose the epoch
_SHOWN = 5
_MODEL = "mv_lstm"
_ARGUMENTS: dict[str, Argument] = {"interaction": "cosine", "lexical": True, "features": "pair"}
_SETTINGS: dict[str, Any] = {
    "loss": "cross_entropy",
    "epochs": 15,
    "patience": 3,
    "freeze_vectors": True,
    "learning_rate": 0.01,
    "measure": "AP",
}
Make = Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]


class PairsTask:
    """Splits by the texts that pairs share; chooses by average precision over all pairs."""

    measure = "AP"
    measures = ("AP", "AUC", "accuracy", "F1")

    def __init__(self, encoder: Path | None = None) -> None:
        self.encoder = encoder

    def split(self, pairs: Sequence[Pair], seed: int) -> Data:
        """70:15:15 such that pairs with a text in common stay together (`group_texts` says how far), labels alike.

        Groups with a pair of the rarer label are split for themselves, so that every part has both.
        """
        grouped = group_texts(list(with_ids(pairs)))
        rare = float(2 * sum(_is_right(pair) for pair in grouped) < len(grouped))
        kinds = {pair.group for pair in grouped if _is_right(pair) == rare}
        if len(kinds) < LEAST:
            raise MatchloomError(
                f"{len(kinds)} independent groups of pairs have label {rare:.0f}, expected {LEAST} or more to learn, "
                "choose and test; label more pairs"
            )
        others = {pair.group for pair in grouped} - kinds
        parts: tuple[list[Pair], ...] = ([], [], [])
        # Where a group mostly holds both labels, as of a question with right and wrong texts, there are few others.
        for groups in (kinds, others) if len(others) >= LEAST else (kinds | others,):
            held = max(round(0.15 * len(groups)), min(_ENOUGH, len(groups) // 4))
            some = [pair for pair in grouped if pair.group in groups]
            found = split_by_group(some, parts=(len(groups) - 2 * held, held, held), seed=seed)
            for part, more in zip(parts, found, strict=True):
                part.extend(more)
        if any(len({_is_right(pair) for pair in part}) < 2 for part in parts):
            raise MatchloomError(
                "too few groups of pairs have both labels for training, choosing and testing; label more"
            )
        return Data(*parts)

    def candidates(self, pairs: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Candidate]:
        """Shared words, a classifier of features, and a network where there are pairs enough."""
        cost = len(pairs) / 10_000
        found = [
            Candidate(
                "overlap_both",
                "which part of each text's words the other holds",
                _overlap(tokenizer),
                True,
                seconds=cost,
            ),
            Candidate("pair_classifier", "a logistic regression on shared words and letters", _classifier(tokenizer)),
        ]
        if len(pairs) >= NETWORK_FROM:
            about = "words in their context, exact matches, and features of the pair"
            seconds = 10 + len(pairs) / 100  # the best of its epochs is that of the development pairs
            found.append(Candidate(_MODEL, about, _network(tokenizer, seed), doubtful=True, seconds=seconds))
        if self.encoder is not None:
            about = "the pretrained encoder as it is: cosine of the two texts"
            make = _cosine(self.encoder, tokenizer)
            found.append(Candidate("encoder_cosine", about, make, True, development_seconds(pairs)))
        return found

    def measure_on(self, scorer: Scorer, pairs: Sequence[Pair]) -> Outcome:
        """Over all pairs, equal scores together. Accuracy and F1 are at the scorer's threshold, if it has one.

        The value of a pair is what it adds, times the number of pairs: for AP the precision at a positive pair's score,
        for AUC the part of the other label that it stands on the right side of.
        """
        right = np.array([_is_right(pair) for pair in pairs], dtype=bool)
        found = measure_labelled(scorer.score(pairs), right, getattr(scorer, "threshold", None))
        return Outcome(found.values, found.each)

    def details(self, scorer: Scorer, pairs: Sequence[Pair]) -> dict[str, Any]:
        """The pairs that it is surest of and right, and surest of and wrong, with their probability of a match."""
        middle = getattr(scorer, "threshold", 0.0)
        raw = np.asarray(scorer.score(pairs), np.float64)
        likely = scorer.probability(pairs) if isinstance(scorer, Calibrated) else raw
        spread = max(float(np.abs(raw - middle).max()), 1e-12) if len(raw) else 1.0
        sure = []
        for pair, score, shown in zip(pairs, raw.tolist(), likely.tolist(), strict=True):
            right = _is_right(pair)
            surety = (score - middle) / spread * (1 if right else -1)
            asked = Asked(pair.query, "match" if right else "no match", pair.text, None, shown)
            sure.append((surety, digest(pair.query, pair.text), asked))
        sure.sort(key=lambda one: one[:2])
        worst = [moved_most(scorer, one) for surety, _, one in sure[:_SHOWN] if surety < 0]
        best = [moved_most(scorer, one) for surety, _, one in sure[: -_SHOWN - 1 : -1] if surety > 0]
        return {"best": best, "worst": worst, "confusions": []}


def _overlap(tokenizer: Tokenizer) -> Make:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        scorer = WordScorer.fit("overlap_both", sorted(both_sides(train)), tokenizer)
        return Calibrated.fit(scorer, development, tokenizer)

    return make


def _cosine(encoder: Path, tokenizer: Tokenizer) -> Make:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        matcher = Matcher.untrained(encoder, model="sentence_bert", tokenizer=tokenizer)
        return Calibrated.fit(matcher, some_pairs(development, _LOOKED_AT), tokenizer)

    return make


def _classifier(tokenizer: Tokenizer) -> Make:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        return Calibrated.fit(PairClassifier.fit(train, development, tokenizer), development, tokenizer)

    return make


def _network(tokenizer: Tokenizer, seed: int) -> Make:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        matcher = train_within(
            seconds,
            [pair._replace(label=float(_is_right(pair))) for pair in train],
            one_list(development)[:_LOOKED_AT],
            folder / "training",
            model=_MODEL,
            arguments=_ARGUMENTS,
            settings={**_SETTINGS, "seed": seed},
            tokenizer=tokenizer,
        )
        return Calibrated.fit(matcher, development, tokenizer)

    return make


def _is_right(pair: Pair) -> bool:
    return (pair.label or 0) > 0
