"""What the desk keeps beside the collections: the audit file, the question log, and the file that is followed."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from matchloom.search.feedback import Judgement, read_feedback
from matchloom.service.desk.audit import Audit, Note, noting
from matchloom.service.desk.edits import Editor
from matchloom.service.desk.questions import QuestionLog
from matchloom.service.desk.watch import FileWatch
from matchloom.service.keys import LOCAL
from matchloom.service.logs import say
from matchloom.service.problems import Refused
from matchloom.service.refits import Order, Refits, Result
from matchloom.service.systems import ServedSystem, Shelf
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.search.collection import Collection


@dataclass(frozen=True)
class DeskOptions:
    """What of the desk is wanted.

    Args:
        on: Whether there is a desk.
        audit: The file in which changes are written down; None writes none.
        questions: The file in which questions are kept; None keeps none.
        watch: A file that the first collection follows.
    """

    on: bool = True
    audit: Path | None = None
    questions: Path | None = None
    watch: Path | None = None


class Desk:
    """What outlives a request."""

    def __init__(self, options: DeskOptions, shelf: Shelf, refits: Refits, feedback: Path | None) -> None:
        self.on: bool = options.on
        self.audit: Audit | None = None if options.audit is None else Audit(options.audit)
        self.questions: QuestionLog | None = None if options.questions is None else QuestionLog(options.questions)
        self.watching: FileWatch | None = None if options.watch is None else FileWatch(options.watch, shelf, refits)
        self._feedback = feedback
        self._task: asyncio.Task[None] | None = None
        refits.when_done = self._refitted

    def start(self) -> None:
        """Look at the file that is followed."""
        if self.watching is not None:
            self._task = asyncio.create_task(self.watching.watch())

    def stop(self) -> None:
        """Write what waits."""
        if self._task is not None:
            self._task.cancel()
        if self.questions is not None:
            self.questions.close()

    def editor(self, system: ServedSystem, collection: Collection, who: str) -> Editor:
        """Who changes a collection for somebody."""
        return Editor(collection, self.audit, system.name, who)

    def noting(self, system: ServedSystem, who: str) -> AbstractContextManager[Note]:
        """What writes down what somebody changes, before it is done."""
        return noting(self.audit, system.name, who)

    def judgements(self, system: ServedSystem) -> list[Judgement]:
        """What people said of the answers of a system."""
        if self._feedback is None or not self._feedback.exists():
            return []
        try:
            return read_feedback(self._feedback).of_system(system.name, alone=True).judgements
        except MatchloomError:
            return []

    def _refitted(self, system: ServedSystem, order: Order, result: Result) -> None:
        if self.audit is None:
            return
        told: dict[str, Any] = {
            "before": result.before,
            "after": result.after,
            "kept": result.kept,
            "aside": result.aside,
        }
        told |= {} if result.followed is None else {"followed": result.followed}
        try:
            self.audit.record(system.name, order.who, "refit" if order.source is None else "follow", told=told)
        except MatchloomError as error:  # what was learnt is in use all the same
            say("not written down", level=logging.WARNING, system=system.name, why=str(error))


def who_asks(request: Request) -> str:
    """The name of the key that a request has; `local` without keys."""
    return str(request.scope["state"].get("holder", LOCAL).name)


def collection_of(system: ServedSystem) -> Collection:
    """The collection of a system, or a refusal."""
    if system.collection is None:
        raise Refused(422, "not_supported", f"{system.name} is not a collection in files, which the desk needs")
    return system.collection
