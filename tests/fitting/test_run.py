"""`fit` from a file to a folder that every command takes; what is chosen, and what is refused."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matchloom import Fitted, Pair, explain, fit
from matchloom.cli import main
from matchloom.data.formats import write_pairs
from matchloom.data.identity import questions_of
from matchloom.data.kinds import kind_of
from matchloom.data.splits import asked_once, texts_alone
from matchloom.fitting.answers_task import AnswersTask
from matchloom.fitting.fitted import as_kept
from matchloom.fitting.outcomes import OutcomeStore
from matchloom.fitting.systems import Candidate, Outcome
from matchloom.fitting.trial import Trial
from matchloom.search.baselines import BASELINES
from matchloom.search.entries import Entries
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError
from tests.fitting.samples import small_report

TOPICS = {
    "a1": ("Open Settings and choose Reset password.", ["reset", "password", "forgot", "login", "locked"]),
    "a2": ("Companies can pay by monthly invoice.", ["invoice", "bill", "pay", "payment", "company"]),
    "a3": ("Parcels arrive within three days.", ["parcel", "delivery", "arrive", "shipping", "days"]),
    "a4": ("Write to support to close your account.", ["close", "delete", "account", "cancel", "leave"]),
    "a5": ("The app runs on phones and tablets.", ["app", "phone", "tablet", "install", "mobile"]),
}
FILLER = ["how", "do", "I", "please", "can", "my", "the", "what", "about", "where", "is", "help", "with"]


def faq(count: int = 60, seed: int = 0) -> list[Pair]:
    rng = random.Random(seed)
    pairs = []
    for n in range(count):
        name, (answer, words) = list(TOPICS.items())[n % len(TOPICS)]
        question = [*rng.sample(FILLER, 3), *rng.sample(words, 2), str(n)]
        pairs.append(Pair(" ".join(question), answer, text_id=name))
    return pairs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("fit")
    write_pairs(where / "faq.tsv", faq())
    assert main(["fit", str(where / "faq.tsv"), "--out", str(where / "faq")]) == 0
    return where / "faq"


def test_a_folder_ranks_scores_explains_and_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted = Fitted.load(folder)
    assert fitted.kind == "answers"
    first = fitted.rank("I forgot my pasword", top=2)[0]  # a letter is missing
    assert (first.id, first.text) == ("a1", TOPICS["a1"][0])
    assert first.question is not None
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert fitted.report.verdict[0].split(":")[0] in page
    for arguments in (
        ["search", str(folder), "I forgot my password", "--top", "2", "--explain"],
        ["explain", str(folder), "I forgot my password", TOPICS["a1"][0]],
    ):
        assert main(arguments) == 0
        assert "password" in capsys.readouterr().out


def test_new_questions_are_measured_against_all_answers(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pairs(tmp_path / "new.tsv", [Pair(f"{words[0]} {words[3]}", text) for text, words in TOPICS.values()])
    assert main(["evaluate", str(folder), str(tmp_path / "new.tsv"), "--measures", "P@1"]) == 0
    shown = capsys.readouterr()
    assert "against all 5 texts" in shown.err
    assert "answer_ranker" in shown.out or "bm25" in shown.out


def test_nothing_depends_on_the_order_of_lines() -> None:
    pairs = faq(40)
    shuffled = random.Random(1).sample(pairs, len(pairs))
    first, other = (fit(given).report for given in (pairs, shuffled))
    assert [(s.name, s.test, s.development, s.p) for s in first.systems] == [
        (s.name, s.test, s.development, s.p) for s in other.systems
    ]
    assert (first.chosen, first.curve, first.best) == (other.chosen, other.curve, other.best)


def test_held_out_questions_leave_every_answer_and_one_of_its_questions() -> None:
    pairs = faq(30)
    train, _, test = AnswersTask().split(pairs, 0)
    assert {pair.text for pair in train} == {pair.text for pair in pairs}
    assert not questions_of(train).keys() & questions_of(test).keys()
    assert {pair.text for pair in train if pair.query} == {pair.text for pair in pairs}
    assert len(questions_of(test)) == 6


def test_every_question_is_a_development_question_once() -> None:
    task = AnswersTask()
    rounds = task.rounds(task.split(faq(30), 0), 0)
    seen = [question for _, development in rounds for question in questions_of(development)]
    assert len(seen) == len(set(seen))
    for part, development in rounds:
        assert not questions_of(part).keys() & questions_of(development).keys()


def test_what_is_kept_has_learnt_from_every_question(folder: Path) -> None:
    kept = Fitted.load(folder).collection
    assert kept is not None
    assert {question for own in kept.entries.questions for question in own} == {pair.query for pair in faq()}


THINGS = ["loom", "mill", "kiln", "forge", "press", "lathe", "still", "wheel", "crane", "clock", "pump", "organ"]


def once() -> list[Pair]:
    """An FAQ whose answers have one question each, which shares a word with the text."""
    ways = ("clean", "mend", "sell")
    return [
        Pair(f"May I {way} the {thing}?", f"Ask {thing} keeper {n}, who will {way} what you bring.")
        for n, (thing, way) in enumerate((thing, way) for thing in THINGS for way in ways)
    ]


def test_an_answer_with_one_question_is_measured_by_its_text_and_kept_with_its_question(tmp_path: Path) -> None:
    train, _, test = AnswersTask().split(once(), 0)
    assert [asked_once(pairs) for pairs in (once(), faq())] == [True, False]
    assert [texts_alone(pairs) for pairs in (train, once(), AnswersTask().split(faq(), 0).train)] == [
        True,
        False,
        False,
    ]
    held = {pair.text for pair in test}
    assert {pair.text for pair in train if not pair.query} == held
    fitted = fit(once(), out=tmp_path / "once")
    report = fitted.report
    assert report.texts_alone
    assert report.chosen == "answer_ranker"
    assert "found by its text alone" in report.verdict[0]
    assert "only the answer's text is left" in report.verdict[1]
    assert not {"nearest_question"} & {one.name for one in report.systems}  # it has nothing to be near to
    # 36 answers, by what they say: each thing has three.
    assert next(one for one in report.systems if one.name == "answer_ranker").test["R@3"] > 0.5
    kept = Fitted.load(tmp_path / "once")
    assert kept.report.texts_alone
    for pair in test:
        first = kept.rank(pair.query, top=1)[0]
        assert (first.text, first.question) == (pair.text, pair.query)


def test_eight_questions_of_two_answers_are_not_one_each() -> None:
    fitted = fit(faq(20)[::5] + faq(20)[1::5])
    assert not fitted.report.texts_alone
    assert not any("Each answer has one question" in line for line in fitted.report.verdict)
    assert fitted.report.tested == 2


def test_what_is_only_shown_is_not_chosen() -> None:
    measured = OutcomeStore(None, "", resume=False, measures=())
    run = Trial(AnswersTask(), kind_of(faq(), None), Tokenizer(), 0, 1e9, None, measured, lambda line: None)
    ranker, values = Candidate("ranker", "", lambda *_: None), np.random.default_rng(0).random(200)
    for report_only, expected in ((False, "bm25"), (True, "ranker")):
        bm25 = Candidate("bm25", "", lambda *_: None, baseline=True, report_only=report_only)
        for name, each in (("ranker", values), ("bm25", values + 0.1)):
            run.developed[name] = Outcome({"P@1": float(each.mean())}, {"P@1": each})
        assert run.choose([bm25, ranker]).name == expected


def test_a_test_file_is_not_learnt_from(tmp_path: Path) -> None:
    fitted = fit(faq(30), test=[("warp and weft of the loom", TOPICS["a3"][0])])
    assert fitted.report.tested == 1
    assert fitted.collection is not None
    assert all("loom" not in question for own in fitted.collection.entries.questions for question in own)


@pytest.mark.parametrize(
    ("pairs", "found"),
    [
        ([("q1", "a"), ("q2", "b")], "answers"),
        ([("q1", "a", 1), ("q1", "b", 0), ("q2", "a", 0), ("q2", "c", 1)], "lists"),
        ([("q1", "a", 1), ("q2", "b", 0), ("q3", "c", 1), ("q4", "d", 0)], "pairs"),
    ],
)
def test_what_a_file_is(pairs: list[tuple[str, str] | tuple[str, str, int]], found: str) -> None:
    assert kind_of([Pair(*pair) for pair in pairs]).name == found


def test_what_cannot_be_fitted_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MatchloomError, match="found 3 different questions; fit needs 5 or more"):
        fit(faq(3))
    with pytest.raises(MatchloomError, match="kind 'faq' is unknown; choose one of answers, lists, pairs"):
        fit(faq(9), kind="faq")
    with pytest.raises(MatchloomError, match="minutes must be above 0"):
        fit(faq(9), minutes=0)
    (tmp_path / "fit.json").write_text("{}", encoding="utf-8")
    with pytest.raises(MatchloomError, match="holds a fitted system already"):
        fit(faq(9), out=tmp_path)
    assert main(["search", str(tmp_path), "question"]) == 2
    told = capsys.readouterr().err
    assert "fit.json is damaged" in told
    assert told.count("\n") == 1


def test_a_second_fit_into_the_same_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    whole = Trial.go

    def go(self: Trial, *given: Any) -> Fitted:
        if not told:
            with pytest.raises(MatchloomError, match="is being written by another run") as caught:
                fit(faq(20), out=tmp_path)
            told.append(caught.value.code)
        return whole(self, *given)

    monkeypatch.setattr(Trial, "go", go)
    fit(faq(20), out=tmp_path)
    assert told == ["busy"]
    assert Fitted.load(tmp_path).rank("deliver my parcel", top=1)


def test_the_report_belongs_to_the_system(tmp_path: Path) -> None:
    """A page, or a manifest, of another fit is refused."""
    for seed in (0, 1):
        fit(faq(20, seed), out=tmp_path / str(seed))
    files = ["changes-1.confirmed", "changes-1.jsonl", "collection.json", "index-1.safetensors", "report.html"]
    assert sorted(path.name for path in (tmp_path / "0").iterdir()) == files
    for name in ("report.html", "collection.json"):
        shutil.copytree(tmp_path / "0", tmp_path / name)
        (tmp_path / name / name).write_bytes((tmp_path / "1" / name).read_bytes())
        with pytest.raises(MatchloomError, match="was altered since it was saved, or belongs to another") as caught:
            Fitted.load(tmp_path / name)
        assert caught.value.code == "altered"


def test_ids_of_candidates_do_not_join_answers() -> None:
    pairs = [pair._replace(text_id=str(n % 3)) for n, pair in enumerate(faq(30))]
    report = fit(pairs)
    assert report.collection is not None
    assert len(report.collection) == 5
    assert "text_id is not used to identify answers" in report.report.notes[0]


def test_thirty_pairs_are_enough(tmp_path: Path) -> None:
    fitted = fit(faq(30), out=tmp_path / "small")
    assert "Only 6 test questions" in " ".join(fitted.report.verdict)
    assert Fitted.load(tmp_path / "small").rank("deliver my parcel", top=1)[0].id == "a3"


@pytest.mark.parametrize("name", ["bm25_stemmed", "trans_lm", "nearest_question", "linear_classifier"])
def test_a_baseline_that_was_chosen_is_kept_and_comes_back(name: str, tmp_path: Path) -> None:
    scorer = BASELINES[name](Entries.of(faq(30)))
    Fitted(as_kept(scorer), small_report(), "answers").save(tmp_path)
    loaded = Fitted.load(tmp_path).scorer
    assert loaded.name == name
    asked = [Pair("forgot the password", text) for text, _ in TOPICS.values()]
    np.testing.assert_array_equal(loaded.score(asked), scorer.score(asked))
    if name in ("bm25_stemmed", "trans_lm"):
        explained = explain(loaded, "how do I reset my password", TOPICS["a1"][0])
        assert explained.trace.score == pytest.approx(
            float(loaded.score([Pair("how do I reset my password", TOPICS["a1"][0])])[0])
        )
        assert explained.trace.signals


def test_a_question_of_nothing_finds_nothing(folder: Path) -> None:
    fitted = Fitted.load(folder)
    assert fitted.rank("ξψω", top=3) == fitted.rank("ξψω", top=1) == []
    assert [len(found) for found in fitted.search(["my password", "ξψω"], top=2)] == [2, 0]
    for empty in ("", "  "):
        with pytest.raises(MatchloomError, match=r"the question is .*; expected a text"):
            fitted.rank(empty)


def test_a_question_of_stray_letters_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(folder), "xqpa zw"]) == 0
    shown = capsys.readouterr().out
    assert "No answer is certain enough" in shown
    assert shown.count("asked before") == 3
    assert main(["search", str(folder), "xqpa zw", "--top", "5"]) == 0
    assert capsys.readouterr().out.count("asked before") == 5
    assert main(["search", str(folder), "xqpa zw", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["confident"] is False
    assert main(["search", str(folder), "I forgot my password", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["confident"] is True
    assert 0.9 < shown["known"] < 1
    assert 0.5 < shown["answers"][0]["probability"] < 1


def test_a_name_that_is_too_long_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pairs(tmp_path / "new.tsv", faq(10))
    for arguments in (["evaluate", "x" * 5000, str(tmp_path / "new.tsv")], ["search", "x" * 5000, "question"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith("matchloom: error: ")


def test_a_system_that_looked_at_the_development_pairs_must_win_by_more_than_chance() -> None:
    measured = OutcomeStore(None, "", resume=False, measures=())
    run = Trial(AnswersTask(), kind_of(faq(), None), Tokenizer(), 0, 1e9, None, measured, lambda line: None)
    simple = Candidate("simple", "", lambda *_: None)
    network = Candidate("network", "", lambda *_: None, needs_significance=True)
    base = np.random.default_rng(0).random(200)
    for each, expected in ((np.random.default_rng(1).permutation(base) + 0.001, simple), (base + 0.1, network)):
        for one, values in ((simple, base), (network, each)):
            run.developed[one.name] = Outcome({"P@1": float(values.mean())}, {"P@1": values})
        assert run.choose([simple, network]) is expected
