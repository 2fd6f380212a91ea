"""Thumbs up and down: only of answers that are served; kept, learnt, and never the ruin of an FAQ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom import Collection
from matchloom.search.feedback import read_feedback
from tests.cli.conftest import Run, run  # noqa: F401
from tests.service.making import PASSWORD, TEXTS, ask, code_of, make_app, running

ODD = 'a "quoted"\n\tquestion with \u2028 and <b>'


@pytest.fixture
def judging(served: Path, tmp_path: Path) -> FastAPI:
    for name in ("tickets", "faq", "mv"):
        shutil.copytree(served / name, tmp_path / name)
    return make_app(tmp_path, "faq", "tickets", "mv", feedback=tmp_path / "thumbs.jsonl")


def thumb(question: str, label: Any = 1, **more: Any) -> dict[str, Any]:
    return {"question": question, "label": label, **more}


def test_thumbs_are_kept_with_the_id_of_the_answer(judging: FastAPI, tmp_path: Path) -> None:
    for body in (
        thumb("lost password", id="password", text=TEXTS[0], system="faq"),  # as every version sent it
        thumb("lost password", 0, text=f"  {TEXTS[2].upper()} "),  # by the text alone
        thumb(ODD, id="html", who="ann"),
    ):
        assert ask(judging, "/v1/feedback", body).json() == {"kept": True}
    file = tmp_path / "thumbs.jsonl"
    assert file.stat().st_mode & 0o077 == 0, "questions are nobody else's business"
    found, damaged = read_feedback(file)
    assert [(one.question, one.id, one.right, one.who, one.system) for one in found] == [
        ("lost password", "password", True, "", "faq"),
        ("lost password", "invoice", False, "", "faq"),
        (ODD, "html", True, "ann", "faq"),
    ]
    assert damaged == []
    assert found[0].time <= found[1].time <= found[2].time
    assert found[0].time > 1_700_000_000


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (thumb("lost password", id="nobody"), (404, "unknown")),
        (thumb("lost password", text="Send 500 EUR."), (404, "unknown")),
        (thumb("lost password", id="nobody", text=TEXTS[0]), (404, "unknown")),
        (thumb("lost password"), (404, "unknown")),
        (thumb("lost password", id="", text="  "), (404, "unknown")),
        (thumb("lost password", id="invoice", text=TEXTS[0]), (409, "mismatch")),
        (thumb("lost password", id="nobody", system="tickets"), (404, "unknown")),
        (thumb("lost password", id="invoice", text=TEXTS[0], system="tickets"), (409, "mismatch")),
        (thumb("lost password", id="x", system="mv"), (422, "cannot_judge")),
        (thumb("", id="password"), (422, "invalid")),
        (thumb(" \n", id="password"), (422, "invalid")),
        (thumb("a", id="password", who="x" * 65), (422, "invalid")),
        *((thumb("a", label, id="password"), (422, "invalid")) for label in (2, -1, 0.5, True, "1", None)),
    ],
)
def test_what_nobody_serves_is_refused(
    judging: FastAPI, tmp_path: Path, body: dict[str, Any], code: tuple[int, str]
) -> None:
    assert code_of(ask(judging, "/v1/feedback", body)) == code
    assert not (tmp_path / "thumbs.jsonl").exists()


def test_archives_have_their_own_ids(judging: FastAPI, tmp_path: Path) -> None:
    asked = {"question": "reset password", "top": 1, "system": "tickets"}
    hit = ask(judging, "/v1/search", asked).json()["answers"][0]
    for more in ({"id": hit["id"]}, {"id": hit["id"], "text": hit["text"]}, {"text": hit["text"]}):
        assert ask(judging, "/v1/feedback", thumb("reset", system="tickets", **more)).json() == {"kept": True}
    assert {one.id for one in read_feedback(tmp_path / "thumbs.jsonl").judgements} == {hit["id"]}


def test_thumbs_that_cannot_be_kept_are_told(served: Path, tmp_path: Path) -> None:
    app = make_app(served, "faq", feedback=tmp_path / "none" / "thumbs.jsonl")
    assert code_of(ask(app, "/v1/feedback", thumb("a", id="password"))) == (507, "unwritable")


def test_serve_click_refit_better_and_what_was_removed_stays_removed(
    judging: FastAPI,
    tmp_path: Path,
    run: Run,  # noqa: F811
) -> None:
    folder, file = tmp_path / "faq", tmp_path / "thumbs.jsonl"
    asked = "login phrase slipped"
    with running(judging) as url, httpx.Client(base_url=url, timeout=30) as client:

        def search(question: str) -> list[str]:
            found = client.post("/v1/search", json={"question": question, "top": 3}).raise_for_status().json()
            return [one["id"] for one in found["answers"]]

        def click(question: str, name: str, label: int) -> None:
            client.post("/v1/feedback", json=thumb(question, label, id=name)).raise_for_status()

        wrong = search("Can I see the bills?")[0]
        assert search(asked)[0] == "invoice"
        click("Can I see the bills?", wrong, 0)
        click(asked, "password", 1)
        click(asked, "delete", 0)
        click("Is my box on its way?", "parcel", 1)
        assert run("remove", folder, "parcel").code == 0
        done = run("refit", folder, "--feedback", file, "--json")
        assert done.code == 0, done.err
        told = json.loads(done.out)["feedback"]
        assert [told[name] for name in ("judgements", "right", "wrong", "removed")] == [4, 1, 2, 1]
        assert "do not exist" in done.err
        assert search(asked)[0] == "password"
        assert search("the login phrase")[0] == "password", "it is learnt, and not only looked up"
        assert wrong not in search("can I see  THE BILLS?")
        assert search("Can I see the bill?")[0] == wrong, "another question is as it was"
        assert "parcel" not in search("Is my box on its way?")
        assert code_of(client.post("/v1/feedback", json=thumb("box", 1, id="parcel"))) == (404, "unknown")
    kept = Collection.open(folder)
    assert "parcel" not in kept
    assert kept["password"].text == PASSWORD
    assert asked in kept["password"].questions
