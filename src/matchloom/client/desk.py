"""The desk of a collection from Python: what its owner clicks, a program calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from matchloom.basics.validation import many_texts
from matchloom.client.calls import path_of
from matchloom.client.sending import Call


class Desk:
    """What the owner of a collection does at the desk; of an `AsyncClient` every method is awaited.

    `Client("http://127.0.0.1:8000").desk("faq").inbox()["groups"]` are the questions that wait for an answer.
    """

    def __init__(self, ask: Callable[[Call[Any]], Any], collection: str) -> None:
        self._send, self._name = ask, collection

    def _ask(
        self, what: str, body: dict[str, Any] | None = None, *, read: Callable[[Any], Any] = dict, **how: Any
    ) -> Any:
        writes = body is not None or "verb" in how
        return self._send(Call(path_of(self._name, what), body, read, writes=writes, **how))

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
