"""How a question is answered from one version of an archive: candidates, their mixed scores, and why.

A new question t is compared with every candidate (q, a) of the archive by the mixture of Qiu and Huang (IJCAI 2015):

    score = alpha * v_t . v_q + (1 - alpha) * s(t, a)

Candidates come from two sides, the full-text index over the words of question and answer, and the vectors (see
candidate_direction.py; of a late interaction, the means of positions); they are taken in turns, best first, up to
`candidates` in all. Each part can be replaced:

    the archive's matcher           v_t . v_q                       s(t, a)
    has sentence vectors (CNTN)     from the stored vectors         from the stored vectors
    is a late interaction           s(t, q), stored positions       from the stored positions
    has none (MV-LSTM, Match-SRNN)  BM25 share of t with q          by the matcher, at every search
    there is none                   BM25 share of t with q          BM25 share of t with a
    `rerank` is given               as above                        by that scorer, at every search

An answer may have many questions, a row each. It is found once, with the question that scores highest: as the match of
all its rows is the same, that is the most similar one.

v_t and v_q have a length of one: CNTN's do anyway, and those of other models must not bring long questions up. Both
are mixed as they are, without a scale between them: alpha is what makes up for it, and `tune` finds it. A BM25 share is
BM25 of stems over what the question scores with itself (`normalize` of `matchloom.lexical.bm25`).

Words count by their stems, and English function words not at all: on SemEval-2016 3B, a whole archive searched, average
precision was .48 so and .39 with plain words (docs/results.md). The full-text index holds the stems of all words and is
asked for those that count: what function words find is half of the archive, and slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matchloom.basics.memory import Piles
from matchloom.explanation import Explanation, mixed_explanation, term_of
from matchloom.explanation.budget import CellBudget
from matchloom.lexical import BM25
from matchloom.lexical.statistics import is_stop_word
from matchloom.matcher import Matcher, Positions
from matchloom.search.lance.connection import doctor
from matchloom.search.lance.direction import CandidateDirection
from matchloom.search.lance.positions import positions_of
from matchloom.search.lance.similarity import SentenceSimilarity
from matchloom.search.lance.snapshot import Asked, Gathered, Snapshot
from matchloom.search.lance.table import POSITIONS, SAME, TEXTS, VECTORS, RowIds, unit, vectors_of
from matchloom.text.tokenize import Tokenizer, stems
from matchloom.types import Hit, Hits, MatchloomError, Pair, Scorer, Scores

SAMPLE = 20_000  # pairs in which words are counted
_PILE = 256 << 20  # bytes of freed memory that are kept for the next searches


class MixtureScores(NamedTuple):
    """Similarity and match of some rows, not mixed yet, whose answer each has, and what made either and may say why."""

    similarity: Scores
    match: Scores
    answers: list[str]  # equal where the answer is the same
    of_question: BM25 | SentenceSimilarity | Matcher
    of_answer: Scorer


class Searcher:
    """It knows no archive, only the snapshots it is given; what it counted in one serves the next until it is old."""

    def __init__(self) -> None:
        # Each in one place: several threads may search.
        self._counted: Gathered[tuple[BM25, BM25]] | None = None
        self._sampled: Gathered[CandidateDirection] | None = None
        self._piles = Piles(_PILE)

    def search(
        self,
        snapshot: Snapshot,
        question: str,
        *,
        top: int,
        candidates: int,
        alpha: float,
        rerank: Scorer | None,
        explain: bool | int,
    ) -> Hits:
        """The best of the candidates; see `LanceCollection.search`."""
        self._piles.look()  # what earlier searches read of a large archive is not all freed where this one looks
        asked = snapshot.asked(question)
        while True:
            rows = self.candidates(snapshot, asked, candidates, alpha)
            if not rows:
                return Hits()
            found = self.mixture(snapshot, asked, rows, rerank)
            if len({*found.answers}) >= top or len(rows) < candidates:
                break
            candidates *= 4  # questions of few answers have taken all places
        scores = alpha * found.similarity + (1 - alpha) * found.match
        if not np.isfinite(scores).all():
            raise MatchloomError(f"{found.of_answer.name} gave a score that is no number; rerank by another scorer")
        answer_of, best = best_of_answers(scores, found.answers)
        last = np.partition(best, -min(top, len(best)))[-min(top, len(best))]
        # Only what is shown is read and sorted.
        first = np.flatnonzero((scores >= last) & (scores == best[answer_of]))
        shown = snapshot.store.take([rows[n] for n in first], TEXTS).to_pylist()
        once: dict[int, Hit] = {}
        for n, row in sorted(zip(first.tolist(), shown, strict=True), key=lambda item: str(item[1]["key"])):
            similarity, match = float(found.similarity[n]), float(found.match[n])
            hit = Hit(
                row["id"], row["answer"], float(scores[n]), question=row["question"], similarity=similarity, match=match
            )
            once.setdefault(int(answer_of[n]), hit)
        hits = sorted(once.values(), key=lambda hit: (-hit.score, hit.id))[:top]
        words, budget = snapshot.manifest.tokenizer, CellBudget(explain)
        for n, one in enumerate(hits if budget else ()):
            if budget.allows(len(words(question)), len(words(one.question or "")) + len(words(one.text))):
                hits[n] = one._replace(explanation=budget.spend(_explanation(found, question, one, alpha, words)))
        return Hits(hits)

    def candidates(self, snapshot: Snapshot, asked: Asked, count: int, alpha: float) -> RowIds:
        """The rows worth a full score with this alpha: by words and by vectors in turns, the best of each first."""
        towards, vector = None, asked.vector
        if asked.positions is not None and vector is not None:
            towards = np.concatenate([alpha * vector, (1 - alpha) * vector])
        elif snapshot.matcher is not None and vector is not None:
            towards = self._direction(snapshot).towards(snapshot.matcher, vector, alpha)
        words = content_stems(asked.text, snapshot.manifest.tokenizer)
        by_words, by_vector = snapshot.store.nearest(words, towards, count)
        turns = chain.from_iterable(zip_longest(by_vector, by_words))
        return list(dict.fromkeys(row for row in turns if row is not None))[:count]

    def mixture(self, snapshot: Snapshot, asked: Asked, rows: RowIds, rerank: Scorer | None = None) -> MixtureScores:
        """Similarity and match of these rows."""
        question, vector, positions = asked
        if snapshot.matcher is not None and positions is not None:
            return _by_positions(snapshot, snapshot.matcher, question, positions, rows, rerank)
        if snapshot.matcher is None or vector is None:
            of_question, of_answer = self._counts(snapshot)
            scorer = rerank or snapshot.matcher or of_answer
            taken = snapshot.store.take(rows, ["question", "answer", SAME])
            similarity = of_question.score([Pair(question, other) for other in taken["question"].to_pylist()])
            return MixtureScores(similarity, _scores(scorer, question, taken), _same(taken), of_question, scorer)
        taken = snapshot.store.take(rows, [VECTORS, SAME] if rerank is None else [VECTORS, SAME, "answer"])
        v_q, v_a = vectors_of(taken)
        match = snapshot.matcher.match_vectors(vector, v_a) if rerank is None else _scores(rerank, question, taken)
        similarity = v_q @ unit(vector)
        by_vectors = SentenceSimilarity(snapshot.matcher)
        return MixtureScores(similarity, match, _same(taken), by_vectors, rerank or snapshot.matcher)

    def _counts(self, snapshot: Snapshot) -> tuple[BM25, BM25]:
        """BM25 over the archive's questions and over its answers."""
        counted = self._counted  # other threads may replace it
        if counted is None or counted.stale(snapshot.manifest):
            found = snapshot.store.sample(("question", "answer"), SAMPLE)
            sides = [found[name].to_pylist() or [""] for name in ("question", "answer")]
            questions, answers = (_bm25(texts, snapshot.manifest.tokenizer) for texts in sides)
            self._counted = counted = Gathered((questions, answers), snapshot)
        return counted.value

    def _direction(self, snapshot: Snapshot) -> CandidateDirection:
        """What the answer vectors of this table look like."""
        sampled = self._sampled
        if sampled is None or sampled.stale(snapshot.manifest):
            _, answers = vectors_of(snapshot.store.sample([VECTORS], CandidateDirection.SAMPLE))
            self._sampled = sampled = Gathered(CandidateDirection(answers), snapshot)
        return sampled.value


def _explanation(found: MixtureScores, question: str, one: Hit, alpha: float, words: Tokenizer) -> Explanation:
    """Why an answer got its mixed score: both terms, by the words of the archived question and of its answer."""
    assert one.similarity is not None  # it is what the score was mixed from, and so is `match`
    assert one.match is not None
    terms = [
        term_of("question", alpha, found.of_question, question, one.question or "", one.similarity, words),
        term_of("answer", 1 - alpha, found.of_answer, question, one.text, one.match, words),
    ]
    name = f"{alpha:.4g} * {found.of_question.name} + {1 - alpha:.4g} * {found.of_answer.name}"
    return mixed_explanation(name, terms, one.score)


def best_of_answers(scores: Scores, answers: Sequence[str]) -> tuple[NDArray[np.int64], Scores]:
    """Which of the different answers each row has, in the order of their names, and the best score of each answer.

    >>> [side.tolist() for side in best_of_answers(np.float32([3, 1, 4, 1]), ["a", "b", "a", "b"])]
    [[0, 1, 0, 1], [4.0, 1.0]]
    """
    names, answer_of = np.unique(np.array(answers, dtype=str), return_inverse=True)
    best = np.full(len(names), -np.inf, scores.dtype)
    np.maximum.at(best, answer_of, scores)
    return answer_of, best


def _by_positions(
    snapshot: Snapshot, matcher: Matcher, question: str, positions: Positions, rows: RowIds, rerank: Scorer | None
) -> MixtureScores:
    """Both parts by the positions that the archive stores, on one scale: s(t, q) and s(t, a)."""
    wanted = POSITIONS if rerank is None else (POSITIONS[0], "answer")
    taken, size = snapshot.store.take(rows, [*wanted, SAME]), snapshot.manifest.position_size
    assert size is not None
    try:
        sides = [positions_of(taken, column, size) for column in wanted if column in POSITIONS]
    except (TypeError, ValueError):
        folder = snapshot.store.folder
        raise MatchloomError(f"{folder} is damaged (positions are cut off); {doctor(folder)}") from None
    similarity = matcher.match_positions(positions, sides[0])
    match = matcher.match_positions(positions, sides[1]) if rerank is None else _scores(rerank, question, taken)
    return MixtureScores(similarity, match, _same(taken), matcher, rerank or matcher)


def _bm25(texts: Sequence[str], tokenizer: Tokenizer) -> BM25:
    return BM25.fit(texts, tokenizer=tokenizer, stem=True, stop_words=True, normalize=True)


def content_stems(text: str, tokenizer: Tokenizer) -> list[str]:
    """What the full-text index, which holds the stems of all words, is asked for: those that count, or else all.

    >>> content_stems("how do looms work", Tokenizer()), content_stems("how do you do", Tokenizer())
    (['loom', 'work'], ['how', 'do', 'you', 'do'])
    """
    words, language = tokenizer(text), tokenizer.language
    return stems([word for word in words if not is_stop_word(word, language)] or words, language)


def _same(taken: pa.Table) -> list[str]:
    same: list[str] = taken[SAME].to_pylist()
    return same


def _scores(scorer: Scorer, question: str, taken: pa.Table) -> Scores:
    return scorer.score([Pair(question, answer) for answer in taken["answer"].to_pylist()])
