"""A service, asked from plain code."""

from __future__ import annotations

import time
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


class Client:
    """A service, asked from plain code. Use it in a `with` block, or `close` it."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            url: Where the service is.
            key: An API key, where it wants one.
            timeout: Seconds to wait for an answer.
            transport: How requests are sent, for tests.
        """
        self._http = httpx.Client(base_url=url, headers=headers(key), timeout=timeout, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def _ask(self, call: Call[T]) -> T:
        tried, own = 0, call.headers()
        while True:
            try:
                response = self._http.request(call.method, call.path, json=call.body, headers=own)
            except httpx.HTTPError as error:
                wait: float | None = seconds_after(error, tried, str(self._http.base_url))
            else:
                wait = seconds_to_wait(response, tried)
                if wait is None:
                    return read_answer(call, response)
            tried += 1
            assert wait is not None
            time.sleep(wait)

    def systems(self) -> list[dict[str, Any]]:
        """What is served: name, kind, and what each can do."""
        return self._ask(calls.systems())

    def score(self, pairs: PairsLike, text: str | None = None, *, system: str | None = None) -> Any:
        """As `Matcher.score`: the score of each pair, or of one query and text.

        Args:
            pairs: Pairs, tuples, dicts or a data frame; or one query.
            text: The text to that one query.
            system: A served system; the first one by default.
        """
        return self._ask(calls.score(pairs, text, system))

    def rank(
        self,
        query: str,
        candidates: Iterable[str],
        *,
        top: int | None = None,
        system: str | None = None,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> Ranking:
        """As `Matcher.rank` or `Collection.rank`: the candidates by falling score; `sureness` where a collection ranks.

        Args:
            query: The query.
            candidates: Texts.
            top: At most this many; all by default.
            system: A served system, or bm25.
            precision: As of `search`.
            coverage: As of `search`.
        """
        return self._ask(calls.rank(query, candidates, top, system, precision, coverage))

    def search(
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
        """As `Collection.search`: the best answers.

        Args:
            question: The question; many of them, in a list, give a list each.
            top: At most this many.
            system: A served system with answers.
            by: What ranks in its place: bm25, or another served system.
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
        return self._ask(calls.search(question, options))

    def explain(
        self,
        query: str,
        text: str = "",
        *,
        id: str = "",  # noqa: A002
        system: str | None = None,
        by: str | None = None,
    ) -> Explanation:
        """As `explain`: why a text, or an answer by its id, got its score.

        Args:
            query: The query.
            text: The text.
            id: The id of an answer, in place of its text.
            system: A served system.
            by: As for `search`.
        """
        return self._ask(calls.explain(query, text, {"id": id, "system": system, "by": by}))

    def add(self, collection: str, pairs: PairsLike) -> Added:
        """As `Collection.add`, to a collection or archive of a service that is writable.

        Args:
            collection: Its name.
            pairs: Questions with their answers.
        """
        return self._ask(calls.add(collection, pairs))

    def replace(self, collection: str, entries: Iterable[Entry]) -> int:
        """As `Collection.replace`: entries as they are given, questions and columns too.

        Args:
            collection: Its name.
            entries: Entries (`matchloom.data.entries.Entry`), each with an id and a text.
        """
        return self._ask(calls.replace(collection, entries))

    def remove(self, collection: str, ids: Iterable[str]) -> int:
        """As `Collection.remove`.

        Args:
            collection: Its name.
            ids: As `search` gives them.
        """
        return self._ask(calls.remove(collection, ids))

    def refit(self, collection: str) -> dict[str, Any]:
        """As `Collection.refit`, begun in the background: `status` says what became of it.

        Args:
            collection: Its name.
        """
        return self._ask(calls.refit(collection))

    def status(self, collection: str) -> dict[str, Any]:
        """As `Collection.status`, with the state of its refit.

        Args:
            collection: Its name.
        """
        return self._ask(calls.status(collection))

    def feedback(
        self,
        question: str,
        text: str,
        right: bool,
        *,
        id: str = "",  # noqa: A002
        who: str = "",
        system: str | None = None,
    ) -> None:
        """Keep a thumb up or down.

        Args:
            question: What was asked.
            text: The answer; "" where its id is given.
            right: Whether it is right.
            id: Of the answer.
            who: Whose judgement it is; a later one takes its place.
            system: Which system gave it.
        """
        self._ask(calls.feedback(question, text, right, id, who, system))

    def desk(self, collection: str) -> Desk:
        """The desk of a collection: its entries, inbox, quality, refits, files.

        Args:
            collection: Its name.
        """
        return Desk(self._ask, collection)

    def reload(self, *systems: str) -> dict[str, str]:
        """Have systems read anew; why some were refused, by name.

        Args:
            systems: Their names; all of them where none is named.
        """
        return self._ask(calls.reload(systems))
