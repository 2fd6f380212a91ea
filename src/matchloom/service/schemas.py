"""What requests and answers look like; OpenAPI is made from these."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")


def whole_number(value: object) -> object:
    """1.0 is a whole number in JSON, as 1 is; `true` is none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# What is sent as a list: its first wrong item is told, and no others are looked at.
Listed = Annotated[list[T], Field(fail_fast=True)]
# Bounds stand before the validator: only so does the description have them.
UpTo100 = Annotated[int, Field(ge=1, le=100), BeforeValidator(whole_number)]
UpTo1000 = Annotated[int, Field(ge=1, le=1_000), BeforeValidator(whole_number)]
UpTo10000 = Annotated[int, Field(ge=1, le=10_000), BeforeValidator(whole_number)]
Label = Annotated[int, Field(ge=0, le=1), BeforeValidator(whole_number)]
Text = Annotated[str, Field(description="Any text.")]
Name = Annotated[
    str | None, Field(default=None, description="A served system; the first one by default.", max_length=64)
]
By = Annotated[
    str | None,
    Field(
        default=None,
        max_length=64,
        description="Ranks instead of the system, for comparison: bm25 or another served system.",
    ),
]
Top = Annotated[UpTo100, Field(default=10, description="The largest number of results.")]
_EXAMPLE = "I forgot my password"
# One name in all routes; what some were called before is taken, too.
Question = Annotated[str, Field(validation_alias=AliasChoices("question", "query"), examples=[_EXAMPLE])]


class Asked(BaseModel):
    """What a client sends."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")


class Answered(BaseModel):
    """What it gets."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class PairIn(Asked):
    """A query and a text."""

    query: Annotated[str, Field(validation_alias=AliasChoices("query", "question"), description="Any text.")]
    text: Text


class ScoreRequest(Asked):
    """Score some pairs."""

    system: Name
    pairs: Annotated[Listed[PairIn], Field(examples=[[{"query": _EXAMPLE, "text": "Choose Reset password."}]])]


class ScoreAnswer(Answered):
    """One score for each pair, in their order; higher matches better."""

    system: str
    scorer: str
    scores: list[float]
    probabilities: list[float] | None = Field(
        description="The probability that each pair matches, if the system has one."
    )


_Part = Annotated[float | None, Field(default=None, gt=0, lt=1, allow_inf_nan=False)]
Precision = Annotated[
    _Part,
    Field(description="Collections: the share of shown answers that must be right; `answered` tells whether one is."),
]
Coverage = Annotated[
    _Part,
    Field(
        description="Collections: the share of questions that get an answer: the most certain. Not with `precision`."
    ),
]


class RankRequest(Asked):
    """Rank candidates for a query."""

    system: Annotated[
        str | None,
        Field(
            default=None, max_length=64, description="A served system, or bm25, which counts words in the candidates."
        ),
    ]
    query: Question
    explain: Annotated[bool, Field(default=False, description="Explain the scores of the best 100.")]
    candidates: Annotated[Listed[str], Field(examples=[["Choose Reset password.", "Ask sales."]])]
    top: Annotated[UpTo10000 | None, Field(default=None, description="The largest number of results; all by default.")]
    precision: Precision
    coverage: Coverage


class RankedText(Answered):
    """A candidate: where it stood in the list, its score, and how likely it matches, where that is known."""

    index: int
    score: float
    text: str
    probability: float | None
    explanation: dict[str, Any] | None = Field(description="If it was requested.")


class RankAnswer(Answered):
    """The candidates by falling score; a collection also says how sure it is, as it does of a search."""

    system: str
    scorer: str
    known: float | None
    answered: bool | None
    confident: bool | None
    ranking: list[RankedText]


class _Search(Asked):
    system: Name
    top: Top
    by: By
    alpha: Annotated[
        float | None,
        Field(
            default=None,
            ge=0,
            le=1,
            allow_inf_nan=False,
            description="Archives: the weight of the questions' similarity.",
        ),
    ]
    candidates: Annotated[UpTo1000, Field(default=100, description="Archives: how many pairs get a full score.")]
    explain: Annotated[bool, Field(default=False, description="Explain why each answer was found.")]
    precision: Precision
    coverage: Coverage
    where: Annotated[
        dict[str, str | Listed[str]] | None,
        Field(
            default=None,
            description="Collections: values that answers must have in their own columns; of a list, any one.",
            examples=[{"category": "billing"}],
        ),
    ]


class SearchRequest(_Search):
    """Search a collection of answers."""

    question: Question


class SearchManyRequest(_Search):
    """Search a collection of answers for many questions at once."""

    questions: Annotated[
        Listed[str],
        Field(validation_alias=AliasChoices("questions", "queries"), examples=[[_EXAMPLE, "Do you send bills?"]]),
    ]


class Found(Answered):
    """An answer that was found, with the known question that is nearest."""

    id: str
    text: str
    question: str | None
    score: float
    probability: float | None
    similarity: float | None = Field(description="Archives: of the asked and the archived question.")
    match: float | None = Field(description="Archives: of the asked question and the archived answer.")
    index: int | None
    explanation: dict[str, Any] | None
    columns: dict[str, str] | None = Field(description="The answer's own columns, such as url or category.")


class SearchAnswer(Answered):
    """The best answers, the best first."""

    system: str
    kind: str
    by: str | None
    known: float | None = Field(description="The probability that any answer is right.")
    answered: bool | None = Field(description="Whether the first answer is certain enough for what was stated.")
    confident: bool | None = Field(description="Whether the first answer is certain enough to be shown as the answer.")
    answers: list[Found]


class FoundForOne(Answered):
    """The best answers to one of many questions."""

    known: float | None
    answered: bool | None
    confident: bool | None
    answers: list[Found]


class SearchManyAnswer(Answered):
    """For each question, in their order, the best answers."""

    system: str
    kind: str
    by: str | None
    results: list[FoundForOne]


class ExplainRequest(Asked):
    """Say why a text, or an answer by its id, got its score."""

    system: Annotated[str | None, Field(default=None, max_length=64, description="As for rank.")]
    query: Question
    text: Annotated[str, Field(default="", description="The text; not needed where an id is given.")]
    id: Annotated[str, Field(default="", description="The id of an answer, as search returns it.")]
    by: By
    top: Top
    alpha: Annotated[float | None, Field(default=None, ge=0, le=1, allow_inf_nan=False)]
    candidates: Annotated[Listed[str], Field(default=[], description="bm25: the texts in which it counts words.")]
    form: Annotated[
        Literal["json", "html"], Field(default="json", description="Data for programs, or a piece of a page.")
    ]


class ExplainAnswer(Answered):
    """The explanation, as data (see Explanation.to_dict) or as a piece of a page."""

    system: str
    by: str | None
    explanation: dict[str, Any] | None
    html: str | None
    because: list[str] = Field(description="The words of the query that counted most, without function words.")


class FeedbackRequest(Asked):
    """A thumb up or down on an answer, which is told by its id, by its text, or by both."""

    question: Annotated[Question, Field(min_length=1, pattern=r"\S")]
    text: Annotated[str, Field(default="", description="Of the answer.", examples=["Choose Reset password."])]
    label: Annotated[Label, Field(description="1 for a right answer, 0 for a wrong one.")]
    id: Annotated[str, Field(default="", description="The id of the answer, as search returns it.")]
    who: Annotated[
        str,
        Field(
            default="", max_length=64, description="Who judges; a later judgement of the same person replaces this one."
        ),
    ]
    system: Name


class FeedbackAnswer(Answered):
    """It is on the disk."""

    kept: bool


class ReloadRequest(Asked):
    """Read systems anew."""

    systems: Annotated[
        Listed[str],
        Field(default=[], description="The names of systems; all by default."),
    ]


class ReloadAnswer(Answered):
    """Those that were taken up, and why others were not: what was there goes on."""

    reloaded: list[str]
    refused: dict[str, str]


class ReplicaAbout(Answered):
    """Of a system that is served from a copy of what is published at a URI."""

    uri: str
    version: int = Field(description="The published version that is served.")
    newest: int = Field(description="The newest version that the store reported.")
    published: float = Field(description="When the served version was published, in seconds since 1970.")
    stale_seconds: float = Field(description="Seconds since the served version was last confirmed as the newest.")
    problem: str | None = Field(description="Why the store or the newest version could not be read; null if it could.")


class SystemAbout(Answered):
    """One served system."""

    name: str
    kind: str
    scorer: str | None
    scores: bool
    searches: bool
    explains: bool
    writable: bool
    size: int | None
    changed: int | None = Field(description="Entries that have changed since its figures were measured.")
    generation: int
    replica: ReplicaAbout | None = Field(description="Null where a folder of this machine is served.")


class SystemsAnswer(Answered):
    """What is served, and within which limits."""

    version: str
    systems: list[SystemAbout]
    feedback: bool
    runs: bool
    limits: dict[str, float]


class PageAnswer(Answered):
    """What the page for users shows first."""

    title: str
    systems: list[str] = Field(description="Those with answers.")
    system: str = Field(description="The selected system.")
    examples: list[str]
    filters: dict[str, list[str]] = Field(description="Columns with few values, for filters.")
    feedback: bool
    contact: str
    desk: bool


class RunAbout(Answered):
    """One training or fit; `changed` is when its files last did, in seconds since 1970."""

    name: str
    kind: str
    running: bool
    changed: float


class RunsAnswer(Answered):
    """The runs, those that go on first."""

    runs: list[RunAbout]


class RunAnswer(Answered):
    """A run as a piece of a page."""

    name: str
    running: bool
    html: str


class State(Answered):
    """Alive, ready, or not yet."""

    status: str


class Problem(Answered):
    """Why there is no answer: a code that stays the same, and a line for people."""

    code: str
    message: str
    request_id: str


class ErrorAnswer(Answered):
    """What every refused request gets."""

    error: Problem
    detail: str = Field(description="The message again, where clients of other services look for it.")
