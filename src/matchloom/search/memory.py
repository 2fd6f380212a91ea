"""Answers made ready to be asked: read, compared in several ways, and what known questions say when they are left out.

Small collections are looked at whole. Above 5,000 answers a question's candidates are the 100 best of each piece of
evidence: means and deviations are taken over them, and only they are ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from matchloom.basics.progress import track
from matchloom.data.identity import digest, normalize_text
from matchloom.lexical.ibm_model1 import Translations
from matchloom.search.entries import Answers, Floats, Ids, best_first
from matchloom.search.features.base import Evidence, Known
from matchloom.search.features.bm25 import BM25Evidence
from matchloom.search.features.centroid import Centroid
from matchloom.search.features.dense import KnownMeanings, MeaningOfNearest, MeaningOfText, Meanings
from matchloom.search.features.ridge import LARGEST, PrimalRidge, Ridge
from matchloom.search.features.svm import LinearWeights, SVMEvidence
from matchloom.search.features.tfidf import WordsAndLetters
from matchloom.search.features.translation import Translation
from matchloom.search.fusion import Cases, scale
from matchloom.search.reader import Query, Reader
from matchloom.text.tokenize import Tokenizer

WHOLE = 5_000  # answers that are looked at whole
CANDIDATES = 100  # of each piece of evidence, above
_NUMBERS = 40_000_000  # of evidence in memory when weights are learnt
_LEARNT = 600  # questions that weights are learnt from, above
_VAST = 50_000  # answers from which a third of them is looked at
_FOLDS = 4
_TRANSLATED = 300  # questions from which translations are worth learning
CLASSIFIED = 120_000  # examples times answers up to which six support vector machines take some seconds
_EXCEPTION = 0.3  # of the questions, below which an answer with several of them is an exception


class Weighed(NamedTuple):
    """What every piece of evidence says on one question, and the answers that come into question."""

    raw: Floats  # (A, E)
    candidates: Ids
    mean: Floats  # (E,)
    spread: Floats  # (E,)


class AskedCollection:
    """Answers by id, with evidence.

    `translations` and `weights` are those of a saved ranker, else they are learnt where they pay. With `meanings`, what
    a pretrained encoder makes of the texts is evidence too; without `words` it is the only evidence, and that of the
    nearest question alone. Without `asked` the answers' texts are all there is to compare with: known questions teach
    how much each comparison is worth, and translations, but are none themselves.
    """

    def __init__(
        self,
        answers: Answers,
        tokenizer: Tokenizer,
        *,
        translations: Translations | None = None,
        weights: LinearWeights | None = None,
        meanings: Meanings | None = None,
        words: bool = True,
        asked: bool = True,
        learning: bool = True,
        progress: bool = False,
    ) -> None:
        self.answers, self.asked = answers, asked
        self.questions, member = known_questions(answers)
        self._whole = len(answers) <= WHOLE
        self.reading, questions, told = Reader.fit(
            tokenizer, self.questions, answers.texts, member, whole=self._whole, progress=progress
        )
        self.known = Known(questions, told, member)
        self.counted = _counted(member) if asked else np.ones(len(self.questions))
        self.rows = self._rows_to_learn_from() if learning else np.empty(0, dtype=np.int64)
        self.evidence = self._gather(translations, weights, learning, progress) if words else []
        self.meaning: KnownMeanings | None = None
        if meanings is not None:
            self.meaning = KnownMeanings.of(meanings, self.questions, answers.texts, progress=progress)
            self.evidence += self.meaning.evidence(self.known, words=words, asked=asked)
        self.names = tuple(piece.name for piece in self.evidence)

    @property
    def translation(self) -> Translation | None:
        """The piece of evidence that has a table of its own, if it is there."""
        return next((piece for piece in self.evidence if isinstance(piece, Translation)), None)

    @property
    def svm(self) -> SVMEvidence | None:
        """The piece of evidence whose weights take long to learn, if it is there."""
        return next((piece for piece in self.evidence if isinstance(piece, SVMEvidence)), None)

    def _gather(
        self, translations: Translations | None, weights: LinearWeights | None, learning: bool, progress: bool
    ) -> list[Evidence]:
        questions, answers = self.known.member.shape
        links = self.known.member.nnz
        pieces: list[Evidence] = []
        if not self.asked:
            pieces = [BM25Evidence(self.known, documents=False), Centroid(self.known, questions=False)]
            return pieces + self._translations(translations, progress)
        if answers > 1 and links >= answers and (questions + answers) * answers <= CLASSIFIED:
            texts = self.answers.texts
            seen = WordsAndLetters([*self.questions, *texts], self.reading.tokenizer)
            folds = learning and len(self.rows) > 0
            pieces.append(SVMEvidence(self.questions, texts, self.known.member, seen, weights=weights, folds=folds))
        if questions + answers <= LARGEST:
            pieces.append(Ridge(self.known))
        elif self._whole and links >= 2 * answers:
            pieces.append(PrimalRidge(self.known, self.rows))
        pieces += [
            BM25Evidence(self.known, documents=True),
            Centroid(self.known, questions=True),
            BM25Evidence(self.known, documents=False),
            Centroid(self.known, questions=False),
        ]
        return pieces + self._translations(translations, progress)

    def _translations(self, translations: Translations | None, progress: bool) -> list[Evidence]:
        """The evidence of translations, where there are questions enough to learn some and few others to go by."""
        questions = self.known.member.shape[0]
        answered = len(np.unique(self.known.member.indices))
        if questions < _TRANSLATED or self.known.member.nnz >= 2 * answered:
            return []
        if translations is not None:
            return [Translation(self.known, translations)]
        whole = len(self.rows) == questions
        held = [self.rows[n::_FOLDS] for n in range(_FOLDS)] if whole else [self.rows] if len(self.rows) else []
        return [Translation.fit(self.known, held, progress=progress)]

    def _rows_to_learn_from(self) -> Ids:
        """Questions that count, as many as memory and time allow: the first, whose order by digest means nothing."""
        rows = np.flatnonzero(self.counted > 0)
        answers = len(self.answers)
        if answers <= WHOLE:
            return rows[: max(200, _NUMBERS // (5 * answers))]
        return rows[: _LEARNT if answers <= _VAST else _LEARNT // 3]

    def weigh(self, read: Query) -> Weighed:
        """Ask every piece of evidence."""
        return self._weighed([piece.scores(read) for piece in self.evidence])

    def _weighed(self, scores: Sequence[Floats]) -> Weighed:
        raw = np.stack(scores, axis=1)
        if self._whole:
            candidates = np.arange(len(raw))
        else:
            candidates = np.unique(np.concatenate([best_first(one, CANDIDATES) for one in scores]))
        return Weighed(raw, candidates, *scale(raw[candidates]))

    def cases(self, *, progress: bool = False) -> Cases:
        """What the evidence says on known questions that are left out."""
        rows = self.rows
        width = len(self.answers) if self._whole else min(len(self.answers), CANDIDATES * len(self.evidence))
        cases = Cases(
            np.zeros((len(rows), width, len(self.evidence))),
            np.zeros((len(rows), width), dtype=bool),
            np.zeros((len(rows), width), dtype=bool),
            self.counted[rows],
            float(self.counted[rows].sum() / max(self.counted.sum(), 1.0)),
            np.zeros(len(rows)),
        )
        asked = self.known.questions.vectors
        times = np.bincount(asked.indices, minlength=asked.shape[1])
        times += np.bincount(self.known.texts.vectors.indices, minlength=asked.shape[1])
        for n, row in enumerate(track(rows.tolist(), "left-out questions", total=len(rows), show=progress)):
            weighed = self._weighed([piece.left_out(row) for piece in self.evidence])
            size = len(weighed.candidates)
            cases.evidence[n, :size] = (weighed.raw[weighed.candidates] - weighed.mean) / weighed.spread
            cases.there[n, :size] = True
            cases.right[n, :size] = np.isin(weighed.candidates, self.known.answers_of(row))
            features = asked.indices[asked.indptr[row] : asked.indptr[row + 1]]
            covered = 1.0 if self.meaning is not None else self.reading.left_coverage(features, times)
            cases.strength[n] = self._strength(weighed, covered)
        return cases

    def _strength(self, weighed: Weighed, covered: float) -> float:
        """By words the best cosine times the part of them that is known; by meaning the square of the best cosine."""
        by_words, by_meaning = ("centroid", MeaningOfNearest.name) if self.asked else ("text", MeaningOfText.name)
        name = by_words if self.meaning is None else by_meaning
        best = max(0.0, float(weighed.raw[:, self.names.index(name)].max()))
        return best * (covered if self.meaning is None else best)

    def strength(self, read: Query, weighed: Weighed) -> float:
        """How much is known of a question, see `matchloom.search.calibration`."""
        return self._strength(weighed, self.reading.coverage(read))

    def nearest(self, read: Query, answers: Sequence[int]) -> list[str | None]:
        """Of each of these answers the known question that is nearest to the one asked; equal ones by their text."""
        parts = self._questions_of
        own = [parts.indices[parts.indptr[answer] : parts.indptr[answer + 1]] for answer in answers]
        different = np.concatenate([*own, []]).astype(np.int64)
        if self.meaning is not None:
            likeness = iter((self.meaning.questions[different] @ self.meaning.meanings.asked(read.text)).tolist())
        else:
            dense = np.zeros(self.known.questions.vectors.shape[1])
            dense[read.features] = read.values
            likeness = iter((self.known.questions.vectors[different] @ dense).tolist())
        found: list[str | None] = []
        for rows in own:
            likely = [(-next(likeness), self.questions[row]) for row in rows.tolist()]
            found.append(min(likely)[1] if likely else None)
        return found

    @cached_property
    def _questions_of(self) -> sp.csc_array:
        return self.known.member.tocsc()

    @property
    def words_digest(self) -> str:
        """What the stems are numbered by; a table of translations holds for these numbers only."""
        return digest(*self.reading.stems)


def known_questions(answers: Answers) -> tuple[list[str], sp.csr_array]:
    """The different questions of all answers, by digest, and which of them each answer has. (questions, answers)"""
    different = {question for questions in answers.questions for question in questions}
    questions = sorted(different, key=lambda question: (digest(normalize_text(question)), question))
    row = {question: n for n, question in enumerate(questions)}
    rows = [row[question] for own in answers.questions for question in own]
    columns = np.repeat(np.arange(len(answers)), [len(own) for own in answers.questions])
    shape = (len(questions), len(answers))
    return questions, sp.csr_array((np.ones(len(rows)), (np.array(rows, dtype=np.int64), columns)), shape=shape)


def _counted(member: sp.csr_array) -> Floats:
    """How much each known question counts when weights are learnt, see `matchloom.search.fusion`."""
    sizes = np.bincount(member.indices, minlength=member.shape[1])
    alone = min(1.0, float((sizes == 0).sum()) / max(1, int((sizes == 1).sum())))
    most = np.maximum.reduceat(sizes[member.indices], member.indptr[:-1]) if member.nnz else np.empty(0)
    if alone and np.count_nonzero(most > 1) < _EXCEPTION * len(most):
        return np.full(len(most), alone)
    return np.where(most > 1, 1.0, alone)
