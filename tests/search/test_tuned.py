"""An encoder that learns from a collection's questions: what it says of held-out ones, and how a folder keeps it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from matchloom import Matcher
from matchloom.search import learning
from matchloom.search.calibration import signals_of
from matchloom.search.collection import Collection
from matchloom.search.entries import Entries
from matchloom.search.features import tuned
from matchloom.search.features.dense import KnownVectors, SentenceVectors
from matchloom.types import Pair
from tests.encoders.making import write_folder

pytest.importorskip("tokenizers")

VERBS, THINGS = ("open", "read", "sort", "list"), ("file", "door", "page", "mail", "song", "shop")
PAIRS = [
    Pair(f"{start} {verb} {end} {thing}", f"Answer about a {thing}.", text_id=thing)
    for thing in THINGS
    for verb in VERBS
    for start, end in (("how do i", "the"), ("please", "my"), ("can you", "this"), ("tell me to", "one"), ("i", "a"))
]
ASKED = ["how may i list that door", "sort some mail"]


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> SentenceVectors:
    folder = write_folder(tmp_path_factory.mktemp("encoder") / "small")
    return SentenceVectors(Matcher.untrained(folder, model="sentence_bert"))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random encoder of eight numbers is tuned and kept, whatever it brings."""
    monkeypatch.setattr(learning, "_WON", -1000)
    monkeypatch.setattr(learning, "_WHISKER", -10.0)


def _tuned(sentences: SentenceVectors, entries: Entries) -> KnownVectors:
    questions, member = entries.known
    return tuned.tune(sentences, questions, list(entries.texts), member)


def _nearness(vectors: KnownVectors, member: np.ndarray) -> float:
    """How much nearer questions of one answer are to each other than to others, on the mean."""
    cosines, same = vectors.questions @ vectors.questions.T, member @ member.T > 0
    return float(cosines[same].mean() - cosines[~same].mean())


def test_questions_of_one_answer_move_closer_and_the_encoder_stays_as_it_was(sentences: SentenceVectors) -> None:
    entries = Entries.of(PAIRS)
    questions, member = entries.known
    before = KnownVectors.of(sentences, questions, list(entries.texts))
    made = _tuned(sentences, entries)
    assert _nearness(made, member.toarray()) > 1.2 * _nearness(before, member.toarray()) > 0
    assert made.sentences.untuned is sentences
    assert made.untuned is not None
    np.testing.assert_array_equal(made.untuned.questions, before.questions)
    again = SentenceVectors(sentences.matcher).of(questions)
    np.testing.assert_array_equal(again, before.questions)


def test_what_is_said_of_a_left_out_question_does_not_depend_on_its_answer(sentences: SentenceVectors) -> None:
    entries = Entries.of(PAIRS)
    questions, member = entries.known
    row = 4
    other = next(n for n in range(len(entries)) if not member.toarray()[row, n])
    moved = member.toarray()
    moved[row] = 0
    moved[row, other] = 1
    first = tuned.tune(sentences, questions, list(entries.texts), member)
    second = tuned.tune(sentences, questions, list(entries.texts), type(member)(moved))
    for one, same in zip(first.left_out(row), second.left_out(row), strict=True):
        np.testing.assert_array_equal(one, same)
    assert not np.array_equal(first.left_out(row + 1)[0], second.left_out(row + 1)[0])
    assert not np.array_equal(first.questions, second.questions)


@pytest.mark.usefixtures("always")
def test_a_folder_keeps_it_and_the_order_of_lines_changes_nothing(sentences: SentenceVectors, tmp_path: Path) -> None:
    made = Collection.fit(PAIRS, sentences=sentences, tune=True)
    assert made.tuning is not None
    assert made.tuning.kept
    assert made.tuning.questions == len(PAIRS)
    found = [[(hit.id, hit.score, hit.probability) for hit in hits] for hits in made.search(ASKED)]
    other = Collection.fit(PAIRS[::-1], sentences=SentenceVectors(sentences.matcher), tune=True)
    assert [[(hit.id, hit.score, hit.probability) for hit in hits] for hits in other.search(ASKED)] == found
    plain = Collection.fit(PAIRS, sentences=sentences)
    assert [[hit.score for hit in hits] for hits in plain.search(ASKED)] != [[one[1] for one in own] for own in found]

    made.save(tmp_path / "faq")
    opened = Collection.open(tmp_path / "faq")
    assert opened.tuning == made.tuning
    assert [[(hit.id, hit.score, hit.probability) for hit in hits] for hits in opened.search(ASKED)] == found
    opened.add([Pair("how do i feed the cat", "Answer about a cat.", text_id="cat")])
    assert opened.search("feed the cat", top=1)[0].id == "cat"
    assert opened.refit().kept
    assert opened.tuning is not None
    assert opened.tuning.kept
    assert Collection.open(tmp_path / "faq").search(ASKED[0])[0].score == opened.search(ASKED[0])[0].score
    assert Collection.check(tmp_path / "faq")


def test_it_is_kept_only_where_left_out_questions_are_better(
    sentences: SentenceVectors, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(learning, "_WON", 1000)
    tried = Collection.fit(PAIRS, sentences=sentences, tune=True)
    plain = Collection.fit(PAIRS, sentences=sentences)
    assert tried.tuning is not None
    assert not tried.tuning.kept
    assert plain.tuning is None
    for one, other in zip(tried.search(ASKED), plain.search(ASKED), strict=True):
        assert [(hit.id, hit.score, hit.probability) for hit in one] == [
            (hit.id, hit.score, hit.probability) for hit in other
        ]
    tried.save(tmp_path / "faq")
    opened = Collection.open(tmp_path / "faq")
    assert opened.tuning == tried.tuning


def test_few_questions_or_one_an_answer_are_not_tried(sentences: SentenceVectors) -> None:
    few = PAIRS[::6]
    one = [Pair(f"question {n} about {n * 7}", f"Answer {n}.") for n in range(120)]
    for pairs in (few, one):
        assert Collection.fit(pairs, sentences=sentences, tune=True).tuning is None


@pytest.mark.usefixtures("always")
def test_both_encoders_say_how_near_a_question_is(sentences: SentenceVectors, tmp_path: Path) -> None:
    """A tuned encoder moves foreign questions towards what it knows; the one that it was does not."""
    made = Collection.fit(PAIRS, sentences=sentences, tune=True)
    made.save(tmp_path / "faq")
    made.add([Pair("how do i feed the cat", "Answer about a cat.", text_id="cat")])
    for own in (made, Collection.open(tmp_path / "faq")):
        first, *added = own._living.current().view.segments
        names = list(own.fusion.names)
        for segment in (first, *added):
            queries = segment.reader.read([*ASKED, "feed a cat"])
            raw, scores = segment.scores(queries), np.zeros((3, len(segment.entries)))
            best = raw.max(axis=2)
            tuned_best, plain_best = (best[:, names.index(one)] for one in ("dense_nearest", "dense_untuned"))
            found = signals_of(names, np.ones(len(names)), raw, scores, np.zeros(3))[:, 1]
            np.testing.assert_array_equal(found, np.minimum(tuned_best, plain_best))
            assert not np.array_equal(tuned_best, plain_best)
            known = segment.questions[:1]
            assert segment.scores(segment.reader.read(known))[0, names.index("dense_untuned")].max() == pytest.approx(1)


@pytest.mark.usefixtures("always")
def test_layers_that_do_not_fit_are_refused(sentences: SentenceVectors) -> None:
    made = _tuned(sentences, Entries.of(PAIRS))
    arrays = tuned.layers_of(made.sentences)
    again = tuned.sentences_of(sentences, arrays)
    np.testing.assert_array_equal(again.of(ASKED), made.sentences.of(ASKED))
    assert tuned.sentences_of(again, arrays) is again
    assert tuned.sentences_of(again, {}) is sentences
    with pytest.raises(ValueError, match="tuned layers"):
        tuned.sentences_of(sentences, {name: x[:1] for name, x in arrays.items()})
    with pytest.raises(ValueError, match="tuned layers"):
        tuned.sentences_of(sentences, {f"9.{name}": x for name, x in arrays.items()})


def test_ctrl_c_ends_it(sentences: SentenceVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    from matchloom.training import encoder_tuning

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(encoder_tuning, "clip_gradients", stop)
    with pytest.raises(KeyboardInterrupt):
        _tuned(sentences, Entries.of(PAIRS))
