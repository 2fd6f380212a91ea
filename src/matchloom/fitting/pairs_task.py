"""Independent labelled pairs: each matches or not (MSRP, Quora, LCQMC)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from matchloom.basics.extras import has
from matchloom.data.identity import both_sides, digest
from matchloom.data.splits import fold_labelled, split_labelled
from matchloom.evaluation.labelled import measure_labelled
from matchloom.fitting.calibrated import Calibrated
from matchloom.fitting.encoder import Encoded, development_seconds
from matchloom.fitting.highlights import moved_most
from matchloom.fitting.pair_classifier import FOLDS, PLAIN, PairClassifier, some_pairs
from matchloom.fitting.pair_tuning import FEWEST, pair_tuning_seconds
from matchloom.fitting.report import Asked
from matchloom.fitting.systems import Candidate, Data, Outcome, Round, Task
from matchloom.fitting.word_scorers import WordScorer
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scorer

WORDS, WITH_ENCODER = "pair_classifier", "encoder_classifier"
ABOUT = {
    "overlap_both": "the share of each text's words that the other one has",
    PLAIN: "a logistic regression on TF-IDF of the words that differ and of those that are shared",
    WORDS: "a logistic regression on words, character n-grams and overlap of both texts",
    "encoder_cosine": "the pretrained encoder without tuning: cosine of the two texts",
    WITH_ENCODER: "the same logistic regression, with the pretrained encoder's cosine, tuned where that helps",
    "mv_lstm": "words in their context, exact matches, and features of the pair",
}
NETWORK_FROM = 2_000  # training pairs from which a network is worth its time
_MOST_DEVELOPMENT = 3_000  # development pairs that choose the epoch
_SHOWN = 5
_MODEL = "mv_lstm"
_ARGUMENTS: dict[str, Any] = {"interaction": "cosine", "lexical": True, "features": "pair"}
_SETTINGS: dict[str, Any] = {
    "loss": "cross_entropy",
    "epochs": 15,
    "patience": 3,
    "freeze_vectors": True,
    "learning_rate": 0.01,
    "measure": "AP",
}
Make = Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]


class PairsTask(Task):
    """Splits by the texts that pairs share; chooses by average precision over all pairs."""

    measure = "AP"
    measures = ("AP", "AUC", "accuracy", "F1")
    unit = "pairs"

    def split(self, pairs: Sequence[Pair], seed: int) -> Data:
        """70:15:15 such that pairs with a text in common stay together, labels alike."""
        return Data(*split_labelled(pairs, seed))

    def rounds(self, data: Data, seed: int) -> list[Round]:
        """Every pair is a development pair once where there are few, and no network that takes minutes."""
        if len(data.train) >= NETWORK_FROM:
            return super().rounds(data, seed)
        pairs = [*data.train, *data.development]
        homes = fold_labelled(pairs, FOLDS)
        rounds: list[Round] = [([], []) for _ in range(max(homes) + 1)]
        for pair, home in zip(pairs, homes, strict=True):
            for fold, parts in enumerate(rounds):
                parts[fold == home].append(pair)
        both = all(len({pair.is_labelled_positive for pair in held}) == 2 for _, held in rounds)
        return rounds if both else super().rounds(data, seed)

    def guess(self, candidates: Sequence[Candidate], rounds: int) -> float:
        """Each is made for every round, and for the test pairs; the chosen one once more."""
        finish = max((one.finish_seconds for one in candidates), default=0.0)
        return super().guess(candidates, rounds) * (rounds + 1) + 2 * finish

    def learnt(self, scorer: Scorer) -> str:
        """Whether its encoder was tuned, and the figures of held-out pairs."""
        own = scorer.scorer if isinstance(scorer, Calibrated) else None
        tuning = own.tuning if isinstance(own, PairClassifier) else None
        if tuning is None:
            return ""
        done = "was tuned on your pairs" if tuning.kept else "is used without tuning: tuning was not clearly better"
        figures = f"AP {tuning.before:.3f} without, {tuning.after:.3f} with tuning"
        return f"The encoder {done} ({tuning.pairs:,} held-out pairs: {figures})."

    def learns_more(self, data: Data, pairs: Sequence[Pair]) -> bool:
        """All that the user gave to learn from; a test file of theirs stays unseen."""
        return len(data.train) + len(data.development) < len(pairs)

    def candidates(self, pairs: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Candidate]:
        """Shared words, TF-IDF, classifiers without and with an encoder, and a network where there are pairs enough."""
        cost = len(pairs) / 10_000
        seconds = 1 + 1e-5 * sum(len(pair.query) + len(pair.text) for pair in pairs)
        found = [
            Candidate("overlap_both", ABOUT["overlap_both"], _overlap(tokenizer), True, seconds=cost),
            Candidate(PLAIN, ABOUT[PLAIN], _classifier(tokenizer, plain=True), True, 0.3 * seconds, learns_all=True),
            Candidate(WORDS, ABOUT[WORDS], _classifier(tokenizer), seconds=seconds, learns_all=True),
        ]
        if self.encoder is not None:
            encoded = Encoded(self.encoder, tokenizer)
            make, reading = _cosine(self.encoder, tokenizer), development_seconds(pairs)
            found.append(Candidate("encoder_cosine", ABOUT["encoder_cosine"], make, True, reading))
            make, seconds = _classifier(tokenizer, encoded), seconds + 5 * reading
            fused = Candidate(WITH_ENCODER, ABOUT[WITH_ENCODER], make, seconds=seconds, learns_all=True)
            if self.tune and len(pairs) >= FEWEST:
                finish = _classifier(tokenizer, encoded, tune=True)
                fused = replace(fused, finish=finish, finish_seconds=pair_tuning_seconds(pairs))
            found.append(fused)
        if len(pairs) >= NETWORK_FROM and has("torch"):
            seconds = 10 + len(pairs) / 100  # the best of its epochs is that of the development pairs
            make = _network(tokenizer, seed)
            found.append(Candidate(_MODEL, ABOUT[_MODEL], make, needs_significance=True, seconds=seconds))
        return found

    def count(self, pairs: Sequence[Pair]) -> int:
        """Each pair is for itself."""
        return len(pairs)

    def measure_on(self, scorer: Scorer, pairs: Sequence[Pair]) -> Outcome:
        """Over all pairs, equal scores together. Accuracy and F1 are at the scorer's threshold, if it has one.

        The value of a pair is what it adds, times the number of pairs: for AP the precision at a positive pair's score,
        for AUC the part of the other label that it stands on the right side of.
        """
        positive = np.array([pair.is_labelled_positive for pair in pairs], dtype=bool)
        found = measure_labelled(scorer.score(pairs), positive, getattr(scorer, "threshold", None))
        return Outcome(found.values, found.each)

    def details(self, scorer: Scorer, pairs: Sequence[Pair]) -> dict[str, Any]:
        """The pairs that it is surest of and right, and surest of and wrong, with their probability of a match."""
        middle = getattr(scorer, "threshold", 0.0)
        raw = np.asarray(scorer.score(pairs), np.float64)
        likely = scorer.probability(pairs) if isinstance(scorer, Calibrated) else raw
        spread = max(float(np.abs(raw - middle).max()), 1e-12) if len(raw) else 1.0
        sure = []
        for pair, score, shown in zip(pairs, raw.tolist(), likely.tolist(), strict=True):
            positive = pair.is_labelled_positive
            surety = (score - middle) / spread * (1 if positive else -1)
            asked = Asked(pair.query, "match" if positive else "no match", pair.text, None, shown)
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
        from matchloom.matcher import Matcher  # torch comes with it

        matcher = Matcher.untrained(encoder, model="sentence_bert", tokenizer=tokenizer)
        return Calibrated.fit(matcher, some_pairs(development, _MOST_DEVELOPMENT), tokenizer)

    return make


def _classifier(
    tokenizer: Tokenizer, encoded: Encoded | None = None, *, plain: bool = False, tune: bool = False
) -> Make:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        sentences = None if encoded is None else encoded.sentences
        made = PairClassifier.fit(train, tokenizer, sentences=sentences, plain=plain, tune=tune)
        return Calibrated(made, made.calibration, tokenizer)

    return make


def _network(tokenizer: Tokenizer, seed: int) -> Make:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        from matchloom.fitting.trained import train_within  # torch comes with it
        from matchloom.training.development import one_list

        matcher = train_within(
            seconds,
            [pair._replace(label=float(pair.is_labelled_positive)) for pair in train],
            one_list(development)[:_MOST_DEVELOPMENT],
            folder / "training",
            model=_MODEL,
            arguments=_ARGUMENTS,
            settings={**_SETTINGS, "seed": seed},
            tokenizer=tokenizer,
        )
        return Calibrated.fit(matcher, development, tokenizer)

    return make
