"""Runs over HTTP: listed, shown as they grow, and nothing beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from matchloom.artifact import writing
from tests.runs.test_runs import write_log
from tests.service.making import ask, code_of, make_app, running
from tests.service.test_page import CHROMIUM, FLAGS, Watched


def test_runs_are_listed_and_shown(tmp_path: Path) -> None:
    write_log(tmp_path / "runs" / "one", 2)
    write_log(tmp_path / "outside", 2)
    app = make_app(tmp_path, runs=tmp_path / "runs")
    (listed,) = ask(app, "/v1/runs").json()["runs"]
    assert (listed["name"], listed["kind"], listed["running"]) == ("one", "training", False)
    shown = ask(app, "/v1/run?name=one").json()
    assert "<polyline" in shown["html"]
    assert ask(app, "/runs").status_code == 200
    for name in ("../outside", "none", "", "/etc"):
        assert code_of(ask(app, f"/v1/run?name={name}")) == (404, "unknown")
    assert code_of(ask(make_app(tmp_path), "/v1/runs")) == (404, "unknown")
    assert ask(app, "/ready").status_code == 200, "nothing but runs need be served"


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the page of runs was not tested in a browser")
def test_the_page_follows_a_run(tmp_path: Path, artefacts: Path) -> None:
    folder = write_log(tmp_path / "one", 2)
    write_log(tmp_path / "two", 5)
    with (
        writing(folder),
        running(make_app(tmp_path, runs=tmp_path)) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        watched = Watched(browser.new_page())
        page = watched.page
        page.goto(f"{url}/runs")
        expect(page.locator("#run h1")).to_have_text("one")
        expect(page.locator("#status")).to_contain_text("follows it")
        before = page.locator(".curve circle").count()
        write_log(folder, 4)
        expect(page.locator(".curve circle")).not_to_have_count(before)
        page.screenshot(path=artefacts / "runs.png", full_page=True)
        page.locator(".run-link", has_text="two").click()
        expect(page.locator("#run h1")).to_have_text("two")
        browser.close()
        assert watched.complaints == []
    shutil.rmtree(folder)


def test_runs_that_vanish_or_are_forged_do_not_break_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matchloom.runs import reading

    for name, line in (("good", '{"epoch": 1, "step": 2, "loss": 0.5}'), ("long", '{"epoch": ' + "9" * 400 + "}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.jsonl").write_text(line + "\n", encoding="utf-8")
    assert [run.name for run in reading.find_runs(tmp_path)] == ["good"]
    read = reading.read_run

    def gone(folder: Path, name: str | None = None) -> reading.Run:
        if folder.name == "good":
            raise FileNotFoundError(folder)
        return read(folder, name)

    monkeypatch.setattr(reading, "read_run", gone)
    assert reading.find_runs(tmp_path) == []
