"""What a fitted collection must be seen beside, over the same entries and with the same `search` and `score`.

    bm25_stemmed       BM25 over stems of the question with each answer's text
    nearest_question   BM25 with each known question; an answer is as good as its best one: an archive of questions
    trans_lm           the translation-based language model of the question given each text
    linear_classifier  what one would try first: TF-IDF of words and n-grams, a linear SVM, one class an answer

A text outside the collection gets what the worst answer gets: none of these knows anything about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import overload

import numpy as np
import scipy.sparse as sp

from matchloom.basics.progress import track
from matchloom.explanation import explanation_of
from matchloom.lexical.bm25_matrix import BM25Matrix
from matchloom.lexical.columns import Columns, Floats, Sparse
from matchloom.lexical.ibm_model1 import Bags
from matchloom.lexical.statistics import is_stop_word
from matchloom.lexical.trans_lm import TransLM
from matchloom.search.entries import Entries, best_first
from matchloom.search.features.linear import examples_of, machine_of
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.tracing import Cells, shared_cells, trace_of_cells
from matchloom.text.tokenize import Tokenizer, stem
from matchloom.text.tokenize import stems as stems_of
from matchloom.types import Component, Hit, Hits, Pair, Scores, Trace

_TOGETHER = 500  # questions


class RankingBaseline(ABC):
    """A simple ranker of answers. `scores` gives one number for each of `answers`, which are ordered by id."""

    name: str

    def __init__(self, entries: Entries, tokenizer: Tokenizer | None = None) -> None:
        self.entries = entries
        self.tokenizer: Tokenizer = tokenizer or Tokenizer()

    @abstractmethod
    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""

    @overload
    def search(  # type: ignore[overload-overlap]  # a text is many letters too
        self, question: str, *, top: int | None = 10, explain: bool = False
    ) -> Hits: ...

    @overload
    def search(self, question: Iterable[str], *, top: int | None = 10, explain: bool = False) -> list[Hits]: ...

    def search(
        self, question: str | Iterable[str], *, top: int | None = 10, explain: bool = False
    ) -> Hits | list[Hits]:
        """The best answers, the best first; equal scores are ordered by id. With `explain` each says why."""
        asked = [question] if isinstance(question, str) else list(question)
        scores = zip(asked, self.scores_of_many(asked), strict=True)
        found = [self._ranked(one, own, top, explain) for one, own in scores]
        return found[0] if isinstance(question, str) else found

    def scores_of_many(self, questions: Sequence[str]) -> Iterable[Floats]:
        """The scores of each question in turn."""
        return (self.scores(question) for question in questions)

    def best(self, questions: Sequence[str], top: int) -> list[list[str]]:
        """The ids of the best answers to each question, as `search` has them."""
        ids = self.entries.ids
        return [[ids[n] for n in best_first(own, top).tolist()] for own in self.scores_of_many(questions)]

    def _ranked(self, question: str, scores: Floats, top: int | None, explain: bool) -> Hits:
        best = best_first(scores, top).tolist()
        ranked = Hits()
        for n, nearest in zip(best, self.nearest(question, best), strict=True):
            name, text = self.entries.ids[n], self.entries.texts[n]
            why = explanation_of(self, question, text, self.trace(question, text)) if explain else None
            ranked.append(Hit(name, text, float(scores[n]), None, nearest, n, explanation=why))
        return ranked

    def nearest(self, question: str, answers: Sequence[int]) -> list[str | None]:
        """Of each of these answers, by their places, the known question that stands for it; None where none does."""
        similarity = self.similarity(question)
        found: list[str | None] = [None] * len(answers)
        if not len(similarity):
            return found
        all_rows, bounds = self._rows_of.indices, self._rows_of.indptr.tolist()
        for n, answer in enumerate(answers):
            rows = all_rows[bounds[answer] : bounds[answer + 1]]
            if len(rows):
                best = int(rows[similarity[rows].argmax()])
                found[n] = self.questions[best] if similarity[best] > 0 else None
        return found

    def similarity(self, question: str) -> Floats:
        """How similar to the question each known one is; none where known questions are not looked at."""
        return np.empty(0)

    @cached_property
    def questions(self) -> list[str]:
        """The different questions of all answers."""
        return self._known[0]

    @cached_property
    def _rows_of(self) -> sp.csc_array:
        return self._known[1].tocsc()

    @cached_property
    def _known(self) -> tuple[list[str], sp.csr_array]:
        return self.entries.known

    @abstractmethod
    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Why a text got its score."""

    def _traced(
        self, index: _Index, query: str, row: int | None, matched: Sequence[str], text: str
    ) -> tuple[list[str], list[str], Trace]:
        """What a row of an index says of a query, between its words and the matched ones, which come first."""
        words = self.tokenizer(query)
        text_words = [*matched, *(self.tokenizer(text) if index.texts is not self.entries.texts else ())]
        language = self.tokenizer.language
        stems, theirs = stems_of(words, language), stems_of(matched, language)
        cells: Cells = {}
        for one, value in ({} if row is None else index.parts(query, row)).items():
            here, there = ([n for n, other in enumerate(side) if other == one] for side in (stems, theirs))
            cells |= {(i, j): value / (len(here) * len(there)) for i in here for j in there}
        score = float(self.score([Pair(query, text)])[0])
        outside = self.entries.find(text) is None
        rest = Component("a text outside the collection", score, score if outside else 0.0)
        return words, text_words, trace_of_cells(score, cells, [rest], (len(words), len(text_words)), self.name)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair of a question and an answer."""
        places: dict[str, list[int]] = {}
        for n, pair in enumerate(pairs):
            places.setdefault(pair.query, []).append(n)
        scores = np.zeros(len(pairs), dtype=np.float32)
        for question, own in track(places.items(), self.name, total=len(places), show=progress):
            found = self.scores(question)
            for n in own:
                known = self.entries.find(pairs[n].text, pairs[n].text_id)
                scores[n] = found.min() if known is None else found[known]
        return scores


class StemmedBM25(RankingBaseline):
    """BM25 over stems, without English function words, of the question with each answer's text."""

    name = "bm25_stemmed"

    def __init__(self, entries: Entries, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(entries, tokenizer)
        self._index = _Index(self.entries.texts, self.tokenizer)

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        return self._index.scores(question)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The stems that the question shares with the text."""
        row, text_words = self.entries.find(text), self.tokenizer(text)
        return self._traced(self._index, query, row, text_words, text)


class NearestQuestion(RankingBaseline):
    """BM25 over stems of the question with each known question; the best one stands for its answer."""

    name = "nearest_question"

    def __init__(self, entries: Entries, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(entries, tokenizer)
        self._index = _Index(self.questions, self.tokenizer)
        self._rows, self._columns = self._known[1].nonzero()

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        scores = np.zeros(len(self.entries))
        np.maximum.at(scores, self._columns, self.similarity(question)[self._rows])
        return scores

    def similarity(self, question: str) -> Floats:
        """BM25 of each known question."""
        return self._index.scores(question)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The stems that the question shares with the known one that stands for the text, which comes first."""
        answer = self.entries.find(text)
        nearest = None if answer is None else self.nearest(query, [answer])[0]
        row = None if nearest is None else self.questions.index(nearest)
        return self._traced(self._index, query, row, self.tokenizer(nearest or ""), text)


class TransLMRanker(RankingBaseline):
    """`matchloom.lexical.TransLM` as it is, learnt from the known questions, of the question given each text."""

    name = "trans_lm"

    def __init__(self, entries: Entries, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(entries, tokenizer)
        pairs = [
            Pair(question, text)
            for text, own in zip(self.entries.texts, self.entries.questions, strict=True)
            for question in own
        ]
        self._model = TransLM.fit(self.entries.texts, pairs, tokenizer=self.tokenizer)

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        return next(iter(self.scores_of_many([question])))

    def scores_of_many(self, questions: Sequence[str]) -> Iterable[Floats]:
        """The scores of each question in turn; some are scored together, so that a word of several is scored once."""
        for n in range(0, len(questions), _TOGETHER):
            yield from self._model.score_all(questions[n : n + _TOGETHER], self._bags)

    @cached_property
    def _bags(self) -> Bags:
        return self._model.bags(self.entries.texts)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Which words of the text speak for each word of the query."""
        return self._model.trace(query, text)


class LinearClassifier(RankingBaseline):
    """scikit-learn's LinearSVC on TF-IDF of words and of n-grams (2 to 4 characters within words), one class an answer.

    Examples are the known questions and the texts of the answers, so that every answer is a class.
    """

    name = "linear_classifier"

    def __init__(self, entries: Entries, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(entries, tokenizer)
        examples = [*self.questions, *self.entries.texts]
        words = [self.tokenizer(text) for text in examples]
        self._seen = TfIdf.fit(examples, words)
        vectors = self._seen.matrix(examples, words)
        self._asked = Columns(vectors[: len(self.questions)])
        rows, classes = examples_of(self._known[1])
        self._weights = machine_of(vectors[rows], classes)

    def _read(self, *texts: str) -> Sparse:
        return self._seen.read(texts, [self.tokenizer(text) for text in texts])

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        found: Floats = self._weights.scores(self._read(question))[0]
        return found

    def similarity(self, question: str) -> Floats:
        """The cosine of each known question, over words and n-grams: it helped to learn, and is shown for it."""
        return self._asked.dot(*self._read(question)[0])

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """What each word and n-gram of the question adds: its weight for this answer times its value.

        Those that the nearest known question or the text have are signals between words; all others, which the machine
        knows from elsewhere, are one component, and what the answer has before anything is asked another.
        """
        answer = self.entries.find(text)
        score = float(self.score([Pair(query, text)])[0])
        matched = self.tokenizer((None if answer is None else self.nearest(query, [answer])[0]) or "")
        words, text_words = self.tokenizer(query), [*matched, *self.tokenizer(text)]
        if answer is None:
            rest = [Component("a text outside the collection", score, score)]
            return words, text_words, trace_of_cells(score, {}, rest, (len(words), len(text_words)), self.name)
        features, values = self._read(query)[0]
        *added, bias = self._weights.parts(features, values, answer).tolist()
        cells, elsewhere = shared_cells(
            features, np.array(added), self._seen.positions(words), self._seen.positions(text_words)
        )
        rest = [Component("words elsewhere", elsewhere, elsewhere), Component("to begin with", bias, bias)]
        return words, text_words, trace_of_cells(score, cells, rest, (len(words), len(text_words)), self.name)


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
        language = self._tokenizer.language
        words = self._tokenizer(text)
        return (stem(word, language) for word in words if not is_stop_word(word, language))
