"""What the routes of the desk take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from matchloom.service.collection_schemas import RefitState
from matchloom.service.schemas import Answered, Asked, Listed


class EntryOut(Answered):
    """An answer with its questions and columns; `version` differs when it does."""

    id: str
    text: str
    questions: list[str]
    columns: dict[str, str]
    version: str


class EntriesAnswer(Answered):
    """A page of entries."""

    total: int = Field(description="Entries that match.")
    all: int = Field(description="All entries.")
    entries: list[EntryOut]
    filters: dict[str, list[str]] = Field(description="Columns that can be filtered by, with their values.")


class UndoRequest(Asked):
    """Take back a change."""

    change: Annotated[
        str, Field(default="", max_length=64, description="The id of the change; the last one by default.")
    ]


class UndoAnswer(Answered):
    """The change that was taken back, and the entries that are as they were; none where questions are back."""

    undone: str
    ids: list[str]


class AuditRecord(Answered):
    """A change: who, when, what; with the first few ids, and how their answers begin."""

    id: str
    time: float
    who: str
    system: str
    action: str
    ids: list[str]
    texts: list[str]
    entries: int
    new: int = Field(description="Of these entries, those that were not there before.")
    questions: int = Field(description="Questions that were dismissed.")
    undone: bool
    told: dict[str, Any]


class AuditAnswer(Answered):
    """The changes, the latest first; `last` is the one that undo takes back."""

    changes: list[AuditRecord]
    last: str | None


class WaitingQuestion(Answered):
    """A question that waits: how often and when it was asked, and which answers were called wrong for it."""

    question: str
    count: int
    last: float
    down: list[str]


class Suggestion(Answered):
    """An answer that may fit."""

    id: str
    text: str
    probability: float | None


class WrongAnswer(Answered):
    """An answer that was called wrong."""

    id: str
    text: str


class InboxGroup(Answered):
    """Questions that are alike."""

    questions: list[WaitingQuestion]
    more: int = Field(description="Questions of the group that are not listed.")
    count: int
    last: float
    why: str
    wrong: list[WrongAnswer]
    suggestions: list[Suggestion]


class InboxAnswer(Answered):
    """What waits, in groups; the most often asked first."""

    total: int
    groups: list[InboxGroup]
    logging: bool = Field(description="Whether questions are logged; if not, only judged ones are listed.")


class AssignRequest(Asked):
    """Make questions those of an entry."""

    questions: Annotated[Listed[str], Field(min_length=1, examples=[["where are my bills"]])]
    id: Annotated[str, Field(min_length=1, examples=["invoices"])]


class DismissRequest(Asked):
    """Put questions away."""

    questions: Annotated[Listed[str], Field(min_length=1, examples=[["asdf"]])]


class CountAnswer(Answered):
    """How many."""

    count: int


class QualityAnswer(Answered):
    """How a collection fares."""

    left_out: dict[str, float] | None = Field(description="Held-out questions, and how many found their answer.")
    promises: list[dict[str, float | None]]
    changed_since_fit: int
    days: list[dict[str, Any]]
    refits: list[dict[str, Any]]
    confused: list[dict[str, Any]]
    finds: list[dict[str, Any]]
    never_found: dict[str, Any] | None = Field(description="None where questions are not logged.")
    questions_logged: int | None


class PromoteAnswer(Answered):
    """The fit that waited is in use."""

    promoted: bool
    before: float | None
    after: float | None
    refit: RefitState


class ImportRequest(Asked):
    """Take entries from a file."""

    content: Annotated[str, Field(min_length=1, description="The file as text.")]
    format: Annotated[Literal["csv", "jsonl"], Field(default="csv")]
    replace: Annotated[bool, Field(default=False, description="Also remove entries that are not in the file.")]
    dry_run: Annotated[bool, Field(default=False, description="Report what would change, without changing anything.")]


class ImportAnswer(Answered):
    """What the file changes."""

    new: int
    changed: int
    same: int
    removed: int
    done: bool
    notes: list[str] = Field(description="Assumptions about the file, and rows that were skipped.")
