"""Every route, asked by everybody who could: nobody, who may ask, an owner; from its own page or another site's."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom.service.app import create_app
from matchloom.service.desk.desk import DeskOptions
from matchloom.service.guard import is_guarded
from matchloom.service.keys import Holder, Keys
from matchloom.service.origins import is_for_owners
from matchloom.service.systems import Folder
from tests.service.making import make_app

OWNER, ASK = "o" * 20, "a" * 20
WHO = {
    "nobody": {},
    "wrong": {"authorization": "Bearer " + "x" * 20},
    "ask": {"x-api-key": ASK},
    "owner": {"x-api-key": OWNER},
}
FOREIGN, NAMED = "https://evil.example", "https://shop.example"
# What only an owner may do, said once more and by hand: a route that is missing here fails the test.
ASKING = {
    "/v1/systems",
    "/v1/page",
    "/v1/score",
    "/v1/rank",
    "/v1/search",
    "/v1/explain",
    "/v1/feedback",
    "/v1/models",
    "/v1/embeddings",
    "/rerank",
    "/v1/rerank",
    "/v2/rerank",
}


@pytest.fixture(scope="module")
def app(served: Path, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    home = tmp_path_factory.mktemp("roles")
    keys = Keys([OWNER, ASK], [Holder("owner"), Holder("page", owner=False)])
    made = create_app(
        [Folder(name, served / name) for name in ("faq", "mv")],
        keys=keys,
        writable=True,
        feedback=home / "thumbs.jsonl",
        runs=home,
        origins=[NAMED],
        desk=DeskOptions(audit=home / "audit.jsonl", questions=home / "questions.jsonl"),
    )
    made.state.service.shelf.load()
    return made


def operations(app: FastAPI) -> list[tuple[str, str]]:
    found = app.openapi()["paths"]
    return [(method.upper(), path) for path, own in found.items() for method in own]


def ask(app: FastAPI, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
    async def work() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [await client.request(method, path, **given) for method, path, given in requests]

    return asyncio.run(work())


def filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "none", path)


def test_every_route_is_of_one_of_two_roles(app: FastAPI) -> None:
    for _, path in operations(app):
        if is_guarded(path):
            assert (path in ASKING) != is_for_owners(filled(path)), path
        else:
            assert path in {"/health", "/ready"}, f"{path} needs no key"


def test_who_may_ask_what(app: FastAPI) -> None:
    for method, path in operations(app):
        told = ask(app, *((method, filled(path), {"json": {}, "headers": headers}) for headers in WHO.values()))
        status = {name: response.status_code for name, response in zip(WHO, told, strict=True)}
        if not is_guarded(path):
            continue
        assert status["nobody"] == status["wrong"] == 401, path
        if is_for_owners(filled(path)):
            assert status["ask"] == 403, path
            assert told[2].json()["error"]["code"] == "ask_only"
        else:
            assert status["ask"] == status["owner"] != 401, path
        assert status["owner"] not in (401, 403), (path, told[3].text)
        assert not any("set-cookie" in response.headers for response in told), "nobody is known by a cookie"


@pytest.mark.parametrize(
    "origin", [FOREIGN, "null", "http://localhost.evil.example", "https://shop.example.evil", "file://"]
)
def test_no_foreign_page_may_do_anything(app: FastAPI, origin: str) -> None:
    """Not with an owner's key either, nor by what a form may send unasked."""
    for (method, path), headers in itertools.product(operations(app), (WHO["nobody"], WHO["owner"])):
        own = {**headers, "origin": origin}
        for given in (
            {"json": {}, "headers": own},
            {"content": b"a=1", "headers": {**own, "content-type": "application/x-www-form-urlencoded"}},
            {"content": b"{}", "headers": {**own, "content-type": "text/plain"}},
        ):
            response = ask(app, (method, filled(path), given))[0]
            assert response.status_code == 403, (method, path)
            assert "access-control-allow-origin" not in response.headers


def test_a_named_page_may_ask_and_nothing_that_is_for_owners(app: FastAPI) -> None:
    for method, path in operations(app):
        response = ask(app, (method, filled(path), {"json": {}, "headers": {**WHO["owner"], "origin": NAMED}}))[0]
        assert (response.status_code == 403) == is_for_owners(filled(path)), path
        assert response.headers.get("access-control-allow-credentials") is None
        assert response.headers.get("access-control-allow-origin") in (NAMED, None)


def test_forms_of_nobody_s_page_are_no_requests(app: FastAPI) -> None:
    """Programs send no Origin; what a form sends is refused by its kind all the same."""
    for method, path in operations(app):
        if method not in ("POST", "PUT"):
            continue
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", ""):
            headers = {**WHO["owner"], "content-type": kind} if kind else WHO["owner"]
            response = ask(app, (method, filled(path), {"content": b'{"a":1}', "headers": headers}))[0]
            assert response.status_code == 415, (path, kind, response.text)


@pytest.mark.parametrize(
    "path",
    [
        "/V1/collections/faq/entries",
        "//v1/collections/faq/entries",
        "/v1//collections/faq/entries",
        "/v1/./collections/faq/entries",
        "/v1/search/../collections/faq/entries",
        "/v1%2fcollections/faq/entries",
        "/v1/collections%2ffaq/entries",
        "/%76%31/collections/faq/entries",
        "/v1/collections/faq/entries/",
        "/static/../v1/collections/faq/entries",
        "/metrics/",
        "/Metrics",
        "/v1/collections;a/faq/entries",
    ],
)
@pytest.mark.parametrize("who", ["nobody", "ask"])
def test_no_spelling_of_a_path_is_a_way_round(app: FastAPI, path: str, who: str) -> None:
    response = ask(app, ("GET", path, {"headers": WHO[who]}))[0]
    assert response.status_code in (307, 401, 403, 404), response.text
    assert "entries" not in response.text or response.status_code != 200


def test_a_key_is_one_header_and_no_other_thing(app: FastAPI) -> None:
    for given in (
        {"headers": {"cookie": f"key={OWNER}; x-api-key={OWNER}"}},
        {"params": {"key": OWNER, "api_key": OWNER, "authorization": OWNER}},
        {"headers": {"authorization": OWNER}},
        {"headers": {"authorization": f"Basic {OWNER}"}},
        {"headers": {"authorization": "Bearer"}},
        {"headers": {"x-api-key": OWNER[:-1]}},
        {"headers": {"x-api-key": OWNER.upper()}},
        {"headers": {"x-api-key": ""}},
    ):
        assert ask(app, ("GET", "/v1/systems", given))[0].status_code == 401, given


def test_without_keys_no_other_name_leads_here(served: Path) -> None:
    """A name of a foreign site that leads to this machine (DNS rebinding) is refused on every route."""
    app = make_app(served, "faq", writable=True)
    app.state.service.shelf.load()
    for method, path in operations(app):
        for host in (
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0",
            "10.0.0.1",
            "[::2]",
        ):
            response = ask(app, (method, filled(path), {"json": {}, "headers": {"host": host}}))[0]
            assert response.status_code == 421, (path, host)
