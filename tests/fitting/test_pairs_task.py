from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sklearn.metrics import f1_score

from matchloom.artifact import load
from matchloom.calibration import best_threshold, platt
from matchloom.explanation import explain
from matchloom.fitting import pairs_task
from matchloom.fitting.calibrated import Calibrated
from matchloom.fitting.pair_classifier import PAIR_COLUMNS, PairClassifier, some_pairs
from matchloom.fitting.pair_features import ENCODER, NAMES
from matchloom.fitting.pairs_task import PairsTask
from matchloom.fitting.word_scorers import WordScorer
from matchloom.text.tokenize import Tokenizer
from matchloom.training.development import one_list
from matchloom.types import Explains, MatchloomError, Pair, Scorer, Scores
from tests.encoders.making import write_folder

WORDS = [f"{a}{b}" for a in ("lo", "mi", "ki", "fo", "whe", "sto") for b in ("om", "ll", "ln", "rge", "el", "ne", "ck")]


def labelled(number: int = 120, seed: int = 0) -> list[Pair]:
    """Matches share most of their words; others share a few."""
    random, found = Random(seed), []
    for n in range(number):
        words = random.sample(WORDS, 6)
        keep = 5 if n % 2 else 1
        other = [*words[:keep], *random.sample(WORDS, 6 - keep)]
        found.append(Pair(" ".join([*words, f"a{n}"]), " ".join([*other, f"b{n}"]), float(n % 2)))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scorer]:
    folder = tmp_path_factory.mktemp("pairs")
    task, pairs = PairsTask(write_folder(folder / "small") if find_spec("tokenizers") else None), labelled()
    data = task.split(pairs, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matchloom.fitting.trained.DIMENSIONS", 8)
        patch.setattr(pairs_task, "NETWORK_FROM", 100)
        patch.setattr(pairs_task, "_SETTINGS", {**pairs_task._SETTINGS, "epochs": 2})
        candidates = task.candidates(pairs, Tokenizer(), 0)
        return {one.name: one.make(data.train, data.development, folder / one.name, 60.0) for one in candidates}


class Given:
    name = "given"
    threshold = 0.5

    def __init__(self, scores: Sequence[float]) -> None:
        self.scores = np.array(scores, np.float32)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        return self.scores


def test_a_text_stays_on_one_side_and_all_parts_have_both_labels() -> None:
    pairs = [Pair(f"q{n // 3}", f"t{n}", float(n % 5 == 0)) for n in range(300)]
    data = PairsTask().split(pairs, 0)
    sides = [{pair.query for pair in part} for part in data]
    assert not (sides[0] & sides[1] | sides[0] & sides[2] | sides[1] & sides[2])
    assert all({pair.label for pair in part} == {0.0, 1.0} for part in data)
    assert [round(len(part) / 300, 1) for part in data] == pytest.approx([0.6, 0.2, 0.2], abs=0.11)
    again = PairsTask().split(Random(2).sample(pairs, 300), 0)
    assert [{pair.query for pair in part} for part in again] == sides


def test_questions_with_a_right_and_a_wrong_text_each_are_split_too() -> None:
    pairs = [Pair(f"q{n // 2}", f"t{n}", float(n % 2)) for n in range(80)]
    data = PairsTask().split(pairs, 0)
    assert [len(part) for part in data] == [40, 20, 20]
    assert all({pair.label for pair in part} == {0.0, 1.0} for part in data)


def test_few_pairs_of_a_label_are_refused_in_one_line() -> None:
    pairs = [Pair(f"q{n}", f"t{n}", float(n < 4)) for n in range(50)]
    with pytest.raises(MatchloomError, match=r"4 independent groups of pairs have label 1, expected 6"):
        PairsTask().split(pairs, 0)


def test_a_network_is_worth_its_time_from_some_pairs_on() -> None:
    task = PairsTask()
    few = ["overlap_both", "tfidf_classifier", "pair_classifier"]
    assert [one.name for one in task.candidates(labelled(50), Tokenizer(), 0)] == few
    assert task.candidates(labelled(2000), Tokenizer(), 0)[-1].name == "mv_lstm"


def test_measures_have_a_value_for_each_pair_whose_mean_they_are() -> None:
    pairs = [Pair(str(n), str(n), float(n in (0, 1, 4, 6))) for n in range(10)]
    scores = [0.9, 0.8, 0.8, 0.7, 0.6, 0.4, 0.2, 0.2, 0.1, 0.0]
    outcome = PairsTask().measure_on(Given(scores), pairs)
    assert set(outcome.values) == set(PairsTask.measures)
    for name, value in outcome.values.items():
        assert outcome.each[name].mean() == pytest.approx(value), name
    right = [pair.label for pair in pairs]
    assert outcome.values["F1"] == pytest.approx(f1_score(right, [score >= 0.5 for score in scores]))
    order = Random(0).sample(range(10), 10)
    other = PairsTask().measure_on(Given([scores[n] for n in order]), [pairs[n] for n in order])
    assert other.values == pytest.approx(outcome.values)


def test_pairs_of_one_label_cannot_be_measured() -> None:
    with pytest.raises(MatchloomError, match="one label"):
        PairsTask().measure_on(Given([1.0]), [Pair("a", "b", 1.0)])


def test_every_candidate_scores_explains_and_comes_back(made: dict[str, Scorer], tmp_path: Path) -> None:
    pairs = labelled(20, seed=1)
    with_encoder = ["encoder_cosine", "encoder_classifier"] if find_spec("tokenizers") else []
    assert list(made) == ["overlap_both", "tfidf_classifier", "pair_classifier", *with_encoder, "mv_lstm"]
    for name, scorer in made.items():
        assert isinstance(scorer, Calibrated)
        assert isinstance(scorer, Explains)
        scores = scorer.score(pairs)
        explanation = explain(scorer, pairs[1].query, pairs[1].text)  # checks that it adds up
        assert explanation.trace.score == pytest.approx(float(scores[1]), abs=1e-4)
        scorer.save(tmp_path / name)
        loaded = load(tmp_path / name)
        assert isinstance(loaded, Calibrated)
        np.testing.assert_array_equal(loaded.score(pairs), scores)
        np.testing.assert_array_equal(loaded.probability(pairs), scorer.probability(pairs))
        assert loaded.threshold == scorer.threshold
        assert PairsTask().measure_on(loaded, pairs).values == PairsTask().measure_on(scorer, pairs).values
    assert PairsTask().measure_on(made["pair_classifier"], pairs).values["AP"] > 0.9


def test_pairs_are_scored_one_by_one_and_in_either_order_by_words(made: dict[str, Scorer]) -> None:
    pairs = labelled(12, seed=3)
    for name in ("tfidf_classifier", "pair_classifier"):
        scores = made[name].score(pairs)
        assert [float(made[name].score([pair])[0]) for pair in pairs] == scores.tolist()
    plain = made["tfidf_classifier"]
    np.testing.assert_array_equal(plain.score([Pair(b, a) for a, b, *_ in pairs]), plain.score(pairs))


def test_equal_pairs_make_equal_bytes_in_any_order(tmp_path: Path) -> None:
    pairs = labelled(60)
    for name, own in (("a", pairs), ("b", pairs[::-1])):
        PairClassifier.fit(own, Tokenizer()).save(tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "b").iterdir())
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)


def test_what_only_one_text_has_counts_and_so_do_words_that_stand_for_each_other() -> None:
    random = Random(0)
    pairs = []
    for n in range(200):
        words = random.sample(WORDS, 4)
        ours, theirs = (["cheap"], ["affordable"]) if n % 2 else (["cheap"], ["free"])
        pairs.append(Pair(" ".join([*words, *ours]), " ".join([*words, *theirs]), float(n % 2)))
    classifier = PairClassifier.fit(pairs, Tokenizer())
    same, other = classifier.score([Pair("cheap loom", "affordable loom"), Pair("cheap loom", "free loom")])
    assert same > 0 > other
    left, right, trace = classifier.trace("cheap loom", "affordable loom")
    cells = {(left[cell.left], right[cell.right], cell.channel): cell.contribution for cell in trace.signals}
    assert cells["cheap", "affordable", 1] > 0
    names = {one.name: one.contribution for one in trace.components}
    assert names["only in the text: affordable"] > 0
    assert classifier.word_pair_columns(["a"], ["b"]) == {
        ("a", "b"): classifier.word_pair_columns(["b"], ["a"])["b", "a"]
    }
    assert classifier.word_pair_columns(list("abcdefghi"), ["x"]) == {}
    assert all(0 <= column < PAIR_COLUMNS for column in classifier.word_pair_columns(["a", "c"], ["b"]).values())


def test_the_classifier_reads_chinese() -> None:
    texts = ["重疾险 怎么 理赔", "车险 多少 钱", "养老 保险 是 什么", "寿险 能 退保 吗"]
    pairs = [Pair(a + str(n), b, float(a == b)) for n in range(6) for a in texts for b in texts]
    classifier = PairClassifier.fit(pairs, Tokenizer("chinese"))
    same, other = classifier.score([Pair(texts[0], texts[0]), Pair(texts[0], texts[1])])
    assert same > other
    for pair in (Pair(texts[0], texts[0]), Pair("", "没有"), Pair("\ud800 保险。", "车险，!")):
        assert abs(explain(classifier, *pair[:2]).trace.residual) < 1e-5


def test_one_label_teaches_nothing() -> None:
    with pytest.raises(MatchloomError, match="label more pairs"):
        PairClassifier.fit([pair._replace(label=1.0) for pair in labelled(20)], Tokenizer())


def test_an_encoders_cosine_is_a_feature_and_is_saved_with_it(made: dict[str, Scorer], tmp_path: Path) -> None:
    if "encoder_classifier" not in made:
        pytest.skip("needs tokenizers")
    calibrated = made["encoder_classifier"]
    assert isinstance(calibrated, Calibrated)
    assert isinstance(calibrated.scorer, PairClassifier)
    assert calibrated.scorer.names == (*NAMES, ENCODER)
    same = calibrated.scorer.columns([Pair("a loom", "a loom")]).features[0, -1]
    assert same == pytest.approx(1, abs=1e-5)
    calibrated.scorer.save(tmp_path)
    assert (tmp_path / "encoder").is_dir()


def test_few_pairs_are_development_pairs_once_each() -> None:
    task, pairs = PairsTask(), labelled(60)
    data = task.split(pairs, 0)
    rounds = task.rounds(data, 0)
    held = [pair for _, own in rounds for pair in own]
    assert len(rounds) == 5
    assert sorted(pair.query for pair in held) == sorted(pair.query for pair in [*data.train, *data.development])
    for train, own in rounds:
        assert not {pair.query for pair in train} & {pair.query for pair in own}
        assert {pair.label for pair in own} == {0.0, 1.0}
    assert task.learns_more(data, pairs)
    assert not task.learns_more(task.split_with(pairs, pairs[:4], 0), pairs)


def test_at_most_so_many_pairs_whatever_their_order() -> None:
    pairs = labelled(50)
    assert set(some_pairs(pairs, 7)) == set(some_pairs(pairs[::-1], 7))
    assert some_pairs(pairs, 50) is pairs


def test_an_exchanged_scorer_is_refused(made: dict[str, Scorer], tmp_path: Path) -> None:
    calibrated = made["pair_classifier"]
    assert isinstance(calibrated, Calibrated)
    calibrated.save(tmp_path)
    WordScorer.fit("overlap", ["a text"], Tokenizer()).save(tmp_path / "scorer")
    (tmp_path / "scorer" / "pair_classifier.json").unlink()
    with pytest.raises(MatchloomError, match="scorer was altered since it was saved, or belongs to another"):
        Calibrated.load(tmp_path)


def test_the_threshold_and_probabilities_of_known_scores() -> None:
    scores, right = np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, False, True, True])
    assert best_threshold(scores, right) == 1.5
    slope, offset = platt(scores, right)
    assert slope > 0
    assert slope * 1.5 + offset == pytest.approx(0, abs=1e-3)
    assert platt(scores, ~right)[0] == 0  # a scorer that is wrong says nothing


def test_the_threshold_for_accuracy_alone_says_no_where_matches_are_rare() -> None:
    scores, right = np.arange(6.0), np.array([False, False, True, False, False, False])
    assert best_threshold(scores, right, ["accuracy"]) == 4.5
    assert best_threshold(scores, right, ["F1"]) == 1.5
    assert best_threshold(scores, right) == 1.5


def test_one_list_has_all_pairs_under_one_id() -> None:
    pairs = one_list([*labelled(10), *labelled(10)])
    assert {pair.query_id for pair in pairs} == {"all"}
    assert len({pair.text_id for pair in pairs}) == 20


def test_details_show_what_it_is_surest_of(made: dict[str, Scorer]) -> None:
    details = PairsTask().details(made["pair_classifier"], labelled(30, seed=2))
    first = details["best"][0]
    assert first.right in ("match", "no match")
    assert 0 <= first.score <= 1
    assert first.rank is None
