"""The routes that change a collection: what they confirm is on the disk, and found by every worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import FastAPI, Request
from fastapi import Path as PathArgument
from starlette.responses import Response

from matchloom.basics.growing import Announce
from matchloom.data.entries import Entry
from matchloom.data.identity import digest, normalize_text
from matchloom.service import collection_schemas as s
from matchloom.service.desk.desk import who_asks
from matchloom.service.once import NAME, Attempt, Once, Plain, Repeatable
from matchloom.service.problems import Refused, refusal_of
from matchloom.service.refits import Order
from matchloom.service.responses import ERRORS, answer
from matchloom.service.service import Service
from matchloom.service.systems import ServedSystem
from matchloom.types import MatchloomError, Pair

if TYPE_CHECKING:
    pass

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
    async def add(name: CollectionName, asked: s.AddRequest, request: Request, once: Repeatable = None) -> Response:
        """Add pairs to a collection or an archive. They are on the disk, and found, when this answers."""
        system, opened = service.writable_answers(name)
        limits.check_count("pairs", len(asked.pairs))
        limits.check_ids(name for pair in asked.pairs for name in (pair.query_id, pair.text_id))
        pairs = [Pair(one.query, one.text, None, one.query_id, one.text_id) for one in asked.pairs]

        def work(announce: Announce | None) -> Plain:
            answers, told = opened(), {}
            with service.desk.noting(system, who_asks(request)) as note, announced(answers, announce, note, "add"):
                done = answers.add(pairs)
                told = {"new": done.new, "replaced": done.replaced}
                if system.collection is None:
                    note("add", told=told)
            return told

        def recovered(told: Plain) -> Plain:
            return {"new": told["new"], "replaced": len(told["put"]) - told["new"]}

        async with workers.admitted():
            await workers.call(limits.text_steps, [text for pair in pairs for text in pair[:2]], system.tokenizer)
            return answer(await change(service, name, once, store_of(service, system), work, recovered))

    @app.post("/v1/archives/{name}/delete", tags=["write"], response_model=s.DeleteAnswer, responses=ERRORS)
    async def delete(
        name: CollectionName, asked: s.DeleteRequest, request: Request, once: Repeatable = None
    ) -> Response:
        """Remove answers of a collection, or pairs of an archive, by their ids."""
        return answer(await _removed(service, name, asked.ids, who_asks(request), once, "deleted"))


def _add_entries(app: FastAPI, service: Service) -> None:
    limits, workers = service.limits, service.workers

    @app.put("/v1/collections/{name}/entries", tags=["write"], response_model=s.PutAnswer, responses=ERRORS)
    async def put(name: CollectionName, asked: s.PutRequest, request: Request, once: Repeatable = None) -> Response:
        """Put entries as they are given: with the id of one that is there it takes its place, questions and all."""
        system, opened = service.writable_answers(name)
        _refuse_archive(system, "has pairs and no entries; add pairs to it")
        limits.check_count("entries", len(asked.entries))
        limits.check_count("questions", sum(len(one.questions) for one in asked.entries))
        limits.check_ids(one.id for one in asked.entries)
        entries = [_entry(one) for one in asked.entries]
        versions = {one.id: one.version for one in asked.entries}

        told = {"put": len(entries), "ids": [one.id for one in entries]}

        def work(announce: Announce | None) -> Plain:
            with announced(opened(), announce) as collection:
                service.desk.editor(system, collection, who_asks(request)).put(entries, versions, new=asked.new)
            return told

        texts = [text for one in entries for text in (one.text, *one.questions, *one.columns, *one.columns.values())]
        async with workers.admitted():
            await workers.call(limits.text_steps, texts, system.tokenizer)
            return answer(await change(service, name, once, store_of(service, system), work, lambda _: told))

    @app.post("/v1/collections/{name}/remove", tags=["write"], response_model=s.RemoveAnswer, responses=ERRORS)
    async def remove(
        name: CollectionName, asked: s.DeleteRequest, request: Request, once: Repeatable = None
    ) -> Response:
        """Remove answers by their ids, with all their questions."""
        return answer(await _removed(service, name, asked.ids, who_asks(request), once, "removed"))


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
    async def refit(
        name: CollectionName, request: Request, asked: s.RefitRequest | None = None, once: Repeatable = None
    ) -> Response:
        """Begin to learn from all entries as they are now, and from judgements; GET the collection to see the outcome.

        The new fit is used if it is not worse; with `aside` it waits for promote.
        """
        system, _ = service.writable_answers(name)
        _refuse_archive(system, "learns nothing; 'matchloom tune' finds its one weight")
        order = Order(aside=asked is not None and asked.aside, who=who_asks(request))

        def work(announce: Announce | None) -> Plain:
            begins(announce)
            service.refits.begin(system, order)
            return service.refits.state(system)

        async with service.workers.admitted():
            return answer(await change(service, name, once, store_of(service, system), work), 202)


def _entry(given: s.EntryIn) -> Entry:
    """An entry; one without an id is known by its text."""
    return Entry(given.id or digest(normalize_text(given.text)), given.text, tuple(given.questions), given.columns)


async def _removed(service: Service, name: str, ids: list[str], who: str, once: Attempt | None, what: str) -> Plain:
    system, opened = service.writable_answers(name)
    service.limits.check_count("ids", len(ids))

    def work(announce: Announce | None) -> Plain:
        with announced(opened(), announce) as answers:
            if system.collection is not None:
                removed, unknown = service.desk.editor(system, answers, who).remove(ids)
                return {what: removed, "unknown": unknown}
            unknown = answers.unknown(ids)
            with service.desk.noting(system, who) as note:
                removed = answers.remove(ids)
                note("delete", told={"pairs": removed})
            return {what: removed, "unknown": unknown}

    def recovered(told: Plain) -> Plain:
        gone = set(told["removed"])
        return {what: len(gone), "unknown": [one for one in dict.fromkeys(ids) if one not in gone]}

    async with service.workers.admitted():
        return await change(service, name, once, store_of(service, system), work, recovered)


async def change(
    service: Service,
    what: str,
    once: Attempt | None,
    store: Once,
    work: Callable[[Announce | None], Plain],
    recovered: Callable[[Plain], Plain] | None = None,
    *,
    tell: Callable[[Callable[[], Plain]], Plain] | None = None,
) -> Plain:
    """Change something in the one thread that does; a write with a key is done once. See `Once.do`.

    `tell` calls the work and tells what the library refuses; it is a conflict, or asks for too much, by default.
    """
    tell = tell or written
    if once is None:
        return await service.workers.write(what, tell, partial(work, None))

    def repeatable() -> Plain:
        return store.do(once, work, recovered, wait=service.workers.seconds_left())

    return await service.workers.write(what, tell, repeatable)


def store_of(service: Service, system: ServedSystem) -> Once:
    """Where the keys of writes to a collection or an archive are kept."""
    home: Path = system.path if system.collection is None else system.collection.folder or system.path
    return service.onces.of(home / NAME)


@contextmanager
def announced(answers: Any, announce: Announce | None, note: Any = None, action: str = "") -> Iterator[Any]:
    """What is written to a collection, or an archive, is announced, and noted as an action before it is done."""
    if not hasattr(answers, "announce"):
        begins(announce)
        yield answers
        return

    def tell(path: Path | None, start: int, content: bytes, told: Any) -> None:
        if note is not None:
            note(action, told={"new": told["new"], "replaced": len(told["put"]) - told["new"]})
        if announce is not None:
            announce(path, start, content, told)

    answers.announce = tell
    try:
        yield answers
    finally:
        answers.announce = None


def begins(announce: Announce | None) -> None:
    """Announce a change of which nobody can see later whether it was made."""
    if announce is not None:
        announce(None, 0, b"", {})


def written(work: Callable[[], T]) -> T:
    """A write that the library refuses is a conflict (another writes, an id means several), or asks for too much."""
    try:
        return work()
    except MatchloomError as error:
        if error.code in _OF_THE_REQUEST:
            raise Refused(422, "refused", str(error)) from None
        raise refusal_of(error, 409, "conflict") from None


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
        "judged": 0,
        "refit": None,
    }
