"""Searches that are over before a thread would have begun: those of small collections, in the loop, many at a time.

A question that finds the loop idle is answered at once; those that arrived with it are compared together, which a
collection does in less than half the time and with the same result. What is not plain (another ranker, an explanation,
a filter, a long text, a mistake) is left to the routes, and so is a collection that is large, has an encoder, or was
just changed: nothing here waits or reads a file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct
from starlette.types import Scope

from matchloom.service.desk.questions import QuestionLog
from matchloom.service.handlers import search_answer
from matchloom.service.problems import overloaded
from matchloom.service.service import Service
from matchloom.service.systems import ServedSystem

PATH = "/v1/search"
_LONGEST = 500  # characters of a question
_AT_ONCE = 32  # questions that are compared together, at most
_MOMENT = 0.01  # CPU seconds for which others wait: fewer are compared where they took longer


class PlainSearch(Struct, forbid_unknown_fields=True):
    """The plainest search there is; the route knows the others (`schemas.SearchRequest`)."""

    question: str
    system: str | None = None
    top: Annotated[int, Meta(ge=1, le=100)] = 10
    by: None = None
    alpha: None = None
    candidates: Annotated[int, Meta(ge=1, le=1000)] = 100
    explain: bool = False
    where: None = None
    precision: None = None
    coverage: None = None


class _Waiting(NamedTuple):
    system: ServedSystem
    asked: PlainSearch
    answer: asyncio.Future[bytes]


class QuickSearch:
    """Answers what is plain and quick; None for all else."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._read = msgspec.json.Decoder(PlainSearch).decode
        self._waiting: list[_Waiting] = []
        self._at_once = _AT_ONCE

    def __call__(self, scope: Scope, body: bytes) -> asyncio.Future[bytes] | None:
        """The answer to come, or None where a route is to answer."""
        if scope["path"] != PATH or scope["method"] != "POST" or not self._service.shelf.ready:
            return None
        try:
            asked = self._read(body)
        except ValueError:  # msgspec's errors; the route says what is wrong
            return None
        system = self._service.shelf.find(asked.system)
        if system is None or asked.explain or len(asked.question) > _LONGEST or not asked.question.strip():
            return None
        if system.collection is None or not system.collection.is_quick:
            return None
        if len(self._waiting) >= self._service.limits.waiting:
            raise overloaded(f"{len(self._waiting)} requests are waiting already")
        return self._put(_Waiting(system, asked, asyncio.get_running_loop().create_future()))

    def _put(self, waiting: _Waiting) -> asyncio.Future[bytes]:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._answer)
        self._waiting.append(waiting)
        return waiting.answer

    def _answer(self) -> None:
        """Answer those who wait, the first ones first; who has gone meanwhile is left out."""
        batch, self._waiting = self._waiting[: self._at_once], self._waiting[self._at_once :]
        start = time.thread_time()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._answer)
        groups: dict[ServedSystem, list[_Waiting]] = {}
        for one in batch:
            if not one.answer.done():
                groups.setdefault(one.system, []).append(one)
        for system, some in groups.items():
            log = self._service.desk.questions
            for one, found in zip(some, _found(system, [one.asked for one in some], log), strict=True):
                if isinstance(found, Exception):
                    one.answer.set_exception(found)
                else:
                    one.answer.set_result(found)
        self._adapt(time.thread_time() - start)

    def _adapt(self, seconds: float) -> None:
        """Fewer at a time where they took long, more where they did not."""
        if seconds > _MOMENT:
            self._at_once = max(1, self._at_once // 2)
        elif seconds < _MOMENT / 4:
            self._at_once = min(_AT_ONCE, 2 * self._at_once)


def _found(
    system: ServedSystem, asked: Sequence[PlainSearch], log: QuestionLog | None = None
) -> list[bytes | Exception]:
    """Of each its answer; what one client asked must not be another's error."""
    assert system.collection is not None
    try:
        hits = system.collection.search([one.question for one in asked], top=max(one.top for one in asked))
        for one, found in zip(asked, hits if log is not None else (), strict=log is not None):
            assert log is not None
            log.keep(system.name, one.question, found)
        encoded: list[Any] = [
            msgspec.json.encode(search_answer(system, None, found, one.top))
            for one, found in zip(asked, hits, strict=True)
        ]
        return encoded
    except Exception as error:
        if len(asked) == 1:
            return [error]
        return [_found(system, [one], log)[0] for one in asked]
