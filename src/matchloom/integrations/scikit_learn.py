"""For scikit-learn: an estimator for pairs of texts that match or do not; `clone`, pipelines and searches take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from matchloom.data.identity import both_sides
from matchloom.data.splits import group_texts, split_by_group
from matchloom.fitting.calibrated import Calibrated
from matchloom.fitting.pair_classifier import PairClassifier
from matchloom.lexical import LEXICAL, fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

CLASSIFIER = "pair_classifier"


class PairEstimator(ClassifierMixin, BaseEstimator):
    """Says whether two texts match. X has a query and a text in each row, y is 1 or 0.

    Args:
        model: "pair_classifier" (a regression on what both texts share), a lexical scorer such as "bm25", or a network
            of `MODELS`.
        arguments: Of a network, such as {"hidden": 20}.
        epochs: Of a network; as many as suit it by default.
        hold_out: Which part of the pairs chooses the epoch and the threshold; pair_classifier learns from all in folds.
        seed: Which pairs are held out, and what a network draws.
        language: How texts become words: a tokenizer's kind, such as "english" or "chinese".

    >>> pairs = [("who weaves", "a loom weaves cloth"), ("who weaves", "a mill grinds corn")] * 8
    >>> estimator = PairEstimator("overlap").fit(pairs, [1, 0] * 8)
    >>> estimator.predict([("who grinds", "a mill grinds corn")]).tolist()
    [1]
    """

    def __init__(
        self,
        model: str = CLASSIFIER,
        *,
        arguments: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        hold_out: float = 0.2,
        seed: int = 0,
        language: str = "english",
    ) -> None:
        self.model = model
        self.arguments = arguments
        self.epochs = epochs
        self.hold_out = hold_out
        self.seed = seed
        self.language = language

    def fit(self, X: Any, y: Any) -> PairEstimator:
        """Learn from labelled pairs.

        Args:
            X: Rows of a query and a text: tuples, an array or a data frame of two columns.
            y: 1 where they match, 0 where not.
        """
        labels = np.asarray(y)
        if sorted(np.unique(labels).tolist()) != [0, 1]:
            raise MatchloomError(
                f"y has the labels {np.unique(labels).tolist()[:5]}; expected 0 and 1, both", code="bad_labels"
            )
        pairs = [pair._replace(label=float(one)) for pair, one in zip(_pairs(X), labels, strict=True)]
        training, development = self._parts(pairs)
        self.classes_: NDArray[Any] = np.array([0, 1])
        self.n_features_in_ = 2
        self.scorer_: Any = self._made(training, development)
        return self

    def _parts(self, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Pairs to learn from and to choose by; all for both where a part would be empty or have one label alone."""
        grouped = group_texts(pairs)
        if len({pair.group for pair in grouped}) * min(self.hold_out, 1 - self.hold_out) < 1:
            return pairs, pairs
        parts = split_by_group(grouped, parts=(1 - self.hold_out, self.hold_out), seed=self.seed)
        whole = all(len({pair.label for pair in part}) == 2 for part in parts)
        return (parts[0], parts[1]) if whole else (pairs, pairs)

    def _made(self, training: list[Pair], development: list[Pair]) -> Any:
        tokenizer = Tokenizer(kind=self.language)
        if self.model == CLASSIFIER:
            made = PairClassifier.fit([*training, *development] if development is not training else training, tokenizer)
            return Calibrated(made, made.calibration, tokenizer)  # folds of all pairs gave it its threshold
        if self.model in LEXICAL:
            scorer = fit_scorer(self.model, sorted(both_sides(training)), tokenizer=tokenizer, seed=self.seed)
            return Calibrated.fit(scorer, development, tokenizer)
        from matchloom.training.run import train  # torch comes with it

        settings: dict[str, Any] = {} if self.epochs is None else {"epochs": self.epochs}
        return train(
            training,
            development,
            model=self.model,
            arguments=self.arguments,
            tokenizer=tokenizer,
            seed=self.seed,
            loss="cross_entropy",
            **settings,
        )

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """The score of each pair, above 0 where it is said to match."""
        check_is_fitted(self, "scorer_")
        scores = self.scorer_.score(_pairs(X))
        return np.asarray(scores - np.float32(self.scorer_.threshold), np.float32)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """How likely each pair does not match, and how likely it does."""
        check_is_fitted(self, "scorer_")
        likely = self.scorer_.probabilities(self.scorer_.score(_pairs(X)))
        return np.stack([1 - likely, likely], axis=1)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 where a pair is said to match, 0 where not."""
        return (self.decision_function(X) >= 0).astype(np.int64)


def _pairs(given: Any) -> list[Pair]:
    rows: Sequence[Any] = given.to_numpy().tolist() if hasattr(given, "to_numpy") else list(given)
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str) or len(row) < 2 or not all(isinstance(text, str) for text in row[:2]):
            raise MatchloomError(f"X, row {number}: found {str(row)[:60]!r}; expected a query and a text")
    return [Pair(row[0], row[1]) for row in rows]
