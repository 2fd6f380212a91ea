from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from matchloom.artifact import load
from matchloom.explanation import explain
from matchloom.fitting import lists_task
from matchloom.fitting.list_fusion import ListFusion
from matchloom.fitting.lists_task import MAXSIM, TUNED, ListsTask
from matchloom.fitting.report import FitReport
from matchloom.fitting.trained import train_within
from matchloom.fitting.word_scorers import WordScorer
from matchloom.matcher import Matcher
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Explains, MatchloomError, Pair, Scorer, Scores
from tests.encoders.making import write_folder

THINGS = [
    f"{a}{b}" for a in ("loom", "mill", "kiln", "forge", "wheel") for b in ("er", "ing", "ock", "ham", "ley", "ton")
]


def lists(questions: int = 24, size: int = 4) -> list[Pair]:
    """Each question names a thing and so does its right text; the wrong ones name others."""
    found = []
    for n in range(questions):
        thing = THINGS[n % len(THINGS)]
        others = Random(n).sample([other for other in THINGS if other != thing], size - 1)
        for k, named in enumerate([thing, *others]):
            text = f"the {named} of the village is old, says note {n}"
            found.append(Pair(f"where is the {thing} number {n}", text, float(k == 0), f"q{n}", f"t{n}-{k}"))
    return Random(1).sample(found, len(found))


class Constant:
    name = "constant"

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        return np.zeros(len(pairs), np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scorer]:
    task, pairs = ListsTask(), lists()
    data = task.split(pairs, 0)
    folder = tmp_path_factory.mktemp("lists")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matchloom.fitting.trained.DIMENSIONS", 8)
        quick = {
            name: (
                about,
                {**arguments, **({"hidden": 4} if name == "mv_lstm" else {})},
                {**settings, "epochs": 8, "learning_rate": 0.05},
            )
            for name, (about, arguments, settings) in lists_task.NETWORKS.items()
        }
        patch.setattr(lists_task, "NETWORKS", quick)
        candidates = task.candidates(pairs, Tokenizer(), 0)
        return {one.name: one.make(data.train, data.development, folder / one.name, 60.0) for one in candidates}


def test_questions_stay_together_and_every_part_has_some() -> None:
    pairs = lists(40)
    data = ListsTask().split(pairs, 0)
    parts = [{pair.query_id for pair in part} for part in data]
    assert [len(part) for part in parts] == [20, 10, 10]
    assert not (parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2])
    again = ListsTask().split(Random(3).sample(pairs, len(pairs)), 0)
    assert [{pair.query_id for pair in part} for part in again] == parts


@pytest.mark.parametrize(("questions", "sizes"), [(6, (4, 1, 1)), (200, (140, 30, 30)), (100, (60, 20, 20))])
def test_how_many_questions_a_part_has(questions: int, sizes: tuple[int, ...]) -> None:
    data = ListsTask().split(lists(questions, 2), 0)
    assert tuple(len({pair.query_id for pair in part}) for part in data) == sizes


def test_too_few_questions_are_refused_in_one_line() -> None:
    with pytest.raises(MatchloomError, match=r"5 questions have both .* expected 6 or more") as refused:
        ListsTask().split(lists(5), 0)
    assert "\n" not in str(refused.value)


def test_questions_with_one_label_are_for_training_only() -> None:
    alone = [Pair("is there an answer", "no answer here", 0.0)]
    data = ListsTask().split([*lists(12), *alone], 0)
    assert [pair.query for pair in data.train].count("is there an answer") == 1


def test_measures_do_not_depend_on_order_and_have_a_value_for_each_question() -> None:
    task, pairs = ListsTask(), lists(10)
    for scorer in (Constant(), WordScorer.fit("bm25", [pair.text for pair in pairs], Tokenizer())):
        one, other = task.measure_on(scorer, pairs), task.measure_on(scorer, Random(5).sample(pairs, len(pairs)))
        assert one.values == other.values
        for name in task.measures:
            np.testing.assert_array_equal(one.each[name], other.each[name])
            assert len(one.each[name]) == 10
            assert one.each[name].mean() == pytest.approx(one.values[name])


def test_a_text_that_is_listed_twice_is_measured() -> None:
    twice = [Pair("q", "a", 1.0, "1", "same"), Pair("q", "b", 0.0, "1", "same")]
    assert ListsTask().measure_on(Constant(), twice).values["AP"] > 0


def test_every_candidate_scores_explains_and_comes_back(made: dict[str, Scorer], tmp_path: Path) -> None:
    pairs = lists(8)
    assert list(made) == ["bm25", "bm25_stemmed", "overlap", "knrm", "mv_lstm", "list_fusion"]
    for name, scorer in made.items():
        assert isinstance(scorer, Explains)
        scores = scorer.score(pairs)
        assert scores.shape == (len(pairs),)
        assert np.isfinite(scores).all()
        explanation = explain(scorer, pairs[0].query, pairs[0].text)  # checks that it adds up
        assert explanation.trace.score == pytest.approx(float(scores[0]), abs=1e-4)
        scorer.save(tmp_path / name)  # type: ignore[attr-defined]
        loaded = load(tmp_path / name)
        np.testing.assert_array_equal(loaded.score(pairs), scores)


def test_several_networks_score_together_where_there_is_time(made: dict[str, Scorer]) -> None:
    network = made["mv_lstm"]
    assert isinstance(network, Matcher)
    assert network.arguments["ensemble_size"] == lists_task.ENSEMBLE_SIZE
    many = [Pair("", "")] * 25_001
    assert [lists_task.ensemble_size(name, many[:n]) for name, n in (("mv_lstm", 25_000), ("mv_lstm", 25_001))] == [
        5,
        1,
    ]
    assert lists_task.ensemble_size("knrm", []) == 1


def test_a_fusion_depends_on_the_pair_alone_and_its_words_stand_once(made: dict[str, Scorer]) -> None:
    fusion, pairs = made["list_fusion"], lists(6)
    assert isinstance(fusion, ListFusion)
    assert (fusion.weights >= 0).all()
    np.testing.assert_allclose(fusion.score(pairs)[3:4], fusion.score(pairs[3:4]), rtol=1e-5)
    left, right, _ = fusion.trace("where is the loomer", "the loomer is old")
    assert (left, right) == (["where", "is", "the", "loomer"], ["the", "loomer", "is", "old"])


def test_a_fusion_with_another_scorer_is_refused(made: dict[str, Scorer], tmp_path: Path) -> None:
    fusion = made["list_fusion"]
    assert isinstance(fusion, ListFusion)
    fusion.save(tmp_path)
    WordScorer.fit("overlap", ["another text"], Tokenizer()).save(tmp_path / "overlap")
    with pytest.raises(MatchloomError, match=r"overlap/words\.json was altered since it was saved, or belongs"):
        ListFusion.load(tmp_path)


def test_a_fusion_of_good_and_useless_scorers_trusts_the_good_one() -> None:
    pairs = lists(30)
    good = WordScorer.fit("normalized_bm25", [pair.text for pair in pairs], Tokenizer())
    random = np.random.default_rng(0)

    class Noise(Constant):
        name = "mv_lstm"  # what is expected of it is as much as of the good one

        def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
            return random.normal(size=len(pairs)).astype(np.float32)

    fusion = ListFusion.fit([Noise(), good], pairs, Tokenizer())
    assert fusion.weights[1] > 1.5 * fusion.weights[0], fusion.weights


def test_details_fill_a_report(made: dict[str, Scorer]) -> None:
    pairs = lists(12)
    details = ListsTask().details(made["overlap"], pairs)
    assert details["best"]
    assert details["best"][0].rank == 1
    assert any("numb" not in word for word, _ in details["best"][0].words)
    report = FitReport("lists", "", "RR", ("RR",), (), "overlap", 1, 1, (), **details)
    assert FitReport.from_dict(report.to_dict()).best[0].question == details["best"][0].question
    worst = ListsTask().details(Constant(), pairs)["worst"]
    assert len(worst) == 5


def test_training_stops_when_time_is_up(tmp_path: Path) -> None:
    data = ListsTask().split(lists(), 0)
    matcher = train_within(
        0.0,
        data.train,
        data.development,
        tmp_path,
        model="mv_lstm",
        arguments={"hidden": 4},
        settings={"epochs": 50, "patience": 50},
        tokenizer=Tokenizer(),
    )
    assert isinstance(matcher, Matcher)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


def test_an_encoder_is_tried_as_it_is_and_fine_tuned(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    task, pairs = ListsTask(write_folder(tmp_path / "encoder")), lists(10)
    data = task.split(pairs, 0)
    candidates = {one.name: one for one in task.candidates(data.train, Tokenizer(), 0)}
    untrained, tuned = candidates[MAXSIM], candidates[TUNED]
    assert (untrained.baseline, tuned.baseline) == (True, False)
    assert [one.name for one in candidates.values() if one.needs_significance] == ["knrm", "mv_lstm", "list_fusion"]
    made = {one.name: one.make(data.train, data.development, tmp_path / one.name, 60.0) for one in (untrained, tuned)}
    assert tuned.make(data.train, data.development, tmp_path / "again", 60.0) is made[TUNED]  # trained once
    for scorer in made.values():
        assert isinstance(scorer, Matcher)
        assert 0 < task.measure_on(scorer, data.development).values["RR"] <= 1
    assert "untrained" not in made[TUNED].training
    few = tuned.make(data.train[:12], data.development, tmp_path / "few", 1e-3)  # time for one question
    assert isinstance(few, Matcher)
    assert few.training["pairs"] < 12
