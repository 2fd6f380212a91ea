"""What requests that change collections look like, and their answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from matchloom.service.schemas import Answered, Asked, Listed


class ArchivedPair(Asked):
    """A question with its answer. In an archive, with the ids of one that is there it takes its place."""

    query: Annotated[str, Field(description="The question.")]
    text: Annotated[str, Field(description="Its answer.")]
    query_id: Annotated[str, Field(default="")]
    text_id: Annotated[str, Field(default="")]


class AddRequest(Asked):
    """Add pairs to a collection or an archive."""

    pairs: Annotated[
        Listed[ArchivedPair],
        Field(examples=[[{"query": "Where are my invoices?", "text": "Under Billing."}]]),
    ]


class AddAnswer(Answered):
    """What became of the pairs; they are on the disk."""

    new: int
    replaced: int


class EntryIn(Asked):
    """An answer with all its questions and columns of its own."""

    id: Annotated[
        str,
        Field(default="", description="An existing id replaces that entry; without an id the text identifies it."),
    ]
    text: Annotated[str, Field(min_length=1, description="The answer.")]
    questions: Annotated[Listed[str], Field(default=[], description="The questions that it answers; may be empty.")]
    columns: Annotated[dict[str, str], Field(default={}, examples=[{"category": "billing"}])]
    version: Annotated[
        str,
        Field(
            default="",
            max_length=64,
            description="The version that was edited; a conflict if the entry has changed since.",
        ),
    ]


class PutRequest(Asked):
    """Put entries into a collection."""

    entries: Annotated[
        Listed[EntryIn],
        Field(examples=[[{"id": "invoices", "text": "Under Billing.", "questions": ["Where are my invoices?"]}]]),
    ]
    new: Annotated[bool, Field(default=False, description="Whether an existing id is a conflict.")]


class PutAnswer(Answered):
    """How many entries are as they were given; they are on the disk."""

    put: int
    ids: list[str]


class RemoveAnswer(Answered):
    """How many entries went, and which ids nothing had."""

    removed: int
    unknown: list[str]


class RefitResult(Answered):
    """What became of the last refit: how often held-out questions found their answer, before and after."""

    entries: int
    questions: int
    changed: int = Field(description="Entries that had changed since the previous fit.")
    before: float | None
    after: float | None
    kept: bool = Field(description="Whether the new fit is in use.")
    why: str
    finished: str = Field(description="When, in UTC.")
    aside: bool = Field(description="Whether it waits for promote.")
    feedback: dict[str, Any] | None = Field(description="How judgements were used.")
    confused: list[tuple[str, str, int]] = Field(description="Ids: the right answer, the one found, how often.")
    followed: dict[str, Any] | None = Field(description="How changes of a followed file were used.")
    judged: int = Field(description="Bytes of judgements that were there.")


class RefitState(Answered):
    """Whether a refit goes on, is awaited, or none is needed; and the last one."""

    state: Literal["idle", "waiting", "running"]
    last: RefitResult | None
    failed: str | None = Field(description="Why the last refit failed, if this process started it.")


class RefitRequest(Asked):
    """How to refit; nothing need be given."""

    aside: Annotated[bool, Field(default=False, description="Measure a new fit without using it; promote uses it.")]


class CollectionAnswer(Answered):
    """What a collection has, and how much has changed since it was fitted and measured."""

    name: str
    entries: int
    questions: int
    scorer: str | None
    features: list[str]
    learnt: bool = Field(description="Whether its weights were learnt from its questions.")
    changed_since_fit: int
    changed_since_report: int | None = Field(description="None where it was never measured.")
    left_out_precision: float | None = Field(description="How often held-out questions found their answer first.")
    judged: int = Field(description="Judgements that it has learnt from.")
    writable: bool
    refit: RefitState | None = Field(description="None for an archive, which learns nothing.")


class DeleteRequest(Asked):
    """Remove answers by their ids."""

    ids: Annotated[Listed[str], Field(examples=[["invoices"]])]


class DeleteAnswer(Answered):
    """How many pairs went, and which ids nothing had."""

    deleted: int
    unknown: list[str]
