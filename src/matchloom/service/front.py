"""The pages: for those who ask, for owners, for those who compare; the widget; what the first page needs to know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from matchloom.data.identity import normalize_text
from matchloom.service import schemas as s
from matchloom.service.desk.listing import filters
from matchloom.service.look import Look
from matchloom.service.origins import WIDGET
from matchloom.service.pages import Asset, asset_of, read_assets
from matchloom.service.responses import answer, only
from matchloom.service.service import Service
from matchloom.service.systems import ServedSystem

if TYPE_CHECKING:
    from matchloom.search.entries import Entries

_EXAMPLES, _SHORTEST, _LONGEST = 4, 12, 70  # questions that are shown, and their characters
_CHOICES = 12  # values of a column that are shown as buttons
_FILTERS = 2
_LOOKED_AT = 20_000  # entries of which examples and filters are taken


def add_front(app: FastAPI, service: Service, look: Look) -> None:
    """Add the pages and what they ask first."""
    _add_pages(app, service, look)
    _add_about(app, service, look)


def _add_pages(app: FastAPI, service: Service, look: Look) -> None:
    assets = read_assets(look.theme(":host"))
    for name in ("index.html", "desk.html"):
        assets[name] = asset_of(name, look.page(assets[name].content.decode()).encode())
    assets["theme.css"] = asset_of("theme.css", look.theme().encode())
    if look.logo is not None:
        assets["logo"] = asset_of("logo", look.logo[0], look.logo[1])

    def add(path: str, name: str) -> None:
        @app.get(path, include_in_schema=False)
        async def page(request: Request) -> Response:
            return _sent(assets, name, request)

    pages = {
        "/": "index.html",
        "/lab": "lab.html",
        "/runs": "runs.html",
        "/docs": "docs.html",
        "/theme.css": "theme.css",
        WIDGET: "widget.js",
    }
    pages |= {"/logo": "logo"} if look.logo is not None else {}
    pages |= {"/desk": "desk.html"} if service.desk.on else {}
    for path, name in pages.items():
        add(path, name)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        return _sent(assets, name, request)


def _sent(assets: dict[str, Asset], name: str, request: Request) -> Response:
    asset = assets.get(name)
    if asset is None:
        raise HTTPException(404, "there is no such page")
    headers = {"etag": asset.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.kind, headers=headers)


def _add_about(app: FastAPI, service: Service, look: Look) -> None:
    known: dict[str, tuple[object, list[str], dict[str, list[str]]]] = {}

    def offered(system: ServedSystem) -> tuple[list[str], dict[str, list[str]]]:
        if system.collection is None:
            return list(look.examples), {}
        version = system.collection.version
        if system.name not in known or known[system.name][0] != version:
            entries = system.collection.entries
            few = len(entries) <= _LOOKED_AT
            known[system.name] = (version, examples_of(entries), choices(entries) if few else {})
        _, examples, own = known[system.name]
        return list(look.examples) or examples, own

    @app.get("/v1/page", tags=["state"], response_model=s.PageAnswer, responses=only(401, 403, 404, 421, 422, 503))
    async def about(
        system: Annotated[str | None, Query(max_length=64, description="A served system with answers.")] = None,
    ) -> Response:
        """What the page for users shows before anything is asked."""
        if not service.shelf.ready:
            raise service.not_ready()
        names = [one.name for one in service.shelf.systems.values() if one.searches]
        told: dict[str, Any] = {"system": "", "examples": [], "filters": {}}
        if names:
            served = service.answers(system or names[0])
            async with service.workers.admitted():
                examples, own = await service.workers.call(offered, served)
            told = {"system": served.name, "examples": examples, "filters": own}
        return answer(
            {
                "title": look.title,
                "systems": names,
                **told,
                "feedback": service.feedback is not None,
                "contact": look.contact,
                "desk": service.desk.on,
            }
        )


def examples_of(entries: Entries) -> list[str]:
    """Questions to try: short ones of different answers, of those with most questions first."""
    rows = sorted(range(min(len(entries), _LOOKED_AT)), key=lambda n: (-len(entries.questions[n]), n))
    found: list[str] = []
    for n in rows:
        fit = [one for one in entries.questions[n] if _SHORTEST <= len(one) <= _LONGEST and _is_plain(one)]
        if fit:
            found.append(min(fit, key=lambda one: (not one.rstrip().endswith(("?", "？")), len(one), one)))
        if len(found) == _EXAMPLES:
            break
    return list({normalize_text(one): one for one in found}.values())


def _is_plain(question: str) -> bool:
    return not re.search(r"[<>{}\x00-\x1f]", question)


def choices(entries: Entries) -> dict[str, list[str]]:
    """Columns with a few values that most entries have: what can be chosen by a button."""
    found = {}
    for name, values in filters(entries).items():
        having = sum(name in own for own in entries.columns)
        if len(values) <= _CHOICES and max(map(len, values)) <= 40 and 2 * having >= len(entries):
            found[name] = sorted(values)
    return dict(list(found.items())[:_FILTERS])
