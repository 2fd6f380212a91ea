"""An encoder that learns which pairs match: what it says of pairs that it has not seen, and how a folder keeps it."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from matchloom import Matcher
from matchloom.artifact import load
from matchloom.calibration import labels
from matchloom.evaluation.labelled import measure_labelled
from matchloom.explanation import explain
from matchloom.fitting import pair_tuning, pairs_task
from matchloom.fitting.calibrated import Calibrated
from matchloom.fitting.pair_classifier import PairClassifier, PairTuning
from matchloom.fitting.pair_features import ENCODER, TUNED
from matchloom.fitting.pairs_task import PairsTask
from matchloom.search.features.dense import SentenceVectors
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair
from tests.encoders.making import write_folder

pytest.importorskip("tokenizers")
encoder_tuning = pytest.importorskip("matchloom.training.encoder_tuning")

VERBS, THINGS = ("open", "read", "sort", "list"), ("file", "door", "page", "mail", "song", "shop")


def _pairs() -> list[Pair]:
    """Two texts match where they speak of one thing; no text stands in two pairs."""
    found = []
    for n in range(120):
        verb, other = VERBS[n % 4], VERBS[(n + 1 + n // 4) % 4]
        thing = THINGS[n % 6]
        second = thing if n % 2 else THINGS[(n + 1) % 6]
        found.append(Pair(f"how do i {verb} the {thing} {n}", f"please {other} my {second} {n}", float(n % 2)))
    return found


PAIRS = _pairs()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("encoder") / "small")


@pytest.fixture(scope="module")
def sentences(folder: Path) -> SentenceVectors:
    return SentenceVectors(Matcher.untrained(folder, model="sentence_bert"))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random encoder of eight numbers is tuned on few pairs, with long steps, and kept whatever it brings."""
    own = encoder_tuning.layers_tuned_by_pairs
    monkeypatch.setattr(pair_tuning, "FEWEST", 50)
    monkeypatch.setattr(pair_tuning, "_EPOCHS", 10)
    monkeypatch.setattr(encoder_tuning, "layers_tuned_by_pairs", partial(own, rate=0.01))
    monkeypatch.setattr("matchloom.fitting.pair_classifier.worth_keeping", lambda gap: True)


def _ap(vectors: SentenceVectors) -> float:
    left, right = (vectors.of([pair[side] for pair in PAIRS]).astype(np.float64) for side in (0, 1))
    return measure_labelled((left * right).sum(axis=1), labels(PAIRS), None).values["AP"]


@pytest.mark.usefixtures("always")
def test_matching_texts_move_closer_than_others_and_the_encoder_stays_as_it_was(sentences: SentenceVectors) -> None:
    before = sentences.of([PAIRS[0].query]).copy()
    made = pair_tuning.tune_on_pairs(sentences, PAIRS)
    assert _ap(made.sentences) > _ap(SentenceVectors(sentences.matcher)) + 0.1
    assert made.sentences.untuned is sentences
    np.testing.assert_array_equal(SentenceVectors(sentences.matcher).of([PAIRS[0].query]), before)


@pytest.mark.usefixtures("always")
def test_what_is_said_of_a_held_out_pair_does_not_depend_on_its_label(
    sentences: SentenceVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_tuning, "fold_labelled", lambda pairs, folds: [n % folds for n in range(len(pairs))])
    first = pair_tuning.tune_on_pairs(sentences, PAIRS)
    second = pair_tuning.tune_on_pairs(sentences, [PAIRS[0]._replace(label=1 - PAIRS[0].label), *PAIRS[1:]])
    np.testing.assert_array_equal(first.held_out[::3], second.held_out[::3])
    assert (first.held_out != second.held_out)[1::3].all()
    whole = first.sentences.of([PAIRS[0].query])[0] @ first.sentences.of([PAIRS[0].text])[0]
    assert first.held_out[0] != pytest.approx(float(whole), abs=1e-6)


@pytest.mark.usefixtures("always")
def test_a_folder_keeps_it_and_the_order_of_pairs_changes_nothing(sentences: SentenceVectors, tmp_path: Path) -> None:
    made = PairClassifier.fit(PAIRS, Tokenizer(), sentences=sentences, tune=True)
    assert made.names[-2:] == (ENCODER, TUNED)
    assert made.tuning is not None
    assert made.tuning.pairs == len(PAIRS)
    assert made.tuning.kept
    scores = made.score(PAIRS)
    again = PairClassifier.fit(PAIRS[::-1], Tokenizer(), sentences=SentenceVectors(sentences.matcher), tune=True)
    np.testing.assert_array_equal(again.score(PAIRS), scores)
    made.save(tmp_path / "pairs")
    loaded = load(tmp_path / "pairs")
    np.testing.assert_array_equal(loaded.score(PAIRS), scores)
    found = explain(loaded, PAIRS[1].query, PAIRS[1].text)
    assert TUNED in {one.name for one in found.trace.components}
    plain = PairClassifier.fit(PAIRS, Tokenizer(), sentences=sentences)
    assert plain.tuning is None
    assert not np.array_equal(plain.score(PAIRS), scores)


@pytest.mark.usefixtures("always")
def test_layers_that_do_not_fit_are_refused(
    sentences: SentenceVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = PairClassifier.fit(PAIRS, Tokenizer(), sentences=sentences, tune=True)
    arrays = pair_tuning_layers(made)
    for wrong in ({}, {name: x[:1] for name, x in arrays.items()}, {f"9.{name}": x for name, x in arrays.items()}):
        monkeypatch.setattr("matchloom.fitting.pair_classifier.layers_of", lambda _, wrong=wrong: wrong)
        made.save(tmp_path / "pairs")
        with pytest.raises(MatchloomError, match="tuned"):
            load(tmp_path / "pairs")


def pair_tuning_layers(made: PairClassifier) -> dict[str, np.ndarray]:
    from matchloom.search.features.tuned import layers_of

    assert made.tuned is not None
    return layers_of(made.tuned)


def test_few_pairs_are_not_tried_and_what_does_not_help_is_not_kept(
    sentences: SentenceVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PairClassifier.fit(PAIRS, Tokenizer(), sentences=sentences, tune=True).tuning is None
    monkeypatch.setattr(pair_tuning, "FEWEST", 50)
    monkeypatch.setattr("matchloom.fitting.pair_classifier.worth_keeping", lambda gap: False)
    tried = PairClassifier.fit(PAIRS, Tokenizer(), sentences=sentences, tune=True)
    assert tried.tuning is not None
    assert not tried.tuning.kept
    plain = PairClassifier.fit(PAIRS, Tokenizer(), sentences=sentences)
    np.testing.assert_array_equal(tried.score(PAIRS), plain.score(PAIRS))


def test_fit_finishes_what_it_chose_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_task, "FEWEST", 50)
    task = PairsTask(folder)
    made = {one.name: one for one in task.candidates(PAIRS, Tokenizer(), 0)}
    assert made["encoder_classifier"].finish is not None
    assert made["encoder_classifier"].finish_seconds > 0
    task.tune = False
    assert all(one.finish is None for one in task.candidates(PAIRS, Tokenizer(), 0))
    classifier = PairClassifier.fit(PAIRS, Tokenizer())
    classifier.tuning = PairTuning(1200, 0.8, 0.85, True)
    said = task.learnt(Calibrated(classifier, classifier.calibration, Tokenizer()))
    assert re.findall(r"[\d.,]*\d", said) == ["1,200", "0.800", "0.850"]


def test_ctrl_c_ends_it(sentences: SentenceVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(encoder_tuning, "clip_gradients", stop)
    with pytest.raises(KeyboardInterrupt):
        pair_tuning.tune_on_pairs(sentences, PAIRS)
