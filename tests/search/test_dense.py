"""Features from a pretrained encoder: left out is refitted, explanations add up, and a folder holds it whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from matchloom import Matcher
from matchloom.fitting import fit
from matchloom.fitting.fitted import Fitted
from matchloom.search.collection import Collection
from matchloom.search.entries import Entries, best_first
from matchloom.search.features.base import Known
from matchloom.search.features.dense import (
    DenseClassifier,
    DenseFeature,
    DenseFinder,
    DenseNearest,
    DenseText,
    KnownVectors,
    SentenceVectors,
)
from matchloom.search.features.linear import LinearFeature, fit_linear
from matchloom.search.reader import Reader
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
def sentences(encoder: Path) -> SentenceVectors:
    return SentenceVectors(Matcher.untrained(encoder, model="sentence_bert"))


@pytest.fixture(scope="module")
def collection(sentences: SentenceVectors) -> Collection:
    return Collection.fit(PAIRS, sentences=sentences)


def _features(known: Known, vectors: KnownVectors) -> list[DenseFeature]:
    return [DenseNearest(vectors, known.member), DenseText(vectors)]


def test_left_out_is_what_a_second_fit_would_say(sentences: SentenceVectors) -> None:
    entries = Entries.of(PAIRS)
    questions, member = entries.known
    reader = Reader(Tokenizer())
    asked, told = reader.fit(questions, list(entries.texts), member)
    known = Known(asked, told, member)
    full = KnownVectors.of(sentences, questions, list(entries.texts))
    for row, question in enumerate(questions):
        rows = [n for n in range(len(questions)) if n != row]
        fewer = KnownVectors(sentences, full.questions[rows], full.texts)
        without = _features(known._replace(member=member[rows]), fewer)
        read = reader.read([question])
        for feature, refitted in zip(_features(known, full), without, strict=True):
            np.testing.assert_allclose(feature.leave_one_out(row), refitted.scores(read)[0], atol=1e-9)
    classifier = DenseClassifier.fit(known, full)
    for row in range(len(questions)):
        assert not np.allclose(classifier.leave_one_out(row), classifier.scores(reader.read([questions[row]]))[0])
    read = reader.read(questions)
    assert DenseClassifier.load(classifier.arrays(), full).scores(read).tolist() == classifier.scores(read).tolist()


def test_candidates_are_the_best_of_all_scores(sentences: SentenceVectors) -> None:
    """With a copy in eight bits and without, as it was made and as it was saved."""
    entries = Entries.of(PAIRS)
    questions, member = entries.known
    reader = Reader(Tokenizer())
    asked, told = reader.fit(questions, list(entries.texts), member)
    known = Known(asked, told, member)
    vectors = KnownVectors.of(sentences, questions, list(entries.texts))
    alive = np.arange(len(entries)) % 3 > 0
    for feature, again in zip(_features(known, vectors), _features(known, vectors), strict=True):
        assert isinstance(feature, DenseFinder)
        assert isinstance(again, DenseFinder)
        assert feature.arrays() == {}
        feature.code()
        again.load_codes(feature.arrays())
        assert again.coded is not None
        for question in (*questions, QUESTION):
            query = reader.read([question])
            scores = feature.scores(query)[0]
            rows = np.array([5, 0, 2, 5])
            assert feature.some(query, rows).tolist() == scores[rows].tolist()
            for mask in (None, alive):
                best = best_first(scores if mask is None else np.where(mask, scores, -np.inf), 4)
                for coded in (feature.coded, again.coded, None):
                    again.coded = coded
                    assert again.candidates(query, 4, mask).tolist() == best.tolist()
        with pytest.raises(ValueError, match="codes of other vectors"):
            again.load_codes({name: array[1:] for name, array in feature.arrays().items()})


@pytest.mark.parametrize("worth", [1.0, 0.5, 0.0])
def test_one_regression_sees_words_and_vectors(sentences: SentenceVectors, worth: float) -> None:
    entries = Entries.of(PAIRS)
    questions, member = entries.known
    reader = Reader(Tokenizer())
    asked, told = reader.fit(questions, list(entries.texts), member)
    vectors = KnownVectors.of(sentences, questions, list(entries.texts))
    made = {one.name: one for one in fit_linear(Known(asked, told, member), vectors=vectors, worth=worth)}
    assert set(made) == ({"joint"} if worth == 1 else {"svm", "joint"})
    joint = made["joint"]
    read = reader.read(questions)
    scores = joint.scores(read)
    assert (member.toarray()[np.arange(len(questions)), scores.argmax(axis=1)] > 0).all()
    assert joint.weights.of_vectors is not None
    assert bool(joint.weights.of_vectors.any()) is (worth > 0)
    for row in range(len(questions)):
        assert not np.allclose(joint.leave_one_out(row), scores[row])
        for entry in range(len(entries)):
            assert joint.contributions(read.one(row), entry).sum() == pytest.approx(scores[row, entry], abs=1e-6)
    again = LinearFeature.load("joint", joint.arrays(), joint.seen, vectors)
    assert again.scores(read).tolist() == scores.tolist()
    assert again.scores(read.one(1)).tolist() == scores[[1]].tolist()


def test_the_nearest_text_counts(sentences: SentenceVectors) -> None:
    alone = Collection.fit(PAIRS, sentences=sentences, words=False)
    assert alone.fusion.names == ("dense_nearest",)
    asked = sentences.one(QUESTION)
    entries = Entries.of(PAIRS)
    best = [max((float(asked @ sentences.one(one)) for one in own), default=0.0) for own in entries.questions]
    order = [one.index or 0 for one in alone.search(QUESTION, top=None)]
    assert [best[n] for n in order] == pytest.approx(sorted(best, reverse=True), abs=1e-9)


def test_with_texts_alone_no_known_question_is_near(sentences: SentenceVectors, tmp_path: Path) -> None:
    both = Collection.fit(PAIRS, sentences=sentences, use_questions=False)
    assert both.fusion.names == ("bm25_ans", "text", "dense_text")
    alone = Collection.fit(PAIRS, sentences=sentences, words=False, use_questions=False)
    asked = sentences.one(QUESTION)
    near = [float(asked @ sentences.one(text)) for text in alone.entries.texts]
    found = alone.search(QUESTION, top=None)
    assert [near[one.index or 0] for one in found] == pytest.approx(sorted(near, reverse=True), abs=1e-9)
    for one in (both, alone):
        one.save(tmp_path / one.name)
        assert Collection.open(tmp_path / one.name).search(QUESTION) == one.search(QUESTION)


def test_an_explanation_adds_up(collection: Collection) -> None:
    found = collection.search(QUESTION)
    for text in (found[0].text, found[-1].text, "strike it out", ""):
        trace = collection.trace(QUESTION, text)[2]
        told = sum(one.contribution for one in (*trace.signals, *trace.components))
        assert told + trace.residual == pytest.approx(trace.score)
        assert trace.score == pytest.approx(float(collection.score([Pair(QUESTION, text)])[0]), abs=1e-5)
        assert abs(trace.residual) < 1e-9
    assert collection.trace("?!", collection.entries.texts[0])[0] == []


def test_a_batch_is_its_questions_one_by_one_to_the_bit(collection: Collection) -> None:
    asked = [QUESTION, "claim of my thing3", "zx", "fork a repository", "?!"]
    assert collection.search(asked, top=None) == [collection.search(one, top=None) for one in asked]


def test_a_folder_holds_the_encoder_and_the_vectors(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.save(tmp_path / "kept")
    opened = Collection.open(tmp_path / "kept")
    assert opened.name == "encoder_ranker"
    assert opened.search(QUESTION) == collection.search(QUESTION)
    assert opened.trace(QUESTION, "strike")[2].score == collection.trace(QUESTION, "strike")[2].score
    with monkeypatch.context() as patch:
        patch.setattr(Matcher, "vectors", None)  # what is known is not encoded again
        Collection.open(tmp_path / "kept")
    Collection.fit(PAIRS).save(tmp_path / "kept")
    assert not (tmp_path / "kept" / "encoder").exists()


def test_what_is_added_is_encoded_and_found(collection: Collection, tmp_path: Path) -> None:
    collection.save(tmp_path / "kept")
    opened = Collection.open(tmp_path / "kept")
    new = "Turn the crank twice and let the kettle whistle."
    opened.add([("kettle whistles", new), ("crossed out", "Use two tildes around the words: ~~like this~~.")])
    for kept in (opened, Collection.open(tmp_path / "kept")):
        assert kept.search("kettle whistles", top=1)[0].text == new
        for hit in kept.search(QUESTION, top=None, explain=True):
            trace = hit.explanation.trace
            assert trace.score == pytest.approx(hit.score, abs=1e-9)
            assert abs(trace.residual) < 1e-9
    assert opened.refit().kept
    assert opened.search("kettle whistles", top=1)[0].text == new


def test_another_encoder_in_the_folder_is_refused(collection: Collection, tmp_path: Path) -> None:
    collection.save(tmp_path / "kept")
    other = Matcher.untrained(write_folder(tmp_path / "other", seed=5), model="sentence_bert")
    other.save(tmp_path / "kept" / "encoder")
    with pytest.raises(
        MatchloomError, match=r"encoder/matcher\.json was altered since it was saved, or belongs to another"
    ):
        Collection.open(tmp_path / "kept")


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
    assert any("encoder small was found and is tried" in line for line in notes)
    assert not any(one.name.startswith("encoder") for one in fit(PAIRS, encoder=None).report.systems)
    with pytest.raises(MatchloomError, match="encoder 'absent' is not found"):
        fit(PAIRS, encoder="absent")
