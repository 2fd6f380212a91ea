"""The desk by its routes: entries, undo, inbox, quality, refit aside and promote, files, and who may."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from matchloom.client import Client, ServiceError
from matchloom.data.entries import Entry
from matchloom.service import create_app
from matchloom.service.desk.desk import DeskOptions
from matchloom.service.desk.questions import QuestionLog
from matchloom.service.desk.transfer import read_import
from matchloom.service.keys import read_keys
from matchloom.service.look import read_look
from matchloom.service.problems import Refused
from matchloom.service.systems import Folder
from matchloom.types import Hits, MatchloomError
from tests.service.making import ask, code_of, make_app, running

ENTRY = {
    "id": "billing",
    "text": "Under Billing.",
    "questions": ["where are my invoices"],
    "columns": {"topic": "money"},
}


@pytest.fixture
def folder(served: Path, tmp_path: Path) -> Path:
    shutil.copytree(served / "faq", tmp_path / "faq")
    return tmp_path


@pytest.fixture
def app(folder: Path) -> FastAPI:
    return make_app(folder, "faq", writable=True, feedback=folder / "thumbs.jsonl", desk=options(folder))


def options(folder: Path, **more: Any) -> DeskOptions:
    return DeskOptions(audit=folder / "audit.jsonl", questions=folder / "asked.jsonl", **more)


def test_entries_are_listed_searched_sorted_and_edited(app: FastAPI) -> None:
    with running(app) as url, Client(url) as client:
        faq = client.desk("faq")
        found = faq.entries(limit=2)
        assert (found["all"], found["total"], len(found["entries"])) == (6, 6, 2)
        assert [one["id"] for one in faq.entries("PASSWORD reset")["entries"]] == ["password"]
        assert faq.entries(sort="-questions", limit=1)["entries"][0]["id"] in ("password", "invoice")
        assert len(faq.entries(offset=5)["entries"]) == 1
        name = faq.put("Under Billing.", ["where are my bills"], columns={"topic": "money"}, new=True)
        faq.put("Under Jobs.", ["do you hire"], columns={"topic": "jobs"}, id="jobs")
        faq.put("On Jobs too.", ["interns?"], columns={"topic": "jobs"}, id="interns")
        assert faq.entries()["filters"] == {"topic": ["jobs", "money"]}
        assert [one["id"] for one in faq.entries(where={"topic": "money"})["entries"]] == [name]
        with pytest.raises(ServiceError) as refused:
            faq.put("Under Billing.", [], new=True)
        assert (refused.value.status, refused.value.code) == (409, "exists")
        seen = faq.entries(where={"topic": "money"})["entries"][0]
        faq.put("Under Billing, then Bills.", seen["questions"], id=name, version=seen["version"])
        with pytest.raises(ServiceError) as refused:
            faq.put("Late.", seen["questions"], id=name, version=seen["version"])
        assert refused.value.code == "changed"
        with pytest.raises(ServiceError):
            faq.entries(sort="wrong")


def test_changes_are_written_down_and_undone_in_any_order_that_fits(app: FastAPI, folder: Path) -> None:
    with running(app) as url, Client(url) as client:
        faq = client.desk("faq")
        faq.put("Under Billing.", ["bills"], id="billing")
        faq.put("Under Billing!", ["bills"], id="billing")
        client.remove("faq", ["billing", "nothing"])
        changes = faq.audit()
        assert [(one["action"], one["who"], one["ids"]) for one in changes] == [
            ("remove", "local", ["billing"]),
            ("put", "local", ["billing"]),
            ("put", "local", ["billing"]),
        ]
        assert [one["texts"] for one in changes] == [["Under Billing!"], ["Under Billing!"], ["Under Billing."]]
        assert [one["new"] for one in changes] == [0, 0, 1]
        with pytest.raises(ServiceError) as refused:
            faq.undo(changes[2]["id"])
        assert refused.value.code == "changed"
        assert faq.undo()["ids"] == ["billing"]
        assert faq.entries("billing!")["entries"][0]["text"] == "Under Billing!"
        faq.undo()
        assert faq.entries("billing")["entries"][0]["text"] == "Under Billing."
        again = faq.audit()[0]
        assert again["action"] == "undo"
        faq.undo(again["id"])
        assert faq.entries("billing")["entries"][0]["text"] == "Under Billing!", "an undo is undone by its id"
        faq.undo()
        faq.undo()
        assert faq.entries("billing")["total"] == 0
        with pytest.raises(ServiceError) as refused:
            faq.undo()
        assert refused.value.status == 404
    lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    assert all(line["who"] == "local" and abs(line["time"] - time.time()) < 600 for line in lines)


def test_what_was_not_answered_waits_and_is_assigned_made_or_dismissed(app: FastAPI) -> None:
    with running(app) as url, Client(url) as client:
        faq = client.desk("faq")
        for question in (
            "xylophone lessons in tibet",
            "Xylophone lessons in Tibet",
            "xylophone lesson tibet?",
            "my cat has fever",
        ):
            client.search(question)
        client.feedback("is there a bill", "", False, id="parcel")
        box = faq.inbox()
        assert (box["total"], box["logging"]) == (4, True)
        groups = {group["questions"][0]["question"]: group for group in box["groups"]}
        first = box["groups"][0]
        assert (first["count"], len(first["questions"]), first["why"]) == (3, 2, "no confident answer")
        down = groups["is there a bill"]
        assert (down["why"], [one["id"] for one in down["wrong"]]) == ("thumb down", ["parcel"])
        assert "parcel" not in [one["id"] for one in down["suggestions"]]
        faq.assign(["is there a bill"], "invoice")
        faq.dismiss(["my cat has fever"])
        assert "my cat has fever" not in [group["questions"][0]["question"] for group in faq.inbox()["groups"]]
        assert faq.undo()["ids"] == []
        assert "my cat has fever" in [group["questions"][0]["question"] for group in faq.inbox()["groups"]]
        again = faq.audit()[0]
        assert again["action"] == "undo"
        faq.undo(again["id"])
        faq.put("Ask the music school.", [one["question"] for one in first["questions"]], new=True)
        assert faq.inbox()["groups"] == []
        assert client.search("is there a bill")[0].id == "invoice"
        assert faq.delete_questions() >= 4
        assert faq.quality()["questions_logged"] == 0


def test_quality_tells_of_days_entries_and_contradictions(app: FastAPI) -> None:
    with running(app) as url, Client(url) as client:
        faq = client.desk("faq")
        client.search("I forgot my password")
        client.feedback("I forgot my password", "", True, id="password")
        faq.put("Companies can ask for an account.", ["Can I pay by invoice?"], id="other")
        found = faq.quality()
        assert found["days"][-1]["asked"] == 1
        assert found["days"][-1]["up"] == 1
        assert found["never_found"]["count"] == 6
        assert [set(one["ids"]) for one in found["finds"] if one["kind"] == "contradiction"] == [{"invoice", "other"}]


@pytest.mark.slow
def test_a_refit_waits_and_is_promoted(app: FastAPI, folder: Path) -> None:
    with running(app) as url, Client(url) as client:
        faq = client.desk("faq")
        with pytest.raises(ServiceError) as refused:
            faq.promote()
        assert refused.value.status == 409
        faq.put(**ENTRY)
        client.feedback("please let me in again", "", True, id="password")
        faq.refit(aside=True)
        about = until_idle(client)
        assert about["refit"]["last"]["aside"]
        assert not about["refit"]["last"]["kept"]
        assert about["refit"]["last"]["feedback"]["right"] == 1
        assert about["changed_since_fit"] == 1, "nothing was switched to"
        faq.put("Later.", ["later"], id="later")
        assert faq.promote()["promoted"]
        about = client.status("faq")
        assert (about["changed_since_fit"], about["refit"]["last"]["kept"]) == (1, True)
        assert client.search("please let me in again")[0].id == "password"
        assert client.search("later")[0].id == "later"
        assert [one["action"] for one in faq.audit()][:3] == ["promote", "put", "refit"]
        client.remove("faq", ["password"])
        faq.refit()
        about = until_idle(client)
        assert about["refit"]["last"]["kept"]
        assert about["refit"]["last"]["feedback"]["removed"] == 1
        assert all(hit.id != "password" for hit in client.search("please let me in again"))


def until_idle(client: Client) -> dict[str, Any]:
    end = time.monotonic() + 60
    while (about := client.status("faq"))["refit"]["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.1)
    return about


def test_files_go_out_and_come_in(app: FastAPI) -> None:
    with running(app) as url, Client(url) as client:
        faq = client.desk("faq")
        faq.put('=HYPERLINK("http://evil")', ["\t@SUM(1)", "-1+2"], id="formula", columns={"topic": "+x", "n": "-5"})
        for form in ("csv", "jsonl"):
            content = faq.export(form).decode()
            if form == "csv":
                cells = [cell.strip('"') for line in content.splitlines() for cell in line.split(",")]
                assert not [cell for cell in cells if cell.lstrip()[:1] in ("=", "+", "-", "@") and cell != "-5"]
            same = faq.import_(content, form, dry_run=True)
            assert (same["new"], same["changed"], same["removed"], same["done"]) == (0, 0, 0, False)
        done = faq.import_("question,answer,text_id\nHow old are you?,Ten.,age\n", replace=True)
        assert (done["new"], done["removed"]) == (1, 7)
        assert faq.entries()["all"] == 1
        faq.undo()
        assert faq.entries()["all"] == 7
        found = faq.import_("How do I pay?,By card.\nWhere are you?,In Vienna.\n,\n", dry_run=True)
        assert found["new"] == 2
        assumed, left_out = found["notes"]
        assert "names no column that is known" in assumed
        assert left_out.startswith("1 skipped")
        with pytest.raises(ServiceError) as refused:
            faq.import_("nothing at all")
        assert refused.value.status == 422


def test_the_desk_is_for_owners(served: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("anna owner-key-long-enough\nwidget widget-key-long-enough ask\n", encoding="utf-8")
    shutil.copytree(served / "faq", tmp_path / "faq")
    app = create_app([Folder("faq", tmp_path / "faq")], keys=read_keys(file, {}), writable=True, desk=options(tmp_path))
    owner, widget = ({"x-api-key": f"{name}-key-long-enough"} for name in ("owner", "widget"))
    for path in ("entries", "inbox", "quality", "audit", "export"):
        assert ask(app, f"/v1/collections/faq/{path}", **owner).status_code == 200
        assert code_of(ask(app, f"/v1/collections/faq/{path}", **widget)) == (403, "ask_only")
        assert code_of(ask(app, f"/v1/collections/faq/{path}")) == (401, "wrong_key")
    assert ask(app, "/v1/collections/faq/remove", {"ids": ["parcel"]}, **owner).status_code == 200
    assert ask(app, "/v1/collections/faq/audit", **owner).json()["changes"][0]["who"] == "anna"


def test_no_desk(served: Path) -> None:
    app = make_app(served, "faq", desk=DeskOptions(on=False))
    assert ask(app, "/v1/collections/faq/inbox").status_code == 404
    assert ask(app, "/desk").status_code == 404
    assert ask(app, "/v1/collections/faq").status_code == 200


def test_without_writable_the_desk_shows_and_does_not_change(served: Path) -> None:
    app = make_app(served, "faq")
    assert ask(app, "/v1/collections/faq/entries").status_code == 200
    for path, body in (("undo", {}), ("inbox/assign", {"questions": ["a"], "id": "b"}), ("promote", {})):
        assert code_of(ask(app, f"/v1/collections/faq/{path}", body)) == (403, "read_only")


def test_the_log_of_questions_is_bounded_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchloom.service.desk.questions._MOST", 2000)
    log = QuestionLog(tmp_path / "asked.jsonl")
    for n in range(100):
        log.keep("faq", f"question {n} " + "x" * 1000, Hits(known=0.1, confident=False))
        log.flush()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["asked.jsonl", "asked.jsonl.1", "asked.jsonl.2"]
    assert sum(file.stat().st_size for file in files) <= 6000
    assert log.read("faq").questions[-1].question.startswith("question 99")
    assert log.read("other").questions == []
    log.delete()
    assert list(tmp_path.iterdir()) == []
    log.close()


@pytest.mark.slow
def test_a_watched_file_is_followed_when_it_has_come_to_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("matchloom.service.desk.watch._REST", 0.0)
    file = tmp_path / "faq.csv"
    file.write_text("question,answer,text_id\nDo you hire?,See Jobs.,jobs\n", encoding="utf-8")
    app = make_app(folder, "faq", writable=True, desk=options(folder, watch=file))
    service = app.state.service
    service.shelf.load()
    watching = service.desk.watching
    assert watching is not None
    assert not watching.look(), "it was just seen"
    assert watching.look()
    wait_for(service)
    assert ask(app, "/v1/search", {"question": "do you hire"}).json()["answers"][0]["id"] == "jobs"
    assert not watching.look(), "it says what it said"
    file.write_text("question,answer,text_id\nAre you old?,Ten years.,age\n", encoding="utf-8")
    watching.look()
    assert watching.look()
    wait_for(service)
    found = {one["id"] for one in ask(app, "/v1/collections/faq/entries").json()["entries"]}
    assert "age" in found
    assert "jobs" not in found, "what the file no longer has is gone"
    assert "password" in found, "what it never had stays"
    followed = ask(app, "/v1/collections/faq/audit").json()["changes"][0]
    assert (followed["action"], followed["who"]) == ("follow", "watch")
    file.unlink()
    assert not watching.look()


def wait_for(service: Any) -> None:
    for thread in list(service.refits._running.values()):
        thread.join(60)


def test_what_is_no_look_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    for content, code in (
        ("title = 3", "bad_value"),
        ("colour = '#fff'", "unknown_name"),
        ("accent = 'red; } body {'", "bad_value"),
        ("contact = 'javascript:alert(1)'", "bad_value"),
        ("logo = 'page.toml'", "bad_value"),
        ("= 3", "damaged"),
    ):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(MatchloomError) as found:
            read_look(file)
        assert found.value.code == code
    (tmp_path / "logo.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    file.write_text('title = "Help"\nlogo = "logo.svg"\naccent = "#FF0"\nexamples = ["How?"]\n', encoding="utf-8")
    look = read_look(file, title="Other")
    assert (look.title, look.accent, look.examples) == ("Other", "#ff0", ("How?",))
    assert "--on-accent: #111" in look.theme()
    app = create_app([], look=look)
    assert ask(app, "/logo").headers["content-type"] == "image/svg+xml"
    assert '<img src="/logo"' in ask(app, "/").text


def test_a_file_made_by_hand_is_imported_with_its_ids() -> None:
    text = '\ufeffFrage;Antwort;id;url\n"Verkaufen Sie ""Gutscheine""?";"Ja; unter\n""Geschenke""";gift;https://x.example\n'
    assert read_import(text + 'Kann ich bar zahlen;Nein, nur 5" Karten;bar;\n', "csv")[0] == [
        Entry("gift", 'Ja; unter\n"Geschenke"', ('Verkaufen Sie "Gutscheine"?',), {"url": "https://x.example"}),
        Entry("bar", 'Nein, nur 5" Karten', ("Kann ich bar zahlen",), {}),
    ]
    twice, notes = read_import("question,answer,id\na one,An answer.,1\nb two,Another.,1\n", "csv")
    assert notes == []
    assert [one.columns for one in twice] == [{"id": "1"}, {"id": "1"}], "no names where two answers share one"
    with pytest.raises(Refused) as refused:
        read_import("a,b,c\n1,2,3\n", "csv")
    assert "expected" in str(refused.value)
    assert "columns=" not in str(refused.value)
