"""From entries to a segment with features, and to what is learnt from their questions: fusion and calibration.

Small collections are compared whole. Above 5,000 entries a question has candidates: the 100 best by BM25 of the
documents and, with an encoder, the 100 nearest. Means and deviations are taken over them, and only they are ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.basics.arrays import distinct
from matchloom.basics.parallel import fixed_sums
from matchloom.basics.progress import track
from matchloom.lexical.columns import Floats, Ids
from matchloom.search.calibration import SIGNALS, Calibration, learn_calibration, signals_of
from matchloom.search.entries import Entries, best_first
from matchloom.search.features.base import Feature, Known
from matchloom.search.features.bm25 import BM25Feature
from matchloom.search.features.centroid import Centroid
from matchloom.search.features.dense import (
    DenseClassifier,
    DenseFinder,
    DenseNearest,
    DenseText,
    KnownVectors,
    SentenceVectors,
)
from matchloom.search.features.linear import FOLDS, LinearFeature, fit_linear, folds_of
from matchloom.search.features.ridge import LARGEST, Ridge
from matchloom.search.features.translation import Translation
from matchloom.search.features.tuned import FOLDS as TUNED_FOLDS
from matchloom.search.features.tuned import DenseUntuned, can_be_tuned, tune, tuning_pays
from matchloom.search.fusion import (
    Cases,
    Fusion,
    LeaveOneOut,
    learn_fusion,
    leave_one_out_figures,
    prior_of,
    ranks,
    scale,
    worth_of,
)
from matchloom.search.reader import Reader
from matchloom.search.segment import WHOLE, Segment
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError

CANDIDATES = 100  # by words, and as many by vectors
_NUMBERS = 40_000_000  # features in memory when weights are learnt
_LEARNT = 600  # questions that weights are learnt from, above WHOLE
_VAST = 50_000  # entries from which a third of them is used
_FOLDS = 4
_TRANSLATED = 300  # questions from which translations are worth learning
_WON, _WHISKER = 2, 0.005  # more questions right at first by a tuned encoder, and which part of them, for it to be kept
_EXCEPTION = 0.3  # of the questions, below which an entry with several of them is an exception


class Settings(NamedTuple):
    """What a collection compares questions with.

    Without `words` the encoder's nearest text is all there is. Without `use_questions` questions are compared with the
    answers' texts alone, and known questions only teach how. Without `learn` weights stay where they start. With
    `baseline`, which names one of `search/baselines.py`, that ranks in place of the features.
    """

    tokenizer: Tokenizer
    words: bool = True
    use_questions: bool = True
    learn: bool = True
    baseline: str | None = None
    features: tuple[str, ...] = ()  # the only ones to make; all that pay where it is empty
    unanswerable: tuple[str, ...] = ()  # questions that have no answer here


class Tuning(NamedTuple):
    """What came of tuning an encoder: how often held-out questions found their answer before and after."""

    questions: int
    before: float
    after: float
    kept: bool


class Learnt(NamedTuple):
    """A segment, and what its questions taught."""

    segment: Segment
    fusion: Fusion
    calibration: Calibration | None  # None where nothing was learnt that a probability could rest on
    figures: LeaveOneOut | None
    cases: Cases
    tuning: Tuning | None = None  # where it was tried


def learn(
    entries: Entries,
    settings: Settings,
    sentences: SentenceVectors | None = None,
    *,
    tune: bool = False,
    progress: bool = False,
) -> Learnt:
    """Read entries, make features, and learn their weights from questions that are left out: always the same bits.

    With `tune` the last layers of a pretrained encoder learn, too, where that helps held-out questions (`tuned.py`).
    """
    with fixed_sums():
        return _learnt(entries, settings, sentences, tune, progress)


def _learnt(
    entries: Entries, settings: Settings, sentences: SentenceVectors | None, tune: bool, progress: bool
) -> Learnt:
    untuned = sentences if sentences is None or sentences.untuned is None else sentences.untuned
    tuning, tuned = _tuned(entries, settings, untuned, progress) if tune else (None, None)
    made, cases = tuned or _learner(entries, settings, untuned, progress)
    segment = made.segment()
    names = segment.names
    fusion = made.fusion(cases)
    cases = cases._replace(signals=made.signals(names, cases, fusion.weights))
    calibration = None
    if settings.learn and not settings.features:
        in_vain = _in_vain(segment, fusion, settings)
        calibration = learn_calibration(names, cases, fusion.weights, in_vain, made.questions_per_answer)
    if made.dense is not None:
        made.dense.without = ()  # which only learning needs
    return Learnt(segment, fusion, calibration, leave_one_out_figures(cases, fusion.weights), cases, tuning)


def _learner(
    entries: Entries, settings: Settings, sentences: SentenceVectors | None, progress: bool, folds: int = FOLDS
) -> tuple[Learner, Cases]:
    made = Learner(entries, settings, sentences, progress, folds)
    return made, made.cases(progress=progress)


def _tuned(
    entries: Entries, settings: Settings, sentences: SentenceVectors | None, progress: bool
) -> tuple[Tuning | None, tuple[Learner, Cases] | None]:
    """What tuning brought, and the learner with the tuned encoder where it is kept."""
    plain, cases = _learner(entries, settings, sentences, progress, TUNED_FOLDS)
    if not plain.can_be_tuned:
        return None, None
    first = plain.right_at_first(cases)
    plain.tune()
    cases = plain.cases(progress=progress)
    second, counted = plain.right_at_first(cases), cases.counted > 0
    won = int((second & ~first & counted).sum()) - int((first & ~second & counted).sum())
    questions = int(counted.sum())
    kept = won >= max(_WON, _WHISKER * questions)
    before, after = (float(np.average(one, weights=cases.counted)) for one in (first, second))
    return Tuning(questions, before, after, kept), (plain, cases) if kept else None


def _in_vain(segment: Segment, fusion: Fusion, settings: Settings) -> Floats:
    """The signals of questions that have no answer here. (M, 5)"""
    if not settings.unanswerable or not segment.whole:
        return np.empty((0, len(SIGNALS)))
    queries = segment.reader.read(settings.unanswerable)
    raw = segment.scores(queries)
    scores = fusion.score(raw, *scale(raw))
    return signals_of(segment.names, fusion.weights, raw, scores, queries.coverage)


class Learner:
    """Everything that learning needs and searching does not. For `learn`, and for experiments that choose constants."""

    def __init__(
        self,
        entries: Entries,
        settings: Settings,
        sentences: SentenceVectors | None,
        progress: bool,
        folds: int = FOLDS,
    ) -> None:
        self.entries, self.settings, self.folds = entries, settings, folds
        self.large = len(entries) > WHOLE
        self.questions, self.member = entries.known
        texts = list(entries.texts)
        self.reader = Reader(settings.tokenizer, whole=not self.large)
        read = self.reader.fit(self.questions, texts, self.member, progress=progress)
        self.known = Known(*read, self.member)
        counted = _counted(self.member) if settings.use_questions else np.ones(len(self.questions))
        self.counted = counted if settings.learn else np.zeros(len(self.questions))
        self.rows = self._rows_to_learn_from()
        self.dense: KnownVectors | None = None
        self.sentences = sentences
        self.worth = 1.0
        if sentences is not None:
            self.dense = KnownVectors.of(sentences, self.questions, texts, progress=progress)
            self.worth = worth_of(sentences.pieces_per_word(self.questions))
        every = (self._word_features(progress) if settings.words else []) + self._dense_features()
        self.features = [one for one in every if not settings.features or one.name in settings.features]
        if self.large:  # the first of them finds candidates
            for finder in [one for one in self.features if isinstance(one, DenseFinder)][:1]:
                finder.code()
        if not self.features:
            raise MatchloomError(f"none of the features {', '.join(settings.features)} is made here", code="bad_value")

    def segment(self) -> Segment:
        """What a search needs."""
        names = tuple(feature.name for feature in self.features)
        vectors = self.known.questions.vector_rows
        return Segment(
            self.entries, self.questions, self.member, vectors, self.reader, names, self.features, self.dense
        )

    @property
    def questions_per_answer(self) -> float:
        """How many known questions an entry that has some has on the mean."""
        return float(self.member.nnz) / max(1, len(distinct(self.member.indices)))

    def _word_features(self, progress: bool) -> list[Feature]:
        known, large, dense = self.known, self.large, self.reader.dense
        # What finds candidates is an index of documents, or of texts where these alone are looked at.
        found_by: Literal["candidates"] | None = None if self.settings.use_questions else "candidates"
        text: list[Feature] = [
            BM25Feature.fit(known, documents=False, table=found_by if large else "scores"),
            Centroid.fit(known, dense, questions=False, large=large),
        ]
        if not self.settings.use_questions:
            return text + self._translations(progress)
        document: list[Feature] = [
            BM25Feature.fit(known, documents=True, table="candidates" if large else "scores"),
            Centroid.fit(known, dense, questions=True, large=large),
        ]
        return self._classifiers() + document + text + self._translations(progress)

    def _classifiers(self) -> list[Feature]:
        questions, entries = self.member.shape
        links = self.member.nnz
        found: list[Feature] = []
        if not self.settings.learn:
            return found
        if entries > 1 and links >= entries and not self.large:
            found += self._linear()
        if questions + entries <= LARGEST and (self.worth < 1 or all(one.name != "joint" for one in found)):
            found.append(Ridge.fit(self.known))
        return found

    def _linear(self) -> list[LinearFeature]:
        folds = self.folds if len(self.rows) else 0
        return fit_linear(self.known, folds=folds, vectors=self.dense, worth=self.worth)

    def _translations(self, progress: bool) -> list[Feature]:
        """Translations, where there are questions enough to learn some and few others to go by."""
        questions = self.member.shape[0]
        answered = len(distinct(self.member.indices))
        if not self.settings.learn or questions < _TRANSLATED or self.member.nnz >= 2 * answered:
            return []
        every = len(self.rows) == questions
        held = [self.rows[n::_FOLDS] for n in range(_FOLDS)] if every else [self.rows] if len(self.rows) else []
        return [Translation.fit(self.known, self.reader.dense, held, large=self.large, progress=progress)]

    def _dense_features(self) -> list[Feature]:
        if self.dense is None:
            return []
        if not self.settings.use_questions:
            return [DenseText(self.dense)]
        nearest = DenseNearest(self.dense, self.member)
        if not self.settings.words:
            return [nearest]
        found: list[Feature] = [nearest, DenseText(self.dense)]
        if self.dense.untuned is not None:
            found.append(DenseUntuned(self.dense.untuned, self.member))
        if self.settings.learn and self.member.shape[1] > 1 and not self.large:
            found.append(DenseClassifier.fit(self.known, self.dense, folds=self.folds if len(self.rows) else 0))
        return found

    def _rows_to_learn_from(self) -> Ids:
        """Questions that count, as many as memory and time allow: the first, whose order by digest means nothing."""
        rows = np.flatnonzero(self.counted > 0)
        entries = len(self.entries)
        if not self.large:
            rows = rows[
                rows % self.folds < folds_of(len(self.questions), self.folds)
            ]  # of which classifiers were not told
            return rows[: max(200, _NUMBERS // (5 * entries))]
        return rows[: _LEARNT if entries <= _VAST else _LEARNT // 3]

    @property
    def can_be_tuned(self) -> bool:
        """Whether the encoder could learn from these questions, and held-out ones tell whether it should."""
        own = self.settings
        wanted = own.words and own.use_questions and own.learn and not own.features and own.baseline is None
        pays = tuning_pays(len(self.rows), self.questions_per_answer) and self.member.shape[1] > 1
        return wanted and pays and not self.large and can_be_tuned(self.sentences)

    def tune(self) -> None:
        """Tune the encoder on the questions; features that read vectors are made anew."""
        assert self.sentences is not None
        self.dense = tune(self.sentences, self.questions, list(self.entries.texts), self.member)
        anew: list[Feature] = self._dense_features()
        if any(one.name == "joint" for one in self.features):
            anew += self._linear()
        made = {one.name: one for one in anew}
        self.features = [made.pop(one.name, one) for one in self.features] + list(made.values())

    def right_at_first(self, cases: Cases) -> NDArray[np.bool_]:
        """Which held-out questions find their answer at the first place by the weights that they teach."""
        found: NDArray[np.bool_] = ranks(cases, self.fusion(cases).weights) == 1
        return found

    def fusion(self, cases: Cases) -> Fusion:
        """The weights that held-out questions teach."""
        names = tuple(one.name for one in self.features)
        # Where texts alone are compared, a held-out question takes nothing from its answer.
        questions = self.questions_per_answer if self.settings.use_questions else inf
        return learn_fusion(names, cases, self.prior(names), questions=questions)

    def cases(self, *, progress: bool = False) -> Cases:
        """What the features say of known questions that are left out."""
        rows, count = self.rows, len(self.features)
        width = len(self.entries) if not self.large else min(len(self.entries), 2 * CANDIDATES)
        cases = Cases(
            np.zeros((len(rows), width, count)),
            np.zeros((len(rows), width), dtype=bool),
            np.zeros((len(rows), width), dtype=bool),
            self.counted[rows],
            float(self.counted[rows].sum() / max(self.counted.sum(), 1.0)),
        )
        self._best = np.zeros((len(rows), 3))  # raw, of what the signals of a question are made of
        self._coverage = np.zeros(len(rows))
        asked = self.known.questions.vectors
        times = np.bincount(asked.indices, minlength=asked.shape[1])
        times += np.bincount(self.known.texts.vectors.indices, minlength=asked.shape[1])
        names = [feature.name for feature in self.features]
        for n, row in enumerate(track(rows.tolist(), "held-out questions", total=len(rows), show=progress)):
            raw = np.stack([feature.leave_one_out(row) for feature in self.features])[None]
            chosen = candidates_of(names, raw[0]) if self.large else np.arange(len(self.entries))
            raw = raw[:, :, chosen]
            mean, spread = scale(raw)
            size = len(chosen)
            cases.features[n, :size] = ((raw - mean[:, :, None]) / spread[:, :, None])[0].T
            cases.present[n, :size] = True
            own = self.known.entries_of(row)
            cases.positive[n, np.flatnonzero(np.isin(chosen, own)) if self.large else own] = True
            features = asked.indices[asked.indptr[row] : asked.indptr[row + 1]]
            covered = self.reader.coverage_without(features, times)
            self._best[n] = signals_of(names, np.ones(1), raw, np.zeros((1, size)), np.zeros(1))[0, 1:4]
            self._coverage[n] = covered
        return cases

    def signals(self, names: Sequence[str], cases: Cases, weights: Floats) -> Floats:
        """The signals of the held-out questions, see `matchloom.search.calibration`. (N, 5)"""
        scores = np.where(cases.present, cases.features @ weights, -np.inf)
        top = scores.max(axis=1, initial=-np.inf) / max(float(weights.sum()), 1e-9)
        return np.column_stack([top, self._best, self._coverage])

    def prior(self, names: Sequence[str]) -> Mapping[str, float]:
        """Where weights start, for texts like these."""
        return prior_of(names, use_questions=self.settings.use_questions, worth=self.worth)


def candidates_of(names: list[str], raw: Floats) -> Ids:
    """The entries that come into question by what all features say of all entries (E, A), by their order."""
    found = []
    for name in ("bm25_doc", "bm25_ans", "dense_nearest", "dense_text"):
        if name in names:
            scores = raw[names.index(name)]
            best = best_first(scores, CANDIDATES)
            found.append(best[scores[best] > 0] if name.startswith("bm25") else best)
            if name == "bm25_doc":
                names = [one for one in names if one != "bm25_ans"]
            if name == "dense_nearest":
                break
    return distinct(np.concatenate(found)) if found else np.arange(raw.shape[1])


def _counted(member: sp.csr_array) -> Floats:
    """How much each known question counts when weights are learnt, see `matchloom.search.fusion`."""
    sizes = np.bincount(member.indices, minlength=member.shape[1])
    alone = min(1.0, float((sizes == 0).sum()) / max(1, int((sizes == 1).sum())))
    most = np.maximum.reduceat(sizes[member.indices], member.indptr[:-1]) if member.nnz else np.empty(0)
    if alone and np.count_nonzero(most > 1) < _EXCEPTION * len(most):
        return np.full(len(most), alone)
    return np.where(most > 1, 1.0, alone)
