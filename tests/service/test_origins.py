"""Pages of other sites, and keys that may only ask."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from matchloom.service import create_app
from matchloom.service.keys import read_keys
from matchloom.service.origins import Origins
from matchloom.service.systems import Folder
from matchloom.types import MatchloomError
from tests.service.making import ask, code_of, make_app, within

SHOP = "https://shop.example"


@pytest.fixture(scope="module")
def shared(served: Path) -> FastAPI:
    return make_app(served, "faq", origins=[SHOP + "/", "http://127.0.0.1:9000"], writable=True)


def test_an_allowed_page_may_ask_and_no_other(shared: FastAPI) -> None:
    asked = {"question": "I forgot my password"}
    found = ask(shared, "/v1/search", asked, origin=SHOP)
    assert found.status_code == 200
    assert found.headers["access-control-allow-origin"] == SHOP
    assert found.headers["vary"] == "origin"
    assert found.headers.get_list("cross-origin-resource-policy") == ["cross-origin"]
    for origin in ("https://evil.example", "http://shop.example", SHOP + ".evil.example", "null", "https://[", ""):
        refused = ask(shared, "/v1/search", asked, origin=origin)
        assert code_of(refused) == (403, "cross_origin")
        assert "access-control-allow-origin" not in refused.headers
    own = ask(shared, "/v1/search", asked, origin="http://localhost")
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


def test_what_is_for_owners_is_refused_to_every_other_site(shared: FastAPI) -> None:
    for path in ("/v1/collections/faq/remove", "/v1/archives/faq/delete"):
        assert code_of(ask(shared, path, {"ids": ["password"]}, origin=SHOP)) == (403, "cross_origin")
    for path in ("/metrics", "/v1/collections/faq", "/v1/runs"):
        assert code_of(ask(shared, path, origin=SHOP)) == (403, "cross_origin")
    assert code_of(ask(shared, "/v1/reload", {}, origin=SHOP)) == (403, "cross_origin")


def test_a_browser_is_told_that_it_may_ask(shared: FastAPI) -> None:
    wanted = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.options("/v1/search", headers={"origin": origin, **wanted})
            for origin in (SHOP, "https://evil.example")
        ]

    told, refused = within(shared, work)
    assert (told.status_code, told.content) == (204, b"")
    assert "content-type" in told.headers["access-control-allow-headers"]
    assert told.headers["access-control-allow-origin"] == SHOP
    assert code_of(refused) == (403, "cross_origin")


@pytest.mark.parametrize(
    "wrong", ["*", "shop.example", "https://a/b", "https://u@a", "https://a?b", "ftp://a", "http://a:x"]
)
def test_what_is_no_origin_is_refused(wrong: str) -> None:
    with pytest.raises(MatchloomError) as found:
        Origins([wrong])
    assert found.value.code == "bad_value"


def test_a_key_may_only_ask(served: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("anna owner-key-long-enough\nwidget widget-key-long-enough ask\n", encoding="utf-8")
    app = create_app([Folder("faq", served / "faq")], keys=read_keys(file, {}), writable=True)
    for key, codes in (("owner-key-long-enough", (200, 200)), ("widget-key-long-enough", (200, 403))):
        found = [
            ask(app, "/v1/search", {"question": "password"}, **{"x-api-key": key}),
            ask(app, "/v1/collections/faq", **{"x-api-key": key}),
        ]
        assert tuple(one.status_code for one in found) == codes
    assert code_of(found[1]) == (403, "ask_only")


@pytest.mark.parametrize("line", ["a b c d", "name long-enough-key-here write", "ask long-enough-key-here"])
def test_a_line_of_the_key_file_that_is_none(tmp_path: Path, line: str) -> None:
    file = tmp_path / "keys"
    file.write_text(f"first-long-enough-key\n{line}\n", encoding="utf-8")
    with pytest.raises(MatchloomError, match="line 2") as found:
        read_keys(file, {})
    assert "long-enough" not in str(found.value)
