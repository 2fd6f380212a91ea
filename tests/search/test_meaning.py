"""Evidence from a pretrained encoder: left out is refitted, explanations add up, and a folder holds it whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from matchloom import Matcher
from matchloom.fitting import fit
from matchloom.fitting.fitted import Fitted
from matchloom.search.entries import Answers
from matchloom.search.features.dense import KnownMeanings, Meanings
from matchloom.search.memory import AskedCollection
from matchloom.search.ranker import AnswerRanker
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair
from tests.encoders.making import write_folder
from tests.search.collections import ENGLISH, many, pairs_of

pytest.importorskip("tokenizers")

PAIRS = [*many(6, questions=3), *pairs_of(ENGLISH), Pair("closing issues by commit", "Put two stars on it.")]
QUESTION = "strikethrogh in a comment"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("encoder") / "small")


@pytest.fixture(scope="module")
def meanings(encoder: Path) -> Meanings:
    return Meanings(Matcher.untrained(encoder, model="sentence_bert"))


@pytest.fixture(scope="module")
def ranker(meanings: Meanings) -> AnswerRanker:
    return AnswerRanker.fit(PAIRS, meanings=meanings)


def test_left_out_is_what_a_second_fit_would_say(meanings: Meanings) -> None:
    collection = AskedCollection(Answers.of(PAIRS).sorted(), Tokenizer(), meanings=meanings)
    full = collection.meaning
    assert full is not None
    for row, question in enumerate(collection.questions):
        rows = [n for n in range(len(collection.questions)) if n != row]
        known = collection.known._replace(member=collection.known.member[rows])
        without = KnownMeanings(meanings, full.questions[rows], full.texts).evidence(known, words=True, asked=True)
        read = collection.reading.read(question)
        for piece, refitted in zip(full.evidence(collection.known, words=True, asked=True), without, strict=True):
            np.testing.assert_allclose(piece.left_out(row), refitted.scores(read), atol=1e-9)


def test_the_nearest_text_counts(meanings: Meanings) -> None:
    alone = AnswerRanker.fit(PAIRS, meanings=meanings, words=False)
    assert alone.mixture.names == ("meaning_nearest",)
    asked = meanings.asked(QUESTION)
    answers = Answers.of(PAIRS)
    best = [
        max(float(asked @ meanings.asked(one)) for one in [text, *own])
        for text, own in zip(answers.texts, answers.questions, strict=True)
    ]
    order = [one.index for one in alone.rank(QUESTION, top=None)]
    assert [best[n] for n in order] == sorted(best, reverse=True)


def test_with_texts_alone_no_known_question_is_near(ranker: AnswerRanker, tmp_path: Path) -> None:
    assert ranker.collection.meaning is not None
    meanings = ranker.collection.meaning.meanings
    both = AnswerRanker.fit(PAIRS, meanings=meanings, asked=False)
    assert both.mixture.names == ("bm25_ans", "text", "meaning_text")
    alone = AnswerRanker.fit(PAIRS, meanings=meanings, words=False, asked=False)
    asked = meanings.asked(QUESTION)
    near = [float(asked @ meanings.asked(text)) for text in alone.answers.texts]
    assert [near[one.index] for one in alone.rank(QUESTION, top=None)] == sorted(near, reverse=True)
    for one in (both, alone):
        one.save(tmp_path / one.name)
        assert AnswerRanker.load(tmp_path / one.name).rank(QUESTION) == one.rank(QUESTION)


def test_an_explanation_adds_up(ranker: AnswerRanker) -> None:
    for text in (ranker.rank(QUESTION)[0].text, ranker.rank(QUESTION)[-1].text, "strike it out", ""):
        trace = ranker.trace(QUESTION, text)[2]
        told = sum(one.contribution for one in (*trace.signals, *trace.components))
        assert told + trace.residual == pytest.approx(trace.score)
        assert trace.score == pytest.approx(float(ranker.score([Pair(QUESTION, text)])[0]), abs=1e-5)
        assert abs(trace.residual) < 1e-9
    assert ranker.trace("?!", ranker.answers.texts[0])[0] == []


def test_a_folder_holds_the_encoder_and_the_vectors(
    ranker: AnswerRanker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranker.save(tmp_path / "ranker")
    loaded = AnswerRanker.load(tmp_path / "ranker")
    assert loaded.name == "encoder_ranker"
    assert loaded.rank(QUESTION) == ranker.rank(QUESTION)
    assert loaded.trace(QUESTION, "strike")[2].score == ranker.trace(QUESTION, "strike")[2].score
    monkeypatch.setattr(Matcher, "vectors", None)  # what is known is not encoded again
    AnswerRanker.load(tmp_path / "ranker")
    AnswerRanker.fit(PAIRS).save(tmp_path / "ranker")
    assert not (tmp_path / "ranker" / "encoder").exists()


def test_another_encoder_in_the_folder_is_refused(ranker: AnswerRanker, tmp_path: Path) -> None:
    ranker.save(tmp_path / "ranker")
    other = Matcher.untrained(write_folder(tmp_path / "other", seed=5), model="sentence_bert")
    other.save(tmp_path / "ranker" / "encoder")
    with pytest.raises(
        MatchloomError, match=r"encoder/matcher\.json was altered since it was saved, or belongs to another"
    ):
        AnswerRanker.load(tmp_path / "ranker")


def test_fit_tries_what_is_found_and_can_be_told_not_to(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    fitted = fit(PAIRS, out=tmp_path / "with", encoder=encoder, on_note=notes.append)
    names = {one.name for one in fitted.report.systems}
    assert {"encoder_nearest", "encoder_ranker", "answer_ranker"} <= names
    assert Fitted.load(tmp_path / "with").rank(QUESTION) == fitted.rank(QUESTION)
    monkeypatch.setenv("MATCHLOOM_ENCODERS", str(encoder))
    fit(PAIRS, minutes=0.001, on_note=notes.append)
    assert any("encoder small is found and tried" in line for line in notes)
    assert not any(one.name.startswith("encoder") for one in fit(PAIRS, encoder=None).report.systems)
    with pytest.raises(MatchloomError, match="encoder 'absent' is not found"):
        fit(PAIRS, encoder="absent")
