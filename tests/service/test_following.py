"""A served copy follows what is published: swapped whole, refused where it is damaged, its age shown and bounded."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom import Collection
from matchloom.publishing import snapshot as s
from matchloom.publishing.publish import publish
from matchloom.service import create_app
from matchloom.service.following import Following, FollowOptions
from matchloom.service.service import Service
from matchloom.service.systems import Folder
from tests.cli.conftest import Run, error_of, run  # noqa: F401
from tests.publishing.making import Failing, make_collection
from tests.service.making import ask, code_of, running

SEARCH = {"question": "how do I bake?", "top": 1}


@pytest.fixture
def faq(tmp_path: Path) -> Collection:
    made = make_collection(tmp_path / "faq")
    publish(tmp_path / "faq", tmp_path / "store" / "faq")
    return made


def make_app(folder: Path, **options: Any) -> FastAPI:
    return create_app([Folder.of(f"file://{folder}/store/faq", folder / "copies")], **options)


def following(app: FastAPI) -> Following:
    service: Service = app.state.service
    if not service.shelf.ready:
        service.shelf.load()
        service.follower.all["faq"].serves()
    return service.follower.all["faq"]


def look(app: FastAPI) -> dict[str, Any]:
    """One look at the store, and what clients are told then."""
    one, shelf = following(app), app.state.service.shelf
    one.look(lambda: shelf.reload(["faq"]).refused.get("faq"))
    told: dict[str, Any] = ask(app, "/v1/systems").json()["systems"][0]
    return told


def found(app: FastAPI) -> str:
    return str(ask(app, "/v1/search", SEARCH).json()["answers"][0]["text"])


def test_a_published_version_is_served_by_the_next_look(faq: Collection, tmp_path: Path) -> None:
    app = make_app(tmp_path)
    assert look(app)["replica"]["version"] == 1
    assert found(app) != "Use an oven."
    faq.add([("how do I bake?", "Use an oven.")])
    publish(tmp_path / "faq", tmp_path / "store" / "faq")
    told = look(app)
    assert (told["name"], told["generation"], told["writable"]) == ("faq", 2, False)
    assert told["replica"]["version"] == told["replica"]["newest"] == 2
    assert told["replica"]["problem"] is None
    assert found(app) == "Use an oven."
    figures = ask(app, "/metrics").text
    assert 'matchloom_replica_version{system="faq"} 2.0' in figures
    assert 'matchloom_replica_stale_seconds{system="faq"}' in figures


def test_what_cannot_be_pulled_or_served_is_told_and_the_copy_goes_on(
    faq: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, store = make_app(tmp_path, follow=FollowOptions(most_stale=30)), tmp_path / "store" / "faq"
    look(app)
    assert ask(app, "/ready").status_code == 200
    one = following(app)
    healthy = one.replica._store
    one.replica._store = Failing(store, reading=True)
    one._known -= 100  # as if it were long ago
    told = look(app)["replica"]
    assert "503" in told["problem"]
    assert told["stale_seconds"] > 99
    assert code_of(ask(app, "/ready")) == (503, "stale")
    assert ask(app, "/health").status_code == 200
    assert found(app) == "Use a loom."
    one.replica._store = healthy
    assert look(app)["replica"]["problem"] is None
    assert ask(app, "/ready").status_code == 200
    faq.add([("how do I bake?", "Use an oven.")])
    publish(tmp_path / "faq", store)
    journal = next(path for path in (store / s.FILES).iterdir() if b"oven" in path.read_bytes())
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b"oven", b"stew"))
    told = look(app)["replica"]
    assert (told["version"], told["newest"]) == (1, 2)
    assert journal.name in told["problem"]
    assert found(app) == "Use a loom."
    journal.write_bytes(content)
    assert look(app)["replica"]["version"] == 2


def test_a_snapshot_of_nonsense_is_refused_once(faq: Collection, tmp_path: Path) -> None:
    app, store = make_app(tmp_path), tmp_path / "store" / "faq"
    look(app)
    newest = s.read_newest(following(app).replica._store)
    assert newest is not None
    snapshot = s.read_snapshot(following(app).replica._store, newest)
    files = {name: file for name, file in snapshot.files.items() if not name.startswith("index")}
    content = s.pack(s.Snapshot(1, 2, snapshot.kind, 0.0, "0", files))
    name = s.snapshot_name(2, content)
    (store / name).write_bytes(content)
    (store / s.NEWEST).write_bytes(s.pack(s.Newest(1, 2, name, s.sha256(content))))
    for _ in range(2):
        told = look(app)
        assert told["generation"] == 1
        assert "index-1" in told["replica"]["problem"]
    assert found(app) == "Use a loom."


def test_it_follows_by_itself_without_a_dropped_request(faq: Collection, tmp_path: Path) -> None:
    with running(make_app(tmp_path, follow=FollowOptions(poll=0.02))) as url, httpx.Client(base_url=url) as client:
        faq.add([("how do I bake?", "Use an oven.")])
        publish(tmp_path / "faq", tmp_path / "store" / "faq")
        seen = []
        for _ in range(3000):
            response = client.post("/v1/search", json=SEARCH)
            assert response.status_code == 200
            seen.append(response.json()["answers"][0]["text"])
            if seen[-1] == "Use an oven.":
                break
            time.sleep(0.01)
        assert set(seen) <= {"Use a loom.", "Use an oven."}
        assert seen[-1] == "Use an oven."


def test_a_folder_of_snapshots_is_followed_and_workers_can_be_given_it(faq: Collection, tmp_path: Path) -> None:
    given = Folder.of(f"help={tmp_path}/store/faq", tmp_path / "copies")
    again = pickle.loads(pickle.dumps(given))
    assert (again.name, again.replica.start().version) == ("help", 1)
    assert Folder.of(str(tmp_path / "faq")).replica is None


def test_a_copy_is_not_written(faq: Collection, tmp_path: Path, run: Run) -> None:  # noqa: F811
    assert "read-only" in error_of(run("serve", str(tmp_path / "store" / "faq"), "--writable"))
