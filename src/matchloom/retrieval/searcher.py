"""How a question is answered from one version of an archive: candidates, their mixed scores, and why.

A new question t is compared with every candidate (q, a) of the archive by the mixture of Qiu and Huang (IJCAI 2015):

    score = alpha * v_t . v_q + (1 - alpha) * s(t, a)

Candidates come from two sides, the full-text index over the words of question and answer, and the vectors (see
candidate_direction.py); they are taken in turns, best first, up to `candidates` in all. Each part can be replaced:

    the archive's matcher           v_t . v_q                       s(t, a)
    has sentence vectors (CNTN)     from the stored vectors         from the stored vectors
    has none (MV-LSTM, Match-SRNN)  BM25 share of t with q          by the matcher, at every search
    there is none                   BM25 share of t with q          BM25 share of t with a
    `rerank` is given               as above                        by that scorer, at every search

v_t and v_q have a length of one: CNTN's do anyway, and those of other models must not bring long questions up. Both
are mixed as they are, without a scale between them: alpha is what makes up for it, and `tune` finds it. A BM25 share is
BM25 of stems over what the question scores with itself (see normalized_bm25.py).
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from matchloom.explanation import Explanation, mixed_explanation, term_of
from matchloom.retrieval.candidate_direction import CandidateDirection
from matchloom.retrieval.normalized_bm25 import NormalizedBM25, asked
from matchloom.retrieval.similarity import SentenceSimilarity
from matchloom.retrieval.snapshot import Gathered, Snapshot
from matchloom.retrieval.store import TEXTS, VECTORS, RowIds, Vectors, unit, vectors_of
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scorer, Scores

SAMPLE = 20_000  # pairs in which words are counted


class Answer(NamedTuple):
    """An archived pair that was found: its score, and the two parts that it is mixed from."""

    id: str
    question: str
    answer: str
    score: float
    similarity: float  # of the new question and this one
    match: float  # of the new question and this answer
    explanation: Explanation | None = None  # of `score`


class MixtureScores(NamedTuple):
    """Similarity and match of some rows, not mixed yet, and what made either and may say why."""

    similarity: Scores
    match: Scores
    of_question: NormalizedBM25 | SentenceSimilarity
    of_answer: Scorer


class Searcher:
    """It knows no archive, only the snapshots it is given; what it counted in one serves the next until it is old."""

    def __init__(self) -> None:
        # Each in one place: several threads may search.
        self._counted: Gathered[tuple[NormalizedBM25, NormalizedBM25]] | None = None
        self._sampled: Gathered[CandidateDirection] | None = None

    def search(
        self,
        snapshot: Snapshot,
        question: str,
        *,
        top: int,
        candidates: int,
        alpha: float,
        rerank: Scorer | None,
        explain: bool,
    ) -> list[Answer]:
        """The best of the candidates; see `QuestionIndex.search`."""
        vector = snapshot.vector(question)
        rows = self.candidates(snapshot, question, vector, candidates, alpha)
        if not rows:
            return []
        found = self.mixture(snapshot, question, vector, rows, rerank)
        scores = alpha * found.similarity + (1 - alpha) * found.match
        if not np.isfinite(scores).all():
            raise MatchloomError(f"{found.of_answer.name} gave a score that is no number; rerank by another scorer")
        last = np.partition(scores, -min(top, len(rows)))[-min(top, len(rows))]
        first = np.flatnonzero(scores >= last)  # only what is shown is read and sorted
        shown = snapshot.store.take([rows[n] for n in first], TEXTS).to_pylist()
        answers = []
        for n, row in zip(first.tolist(), shown, strict=True):
            parts = (float(scores[n]), float(found.similarity[n]), float(found.match[n]))
            answers.append(Answer(row["id"], row["question"], row["answer"], *parts))
        answers = sorted(answers, key=lambda answer: (-answer.score, answer.id))[:top]
        if explain:
            words = snapshot.manifest.tokenizer
            answers = [one._replace(explanation=_explanation(found, question, one, alpha, words)) for one in answers]
        return answers

    def candidates(self, snapshot: Snapshot, question: str, vector: Vectors | None, count: int, alpha: float) -> RowIds:
        """The rows worth a full score with this alpha: by words and by vectors in turns, the best of each first."""
        towards = None
        if snapshot.matcher is not None and vector is not None:
            towards = self._direction(snapshot).towards(snapshot.matcher, vector, alpha)
        by_words, by_vector = snapshot.store.nearest(asked(snapshot.manifest.tokenizer(question)), towards, count)
        turns = chain.from_iterable(zip_longest(by_vector, by_words))
        return list(dict.fromkeys(row for row in turns if row is not None))[:count]

    def mixture(
        self, snapshot: Snapshot, question: str, vector: Vectors | None, rows: RowIds, rerank: Scorer | None = None
    ) -> MixtureScores:
        """Similarity and match of these rows."""
        if snapshot.matcher is None or vector is None:
            of_question, of_answer = self._counts(snapshot)
            scorer = rerank or snapshot.matcher or of_answer
            taken = snapshot.store.take(rows, ["question", "answer"])
            similarity = of_question.score([Pair(question, other) for other in taken["question"].to_pylist()])
            return MixtureScores(similarity, _scores(scorer, question, taken), of_question, scorer)
        taken = snapshot.store.take(rows, [VECTORS] if rerank is None else [VECTORS, "answer"])
        v_q, v_a = vectors_of(taken)
        match = snapshot.matcher.match_vectors(vector, v_a) if rerank is None else _scores(rerank, question, taken)
        similarity = v_q @ unit(vector)
        return MixtureScores(similarity, match, SentenceSimilarity(snapshot.matcher), rerank or snapshot.matcher)

    def _counts(self, snapshot: Snapshot) -> tuple[NormalizedBM25, NormalizedBM25]:
        """BM25 over the archive's questions and over its answers."""
        counted = self._counted  # other threads may replace it
        if counted is None or counted.stale(snapshot.manifest):
            found = snapshot.store.sample(("question", "answer"), SAMPLE)
            sides = [found[name].to_pylist() or [""] for name in ("question", "answer")]
            questions, answers = (NormalizedBM25.fit(texts, snapshot.manifest.tokenizer) for texts in sides)
            self._counted = counted = Gathered((questions, answers), snapshot)
        return counted.value

    def _direction(self, snapshot: Snapshot) -> CandidateDirection:
        """What the answer vectors of this table look like."""
        sampled = self._sampled
        if sampled is None or sampled.stale(snapshot.manifest):
            _, answers = vectors_of(snapshot.store.sample([VECTORS], CandidateDirection.SAMPLE))
            self._sampled = sampled = Gathered(CandidateDirection(answers), snapshot)
        return sampled.value


def _explanation(found: MixtureScores, question: str, one: Answer, alpha: float, words: Tokenizer) -> Explanation:
    """Why an answer got its mixed score: both terms, by the words of the archived question and of its answer."""
    terms = [
        term_of("question", alpha, found.of_question, question, one.question, one.similarity, words),
        term_of("answer", 1 - alpha, found.of_answer, question, one.answer, one.match, words),
    ]
    name = f"{alpha:.4g} * {found.of_question.name} + {1 - alpha:.4g} * {found.of_answer.name}"
    return mixed_explanation(name, terms, one.score)


def _scores(scorer: Scorer, question: str, taken: pa.Table) -> Scores:
    return scorer.score([Pair(question, answer) for answer in taken["answer"].to_pylist()])
