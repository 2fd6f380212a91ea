"""A write that is sent twice with one Idempotency-Key is done once, also after a restart and a kill."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom.client import Client
from matchloom.search.collection import Collection
from matchloom.service import once as once_module
from matchloom.service.desk.desk import DeskOptions
from matchloom.service.keys import Holder, Keys
from matchloom.service.once import Attempt, Once
from matchloom.service.problems import Refused
from matchloom.types import MatchloomError
from tests.service.making import PAIRS, code_of, make_app, running, within

ENTRY = {"id": "new", "text": "Like so.", "questions": ["how is it done"]}
HOME = "/v1/collections/faq"
WRITES: dict[str, tuple[str, str, Any]] = {
    "pairs": ("POST", "/v1/archives/faq/pairs", {"pairs": [{"query": "a b", "text": "c d", "text_id": "ab"}]}),
    "delete": ("POST", "/v1/archives/faq/delete", {"ids": ["parcel", "none"]}),
    "put": ("PUT", f"{HOME}/entries", {"entries": [ENTRY]}),
    "remove": ("POST", f"{HOME}/remove", {"ids": ["invoice", "none"]}),
    "undo": ("POST", f"{HOME}/undo", {}),
    "assign": ("POST", f"{HOME}/inbox/assign", {"questions": ["so what"], "id": "password"}),
    "dismiss": ("POST", f"{HOME}/inbox/dismiss", {"questions": ["so what"]}),
    "import": ("POST", f"{HOME}/import", {"content": "question,answer\nwhy,because\n"}),
    "feedback": ("POST", "/v1/feedback", {"question": "so?", "id": "password", "label": 1}),
    "forget": ("DELETE", f"{HOME}/questions", None),
    "archive": ("POST", "/v1/archives/tickets/pairs", {"pairs": [{"query": "a b", "text": "c d", "text_id": "ab"}]}),
    "archive, delete": ("POST", "/v1/archives/tickets/delete", {"ids": ["none"]}),
}


@pytest.fixture
def folder(served: Path, tmp_path: Path) -> Path:
    Collection.fit(PAIRS).save(tmp_path / "faq")
    for name in ("tickets", "lstm"):
        shutil.copytree(served / name, tmp_path / name)
    return tmp_path


def make(folder: Path, **options: Any) -> FastAPI:
    desk = DeskOptions(audit=folder / "audit.jsonl", questions=folder / "questions.jsonl")
    feedback = folder / "thumbs.jsonl"
    return make_app(folder, "faq", "tickets", writable=True, feedback=feedback, desk=desk, **options)


def send(app: FastAPI, name: str, key: str | None = "key-1", body: Any = None, **headers: str) -> httpx.Response:
    method, path, own = WRITES[name]
    sent = {**headers, **({} if key is None else {"idempotency-key": key})}

    async def work(client: httpx.AsyncClient) -> httpx.Response:
        return await client.request(method, path, json=own if body is None else body, headers=sent)

    return within(app, work)


def kept(folder: Path) -> dict[str, bytes]:
    """What is kept of changes: journals, audit file, judgements."""
    files = [*folder.glob("faq/changes-*"), folder / "audit.jsonl", folder / "thumbs.jsonl"]
    found = {str(one.relative_to(folder)): one.read_bytes() for one in files if one.exists()}
    return {name: content for name, content in found.items() if not name.endswith(".confirmed")}


def another(name: str) -> Any:
    """Another request of the same kind."""
    text = json.dumps(WRITES[name][2] or {"change": "0"})
    for old in ("a b", "none", "Like so.", "so what", "why", "so?"):
        text = text.replace(old, "else")
    return json.loads(text)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_done_once_also_after_a_restart(name: str, folder: Path) -> None:
    app = make(folder)
    send(app, "put", key=None, body={"entries": [{**ENTRY, "id": "old"}]})  # there is something to undo
    first = send(app, name)
    assert first.is_success, first.text
    before = kept(folder)
    assert send(app, name).json() == first.json()
    assert send(make(folder), name).json() == first.json()
    assert kept(folder) == before
    if name != "forget":
        assert code_of(send(app, name, body=another(name))) == (422, "key_reused")
    assert kept(folder) == before
    assert send(app, name, key="key-2").status_code in (200, 404), "another key is another write"


def test_a_key_is_of_one_request_and_of_one_holder(folder: Path) -> None:
    app = make(folder)
    assert send(app, "put").is_success
    assert code_of(send(app, "remove")) == (422, "key_reused"), "of one store, another path"
    for wrong in ("", " ", "a b", "k" * 256):
        assert code_of(send(app, "put", key=wrong)) == (422, "invalid")
    app.state.service.desk.audit.file.delete()
    keys = Keys(["a" * 20, "b" * 20], [Holder("ann"), Holder("ben")])
    shared = make(folder)
    shared = make_app(folder, "faq", writable=True, feedback=folder / "thumbs.jsonl")
    guard: Any = next(one for one in shared.user_middleware if "keys" in one.kwargs)
    guard.kwargs["keys"] = keys
    for name in ("a", "b"):
        assert send(shared, "feedback", authorization=f"Bearer {name * 20}").is_success
    assert len((folder / "thumbs.jsonl").read_text().splitlines()) == 2, "two people may choose the same key"


def test_what_was_refused_is_tried_again(folder: Path) -> None:
    app = make(folder)
    body = {"questions": ["so what"], "id": "later"}
    assert code_of(send(app, "assign", body=body)) == (404, "unknown")
    assert send(app, "put", key=None, body={"entries": [{**ENTRY, "id": "later"}]}).is_success
    assert send(app, "assign", body=body).is_success


def test_a_refit_is_begun_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make(folder)
    begun = []
    monkeypatch.setattr(app.state.service.refits, "begin", lambda *given: begun.append(given))
    WRITES_REFIT = ("POST", f"{HOME}/refit", {})
    monkeypatch.setitem(WRITES, "refit", WRITES_REFIT)
    assert [send(app, "refit").status_code for _ in range(3)] == [202] * 3
    assert len(begun) == 1


@pytest.mark.parametrize(
    "name", ["pairs", "delete", "put", "remove", "undo", "assign", "dismiss", "import", "feedback"]
)
def test_a_process_that_was_killed_after_a_write_is_not_asked_to_do_it_again(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make(folder)
    send(app, "put", key=None, body={"entries": [{**ENTRY, "id": "old"}]})
    with monkeypatch.context() as killed:
        killed.setattr(Once, "_try_to_keep", lambda *_: None)  # it told nobody
        first = send(app, name).json()
    before = kept(folder)
    again = send(make(folder), name).json()
    assert kept(folder) == before
    if name not in ("undo", "import"):  # where not all that was told is known any more
        assert again == first
    assert again.keys() == first.keys()


def test_a_process_that_was_killed_before_a_write_is_asked_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make(folder)
    with monkeypatch.context() as killed:
        killed.setattr(Once, "_try_to_keep", lambda *_: None)
        killed.setattr(os, "pwrite", full)
        assert code_of(send(app, "put")) == (507, "unwritable")
    assert send(make(folder), "put").json() == {"put": 1, "ids": ["new"]}
    assert "new" in Collection.open(folder / "faq")


def full(*_: Any) -> int:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_known_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Once, "_try_to_keep", lambda *_: None)
        assert send(make(folder), "archive").is_success
        assert send(make(folder), "feedback").is_success
    assert code_of(send(make(folder), "archive")) == (409, "unsure"), "an archive has no journal to look at"
    (folder / "thumbs.jsonl").rename(folder / "used.jsonl")
    assert code_of(send(make(folder), "feedback")) == (409, "unsure")


def test_a_full_disk_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make(folder)
    before = kept(folder)
    with monkeypatch.context() as filled:
        filled.setattr(os, "fsync", full)
        assert code_of(send(app, "put")) == (507, "unwritable")
        assert code_of(send(app, "put", key=None)) == (507, "unwritable")
    assert kept(folder) == before or list(kept(folder).values()) == [b""] * len(kept(folder))
    assert send(app, "put").is_success


def test_a_change_is_written_down_before_it_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk kept the change and not who made it, and told that it was refused."""
    app = make(folder)
    app.state.service.shelf.load()
    audit = app.state.service.desk.audit

    def record(*_: Any, **__: Any) -> str:
        raise MatchloomError("audit.jsonl was not written: No space left on device", code="unwritable")

    with monkeypatch.context() as filled:
        filled.setattr(audit, "record", record)
        for name in ("put", "pairs", "remove"):
            assert code_of(send(app, name, key=None)) == (507, "unwritable")
    assert "new" not in Collection.open(folder / "faq")
    assert "ab" not in Collection.open(folder / "faq")
    assert "invoice" in Collection.open(folder / "faq")
    with monkeypatch.context() as filled:
        filled.setattr(os, "pwrite", full)  # the journal's
        assert code_of(send(app, "put", key=None)) == (507, "unwritable")
    assert audit.records("faq") == [], "what was not made is not listed"
    assert audit.last("faq") is None
    with monkeypatch.context() as filled:  # no room to say so, either
        filled.setattr(os, "pwrite", full)
        whole = audit.record
        filled.setattr(audit, "record", lambda *a, **b: record() if a[2] == "void" else whole(*a, **b))
        size = audit.file.path.stat().st_size
        assert code_of(send(app, "put", key=None)) == (507, "unwritable")
        assert audit.file.path.stat().st_size == size


@pytest.mark.parametrize(
    "forged",
    [
        b"\xff\n[]\n{}\n" + b"[" * 5000 + b"\n",
        b'{"key":"%s","asked":"%s","state":"begun","place":{"file":"../../etc/passwd","inode":0,"start":0,"size":9,"digest":""}}\n',
        b'{"key":"%s","asked":"%s","state":"begun","place":{"file":"pipe","inode":0,"start":0,"size":9,"digest":""}}\n',
        b'{"key":"%s","asked":"%s","state":"begun","place":{"file":"x","inode":0,"start":-1,"size":99999999999,"digest":""}}\n',
    ],
)
def test_a_forged_file_is_not_believed(forged: bytes, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "x").write_bytes(b"y")
    attempt = Attempt("a" * 32, "b" * 32)
    path = tmp_path / "keys"
    path.write_bytes(forged.replace(b"%s", b"a" * 32, 1).replace(b"%s", b"b" * 32, 1))
    if b"begun" in forged:
        with pytest.raises(Refused) as refused:
            Once(path).do(attempt, lambda _: {}, lambda _: {})
        assert refused.value.code == "unsure"
    else:
        assert Once(path).do(attempt, lambda _: {"a": 1}) == {"a": 1}


@pytest.mark.parametrize("make_wrong", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_what_is_no_file_is_refused(make_wrong: Callable[[Path], None], tmp_path: Path) -> None:
    make_wrong(tmp_path / "keys")
    with pytest.raises(MatchloomError):
        Once(tmp_path / "keys").do(Attempt("a", "b"), lambda announce: announce(None, 0, b"", {}) or {})


def test_the_file_is_bounded_and_the_latest_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Once(tmp_path / "keys")
    store._file._most = 2000
    for n in range(200):
        store.do(Attempt(f"k{n}", "a"), lambda _, n=n: {"n": n})
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 4200
    assert store.do(Attempt("k199", "a"), lambda _: {"n": -1}) == {"n": 199}
    assert Once(tmp_path / "keys").do(Attempt("k190", "a"), lambda _: {"n": -1}) == {"n": 190}, "also one moved aside"
    assert store.do(Attempt("k0", "a"), lambda _: {"n": -1}) == {"n": -1}, "forgotten"
    assert len(store._known) < 60


def test_another_process_waits_or_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Once(tmp_path / "keys"), Once(tmp_path / "keys")
    with one._held(1), pytest.raises(MatchloomError) as busy:
        other.do(Attempt("a", "b"), lambda _: {}, wait=0.05)
    assert busy.value.code == "busy"
    assert one.do(Attempt("a", "b"), lambda _: {"n": 1}) == other.do(Attempt("a", "b"), lambda _: {"n": 2}) == {"n": 1}


def test_the_client_sends_the_same_key_again(folder: Path) -> None:
    seen: list[str | None] = []

    def broken(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("idempotency-key"))
        if len(seen) == 1:
            raise httpx.ReadError("the connection broke")
        if len(seen) == 2:
            return httpx.Response(503, headers={"retry-after": "0"}, json={})
        return httpx.Response(200, json={"kept": True, "systems": []})

    client = Client(transport=httpx.MockTransport(broken))
    client.feedback("a", "b", True)
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert seen[0]
    client.feedback("a", "b", True)
    assert seen[3] not in (None, seen[0])
    client.systems()
    assert seen[4] is None


def test_an_answer_that_got_lost(folder: Path) -> None:
    """The service did it, and the connection broke before its answer arrived: the client's retry changes nothing."""
    with running(make(folder)) as url:
        inner = httpx.HTTPTransport()

        class Losing(httpx.BaseTransport):
            lost = 0

            def handle_request(self, request: httpx.Request) -> httpx.Response:
                response = inner.handle_request(request)
                response.read()
                if Losing.lost < 1:
                    Losing.lost += 1
                    raise httpx.RemoteProtocolError("lost")
                return response

        with Client(url, transport=Losing()) as client:
            client.feedback("so?", "", True, id="password")
    lines = (folder / "thumbs.jsonl").read_text().splitlines()
    assert [json.loads(one)["question"] for one in lines] == ["so?"]
    assert once_module.NAME.startswith("."), "beside what a folder seals"
