"""The routes that change a collection: what they confirm is on the disk, and found by every worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Request
from fastapi import Path as PathArgument
from starlette.responses import Response

from matchloom.data.entries import Entry
from matchloom.data.identity import digest, normalize_text
from matchloom.service import collection_schemas as s
from matchloom.service.desk.desk import who_asks
from matchloom.service.problems import Refused
from matchloom.service.refits import Order
from matchloom.service.responses import ERRORS, answer
from matchloom.service.service import Service
from matchloom.service.systems import ServedSystem
from matchloom.types import Added, MatchloomError, Pair

_OF_THE_REQUEST = ("no_data", "bad_row", "wrong_type", "bad_value")
T = TypeVar("T")
CollectionName = Annotated[str, PathArgument(description="The name of a served collection.", max_length=64)]


def add_changing(app: FastAPI, service: Service) -> None:
    """Add the routes."""
    _add_pairs(app, service)
    _add_entries(app, service)
    _add_collections(app, service)


def _add_pairs(app: FastAPI, service: Service) -> None:
    limits, workers = service.limits, service.workers

    @app.post("/v1/archives/{name}/pairs", tags=["write"], response_model=s.AddAnswer, responses=ERRORS)
    async def add(name: CollectionName, asked: s.AddRequest, request: Request) -> Response:
        """Add pairs to a collection or an archive. They are on the disk, and found, when this answers."""
        system, opened = service.writable_answers(name)
        limits.check_count("pairs", len(asked.pairs))
        limits.check_ids(name for pair in asked.pairs for name in (pair.query_id, pair.text_id))
        pairs = [Pair(one.query, one.text, None, one.query_id, one.text_id) for one in asked.pairs]

        def work() -> Added:
            done: Added = opened().add(pairs)
            if service.desk.audit is not None:
                told = {"new": done.new, "replaced": done.replaced}
                service.desk.audit.record(name, who_asks(request), "add", told=told)
            return done

        async with workers.admitted():
            await workers.call(limits.text_steps, [text for pair in pairs for text in pair[:2]], system.tokenizer)
            done = await workers.write(name, written, work)
        return answer({"new": done.new, "replaced": done.replaced})

    @app.post("/v1/archives/{name}/delete", tags=["write"], response_model=s.DeleteAnswer, responses=ERRORS)
    async def delete(name: CollectionName, asked: s.DeleteRequest, request: Request) -> Response:
        """Remove answers of a collection, or pairs of an archive, by their ids."""
        removed, unknown = await _removed(service, name, asked.ids, who_asks(request))
        return answer({"deleted": removed, "unknown": unknown})


def _add_entries(app: FastAPI, service: Service) -> None:
    limits, workers = service.limits, service.workers

    @app.put("/v1/collections/{name}/entries", tags=["write"], response_model=s.PutAnswer, responses=ERRORS)
    async def put(name: CollectionName, asked: s.PutRequest, request: Request) -> Response:
        """Put entries as they are given: with the id of one that is there it takes its place, questions and all."""
        system, opened = service.writable_answers(name)
        _refuse_archive(system, "has pairs and no entries; add pairs to it")
        limits.check_count("entries", len(asked.entries))
        limits.check_count("questions", sum(len(one.questions) for one in asked.entries))
        limits.check_ids(one.id for one in asked.entries)
        entries = [_entry(one) for one in asked.entries]
        versions = {one.id: one.version for one in asked.entries}

        def work() -> None:
            editor = service.desk.editor(system, opened(), who_asks(request))
            editor.put(entries, versions, new=asked.new)

        texts = [text for one in entries for text in (one.text, *one.questions, *one.columns, *one.columns.values())]
        async with workers.admitted():
            await workers.call(limits.text_steps, texts, system.tokenizer)
            await workers.write(name, written, work)
        return answer({"put": len(entries), "ids": [one.id for one in entries]})

    @app.post("/v1/collections/{name}/remove", tags=["write"], response_model=s.RemoveAnswer, responses=ERRORS)
    async def remove(name: CollectionName, asked: s.DeleteRequest, request: Request) -> Response:
        """Remove answers by their ids, with all their questions."""
        removed, unknown = await _removed(service, name, asked.ids, who_asks(request))
        return answer({"removed": removed, "unknown": unknown})


def _add_collections(app: FastAPI, service: Service) -> None:
    @app.get("/v1/collections/{name}", tags=["state"], response_model=s.CollectionAnswer, responses=ERRORS)
    async def about(name: CollectionName) -> Response:
        """What a collection has, how much has changed since it was fitted and measured, and whether it is refitted."""
        system = service.answers(name)
        async with service.workers.admitted():
            return answer(await service.workers.call(_about, service, system))

    @app.post(
        "/v1/collections/{name}/refit", tags=["write"], response_model=s.RefitState, responses=ERRORS, status_code=202
    )
    async def refit(name: CollectionName, request: Request, asked: s.RefitRequest | None = None) -> Response:
        """Begin to learn from all entries as they are now, and from judgements; GET the collection to see the outcome.

        The new fit is used if it is not worse; with `aside` it waits for promote.
        """
        system, _ = service.writable_answers(name)
        _refuse_archive(system, "learns nothing; 'matchloom tune' finds its one weight")
        async with service.workers.admitted():
            order = Order(aside=asked is not None and asked.aside, who=who_asks(request))
            await service.workers.call(service.refits.begin, system, order)
            return answer(await service.workers.call(service.refits.state, system), 202)


def _entry(given: s.EntryIn) -> Entry:
    """An entry; one without an id is known by its text."""
    return Entry(given.id or digest(normalize_text(given.text)), given.text, tuple(given.questions), given.columns)


async def _removed(service: Service, name: str, ids: list[str], who: str) -> tuple[int, list[str]]:
    system, opened = service.writable_answers(name)
    service.limits.check_count("ids", len(ids))

    def work() -> tuple[int, list[str]]:
        answers = opened()
        if system.collection is not None:
            return service.desk.editor(system, answers, who).remove(ids)
        unknown = answers.unknown(ids)
        removed = answers.remove(ids)
        if service.desk.audit is not None:
            service.desk.audit.record(name, who, "delete", told={"pairs": removed})
        return removed, unknown

    async with service.workers.admitted():
        done: tuple[int, list[str]] = await service.workers.write(name, written, work)
    return done


def written(work: Callable[[], T]) -> T:
    """A write that the library refuses is a conflict (another writes, an id means several), or asks for too much."""
    try:
        return work()
    except MatchloomError as error:
        if error.code in _OF_THE_REQUEST:
            raise Refused(422, "refused", str(error)) from None
        raise Refused(409, "conflict", str(error)) from None


def _refuse_archive(system: ServedSystem, why: str) -> None:
    if system.collection is None:
        raise Refused(422, "not_supported", f"{system.name} is a LanceDB archive, which {why}")


def _about(service: Service, system: ServedSystem) -> dict[str, Any]:
    """What a client is told of a collection, in either store."""
    answers = system.answers
    assert answers is not None
    status = answers.status()
    told = {"name": system.name, "writable": service.writable}
    if system.collection is not None:
        return {**told, **status, "refit": service.refits.state(system)}
    return {
        **told,
        "entries": status["answers"],
        "questions": status["pairs"],
        "scorer": status["matcher"],
        "features": [],
        "learnt": False,
        "changed_since_fit": 0,
        "changed_since_report": None,
        "left_out_precision": None,
        "refit": None,
    }
