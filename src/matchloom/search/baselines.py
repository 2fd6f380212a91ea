"""What the ranker must be seen beside, over the same answers and with the same `rank`, `search` and `score`.

    bm25_stemmed       BM25 over stems of the question with each answer's text
    nearest_question   BM25 with each known question; an answer is as good as its best one: an archive of questions
    trans_lm           the translation-based language model of the question given each text
    linear_classifier  what one would try first: TF-IDF of words and letters, a linear SVM, one class an answer

A text outside the collection gets what the worst answer gets: none of these knows anything about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from matchloom.basics.progress import track
from matchloom.explanation import explanation_of
from matchloom.lexical.bm25_matrix import BM25Matrix
from matchloom.lexical.columns import Columns
from matchloom.lexical.statistics import is_stop_word
from matchloom.lexical.trans_lm import TransLM
from matchloom.search.entries import Answers, Floats, best_first
from matchloom.search.features.svm import LinearWeights, learn_weights
from matchloom.search.features.tfidf import WordsAndLetters
from matchloom.search.memory import known_questions
from matchloom.search.tracing import Cells, shared_cells, trace_of_cells
from matchloom.text.tokenize import Tokenizer, stem
from matchloom.types import Component, Hit, Hits, Pair, Scores, Trace


class RankingBaseline(ABC):
    """A simple ranker of answers. `scores` gives one number for each of `answers`, which are ordered by id."""

    name: str

    def __init__(self, answers: Answers, tokenizer: Tokenizer | None = None) -> None:
        self._listed = answers
        self.answers = answers.sorted()
        self.tokenizer = tokenizer or Tokenizer()

    @abstractmethod
    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""

    def rank(self, question: str, top: int | None = 10, *, explain: bool = False) -> Hits:
        """The best answers, the best first; equal scores are ordered by id. With `explain` each says why."""
        scores = self.scores(question)
        best = best_first(scores, top).tolist()
        ranked = Hits()
        for n, nearest in zip(best, self.nearest(question, best), strict=True):
            name, text, index = self.answers.ids[n], self.answers.texts[n], int(self._listed.order[n])
            why = explanation_of(self, question, text, self.trace(question, text)) if explain else None
            ranked.append(Hit(name, text, float(scores[n]), None, nearest, index, explanation=why))
        return ranked

    def nearest(self, question: str, answers: Sequence[int]) -> list[str | None]:
        """Of each of these answers, by their places, the known question that stands for it; None where none does."""
        likeness = self.likeness(question)
        found: list[str | None] = []
        for answer in answers:
            rows = self._rows_of.indices[self._rows_of.indptr[answer] : self._rows_of.indptr[answer + 1]]
            best = max(rows.tolist(), key=lambda row: likeness[row], default=None) if len(likeness) else None
            found.append(None if best is None or likeness[best] <= 0 else self.questions[best])
        return found

    def likeness(self, question: str) -> Floats:
        """How like the question each known one is; none where known questions are not looked at."""
        return np.empty(0)

    @cached_property
    def questions(self) -> list[str]:
        """The different questions of all answers."""
        return known_questions(self.answers)[0]

    @cached_property
    def _rows_of(self) -> sp.csc_array:
        return known_questions(self.answers)[1].tocsc()

    @abstractmethod
    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Why a text got its score."""

    def _traced(
        self, index: _Index, query: str, row: int | None, matched: Sequence[str], text: str
    ) -> tuple[list[str], list[str], Trace]:
        """What a row of an index says of a query, between its words and the matched ones, which come first."""
        words = self.tokenizer(query)
        told = [*matched, *(self.tokenizer(text) if index.texts is not self.answers.texts else ())]
        stems, theirs = [stem(word) for word in words], [stem(word) for word in matched]
        cells: Cells = {}
        for one, value in ({} if row is None else index.parts(query, row)).items():
            here, there = ([n for n, other in enumerate(side) if other == one] for side in (stems, theirs))
            cells |= {(i, j): value / (len(here) * len(there)) for i in here for j in there}
        score = float(self.score([Pair(query, text)])[0])
        outside = self.answers.find(text) is None
        rest = Component("a text outside the collection", score, score if outside else 0.0)
        return words, told, trace_of_cells(score, cells, [rest], (len(words), len(told)), self.name)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair of a question and an answer."""
        places: dict[str, list[int]] = {}
        for n, pair in enumerate(pairs):
            places.setdefault(pair.query, []).append(n)
        scores = np.zeros(len(pairs), dtype=np.float32)
        for question, own in track(places.items(), self.name, total=len(places), show=progress):
            found = self.scores(question)
            for n in own:
                known = self.answers.find(pairs[n].text, pairs[n].text_id)
                scores[n] = found.min() if known is None else found[known]
        return scores


class StemmedBM25(RankingBaseline):
    """BM25 over stems, without English function words, of the question with each answer's text."""

    name = "bm25_stemmed"

    def __init__(self, answers: Answers, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(answers, tokenizer)
        self._index = _Index(self.answers.texts, self.tokenizer)

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        return self._index.scores(question)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The stems that the question shares with the text."""
        row, told = self.answers.find(text), self.tokenizer(text)
        return self._traced(self._index, query, row, told, text)


class NearestQuestion(RankingBaseline):
    """BM25 over stems of the question with each known question; the best one stands for its answer."""

    name = "nearest_question"

    def __init__(self, answers: Answers, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(answers, tokenizer)
        self._index = _Index(self.questions, self.tokenizer)
        self._rows, self._columns = known_questions(self.answers)[1].nonzero()

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        scores = np.zeros(len(self.answers))
        np.maximum.at(scores, self._columns, self.likeness(question)[self._rows])
        return scores

    def likeness(self, question: str) -> Floats:
        """BM25 of each known question."""
        return self._index.scores(question)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The stems that the question shares with the known one that stands for the text, which comes first."""
        answer = self.answers.find(text)
        nearest = None if answer is None else self.nearest(query, [answer])[0]
        row = None if nearest is None else self.questions.index(nearest)
        return self._traced(self._index, query, row, self.tokenizer(nearest or ""), text)


class TransLMRanker(RankingBaseline):
    """`matchloom.lexical.TransLM` as it is, learnt from the known questions, of the question given each text."""

    name = "trans_lm"

    def __init__(self, answers: Answers, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(answers, tokenizer)
        pairs = [
            Pair(question, text)
            for text, own in zip(self.answers.texts, self.answers.questions, strict=True)
            for question in own
        ]
        self._model = TransLM.fit(self.answers.texts, pairs, tokenizer=self.tokenizer)

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        return self._model.score([Pair(question, text) for text in self.answers.texts]).astype(np.float64)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Which words of the text speak for each word of the query."""
        return self._model.trace(query, text)


class LinearClassifier(RankingBaseline):
    """scikit-learn's LinearSVC on TF-IDF of words and of letters (2 to 4 within words), one class an answer.

    Examples are the known questions and the texts of the answers, so that every answer is a class.
    """

    name = "linear_classifier"

    def __init__(self, answers: Answers, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(answers, tokenizer)
        examples = [*self.answers.texts]
        classes = list(range(len(self.answers)))
        for n, own in enumerate(self.answers.questions):
            examples += own
            classes += [n] * len(own)
        self._seen = WordsAndLetters(examples, self.tokenizer)
        self._asked = Columns(self._seen.vectors(self.questions))
        size = (self._seen.size, len(self.answers))
        self._weights = (
            learn_weights(self._seen.vectors(examples), np.array(classes))
            if min(size) > 0 and len(self.answers) > 1
            else LinearWeights(np.zeros(size, dtype=np.float32), np.zeros(len(self.answers), dtype=np.float32))
        )

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        return self._weights.scores(*self._seen.read(question))

    def likeness(self, question: str) -> Floats:
        """The cosine of each known question, over words and letters: it helped to learn, and is shown for it."""
        return self._asked.dot(*self._seen.read(question))

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """What each word and run of letters of the question adds: its weight for this answer times its value.

        Those that the nearest known question or the text have are signals between words; all others, which the machine
        knows from elsewhere, are one component, and what the answer has before anything is asked another.
        """
        answer = self.answers.find(text)
        score = float(self.score([Pair(query, text)])[0])
        matched = self.tokenizer((None if answer is None else self.nearest(query, [answer])[0]) or "")
        words, told = self.tokenizer(query), [*matched, *self.tokenizer(text)]
        if answer is None:
            rest = [Component("a text outside the collection", score, score)]
            return words, told, trace_of_cells(score, {}, rest, (len(words), len(told)), self.name)
        features, values = self._seen.read(query)
        *added, bias = self._weights.parts(features, values, answer).tolist()
        cells, elsewhere = shared_cells(features, np.array(added), self._seen.places(words), self._seen.places(told))
        rest = [Component("words elsewhere", elsewhere, elsewhere), Component("to begin with", bias, bias)]
        return words, told, trace_of_cells(score, cells, rest, (len(words), len(told)), self.name)


BASELINES: dict[str, type[RankingBaseline]] = {
    baseline.name: baseline for baseline in (StemmedBM25, NearestQuestion, TransLMRanker, LinearClassifier)
}


class _Index:
    """BM25 of a question with each of some texts."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        self.texts = texts
        self._tokenizer = tokenizer
        self._stems: dict[str, int] = {}
        rows: list[int] = []
        columns: list[int] = []
        for n, text in enumerate(texts):
            for word in self._terms(text):
                rows.append(n)
                columns.append(self._stems.setdefault(word, len(self._stems)))
        shape = (len(texts), len(self._stems))
        counts = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        counts.sum_duplicates()
        self._matrix = BM25Matrix(counts)

    def scores(self, question: str) -> Floats:
        """One score for each text."""
        terms = [self._stems[word] for word in self._terms(question) if word in self._stems]
        return self._matrix.scores(np.array(terms, dtype=np.int64), np.ones(len(terms)))

    def parts(self, question: str, text: int) -> dict[str, float]:
        """What each stem of the question adds to the score of one text."""
        times = Counter(word for word in self._terms(question) if word in self._stems)
        terms = np.array([self._stems[word] for word in times], dtype=np.int64)
        added = self._matrix.contributions(terms, np.array(list(times.values()), dtype=np.float64), text)
        return {word: value for word, value in zip(times, added.tolist(), strict=True) if value}

    def _terms(self, text: str) -> Iterable[str]:
        return (stem(word) for word in self._tokenizer(text) if not is_stop_word(word))
