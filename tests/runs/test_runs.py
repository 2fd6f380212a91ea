"""Trainings and fits as pages: what a folder tells, while it is written and after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom.artifact import write, writing
from matchloom.fitting.fitted import Fitted
from matchloom.runs import find_runs, measure_run, read_run, render_fragment, render_page
from matchloom.types import MatchloomError
from tests.cli.conftest import Run, corpus, error_of, run, trained  # noqa: F401
from tests.explanation.test_html import Page
from tests.fitting.samples import small_report
from tests.service.making import make_fitted

EVIL = "<script>alert(1)</script>"


def write_log(folder: Path, epochs: int, **more: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"epoch": n + 1, "step": 20, "loss": 1 / (n + 1), "RR": 0.5 + 0.1 * n, **more} for n in range(epochs)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def test_a_training_while_it_runs_and_after(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "one", 2)
    with writing(folder):
        assert read_run(folder).running
        first = render_fragment(read_run(folder))
    assert "running" in first
    assert first.count('<svg class="curve wide"') == first.count('<svg class="curve narrow"') == 2
    write_log(folder, 3)
    then = read_run(folder)
    assert (then.running, then.measure, len(then.log)) == (False, "RR", 3)
    page = render_fragment(then)
    assert "finished" in page
    assert page.count("<circle") > first.count("<circle"), "the curves have grown"
    assert " style=" not in page


def test_a_trained_matcher_with_its_development_pairs(trained: Path, corpus: Path) -> None:  # noqa: F811
    found = read_run(trained)
    measured = measure_run(trained, corpus / "dev.tsv", found.measure or "RR")
    source = render_page(found, measured)
    page = Page(source)
    text = " ".join(" ".join(row) for row in page.rows)
    assert "bm25" in text
    assert 'class="across"' in source, "baselines are lines"
    assert source.count('<details class="one">') >= 10
    assert len(page.data) >= 10, "explained"
    assert all(question.rank >= measured.worst[-1].rank for question in measured.worst)
    assert all(question.rank == 1 and question.right is None for question in measured.best)
    assert f"epoch {found.training['best']['epoch']}" in source


def test_a_fit_and_one_that_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "faq").mkdir()
    Fitted(make_fitted().scorer, small_report(), "answers").save(tmp_path / "faq")
    assert "8 of 10 questions get the right answer first." in render_page(read_run(tmp_path / "faq"))
    work = tmp_path / "going" / "work"
    measured = {"development/bm25": {"values": {"P@1": 0.25}}, "curve/bm25/100": {"values": {"P@1": 0.1}}, "odd": 3}
    write(work, "measured", 2, {"measured": measured})
    page = render_fragment(read_run(tmp_path / "going"))
    assert "development/bm25" in page
    assert "0.2500" in page
    assert "curve" not in page
    assert {one.name for one in find_runs(tmp_path)} == {"faq", "going"}


def test_runs_are_found_two_levels_down_and_broken_ones_left_out(tmp_path: Path) -> None:
    write_log(tmp_path / "a", 1)
    write_log(tmp_path / "group" / "b", 1)
    write_log(tmp_path / "group" / "more" / "c", 1)
    broken = write_log(tmp_path / "broken", 1)
    (broken / "log.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert sorted(one.name for one in find_runs(tmp_path)) == ["a", "group/b"]
    assert [one.name for one in find_runs(tmp_path / "a")] == ["a"]
    with writing(tmp_path / "group" / "b"):
        assert find_runs(tmp_path)[0].name == "group/b", "what runs comes first"
    assert find_runs(tmp_path / "none") == []
    with pytest.raises(MatchloomError, match="no folder of a run"):
        read_run(tmp_path)


@pytest.mark.parametrize("log", ["", '{"epoch": 1}\n', '{"epoch": 1, "step": 0, "loss": NaN, "RR": 1e999}\n'])
def test_odd_logs_are_drawn_as_far_as_they_go(tmp_path: Path, log: str) -> None:
    folder = write_log(tmp_path / "odd", 1)
    (folder / "log.jsonl").write_text(log, encoding="utf-8")
    assert "odd" in render_page(read_run(folder))


def test_nothing_in_a_run_becomes_markup(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "evil", 2, **{EVIL: 1.0})
    about = {"model": EVIL, "arguments": {EVIL: EVIL}, "training": {"config": {"loss": EVIL}, "nothing_learnt": EVIL}}
    (folder / "matcher.json").write_text(json.dumps(about), encoding="utf-8")
    source = render_page(read_run(folder, EVIL))
    assert EVIL not in source
    assert [tag for tag, _ in Page(source).tags if tag == "script"] == []


def test_the_command(trained: Path, corpus: Path, tmp_path: Path, run: Run) -> None:  # noqa: F811
    out = tmp_path / "run.html"
    assert run("report", trained, "--html", out, "--dev", corpus / "dev.tsv").code == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    shown = run("report", trained)
    assert shown.code == 0
    assert "finished" in shown.out
    assert "loss" in shown.out
    assert "no folder of a run" in error_of(run("report", tmp_path))
