"""A service, asked from asynchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpx

from matchloom.client import calls
from matchloom.client.desk import Desk
from matchloom.client.sending import Call, T, headers, read_answer, seconds_after, seconds_to_wait
from matchloom.data.entries import Entry
from matchloom.data.formats import PairsLike
from matchloom.explanation import Explanation
from matchloom.types import Added, Ranking


class AsyncClient:
    """A service, asked from asynchronous code: the methods of `Client`, to be awaited."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            url: Where the service is.
            key: An API key, where it wants one.
            timeout: Seconds to wait for an answer.
            transport: How requests are sent, for tests.
        """
        self._http = httpx.AsyncClient(base_url=url, headers=headers(key), timeout=timeout, transport=transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def _ask(self, call: Call[T]) -> T:
        tried, own = 0, call.headers()
        while True:
            try:
                response = await self._http.request(call.method, call.path, json=call.body, headers=own)
            except httpx.HTTPError as error:
                wait: float | None = seconds_after(error, tried, str(self._http.base_url))
            else:
                wait = seconds_to_wait(response, tried)
                if wait is None:
                    return read_answer(call, response)
            tried += 1
            assert wait is not None
            await asyncio.sleep(wait)

    async def systems(self) -> list[dict[str, Any]]:
        """As `Client.systems`."""
        return await self._ask(calls.systems())

    async def score(self, pairs: PairsLike, text: str | None = None, *, system: str | None = None) -> Any:
        """As `Client.score`.

        Args:
            pairs: Pairs, or one query.
            text: The text to that one query.
            system: A served system.
        """
        return await self._ask(calls.score(pairs, text, system))

    async def rank(
        self,
        query: str,
        candidates: Iterable[str],
        *,
        top: int | None = None,
        system: str | None = None,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> Ranking:
        """As `Client.rank`.

        Args:
            query: The query.
            candidates: Texts.
            top: At most this many.
            system: A served system, or bm25.
            precision: As of `search`.
            coverage: As of `search`.
        """
        return await self._ask(calls.rank(query, candidates, top, system, precision, coverage))

    async def search(
        self,
        question: str | Iterable[str],
        *,
        top: int = 10,
        system: str | None = None,
        by: str | None = None,
        alpha: float | None = None,
        candidates: int = 100,
        explain: bool = False,
        where: Mapping[str, str | Sequence[str]] | None = None,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> Any:
        """As `Client.search`.

        Args:
            question: The question, or many in a list.
            top: At most this many.
            system: A served system with answers.
            by: What ranks in its place.
            alpha: Archives: the weight of the questions' similarity.
            candidates: Archives: how many pairs get a full score.
            explain: Add to each answer why it was found.
            where: Collections: values that answers must have in your own columns.
            precision: Collections: of the answers shown, so many are right; `answered` says whether one is so sure.
            coverage: Collections: so many of the questions get an answer, the surest ones; not with `precision`.
        """
        options = {
            "system": system,
            "top": top,
            "by": by,
            "alpha": alpha,
            "candidates": candidates,
            "explain": explain,
            "where": None if where is None else dict(where),
            "precision": precision,
            "coverage": coverage,
        }
        return await self._ask(calls.search(question, options))

    async def explain(
        self,
        query: str,
        text: str = "",
        *,
        id: str = "",  # noqa: A002
        system: str | None = None,
        by: str | None = None,
    ) -> Explanation:
        """As `Client.explain`.

        Args:
            query: The query.
            text: The text.
            id: The id of an answer, in place of its text.
            system: A served system.
            by: As for `search`.
        """
        return await self._ask(calls.explain(query, text, {"id": id, "system": system, "by": by}))

    async def add(self, collection: str, pairs: PairsLike) -> Added:
        """As `Client.add`.

        Args:
            collection: Its name.
            pairs: Questions with their answers.
        """
        return await self._ask(calls.add(collection, pairs))

    async def replace(self, collection: str, entries: Iterable[Entry]) -> int:
        """As `Client.replace`.

        Args:
            collection: Its name.
            entries: Entries (`matchloom.data.entries.Entry`), each with an id and a text.
        """
        return await self._ask(calls.replace(collection, entries))

    async def remove(self, collection: str, ids: Iterable[str]) -> int:
        """As `Client.remove`.

        Args:
            collection: Its name.
            ids: As `search` gives them.
        """
        return await self._ask(calls.remove(collection, ids))

    async def refit(self, collection: str) -> dict[str, Any]:
        """As `Client.refit`.

        Args:
            collection: Its name.
        """
        return await self._ask(calls.refit(collection))

    async def status(self, collection: str) -> dict[str, Any]:
        """As `Client.status`.

        Args:
            collection: Its name.
        """
        return await self._ask(calls.status(collection))

    async def feedback(
        self,
        question: str,
        text: str,
        right: bool,
        *,
        id: str = "",  # noqa: A002
        who: str = "",
        system: str | None = None,
    ) -> None:
        """As `Client.feedback`.

        Args:
            question: What was asked.
            text: The answer; "" where its id is given.
            right: Whether it is right.
            id: Of the answer.
            who: Whose judgement it is; a later one takes its place.
            system: Which system gave it.
        """
        await self._ask(calls.feedback(question, text, right, id, who, system))

    def desk(self, collection: str) -> Desk:
        """As `Client.desk`, with methods to be awaited.

        Args:
            collection: Its name.
        """
        return Desk(self._ask, collection)

    async def reload(self, *systems: str) -> dict[str, str]:
        """As `Client.reload`.

        Args:
            systems: Their names; all of them where none is named.
        """
        return await self._ask(calls.reload(systems))
