"""The routes of the desk. Whatever a person can click there, a program can call."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from starlette.responses import Response

from matchloom.basics.growing import Announce
from matchloom.service.changing import CollectionName, announced, begins, change, store_of
from matchloom.service.desk import schemas as s
from matchloom.service.desk.desk import collection_of, who_asks
from matchloom.service.desk.inbox import grouped, waiting_questions
from matchloom.service.desk.listing import listed
from matchloom.service.desk.quality import quality
from matchloom.service.desk.transfer import FORMATS, exported, planned, read_import
from matchloom.service.once import Plain, Repeatable
from matchloom.service.problems import Refused
from matchloom.service.refits import result_of
from matchloom.service.responses import ERRORS, answer
from matchloom.service.service import Service
from matchloom.service.steps import Steps
from matchloom.service.systems import ServedSystem

_GROUPS = 50
Sort = Literal["id", "-id", "text", "-text", "questions", "-questions"]


def add_desk(app: FastAPI, service: Service) -> None:
    """Add the routes."""
    if service.desk.on:
        _add_entries(app, service)
        _add_inbox(app, service)
        _add_quality(app, service)
        _add_transfer(app, service)


def _add_entries(app: FastAPI, service: Service) -> None:
    @app.get("/v1/collections/{name}/entries", tags=["desk"], response_model=s.EntriesAnswer, responses=ERRORS)
    async def entries(
        name: CollectionName,
        search: Annotated[str, Query(max_length=500, description="Words that an entry must have.")] = "",
        where: Annotated[
            str, Query(max_length=2000, description='Values of columns, as JSON: {"topic": "bills"}.')
        ] = "",
        sort: Annotated[Sort, Query(description="The sort key; - for descending order.")] = "id",
        offset: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Response:
        """Entries as a table, a page at a time."""
        system, wanted = service.answers(name), _where(where)

        def work() -> dict[str, Any]:
            return listed(collection_of(system).entries, search, wanted, sort, offset, limit)

        return answer(await _read(service, work))

    @app.post("/v1/collections/{name}/undo", tags=["desk"], response_model=s.UndoAnswer, responses=ERRORS)
    async def undo(name: CollectionName, asked: s.UndoRequest, request: Request, once: Repeatable = None) -> Response:
        """Take back a change of entries, or questions that were put away; the last one where none is named."""
        system, _ = service.writable_answers(name)

        def work(announce: Announce | None) -> Plain:
            with announced(collection_of(system), announce) as collection:
                undone, ids = service.desk.editor(system, collection, who_asks(request)).undo(asked.change or None)
            return {"undone": undone, "ids": ids}

        def recovered(told: Plain) -> Plain:
            return {"undone": asked.change, "ids": [*told["put"], *told["removed"]]}

        return answer(await _write(service, name, once, store_of(service, system), work, recovered))

    @app.get("/v1/collections/{name}/audit", tags=["desk"], response_model=s.AuditAnswer, responses=ERRORS)
    async def audit(name: CollectionName, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
        """Who changed what, and when; the latest first."""
        system, kept = service.answers(name), service.desk.audit

        def work() -> dict[str, Any]:
            if kept is None:
                return {"changes": [], "last": None}
            return {
                "changes": [one._asdict() for one in kept.records(system.name)[:limit]],
                "last": kept.last(system.name),
            }

        return answer(await _read(service, work))


def _add_inbox(app: FastAPI, service: Service) -> None:
    desk = service.desk

    @app.get("/v1/collections/{name}/inbox", tags=["desk"], response_model=s.InboxAnswer, responses=ERRORS)
    async def inbox(name: CollectionName) -> Response:
        """Questions without a confident answer, or whose answer was called wrong; those that are alike together."""
        system = service.answers(name)

        def work() -> Steps[dict[str, Any]]:
            collection, log = collection_of(system), desk.questions
            asked = None if log is None else log.read(system.name)
            yield
            away = set() if desk.audit is None else desk.audit.dismissed(system.name)
            waiting = yield from waiting_questions(system, asked, desk.judgements(system), away)
            yield
            return {**grouped(collection, waiting, _GROUPS), "logging": log is not None}

        return answer(await _read(service, work))

    @app.post("/v1/collections/{name}/inbox/assign", tags=["desk"], response_model=s.CountAnswer, responses=ERRORS)
    async def assign(
        name: CollectionName, asked: s.AssignRequest, request: Request, once: Repeatable = None
    ) -> Response:
        """Make questions those of an entry."""
        system, _ = service.writable_answers(name)

        counted = {"count": len(asked.questions)}

        def work(announce: Announce | None) -> Plain:
            _check(service, system, asked.questions)
            with announced(collection_of(system), announce) as collection:
                desk.editor(system, collection, who_asks(request)).assign(asked.questions, asked.id)
            return counted

        return answer(await _write(service, name, once, store_of(service, system), work, lambda _: counted))

    @app.post("/v1/collections/{name}/inbox/dismiss", tags=["desk"], response_model=s.CountAnswer, responses=ERRORS)
    async def dismiss(
        name: CollectionName, asked: s.DismissRequest, request: Request, once: Repeatable = None
    ) -> Response:
        """Put questions away: they come back only when this is undone."""
        system = service.answers(name)
        audit = desk.audit
        if audit is None:
            raise Refused(409, "no_audit", "this service has no audit file, which this needs")

        counted = {"count": len(asked.questions)}

        def work(announce: Announce | None) -> Plain:
            _check(service, system, asked.questions)
            audit.record(system.name, who_asks(request), "dismiss", announce=announce, questions=asked.questions)
            return counted

        store = service.onces.beside(audit.file.path)
        return answer(await _write(service, "desk", once, store, work, lambda _: counted))

    @app.delete("/v1/collections/{name}/questions", tags=["desk"], response_model=s.CountAnswer, responses=ERRORS)
    async def forget(name: CollectionName, request: Request, once: Repeatable = None) -> Response:
        """Delete the log of questions, of all collections that are served."""
        system, log = service.answers(name), desk.questions
        if log is None:
            raise Refused(404, "unknown", "this service logs no questions")

        def work(announce: Announce | None) -> Plain:
            count = len(log.read(system.name).questions)
            begins(announce)
            log.delete()
            if desk.audit is not None:
                desk.audit.record(system.name, who_asks(request), "delete questions")
            return {"count": count}

        return answer(await _write(service, "desk", once, service.onces.beside(log.file.path), work))


def _add_quality(app: FastAPI, service: Service) -> None:
    desk = service.desk

    @app.get("/v1/collections/{name}/quality", tags=["desk"], response_model=s.QualityAnswer, responses=ERRORS)
    async def figures(name: CollectionName) -> Response:
        """How the collection fares over time, and which of its entries deserve a look."""
        system = service.answers(name)

        def work() -> dict[str, Any]:
            asked = None if desk.questions is None else desk.questions.read(system.name)
            records = [] if desk.audit is None else desk.audit.records(system.name)
            last = result_of(system.path)
            return quality(collection_of(system), asked, desk.judgements(system), records, last)

        return answer(await _read(service, work))

    @app.post("/v1/collections/{name}/promote", tags=["desk"], response_model=s.PromoteAnswer, responses=ERRORS)
    async def promote(name: CollectionName, request: Request, once: Repeatable = None) -> Response:
        """Use the fit that a refit kept aside; refused where it is worse, or where there is none."""
        system, _ = service.writable_answers(name)

        def work(announce: Announce | None) -> Plain:
            begins(announce)
            last = result_of(system.path)
            figures = {} if last is None else {"before": last.before, "after": last.after}
            with desk.noting(system, who_asks(request)) as note:
                note("promote", told={**figures, "kept": True, "aside": False})
                done = collection_of(system).promote()
            service.refits.promoted(system)
            state = service.refits.state(system)
            return {"promoted": True, "before": done.before, "after": done.after, "refit": state}

        return answer(await _write(service, name, once, store_of(service, system), work))


def _add_transfer(app: FastAPI, service: Service) -> None:
    content: dict[str, Any] = {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in FORMATS.values()}

    @app.get(
        "/v1/collections/{name}/export",
        tags=["desk"],
        response_class=Response,
        responses={**ERRORS, 200: {"description": "The file.", "content": content}},
    )
    async def export(
        name: CollectionName,
        format: Annotated[Literal["csv", "jsonl"], Query()] = "csv",  # noqa: A002 (its name there)
    ) -> Response:
        """All entries as a file: a row for each question, with the columns of its answer."""
        system = service.answers(name)
        made = await _read(service, lambda: exported(collection_of(system).entries, format))
        named = {"content-disposition": f'attachment; filename="{system.name}.{format}"'}
        return Response(made, media_type=FORMATS[format], headers=named)

    @app.post("/v1/collections/{name}/import", tags=["desk"], response_model=s.ImportAnswer, responses=ERRORS)
    async def import_(
        name: CollectionName, asked: s.ImportRequest, request: Request, once: Repeatable = None
    ) -> Response:
        """Take entries from a file, as one change; `dry_run` tells what it would change."""
        system, _ = service.writable_answers(name)

        def work(announce: Announce | None) -> Plain:
            collection = collection_of(system)
            given, notes = read_import(asked.content, asked.format)
            for one in given:
                service.limits.check_texts([one.text, *one.questions, *one.columns.values()], system.tokenizer)
            service.limits.check_ids(one.id for one in given)
            plan = planned(collection.entries, given, replace=asked.replace)
            if not asked.dry_run and (plan.put or plan.remove):
                with announced(collection, announce):
                    service.desk.editor(system, collection, who_asks(request)).import_(plan.put, plan.remove)
            counts = {"new": plan.new, "changed": len(plan.put) - plan.new, "same": plan.same}
            return {**counts, "removed": len(plan.remove), "done": not asked.dry_run, "notes": notes}

        def recovered(told: Plain) -> Plain:
            counts = {"new": told["new"], "changed": len(told["put"]) - told["new"], "same": 0}
            return {**counts, "removed": len(told["removed"]), "done": True, "notes": []}

        return answer(await _write(service, name, once, store_of(service, system), work, recovered))


async def _read(service: Service, work: Callable[[], Any]) -> Any:
    async with service.workers.admitted():
        return await service.workers.call(work)


async def _write(service: Service, *given: Any) -> Plain:
    """As `change`, for one request."""
    async with service.workers.admitted():
        return await change(service, *given)


def _check(service: Service, system: ServedSystem, questions: list[str]) -> None:
    """Refuse questions that are too many, too long or none; in a thread, since it reads them."""
    service.limits.check_count("questions", len(questions))
    service.limits.check_texts(questions, system.tokenizer)
    if not all(one.strip() for one in questions):
        raise Refused(422, "invalid", "questions: one is empty")


def _where(given: str) -> dict[str, str]:
    if not given:
        return {}
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise Refused(422, "invalid", 'where: expected JSON such as {"topic": "bills"}')
    return found
