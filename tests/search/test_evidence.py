"""What every piece of evidence promises: left out is refitted, contributions add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from matchloom.search.entries import Answers
from matchloom.search.features.base import Evidence, Known
from matchloom.search.features.bm25 import BM25Evidence
from matchloom.search.features.centroid import Centroid
from matchloom.search.features.ridge import PrimalRidge, Ridge
from matchloom.search.features.svm import SVMEvidence
from matchloom.search.features.tfidf import WordsAndLetters
from matchloom.search.features.translation import Translation, learn
from matchloom.search.memory import known_questions
from matchloom.search.reader import Query, Reader, ReadTexts, letters_of
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.search.collections import CHINESE, ENGLISH, pairs_of

SHARED = [Pair("closing issues by commit", "Put two stars on either side of the words.")]  # one question, two answers


class Case(NamedTuple):
    reading: Reader
    known: Known


def case(kind: str) -> Case:
    pairs = [*pairs_of(ENGLISH), *SHARED] if kind == "english" else pairs_of(CHINESE)
    answers = Answers.of(pairs).sorted()
    questions, member = known_questions(answers)
    reading, asked, told = Reader.fit(Tokenizer(kind), questions, answers.texts, member)
    return Case(reading, Known(asked, told, member))


def without(known: Known, row: int) -> Known:
    rows = [n for n in range(known.member.shape[0]) if n != row]
    questions = ReadTexts(*(matrix[rows] for matrix in known.questions))
    return Known(questions, known.texts, known.member[rows])


def documents(known: Known, full: Known) -> Evidence:
    return BM25Evidence(known, documents=True, statistics=BM25Evidence(full, documents=True).statistics)


FITS: dict[str, Callable[[Known, Known], Evidence]] = {
    "ridge": lambda known, full: Ridge(known),
    "primal ridge": lambda known, full: PrimalRidge(known),
    "bm25_doc": documents,
    "bm25_ans": lambda known, full: BM25Evidence(known, documents=False),
    "centroid": lambda known, full: Centroid(known, questions=True),
    "text": lambda known, full: Centroid(known, questions=False),
}


@pytest.mark.parametrize("kind", ["english", "chinese"])
@pytest.mark.parametrize("name", FITS)
def test_left_out_is_what_a_second_fit_would_say(name: str, kind: str) -> None:
    known = case(kind).known
    piece = FITS[name](known, known)
    for row in range(known.member.shape[0]):
        refitted = FITS[name](without(known, row), known).scores(known.questions.row(row))
        np.testing.assert_allclose(piece.left_out(row), refitted, atol=2e-6)
        assert name in ("bm25_ans", "text") or not np.allclose(
            piece.left_out(row), piece.scores(known.questions.row(row))
        )


def test_translation_is_left_out_by_folds() -> None:
    known = case("english").known
    rows = np.arange(known.member.shape[0])
    piece = Translation.fit(known, [rows[::2], rows[1::2]])
    for row in rows.tolist():
        refitted = Translation(known, learn(known, rows[row % 2 :: 2]))
        np.testing.assert_array_equal(piece.left_out(row), refitted.scores(known.questions.row(row)))


@pytest.mark.parametrize("kind", ["english", "chinese"])
def test_a_support_vector_machine_is_left_out_by_folds_and_adds_up(kind: str) -> None:
    answers = Answers.of([*pairs_of(ENGLISH), *SHARED] if kind == "english" else pairs_of(CHINESE)).sorted()
    questions, member = known_questions(answers)
    seen = WordsAndLetters([*questions, *answers.texts], Tokenizer(kind))
    piece = SVMEvidence(questions, answers.texts, member, seen)
    again = SVMEvidence(questions, answers.texts, member, seen, weights=piece.weights, folds=False)
    for row, question in enumerate(questions):
        kept = [n for n in range(len(questions)) if n % 5 != row % 5]
        other = SVMEvidence([questions[n] for n in kept], answers.texts, member[kept], seen, folds=False)
        read = Query(*(np.empty(0) for _ in range(4)), text=question)  # type: ignore[arg-type]
        np.testing.assert_allclose(piece.left_out(row), other.scores(read), atol=1e-6)
        added = [piece.contributions(read, answer) for answer in range(len(answers))]
        np.testing.assert_allclose([one.sum() for one in added], piece.scores(read), atol=1e-9)
        assert len(piece.features(read)) == len(added[0]) == len(piece.outside(read, read))
        np.testing.assert_array_equal(again.scores(read), piece.scores(read))


def test_letters_of_a_classifier_belong_to_words() -> None:
    seen = WordsAndLetters(["closing issues", "人寿保险"], Tokenizer())
    places = seen.places(["closing", "issue"])
    spelt = {gram for gram, own in seen._letters.items() if places.get(len(seen._words) + own) == [(0,)]}
    assert {" clo", "sing", "ng "} <= spelt
    chinese = WordsAndLetters(["人寿保险"], Tokenizer("chinese")).places(["人寿", "保险"])
    assert (0, 1) in {place for own in chinese.values() for place in own}
    row = seen.vectors(["Closing closing an issue"])
    features, values = seen.read("Closing closing an issue")
    np.testing.assert_allclose(row.toarray()[0, features], values)
    assert len(features) == row.nnz
    empty = WordsAndLetters(["", " "], Tokenizer())
    assert empty.vectors(["a"]).shape == (1, 0)
    assert len(empty.read("a")[0]) == len(seen.read("?")[0]) == 0


def test_both_forms_of_the_ridge_are_one() -> None:
    reading, known = case("english")
    read = reading.read("closing strikethrogh issus")
    np.testing.assert_allclose(Ridge(known).scores(read), PrimalRidge(known, largest=10**6).scores(read), atol=1e-9)
    few = PrimalRidge(known, largest=50)
    assert np.isfinite(few.scores(read)).all()
    np.testing.assert_allclose([few.contributions(read, a).sum() for a in range(6)], few.scores(read), atol=1e-12)


@pytest.mark.parametrize("question", ["how do I strikethrogh closed text text", "zzz", ""])
@pytest.mark.parametrize("name", [*FITS, "translation"])
def test_contributions_add_up(name: str, question: str) -> None:
    reading, known = case("english")
    piece = Translation.fit(known) if name == "translation" else FITS[name](known, known)
    read = reading.read(question)
    scores = piece.scores(read)
    assert scores.shape == (known.member.shape[1],)
    own = [piece.contributions(read, answer) for answer in range(len(scores))]
    assert {len(added) for added in own} == {len(read.terms if piece.reads == "terms" else read.features)}
    np.testing.assert_allclose([added.sum() for added in own], scores, atol=1e-9)


@pytest.mark.parametrize("name", ["bm25_ans", "centroid", "text", "translation"])
def test_a_text_outside_is_an_answer_without_questions(name: str) -> None:
    reading, known = case("english")
    piece = Translation.fit(known) if name == "translation" else FITS[name](known, known)
    lonely = next(a for a in range(known.member.shape[1]) if not known.member[:, [a]].nnz)
    read = reading.read("two keys or a second factor")
    np.testing.assert_allclose(
        piece.outside(read, known.texts.row(lonely)).sum(), piece.scores(read)[lonely], atol=1e-6
    )


def test_a_read_text_has_two_blocks_of_half_length() -> None:
    reading = case("english").reading
    vector = reading.read("How do I make text bold?")
    letters = vector.features >= reading._letters_from
    np.testing.assert_allclose([(vector.values[block] ** 2).sum() for block in (letters, ~letters)], 0.5, atol=1e-6)
    places = reading.places(["bold", "text"])
    assert set(reading.read("bold text").features.tolist()) == set(places)
    assert letters_of("a") == [" a", "a ", " a "]
