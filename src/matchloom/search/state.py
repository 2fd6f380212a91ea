"""Everything that a search needs, at one moment: entries, and what was learnt from their questions.

    question -> Queries (read once) -> candidates -> features -> fusion -> calibration -> Hits

A state never changes: a search sees one from its first step to its last. Changes and fits make another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from matchloom.basics.progress import track
from matchloom.explanation import explanation_of
from matchloom.explanation.budget import NO_CELLS, CellBudget
from matchloom.lexical.columns import Floats
from matchloom.lexical.ranking import best_of
from matchloom.search.calibration import SIGNALS, Calibration, signals_of
from matchloom.search.entries import best_first
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.fusion import Fusion, LeaveOneOut
from matchloom.search.judged import Judged
from matchloom.search.learning import Learnt, Settings, Tuning
from matchloom.search.queries import Queries
from matchloom.search.tracing import Compared, RightSide, trace_of
from matchloom.search.view import Scored, View, Where
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Hit, Hits, Pair, Scores, Trace

if TYPE_CHECKING:
    from matchloom.search.baselines import RankingBaseline

FITTED, WITH_ENCODER, ENCODER_ALONE = "answer_ranker", "encoder_ranker", "encoder_nearest"


@dataclass(frozen=True, eq=False)
class State:
    """Entries, and what was learnt from their questions."""

    settings: Settings
    view: View
    fusion: Fusion
    calibration: Calibration | None
    figures: LeaveOneOut | None
    judged: Judged = field(default_factory=Judged)
    tuning: Tuning | None = None  # where tuning the encoder was tried

    @classmethod
    def of(cls, learnt: Learnt, settings: Settings) -> State:
        """What was just learnt."""
        view = View.of(learnt.segment)
        return cls(settings, view, learnt.fusion, learnt.calibration, learnt.figures, tuning=learnt.tuning)

    @property
    def sentences(self) -> SentenceVectors | None:
        """What makes its sentence vectors; None where only words are compared."""
        return None if self.view.base.dense is None else self.view.base.dense.sentences

    @property
    def tokenizer(self) -> Tokenizer:
        """How texts become words."""
        return self.settings.tokenizer

    @cached_property
    def name(self) -> str:
        """What ranks: words, words and an encoder, an encoder alone, or a baseline."""
        if self.settings.baseline is not None:
            return self.settings.baseline
        if self.view.base.dense is None:
            return FITTED
        return WITH_ENCODER if self.settings.words else ENCODER_ALONE

    @property
    def is_small(self) -> bool:
        """Whether every entry is compared, not candidates alone."""
        return self.view.base.whole

    def having(self, view: View) -> State:
        """The same with another view, which a change made."""
        return replace(self, view=view)

    # ---- searching

    def search(
        self,
        question: Sequence[str],
        *,
        top: int | None = 10,
        where: Where | None = None,
        budget: CellBudget = NO_CELLS,
    ) -> list[Hits]:
        """The answers that fit each of some questions best."""
        if self.settings.baseline is not None:
            return [self._by_baseline(one, top, where, budget) for one in question]
        queries = self.view.base.reader.read(question)
        found: list[Hits] = []
        for scored in self.view.scored(queries, where):
            found += self._ranked(queries, len(found), scored, top, budget)
        return found

    def _ranked(self, queries: Queries, start: int, scored: Scored, top: int | None, budget: CellBudget) -> list[Hits]:
        """The answers to the questions from `start` on that were scored together."""
        scores, same = self._scores(scored, queries.texts[start : start + len(scored.raw)])
        count = len(scores)
        answerable = self._answerable(scored, scores, queries.coverage[start : start + count])
        likely = None
        if self.calibration is not None and self.calibration.earned and scores.shape[1]:
            likely = self.calibration.probabilities(scores, np.array(answerable))
        # Where nothing of a question is known all answers are equal, and the first by id is no answer.
        best: list[list[int] | None] = best_of(scores, top) if scores.shape[1] else [None] * count
        known = list(answerable)
        for n in range(count if self.judged.verdicts else 0):
            wrong = self._places_of(scored, queries.texts[start + n])
            if wrong and best[n] is not None:
                best[n] = [one for one in best_first(scores[n], None).tolist() if one not in wrong][:top]
                if likely is not None:
                    known[n] = max(0.0, float(answerable[n] or 0.0) - float(likely[n, sorted(wrong)].sum()))
        places = [own or [] for own in best]
        rows = [row for own in places for row in scored.rows[own].tolist()]
        asked = [start + n for n, own in enumerate(places) for _ in own]
        nearest = self.view.nearest(queries, asked, rows)
        hits, at = [], 0
        for n, own in enumerate(places):
            nothing = best[n] is None and answerable[n] is not None
            made = Hits(known=0.0 if nothing else known[n])
            values = scores[n, own].tolist()
            chances = [None] * len(own) if likely is None else likely[n, own].tolist()
            for score, chance in zip(values, chances, strict=True):
                made.append(self._hit(rows[at], nearest[at], score, chance))
                at += 1
            if budget:
                query = queries.one(start + n)
                made[:] = [
                    self._explained(query, scored, n, hit, same[n].get(hit.index or 0, 0.0), budget) for hit in made
                ]
            hits.append(made)
        return hits

    def _hit(self, row: int, nearest: str | None, score: float, chance: float | None) -> Hit:
        segment, own = self.view.find(row)
        entries = segment.entries
        columns = dict(entries.columns[own]) or None if entries.columns else None
        return Hit(entries.ids[own], entries.texts[own], score, chance, nearest, row, None, None, None, columns)

    def _explained(self, query: Queries, scored: Scored, n: int, hit: Hit, same: float, budget: CellBudget) -> Hit:
        """A hit with why it got its score, unless its map is larger than what is left."""
        if not budget.allows(len(query.words[0]), self._words(hit.question, hit.text), len(self.fusion.names)):
            return hit
        compared = _compared(self.view, query, scored, n, hit.index or 0)
        traced = self._traced(query, compared, hit.question, hit.text, same)
        return hit._replace(explanation=budget.spend(explanation_of(self, query.texts[0], hit.text, traced)))

    def signals(self, questions: Sequence[str]) -> Floats:
        """What `p(answerable)` is made of, for each question (`search/calibration.py`). (N, 5)

        Args:
            questions: The questions.
        """
        queries = self.view.base.reader.read(list(questions))
        found, start = [], 0
        for scored in self.view.scored(queries):
            scores, _ = self._scores(scored, queries.texts[start : start + len(scored.raw)])
            coverage = queries.coverage[start : start + len(scores)]
            found.append(signals_of(self.fusion.names, self.fusion.weights, scored.raw, scores, coverage))
            start += len(scores)
        return np.concatenate(found) if found else np.empty((0, len(SIGNALS)))

    def _scores(self, scored: Scored, questions: Sequence[str]) -> tuple[Floats, list[dict[int, float]]]:
        """The scores of questions (N, C), and what rows were given for having exactly the question.

        Classifiers do not know an entry that was added or changed since the fit, or its new questions. Until they do,
        one that has exactly the question asked is given what puts it one deviation of every feature above the best of
        those that do not have it.
        """
        scores = self.fusion.score(scored.raw, scored.mean, scored.spread)
        given: list[dict[int, float]] = [{} for _ in questions]
        for n, question in enumerate(questions if self.view.lacks else ()):
            later, every = self.view.having(question)
            others = scores[n, ~np.isin(scored.rows, every)] if later else np.empty(0)
            if not len(others):
                continue
            least = float(others.max()) + float(self.fusion.weights.sum())
            for place in np.flatnonzero(np.isin(scored.rows, later)).tolist():
                added = least - float(scores[n, place])
                if added > 0:
                    given[n][int(scored.rows[place])] = added
                    scores[n, place] += added
        return scores, given

    def _answerable(self, scored: Scored, scores: Floats, coverage: Floats) -> list[float | None]:
        """How likely it is of each question that any answer is right; None where that was not learnt."""
        if self.calibration is None:
            return [None] * len(scores)
        signals = signals_of(self.fusion.names, self.fusion.weights, scored.raw, scores, coverage)
        found: list[float | None] = self.calibration.answerable(signals).tolist()
        return found

    def _places_of(self, scored: Scored, question: str) -> set[int]:
        """Where entries that were judged wrong for a question stand among those that were scored."""
        names = self.judged.wrong_for(question)
        if not names:
            return set()
        rows = [row for name in names if (row := self.view.row_of(name)) is not None]
        return set(np.flatnonzero(np.isin(scored.rows, rows)).tolist())

    def _words(self, *texts: str | None) -> int:
        return sum(len(self.tokenizer(text or "")) for text in texts)

    def _by_baseline(self, question: str, top: int | None, where: Where | None, budget: CellBudget) -> Hits:
        """What a baseline finds; answers that are all equal are no answers."""
        view, wrong = self.view, self.judged.wrong_for(question)
        baseline, mask = self._baseline, view.matching(where)
        found = baseline.search(question, top=top if where is None and not wrong else None)
        if found and found[0].score == found[-1].score:
            scores = baseline.scores(question)
            if len(scores) > 1 and scores.min() == scores.max():
                return Hits()
        rows = [(hit, view.row_of(hit.id) or 0) for hit in found if hit.id not in wrong]
        kept = [(hit, row) for hit, row in rows if mask is None or mask[row]][:top]
        hits = Hits(hit._replace(columns=dict(view.entry(row).columns) or None) for hit, row in kept)
        for n, hit in enumerate(hits if budget else ()):
            if budget.allows(self._words(question), self._words(hit.text)):
                why = explanation_of(self, question, hit.text, baseline.trace(question, hit.text))
                hits[n] = hit._replace(explanation=budget.spend(why))
        return hits

    @cached_property
    def _baseline(self) -> RankingBaseline:
        """The baseline over the entries, made once."""
        from matchloom.search.baselines import BASELINES

        assert self.settings.baseline is not None
        return BASELINES[self.settings.baseline](self.view.entries(), self.tokenizer)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair of a question and an answer; higher matches better.

        A known answer, told by its text or else its id, gets its score in the ranking. Another text is scored by the
        same features as an answer without questions; classifiers, which do not know it, give it nothing.

        Args:
            pairs: Pairs of a question and a text.
            progress: Whether to show a bar.
        """
        if self.settings.baseline is not None:
            return self._baseline.score(pairs, progress=progress)
        view, reader = self.view, self.view.base.reader
        places: dict[str, list[int]] = {}
        for n, pair in enumerate(pairs):
            places.setdefault(pair.query, []).append(n)
        scores = np.zeros(len(pairs), dtype=np.float32)
        texts: dict[str, Queries] = {}
        for question, own in track(places.items(), self.name, total=len(places), show=progress):
            query = reader.read([question])
            scored = view.scored(query)[0]
            raw = np.empty((1, scored.raw.shape[1], len(own)))
            rows = [view.row_of_text(pairs[n].text, pairs[n].text_id) for n in own]
            for column, (n, row) in enumerate(zip(own, rows, strict=True)):
                if row is None:
                    text = pairs[n].text
                    if text not in texts:
                        texts[text] = reader.read([text], answers=True)
                    raw[0, :, column] = _outside(view, query, texts[text])
                else:
                    raw[0, :, column] = self._raw(view, query, scored, row)
            same = self._scores(scored, [question])[1][0]
            found = self.fusion.score(raw, scored.mean, scored.spread)[0]
            scores[own] = [
                one + same.get(-1 if row is None else row, 0.0) for one, row in zip(found.tolist(), rows, strict=True)
            ]
        return scores

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Why a text got its score: the words of the question against those of the matched question and the text.

        Args:
            query: The question.
            text: An answer, or any other text.
        """
        if self.settings.baseline is not None:
            return self._baseline.trace(query, text)
        asked = self.view.base.reader.read([query])
        scored = self.view.scored(asked)[0]
        row = self.view.row_of_text(text)
        if row is None:
            outside = self.view.base.reader.read([text], answers=True)
            features = self.view.base.features
            added = [feature.outside(asked, outside) for feature in features if feature is not None]
            compared = Compared(features, added, scored.mean[0], scored.spread[0])
            return self._traced(asked, compared, None, text)
        nearest = self.view.nearest(asked, [0], [row])[0]
        same = self._scores(scored, [query])[1][0].get(row, 0.0)
        return self._traced(asked, _compared(self.view, asked, scored, 0, row), nearest, text, same)

    def _traced(
        self, query: Queries, compared: Compared, question: str | None, text: str, same: float = 0.0
    ) -> tuple[list[str], list[str], Trace]:
        right = RightSide(question, text, self.tokenizer(question or ""), self.tokenizer(text))
        trace = trace_of(self.view.base.reader, self.fusion, compared, query, right, same)
        return list(query.words[0]), [*right.matched, *right.text_words], trace

    def _raw(self, view: View, query: Queries, scored: Scored, row: int) -> Floats:
        """What every feature says of one row, also where it is no candidate. (E,)"""
        place = np.flatnonzero(scored.rows == row)
        if len(place):
            found: Floats = scored.raw[0, :, place[0]]
            return found
        segment, own = view.find(row)
        return segment.some(query, np.array([own]))[:, 0]


def _outside(view: View, query: Queries, text: Queries) -> Floats:
    """What every feature says of a text that is not in the collection. (E,)"""
    features = view.base.features
    return np.array([np.nan if one is None else one.outside(query, text).sum() for one in features])


def _compared(view: View, query: Queries, scored: Scored, n: int, row: int) -> Compared:
    """What each feature adds to the score of a row."""
    segment, own = view.find(row)
    features, added = list(segment.features), []
    for e, feature in enumerate(features):
        entry = own
        if feature is None and view.carried[row] >= 0:
            feature, entry = view.base.features[e], int(view.carried[row])
            features[e] = feature
        added.append(np.zeros(0) if feature is None else feature.contributions(query, entry))
    return Compared(features, added, scored.mean[n], scored.spread[n])
