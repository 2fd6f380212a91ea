"""Judged candidate lists: every question is ranked against its own candidates (WikiQA, TREC-QA, SemEval 3B)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matchloom.data.identity import pairs_digest, with_ids
from matchloom.data.kinds import both_labels
from matchloom.data.splits import split_lists
from matchloom.evaluation.measures import CandidateLists
from matchloom.fitting.encoder import development_seconds
from matchloom.fitting.highlights import moved_most
from matchloom.fitting.list_fusion import ListFusion
from matchloom.fitting.report import Asked, Confusion
from matchloom.fitting.systems import Candidate, Data, Outcome, Task
from matchloom.fitting.trained import own_vectors, train_within, tune_within
from matchloom.fitting.word_scorers import WordScorer
from matchloom.matcher import Matcher
from matchloom.models import Argument
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.types import MatchloomError, Pair, Scorer

LONGEST = 200  # words of a text that an encoder reads
_SHOWN = 5
# What development questions of TREC-QA and WikiQA chose, of all models and of vectors kept or trained.
NETWORKS: dict[str, tuple[str, Mapping[str, Argument], Mapping[str, Any]]] = {
    "knrm": (
        "soft counts of similar words, and features of the pair",
        {"features": "pair"},
        {"epochs": 20, "patience": 3, "freeze_vectors": True},
    ),
    "mv_lstm": (
        "words in their context, exact matches, and features of the pair",
        {"interaction": "cosine", "lexical": True, "features": "pair"},
        {"epochs": 20, "patience": 3, "freeze_vectors": True, "learning_rate": 0.01, "loss": "softmax"},
    ),
}
#: Networks of MV-LSTM that score together, and the pairs up to which there is time for them. On new splits of four
#: corpora five are better than one by .008 of RR alone and .007 mixed, softmax than hinge by .010 and .001
#: (experiments.benchmarks.lists).
ENSEMBLE_SIZE, _FEW = 5, 25_000
MAXSIM, TUNED = "encoder_maxsim", "encoder_tuned"
ENCODERS = {
    MAXSIM: "the pretrained encoder without tuning: for each question word the most similar word of the text",
    TUNED: "the same, the encoder fine-tuned on your questions",
}
WORDS = {
    "bm25": "rare words of the question in the text",
    "bm25_stemmed": "the same on stems, without function words",
    "overlap": "the share of the question's words that the text has",
}


class ListsTask(Task):
    """Splits by question; chooses by the rank of the first positive."""

    measure = "RR"
    measures = ("RR", "AP", "P@1")

    def split(self, pairs: Sequence[Pair], seed: int) -> Data:
        """70:15:15 by question."""
        return Data(*split_lists(pairs, seed))

    def candidates(self, pairs: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Candidate]:
        """Words alone, two networks, and all of them mixed; before these an encoder, where there is one.

        A network is trained once for the same pairs. Beside an encoder, networks from scratch come last, for what time
        is left, and must win by more than chance.
        """
        trained = _Trained(tokenizer, seed)
        found = [
            Candidate(name, about, _words(name, tokenizer), baseline=True, seconds=0.2 + len(pairs) / 20_000)
            for name, about in WORDS.items()
        ]
        if self.encoder is not None:
            seconds, make = development_seconds(pairs), trained.untrained(self.encoder)
            found.append(Candidate(MAXSIM, ENCODERS[MAXSIM], make, baseline=True, seconds=seconds))
            found.append(Candidate(TUNED, ENCODERS[TUNED], trained.tuned(self.encoder), seconds=60 + seconds))
        needs_significance = self.encoder is not None
        for name, (about, _, _) in NETWORKS.items():
            seconds = 10 + len(pairs) / 200
            found.append(
                Candidate(name, about, trained.maker(name), seconds=seconds, needs_significance=needs_significance)
            )
        about = "these networks and word scorers, with weights learnt on development questions"
        seconds = 1 + len(pairs) / 2_000
        found.append(
            Candidate("list_fusion", about, trained.fusion, seconds=seconds, needs_significance=needs_significance)
        )
        return found

    def measure_on(self, scorer: Scorer, pairs: Sequence[Pair]) -> Outcome:
        """On the questions with a positive and a negative, in the order of their ids; ties are trec_eval's."""
        judged = _unambiguous(both_labels(list(with_ids(pairs))))
        if not judged:
            raise MatchloomError("no question has both a positive (label 1) and a negative (label 0) to measure on")
        measured = CandidateLists.of(judged, self.measures).measure(scorer.score(judged))
        return Outcome(measured.values, measured.per_query)

    def details(self, scorer: Scorer, pairs: Sequence[Pair]) -> dict[str, Any]:
        """Questions whose first text is right or wrong by most, and texts taken for one another more than once."""
        judged = both_labels(list(with_ids(pairs)))
        lists: dict[str, list[tuple[float, str, Pair]]] = {}
        for pair, score in zip(judged, scorer.score(judged).tolist(), strict=True):
            lists.setdefault(pair.query_id, []).append((-score, pair.text_id, pair))
        asked: list[tuple[float, str, Asked]] = []
        mistaken: Counter[tuple[str, str]] = Counter()
        example: dict[tuple[str, str], str] = {}
        for name, own in lists.items():
            ranked = [(-score, pair) for score, _, pair in sorted(own, key=lambda one: one[:2])]
            rank = next(n for n, (_, pair) in enumerate(ranked, start=1) if pair.is_labelled_positive)
            (top, first), (best, right) = ranked[0], ranked[rank - 1]
            wrong = max(score for score, pair in ranked if not pair.is_labelled_positive)
            if rank > 1:
                mistaken[right.text, first.text] += 1
                example[right.text, first.text] = first.query
            asked.append((best - wrong, name, Asked(first.query, right.text, first.text, rank, top)))
        asked.sort(key=lambda one: one[:2])
        confusions = [
            Confusion(*texts, times, example[texts]) for texts, times in mistaken.most_common(_SHOWN) if times > 1
        ]
        worst = [one for margin, _, one in asked[:_SHOWN] if margin <= 0]
        best_first = [one for margin, _, one in asked[: -_SHOWN - 1 : -1] if margin > 0]
        return {
            "best": [moved_most(scorer, one) for one in best_first],
            "worst": [moved_most(scorer, one) for one in worst],
            "confusions": confusions,
        }


def ensemble_size(name: str, pairs: Sequence[Pair]) -> int:
    """How many networks of a kind score together."""
    return ENSEMBLE_SIZE if name == "mv_lstm" and len(pairs) <= _FEW else 1


class _Trained:
    """The networks that were trained so far, by what they learnt from: the fusion needs them too."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        self.tokenizer, self.seed = tokenizer, seed
        self.matchers: dict[tuple[str, str], Matcher | MatchloomError] = {}
        self.vectors: tuple[str, WordVectors] | None = None  # those of the last pairs

    def maker(self, name: str) -> Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]:
        """How the network of this name is made."""
        return lambda train, development, folder, seconds: self.matcher(name, train, development, folder, seconds)

    def matcher(
        self, name: str, train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float
    ) -> Matcher:
        """Trained now, or before."""
        _, arguments, settings = NETWORKS[name]
        if ensemble_size(name, train) > 1:
            arguments = {**arguments, "ensemble_size": ensemble_size(name, train)}

        def make() -> Matcher:
            start = time.monotonic()
            vectors = self._vectors(train, seconds)
            return train_within(
                max(seconds / 2, seconds - (time.monotonic() - start)),
                train,
                both_labels(development),
                folder / "training",
                model=name,
                arguments=arguments,
                settings={**settings, "seed": self.seed, "measure": ListsTask.measure},
                tokenizer=self.tokenizer,
                vectors=vectors,
            )

        return self._once((name, pairs_digest(train, development)), make)

    def untrained(self, encoder: Path) -> Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]:
        """How the encoder as it is is made."""
        return lambda *_: self._once((MAXSIM, ""), lambda: Matcher.untrained(encoder, tokenizer=self.tokenizer))

    def tuned(self, encoder: Path) -> Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]:
        """How the encoder is fine-tuned, in two fifths of the time: what it makes is measured afterwards."""

        def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
            settings = {"seed": self.seed, "measure": ListsTask.measure}
            return self._once(
                (TUNED, pairs_digest(train, development)),
                lambda: tune_within(
                    0.4 * seconds,
                    both_labels(train),
                    both_labels(development),
                    folder / "training",
                    encoder=encoder,
                    settings=settings,
                    tokenizer=self.tokenizer._replace(max_words=self.tokenizer.max_words or LONGEST),
                ),
            )

        return make

    def _once(self, key: tuple[str, str], make: Callable[[], Matcher]) -> Matcher:
        """What was made before under this key, or failed; else it is made now."""
        if key not in self.matchers:
            try:
                self.matchers[key] = make()
            except MatchloomError as error:
                self.matchers[key] = error
        found = self.matchers[key]
        if isinstance(found, MatchloomError):
            raise found
        return found

    def _vectors(self, train: Sequence[Pair], seconds: float) -> WordVectors:
        key = pairs_digest(train)
        if self.vectors is None or self.vectors[0] != key:
            self.vectors = key, own_vectors(train, self.tokenizer, seconds, self.seed)
        return self.vectors[1]

    def fusion(self, train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> ListFusion:
        """Networks that learnt something, and words."""
        texts = sorted({pair.text for pair in train})
        scorers: list[Scorer] = [WordScorer.fit(name, texts, self.tokenizer) for name in ("normalized_bm25", "overlap")]
        for name in NETWORKS:
            try:
                each = seconds / len(NETWORKS)
                scorers.append(self.matcher(name, train, development, folder / name, each))
            except MatchloomError:
                continue  # what learnt nothing is not mixed; its own line of the table says why
        return ListFusion.fit(scorers, development, self.tokenizer)


def _words(name: str, tokenizer: Tokenizer) -> Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        return WordScorer.fit(name, sorted({pair.text for pair in train}), tokenizer)

    return make


def _unambiguous(pairs: list[Pair]) -> list[Pair]:
    """The pairs, with ids from content where a list names one text twice."""
    times = Counter((pair.query_id, pair.text_id) for pair in pairs)
    twice = {query for (query, _), n in times.items() if n > 1}
    plain = (pair._replace(text_id="") if pair.query_id in twice else pair for pair in pairs)
    return [pair._replace(label=float(pair.is_labelled_positive)) for pair in with_ids(plain)]
