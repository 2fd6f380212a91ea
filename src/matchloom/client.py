"""A service of `matchloom serve` from Python, with the library's own types: what ranks there ranks as it would here.

    from matchloom.client import Client

    with Client("http://127.0.0.1:8000") as service:
        for answer in service.search("I forgot my password", top=3):
            print(f"{answer.score:.2f}  {answer.text}")

`AsyncClient` has the same methods, to be awaited.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import httpx
import numpy as np

from matchloom.basics.validation import many_texts, one_text
from matchloom.data.entries import Entry
from matchloom.data.formats import PairsLike, as_pairs, scorable
from matchloom.explanation import Explanation
from matchloom.types import Added, Hit, Hits, MatchloomError, Ranked, Ranking, Scores

T = TypeVar("T")
_RETRIES = 3  # after a 503, which says when to come again
_LONGEST_WAIT = 5.0


class ServiceError(MatchloomError):
    """What a service refused: `status`, and `code`, which stays the same whatever the message says."""

    code: str  # type: ignore[assignment]  # a service has codes of its own

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class _Call(NamedTuple, Generic[T]):
    """One request, and what to make of its answer."""

    path: str
    body: dict[str, Any] | None  # None asks with GET
    read: Callable[[Any], T]
    put: bool = False  # PUT in place of POST
    verb: str = ""  # another one
    raw: bool = False  # whether the answer is a file, and no JSON

    @property
    def method(self) -> str:
        """How it is asked."""
        return self.verb or ("GET" if self.body is None else "PUT" if self.put else "POST")


class _Calls:
    """The requests, apart from how they are sent."""

    @staticmethod
    def systems() -> _Call[list[dict[str, Any]]]:
        return _Call("/v1/systems", None, lambda found: list(found["systems"]))

    @staticmethod
    def score(pairs: PairsLike, text: str | None, system: str | None) -> _Call[Any]:
        alone = text is not None
        asked = [(one_text("query", pairs), one_text("text", text))] if alone else scorable(pairs)
        plain = [{"query": pair[0], "text": pair[1]} for pair in asked]

        def read(found: Any) -> Scores | float:
            scores = np.array(found["scores"], dtype=np.float32)
            return float(scores[0]) if alone else scores

        return _Call("/v1/score", {"system": system, "pairs": plain}, read)

    @staticmethod
    def rank(query: str, candidates: Iterable[str], top: int | None, system: str | None) -> _Call[Ranking]:
        texts = many_texts("candidates", candidates)
        body = {"system": system, "query": one_text("query", query), "candidates": texts, "top": top}
        return _Call(
            "/v1/rank",
            body,
            lambda found: Ranking(Ranked(one["index"], one["score"], one["text"]) for one in found["ranking"]),
        )

    @staticmethod
    def search(question: str | Iterable[str], options: dict[str, Any]) -> _Call[Any]:
        if isinstance(question, str) or not isinstance(question, Iterable):
            return _Call("/v1/search", {"question": one_text("question", question), **options}, _hits)
        many = many_texts("question", question)
        return _Call(
            "/v1/search", {"questions": many, **options}, lambda found: [_hits(one) for one in found["results"]]
        )

    @staticmethod
    def explain(query: str, text: str, options: dict[str, Any]) -> _Call[Explanation]:
        body = {"query": one_text("query", query), "text": one_text("text", text), **options}
        return _Call("/v1/explain", body, lambda found: Explanation.from_dict(found["explanation"]))

    @staticmethod
    def add(collection: str, pairs: PairsLike) -> _Call[Added]:
        right = list(as_pairs(pairs))
        wrong = [pair for pair in right if not pair.is_positive]
        plain = [
            {"query": pair.query, "text": pair.text, "query_id": pair.query_id, "text_id": pair.text_id}
            for pair in right
            if pair.is_positive
        ]
        path = _collection(collection, "/pairs", "archives")
        return _Call(path, {"pairs": plain}, lambda done: Added(done["new"], done["replaced"], len(wrong)))

    @staticmethod
    def replace(collection: str, entries: Iterable[Entry]) -> _Call[int]:
        plain = [
            {"id": one.id, "text": one.text, "questions": list(one.questions), "columns": dict(one.columns)}
            for one in entries
        ]
        return _Call(_collection(collection, "/entries"), {"entries": plain}, lambda done: int(done["put"]), put=True)

    @staticmethod
    def remove(collection: str, ids: Iterable[str]) -> _Call[int]:
        body = {"ids": many_texts("ids", ids)}
        return _Call(_collection(collection, "/remove"), body, lambda done: int(done["removed"]))

    @staticmethod
    def refit(collection: str) -> _Call[dict[str, Any]]:
        return _Call(_collection(collection, "/refit"), {}, dict)

    @staticmethod
    def status(collection: str) -> _Call[dict[str, Any]]:
        return _Call(_collection(collection), None, dict)

    @staticmethod
    def feedback(question: str, text: str, right: bool, answer_id: str, who: str, system: str | None) -> _Call[None]:
        body = {"question": question, "text": text, "label": int(right), "id": answer_id, "who": who, "system": system}
        return _Call("/v1/feedback", body, lambda _: None)

    @staticmethod
    def reload(systems: Sequence[str]) -> _Call[dict[str, str]]:
        return _Call("/v1/reload", {"systems": list(systems)}, lambda done: dict(done["refused"]))


class Desk:
    """What the owner of a collection does at the desk; of an `AsyncClient` every method is awaited.

    `Client("http://127.0.0.1:8000").desk("faq").inbox()["groups"]` are the questions that wait for an answer.
    """

    def __init__(self, ask: Callable[[_Call[Any]], Any], collection: str) -> None:
        self._send, self._name = ask, collection

    def _ask(
        self, what: str, body: dict[str, Any] | None = None, *, read: Callable[[Any], Any] = dict, **how: Any
    ) -> Any:
        return self._send(_Call(_collection(self._name, what), body, read, **how))

    def entries(
        self,
        search: str = "",
        *,
        where: Mapping[str, str] | None = None,
        sort: str = "id",
        offset: int = 0,
        limit: int = 50,
    ) -> Any:
        """A page of entries, each with its version; how many there are; columns to filter by.

        Args:
            search: Words that an entry must have.
            where: Values of your own columns.
            sort: id, text or questions; with - before it falling.
            offset: How many to pass over.
            limit: How many to give, at most 200.
        """
        asked = {"search": search, "sort": sort, "offset": str(offset), "limit": str(limit)}
        return self._ask("/entries?" + urlencode({**asked, "where": json.dumps(dict(where)) if where else ""}))

    def put(
        self,
        text: str,
        questions: Iterable[str] = (),
        *,
        id: str = "",  # noqa: A002
        columns: Mapping[str, str] | None = None,
        version: str = "",
        new: bool = False,
    ) -> Any:
        """Put one entry; its id.

        Args:
            text: The answer.
            questions: All that it answers.
            id: Of the entry; made of its text where none is given.
            columns: Your own columns.
            version: As `entries` gave it: refused where somebody has changed the entry since.
            new: Refused where the id is there already.
        """
        asked = many_texts("questions", questions)
        entry = {"id": id, "text": text, "questions": asked, "columns": dict(columns or {}), "version": version}
        body = {"entries": [entry], "new": new}
        return self._ask("/entries", body, read=lambda done: str(done["ids"][0]), put=True)

    def undo(self, change: str = "") -> Any:
        """Take back a change, or the last one; which it was, and the ids of its entries.

        Args:
            change: Its id, as `audit` gives it.
        """
        return self._ask("/undo", {"change": change})

    def audit(self, limit: int = 100) -> Any:
        """Who changed what, and when; the latest first.

        Args:
            limit: How many.
        """
        return self._ask(f"/audit?limit={int(limit)}", read=lambda found: list(found["changes"]))

    def inbox(self) -> Any:
        """Questions that wait for an answer, those that are alike together."""
        return self._ask("/inbox")

    def assign(self, questions: Iterable[str], id: str) -> Any:  # noqa: A002
        """Make questions those of an entry; how many.

        Args:
            questions: As the inbox has them.
            id: Of the entry.
        """
        body = {"questions": many_texts("questions", questions), "id": id}
        return self._ask("/inbox/assign", body, read=lambda done: int(done["count"]))

    def dismiss(self, questions: Iterable[str]) -> Any:
        """Put questions away; how many.

        Args:
            questions: As the inbox has them.
        """
        body = {"questions": many_texts("questions", questions)}
        return self._ask("/inbox/dismiss", body, read=lambda done: int(done["count"]))

    def delete_questions(self) -> Any:
        """Delete the log of questions; how many there were of this collection."""
        return self._ask("/questions", read=lambda done: int(done["count"]), verb="DELETE")

    def quality(self) -> Any:
        """How the collection fares: over time, confused answers, contradictions, entries never found."""
        return self._ask("/quality")

    def refit(self, *, aside: bool = False) -> Any:
        """Begin a refit in the background; `Client.status` says what became of it.

        Args:
            aside: Keep the new fit aside, for `promote`.
        """
        return self._ask("/refit", {"aside": aside})

    def promote(self) -> Any:
        """Use the fit that was kept aside."""
        return self._ask("/promote", {})

    def export(self, format: str = "csv") -> Any:  # noqa: A002
        """All entries as the bytes of a file.

        Args:
            format: csv or jsonl.
        """
        return self._ask(f"/export?{urlencode({'format': format})}", read=bytes, raw=True)

    def import_(
        self,
        content: str,
        format: str = "csv",  # noqa: A002
        *,
        replace: bool = False,
        dry_run: bool = False,
    ) -> Any:
        """Take entries from a file's content; what it changes.

        Args:
            content: The file as text.
            format: csv or jsonl.
            replace: Also remove what the file has not.
            dry_run: Only tell.
        """
        return self._ask("/import", {"content": content, "format": format, "replace": replace, "dry_run": dry_run})


def _collection(name: str, what: str = "", kind: str = "collections") -> str:
    return f"/v1/{kind}/{quote(name, safe='')}{what}"


def _hits(found: Any) -> Hits:
    """What a search found, as the library gives it."""
    reasons = ((one, one.pop("explanation", None)) for one in ({**one} for one in found["answers"]))
    hits = (Hit(**one, explanation=None if why is None else Explanation.from_dict(why)) for one, why in reasons)
    return Hits(hits, found["known"], found.get("answered"), found.get("confident"))


def _given(**options: Any) -> dict[str, Any]:
    """The options of a search."""
    return options


def _headers(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


def _wait(response: httpx.Response, tried: int) -> float | None:
    """How long to wait before asking again; None where the answer counts."""
    if response.status_code != 503 or tried >= _RETRIES:
        return None
    try:
        return min(_LONGEST_WAIT, float(response.headers.get("retry-after", "1")))
    except ValueError:
        return 1.0


def _read(call: _Call[T], response: httpx.Response) -> T:
    try:
        if call.raw and response.is_success:
            return call.read(response.content)
        found = response.json()
        if response.is_success:
            return call.read(found)
        error = found["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ServiceError(
            response.status_code, "unreadable", f"the answer to {call.path} cannot be read ({error}); is it matchloom?"
        ) from None
    raise ServiceError(response.status_code, code, message)


def _unreachable(error: httpx.HTTPError, url: str) -> ServiceError:
    return ServiceError(0, "unreachable", f"{url} does not answer: {str(error) or type(error).__name__}")


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
        self._http = httpx.Client(base_url=url, headers=_headers(key), timeout=timeout, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def _ask(self, call: _Call[T]) -> T:
        tried = 0
        while True:
            try:
                response = self._http.request(call.method, call.path, json=call.body)
            except httpx.HTTPError as error:
                raise _unreachable(error, str(self._http.base_url)) from None
            wait = _wait(response, tried)
            if wait is None:
                return _read(call, response)
            tried += 1
            time.sleep(wait)

    def systems(self) -> list[dict[str, Any]]:
        """What is served: name, kind, and what each can do."""
        return self._ask(_Calls.systems())

    def score(self, pairs: PairsLike, text: str | None = None, *, system: str | None = None) -> Any:
        """As `Matcher.score`: the score of each pair, or of one query and text.

        Args:
            pairs: Pairs, tuples, dicts or a data frame; or one query.
            text: The text to that one query.
            system: A served system; the first one by default.
        """
        return self._ask(_Calls.score(pairs, text, system))

    def rank(
        self, query: str, candidates: Iterable[str], *, top: int | None = None, system: str | None = None
    ) -> Ranking:
        """As `Matcher.rank`: the candidates by falling score.

        Args:
            query: The query.
            candidates: Texts.
            top: At most this many; all by default.
            system: A served system, or bm25.
        """
        return self._ask(_Calls.rank(query, candidates, top, system))

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
        """
        options = _given(
            system=system,
            top=top,
            by=by,
            alpha=alpha,
            candidates=candidates,
            explain=explain,
            where=None if where is None else dict(where),
            precision=precision,
        )
        return self._ask(_Calls.search(question, options))

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
        return self._ask(_Calls.explain(query, text, {"id": id, "system": system, "by": by}))

    def add(self, collection: str, pairs: PairsLike) -> Added:
        """As `Collection.add`, to a collection or archive of a service that is writable.

        Args:
            collection: Its name.
            pairs: Questions with their answers.
        """
        return self._ask(_Calls.add(collection, pairs))

    def replace(self, collection: str, entries: Iterable[Entry]) -> int:
        """As `Collection.replace`: entries as they are given, questions and columns too.

        Args:
            collection: Its name.
            entries: Entries (`matchloom.data.entries.Entry`), each with an id and a text.
        """
        return self._ask(_Calls.replace(collection, entries))

    def remove(self, collection: str, ids: Iterable[str]) -> int:
        """As `Collection.remove`.

        Args:
            collection: Its name.
            ids: As `search` gives them.
        """
        return self._ask(_Calls.remove(collection, ids))

    def refit(self, collection: str) -> dict[str, Any]:
        """As `Collection.refit`, begun in the background: `status` says what became of it.

        Args:
            collection: Its name.
        """
        return self._ask(_Calls.refit(collection))

    def status(self, collection: str) -> dict[str, Any]:
        """As `Collection.status`, with the state of its refit.

        Args:
            collection: Its name.
        """
        return self._ask(_Calls.status(collection))

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
        self._ask(_Calls.feedback(question, text, right, id, who, system))

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
        return self._ask(_Calls.reload(systems))


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
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(key), timeout=timeout, transport=transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def _ask(self, call: _Call[T]) -> T:
        tried = 0
        while True:
            try:
                response = await self._http.request(call.method, call.path, json=call.body)
            except httpx.HTTPError as error:
                raise _unreachable(error, str(self._http.base_url)) from None
            wait = _wait(response, tried)
            if wait is None:
                return _read(call, response)
            tried += 1
            await asyncio.sleep(wait)

    async def systems(self) -> list[dict[str, Any]]:
        """As `Client.systems`."""
        return await self._ask(_Calls.systems())

    async def score(self, pairs: PairsLike, text: str | None = None, *, system: str | None = None) -> Any:
        """As `Client.score`.

        Args:
            pairs: Pairs, or one query.
            text: The text to that one query.
            system: A served system.
        """
        return await self._ask(_Calls.score(pairs, text, system))

    async def rank(
        self, query: str, candidates: Iterable[str], *, top: int | None = None, system: str | None = None
    ) -> Ranking:
        """As `Client.rank`.

        Args:
            query: The query.
            candidates: Texts.
            top: At most this many.
            system: A served system, or bm25.
        """
        return await self._ask(_Calls.rank(query, candidates, top, system))

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
        """
        options = _given(
            system=system,
            top=top,
            by=by,
            alpha=alpha,
            candidates=candidates,
            explain=explain,
            where=None if where is None else dict(where),
            precision=precision,
        )
        return await self._ask(_Calls.search(question, options))

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
        return await self._ask(_Calls.explain(query, text, {"id": id, "system": system, "by": by}))

    async def add(self, collection: str, pairs: PairsLike) -> Added:
        """As `Client.add`.

        Args:
            collection: Its name.
            pairs: Questions with their answers.
        """
        return await self._ask(_Calls.add(collection, pairs))

    async def replace(self, collection: str, entries: Iterable[Entry]) -> int:
        """As `Client.replace`.

        Args:
            collection: Its name.
            entries: Entries (`matchloom.data.entries.Entry`), each with an id and a text.
        """
        return await self._ask(_Calls.replace(collection, entries))

    async def remove(self, collection: str, ids: Iterable[str]) -> int:
        """As `Client.remove`.

        Args:
            collection: Its name.
            ids: As `search` gives them.
        """
        return await self._ask(_Calls.remove(collection, ids))

    async def refit(self, collection: str) -> dict[str, Any]:
        """As `Client.refit`.

        Args:
            collection: Its name.
        """
        return await self._ask(_Calls.refit(collection))

    async def status(self, collection: str) -> dict[str, Any]:
        """As `Client.status`.

        Args:
            collection: Its name.
        """
        return await self._ask(_Calls.status(collection))

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
        await self._ask(_Calls.feedback(question, text, right, id, who, system))

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
        return await self._ask(_Calls.reload(systems))
