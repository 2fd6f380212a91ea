"""A fit that was stopped goes on where it was, and ends as if it had never been stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from matchloom import Fitted, fit
from matchloom.artifact import write
from matchloom.cli import main
from matchloom.data.formats import write_pairs
from matchloom.fitting import answers_task
from matchloom.fitting.outcomes import FORMAT, OutcomeStore
from matchloom.fitting.report import FitReport
from matchloom.fitting.trial import Trial
from matchloom.search.baselines import LinearClassifier
from matchloom.types import MatchloomError
from tests.fitting.test_run import faq


def figures(report: FitReport) -> dict[str, Any]:
    """A report without its times."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(report)))
    del plain["minutes"]
    for one in plain["systems"]:
        del one["seconds"]
    return plain


def stop_at(monkeypatch: pytest.MonkeyPatch, at: int, error: type[BaseException] = KeyboardInterrupt) -> None:
    """Ctrl-C when a classifier is made for the at-th time."""
    made = 0

    def making(self: LinearClassifier, *arguments: Any) -> None:
        nonlocal made
        made += 1
        if made == at:
            raise error
        original(self, *arguments)

    original = LinearClassifier.__init__
    monkeypatch.setattr(LinearClassifier, "__init__", making)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is measured from now on."""
    names: list[str] = []
    measure = answers_task.AnswersTask.measure_on

    def measuring(self: Any, scorer: Any, pairs: Any) -> Any:
        names.append(scorer.name)
        return measure(self, scorer, pairs)

    monkeypatch.setattr(answers_task.AnswersTask, "measure_on", measuring)
    return names


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> FitReport:
    """The report of a fit that was not stopped."""
    folder = tmp_path_factory.mktemp("whole")
    report = fit(faq(40), out=folder).report
    assert not (folder / "work").exists()
    return report


def test_ctrl_c_keeps_the_best_so_far_and_resume_goes_on(
    whole: FitReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 3)  # in the third round of its development questions
        stopped = fit(faq(40), out=tmp_path / "stopped")
    assert "linear_classifier" in stopped.report.notes[0]
    assert Fitted.load(tmp_path / "stopped").report.chosen != "answer_ranker"
    with pytest.raises(MatchloomError, match=r"add resume=True to [\w ]+, overwrite=True"):
        fit(faq(40), out=tmp_path / "stopped")
    with monkeypatch.context() as patch:
        names = counted(patch)
        resumed = fit(faq(40), out=tmp_path / "stopped", resume=True)
        assert names.count("linear_classifier") == 3 + 1  # rounds that were left, and the test questions
        assert "trans_lm" not in names
    assert figures(resumed.report) == figures(whole)
    assert not (tmp_path / "stopped" / "work").exists()
    with pytest.raises(MatchloomError, match="was not stopped"):
        fit(faq(40), out=tmp_path / "stopped", resume=True)


@pytest.mark.parametrize("at", [1, 4, 9, 14])
def test_ctrl_c_after_the_choice_leaves_a_folder_that_answers(
    whole: FitReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    work = ("curve", "details", "promise", "make", "_test_one", "save")
    calls = 0

    def stopping(original: Any) -> Any:
        def called(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += chosen
            if chosen and calls == at:
                raise KeyboardInterrupt
            return original(*arguments, **named)

        return called

    chosen, choose = 0, Trial.choose

    def choosing(self: Trial, tried: Any) -> Any:
        nonlocal chosen
        chosen = 1
        return choose(self, tried)

    with monkeypatch.context() as patch:
        patch.setattr(Trial, "choose", choosing)
        for name in work:
            for owner in (Trial, answers_task.AnswersTask, Fitted):
                if name in vars(owner):
                    patch.setattr(owner, name, stopping(vars(owner)[name]))
        stopped = fit(faq(40), out=tmp_path / "stopped")
    assert any("Stopped" in line for line in stopped.report.notes), calls
    loaded = Fitted.load(tmp_path / "stopped")
    assert loaded.collection is not None
    assert loaded.collection.search("order")
    assert figures(fit(faq(40), out=tmp_path / "stopped", resume=True).report) == figures(whole)


def test_what_was_begun_with_other_data_or_settings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 1)
        fit(faq(40), out=tmp_path)
    for pairs, seed in ((faq(41), 0), (faq(40), 1)):
        with pytest.raises(MatchloomError, match="was begun with other data, another seed or other settings"):
            fit(pairs, out=tmp_path, seed=seed, resume=True)
    (tmp_path / "work" / "measured.json").write_text("{", encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"measured.json is damaged or cut off; start anew with overwrite"):
        fit(faq(40), out=tmp_path, resume=True)
    for wrong in ({"out": None}, {"out": tmp_path, "overwrite": True}):
        with pytest.raises(MatchloomError, match="resume=True needs the folder"):
            fit(faq(40), resume=True, **wrong)  # type: ignore[arg-type]
    assert fit(faq(40), out=tmp_path, overwrite=True).report.chosen
    assert not (tmp_path / "work").exists()


def test_an_error_leaves_nothing_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_at(monkeypatch, 1, RuntimeError)
    with pytest.raises(RuntimeError):
        fit(faq(40), out=tmp_path)
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(
    "forged",
    [
        *({}, [], {"x": 1}, {"x": {}}, {"x": {"values": {"P@1": 1.0}, "each": {}, "seconds": 1.0}}),
        {"x": {"values": [], "each": {"P@1": [1.0]}, "seconds": 1.0}},
        {"x": {"values": {"P@1": 1.0}, "each": {"P@1": "x"}, "seconds": 1.0}},
        {"x": {"values": {"P@1": 1.0}, "each": {"P@1": [[1.0]]}, "seconds": 1.0}},
        {"x": {"values": {"P@1": 1.0}, "each": {"P@1": [float("inf")]}, "seconds": 1.0}},
        {"x": {"values": {"P@1": 1.0}, "each": {"P@1": [1.0]}, "seconds": -1.0}},
        {"x": {"values": {"P@1": 1.0}, "each": {"P@1": [1.0]}, "seconds": 1e300}},
        {"x": {"error": 7}},
        {"x": {"error": "none", "other": 1}},
    ],
)
def test_forged_measurements_are_refused_in_one_line(tmp_path: Path, forged: Any) -> None:
    write(tmp_path, "measured", FORMAT, {"key": "key", "measured": forged})
    if forged == {}:
        assert OutcomeStore(tmp_path, "key", resume=True, measures=("P@1",)).resumed == 0
        return
    with pytest.raises(MatchloomError, match="holds figures that no fit has; start anew") as caught:
        OutcomeStore(tmp_path, "key", resume=True, measures=("P@1",))
    assert caught.value.code == "damaged"


@pytest.mark.slow
def test_a_killed_fit_is_resumed_by_the_command(
    whole: FitReport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pairs(tmp_path / "faq.tsv", faq(40))
    arguments = ["fit", str(tmp_path / "faq.tsv"), "--out", str(tmp_path / "faq")]
    measured = tmp_path / "faq" / "work" / "measured.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "matchloom", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not measured.exists():
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    # Quick machines may have finished; then there is nothing to test here.
    if measured.exists():
        assert json.loads(measured.read_text(encoding="utf-8"))["settings"]["measured"]
        assert main([*arguments, "--resume"]) == 0
        assert "Resuming a stopped fit" in capsys.readouterr().err
    assert figures(Fitted.load(tmp_path / "faq").report) == figures(whole)
