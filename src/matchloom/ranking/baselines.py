"""What the ranker must be seen beside, over the same answers and with the same `rank`, `search` and `score`.

    bm25_stemmed       BM25 over stems of the question with each answer's text
    nearest_question   BM25 with each known question; an answer is as good as its best one: an archive of questions
    trans_lm           the translation-based language model of the question given each text
    linear_classifier  what one would try first: TF-IDF of words and letters, a linear SVM, one class an answer

A text outside the collection gets what the worst answer gets: none of these knows anything about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from matchloom.lexical.bm25 import BM25
from matchloom.lexical.collection import is_stop_word
from matchloom.lexical.trans_lm import TransLM
from matchloom.progress import track
from matchloom.ranking.answers import Answers, Floats, RankedAnswer, best_first
from matchloom.ranking.bm25 import Statistics
from matchloom.ranking.collection import known_questions
from matchloom.ranking.columns import Columns
from matchloom.text.tokenize import Tokenizer, stem
from matchloom.types import Pair, Scores, Trace


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

    def rank(self, question: str, top: int | None = 10) -> list[RankedAnswer]:
        """The best answers, the best first; equal scores are ordered by id."""
        scores = self.scores(question)
        ranked = []
        for n in best_first(scores, top).tolist():
            name, text, index = self.answers.ids[n], self.answers.texts[n], int(self._listed.order[n])
            ranked.append(RankedAnswer(name, text, float(scores[n]), None, None, index))
        return ranked

    def search(
        self, questions: Sequence[str], top: int | None = 10, *, progress: bool = False
    ) -> list[list[RankedAnswer]]:
        """`rank` for many questions."""
        return [self.rank(question, top) for question in track(questions, self.name, show=progress)]

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
        """The words that met, as `matchloom.lexical.BM25` tells them, on the scale of `scores`."""
        bm25 = BM25.fit(self.answers.texts, tokenizer=self.tokenizer, stem=True, stop_words=True)
        left, right, trace = bm25.trace(query, text)
        score = float(self.score([Pair(query, text)])[0])
        scale = score / trace.score if trace.score else 0.0
        signals = [signal._replace(contribution=scale * signal.contribution) for signal in trace.signals]
        residual = score - sum(signal.contribution for signal in signals)
        return left, right, trace._replace(score=score, signals=signals, residual=residual)


class NearestQuestion(RankingBaseline):
    """BM25 over stems of the question with each known question; the best one stands for its answer."""

    name = "nearest_question"

    def __init__(self, answers: Answers, tokenizer: Tokenizer | None = None) -> None:
        super().__init__(answers, tokenizer)
        questions, member = known_questions(self.answers)
        self._index = _Index(questions, self.tokenizer)
        self._rows, self._columns = member.nonzero()

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        scores = np.zeros(len(self.answers))
        np.maximum.at(scores, self._columns, self._index.scores(question)[self._rows])
        return scores


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
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.svm import LinearSVC

        examples = [*self.answers.texts]
        classes = list(range(len(self.answers)))
        for n, own in enumerate(self.answers.questions):
            examples += own
            classes += [n] * len(own)
        self._vectorizers = [
            TfidfVectorizer(analyzer=self.tokenizer, sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True),
        ]
        vectors = sp.hstack([one.fit_transform(examples) for one in self._vectorizers], format="csr")
        self._svm = LinearSVC(random_state=0).fit(vectors, classes) if len(self.answers) > 1 else None

    def scores(self, question: str) -> Floats:
        """The score of each answer, by id."""
        if self._svm is None:
            return np.zeros(1)
        vector = sp.hstack([one.transform([question]) for one in self._vectorizers], format="csr")
        found = np.asarray(self._svm.decision_function(vector), dtype=np.float64).ravel()
        return np.array([-found[0], found[0]]) if len(found) == 1 else found


BASELINES: dict[str, type[RankingBaseline]] = {
    baseline.name: baseline for baseline in (StemmedBM25, NearestQuestion, TransLMRanker, LinearClassifier)
}


class _Index:
    """BM25 of a question with each of some texts."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
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
        statistics = Statistics.of(counts)
        lengths = np.asarray(counts.sum(axis=1)).ravel()[np.repeat(np.arange(len(texts)), np.diff(counts.indptr))]
        counts.data = statistics.weight(counts.data, lengths) * statistics.idf[counts.indices]
        self._weights = Columns(counts)

    def scores(self, question: str) -> Floats:
        """One score for each text."""
        terms = sorted({self._stems[word] for word in self._terms(question) if word in self._stems})
        return self._weights.dot(np.array(terms, dtype=np.int64), np.ones(len(terms)))

    def _terms(self, text: str) -> Iterable[str]:
        return (stem(word) for word in self._tokenizer(text) if not is_stop_word(word))
