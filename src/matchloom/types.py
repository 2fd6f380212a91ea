"""The few types everything else speaks: pairs in, traces and scores out. What holds tensors is in `batches.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


ErrorCode = Literal[
    "invalid",  # nothing finer fits
    "missing",  # a file, folder or id that is needed is not there
    "unreadable",  # it cannot be opened: not there, or the system does not let it be read
    "unwritable",  # a file or folder cannot be written: no space, no right, no such folder
    "damaged",  # a whole file is cut off, or not what it says it is
    "altered",  # it can be read, and is not what was saved
    "wrong_format",  # another format, version or kind than is read here
    "bad_columns",  # columns of a file are missing, unknown or not clear
    "bad_row",  # one line, row or item of the data is wrong
    "bad_labels",  # the labels together are not what is needed
    "no_data",  # nothing is there to work with
    "bad_value",  # an argument, option or setting has a value that it cannot have
    "wrong_type",  # an argument is of another type
    "unknown_name",  # a name is none of those that can be chosen
    "conflict",  # two arguments, or an argument and the data, exclude each other or need each other
    "mismatch",  # two things do not belong together: sizes, ids, versions of data
    "exists",  # it is there already and is not overwritten
    "busy",  # another process is writing
    "too_large",
    "needs_extra",  # a package that is not installed
    "not_supported",  # this model or folder cannot do that
    "failed",  # a run went wrong: a loss that is no number, scores that are all equal
]


class MatchloomError(ValueError):
    """Something the user can put right. The message is one line: where, what was found, what to do.

    Args:
        message: The line, for people.
        code: Its kind, for programs and tests: it stays when the words of the message change.
    """

    def __init__(self, message: str, *, code: ErrorCode = "invalid") -> None:
        super().__init__(message)
        self.code = code


class Pair(NamedTuple):
    """Two texts and, where it is known, how well they match.

    `query_id` names the candidate list the pair belongs to and `text_id` the candidate in it; readers fill them
    from content where a file has none, so that nothing depends on the order of lines. Pairs of one `group`
    must stay on one side of a split.

    Args:
        query: One text, such as a question.
        text: The other, such as an answer.
        label: 1 where the text is right for the query, 0 where it is wrong; None where nobody knows.
        query_id: Of the query; pairs with the same one are one list.
        text_id: Of the text.
        group: What must not be split: pairs of one group stay together.
    """

    query: str
    text: str
    label: float | None = None
    query_id: str = ""
    text_id: str = ""
    group: str = ""

    @property
    def is_positive(self) -> bool:
        """Whether the text counts as right: its label is above 0, or it has none, as in a plain FAQ."""
        return self.label is None or self.label > 0

    @property
    def is_labelled_positive(self) -> bool:
        """Whether somebody said that the text is right: a label above 0. No label is no judgement."""
        return self.label is not None and self.label > 0


_ROWS, _CHARACTERS = 50, 300  # that a notebook shows of a ranking, and of each text


class Ranked(NamedTuple):
    """One candidate of a ranking: its index in the list that was given, its score and its text."""

    index: int  # type: ignore[assignment]
    score: float
    text: str


class Sureness(NamedTuple):
    """How certain a collection is of texts that it has ranked, as `Hits` of a search have it.

    Args:
        probabilities: The probability that each text, best first, is the right answer; None if it is not an answer of
            the collection, or if probabilities were not learnt.
        known: The probability that any answer of the collection is right.
        answered: Whether the first text is certain enough for the stated precision or coverage; None if none was
            stated.
        confident: Whether it is certain enough to be given as the answer, if nothing was stated.
    """

    probabilities: tuple[float | None, ...]
    known: float | None = None
    answered: bool | None = None
    confident: bool | None = None


class Ranking(list[Ranked]):
    """Candidates, best first: a list that a notebook shows as a table, with `sureness` where a collection ranked."""

    def __init__(self, found: Iterable[Ranked] = (), sureness: Sureness | None = None) -> None:
        super().__init__(found)
        self.sureness: Sureness | None = sureness

    def _repr_html_(self) -> str:
        return _table(self)


class Hit(NamedTuple):
    """An answer of a collection that was found for a question; the same names in Python, JSON, client and page.

    Args:
        id: Of the answer.
        text: Of the answer.
        score: Higher fits better; what it is made of depends on the collection.
        probability: How likely the answer is right; None where that was not learnt from held-out questions.
        question: The known question of this answer that is nearest to the one asked; None where it has none.
        index: Where it stands among the answers, where these are held in memory.
        similarity: Of the question and the known one, where the score is mixed from it and `match`.
        match: Of the question and the answer.
        explanation: Why it got its score, where that was asked for (`matchloom.explanation.Explanation`).
        columns: The user's own columns of the answer, such as url or category; None where it has none.
    """

    id: str
    text: str
    score: float
    probability: float | None = None
    question: str | None = None
    index: int | None = None  # type: ignore[assignment]
    similarity: float | None = None
    match: float | None = None
    explanation: Any = None
    columns: dict[str, str] | None = None


class Hits(list[Hit]):
    """What a search found, best first. `known` is how likely it is that any answer of the collection is right.

    The probabilities of all answers add up to it; it is None where nothing is known of that. `answered` says whether
    the first answer is as sure as a stated precision or coverage asks for; None where none was stated. `confident` says
    whether it is sure enough to be given as the answer, where nothing was stated; None where nothing is known of that.
    """

    def __init__(
        self,
        found: Iterable[Hit] = (),
        known: float | None = None,
        answered: bool | None = None,
        confident: bool | None = None,
    ) -> None:
        super().__init__(found)
        self.known: float | None = known
        self.answered: bool | None = answered
        self.confident: bool | None = confident

    def _repr_html_(self) -> str:
        notes = [] if self.known is None else [f"probability that any answer is right: {self.known:.3f}"]
        sure = self.confident if self.answered is None else self.answered
        notes += [] if sure is None else ["certain enough" if sure else "not certain enough"]
        return (f"<p>{'; '.join(notes)}</p>" if notes else "") + _table(self)


def _table(rows: Sequence[Ranked | Hit]) -> str:
    """A ranking as HTML for a notebook: every field that says something; what the texts hold is shown, never run."""
    if not rows:
        return "<p>Nothing was found.</p>"
    shown = rows[:_ROWS]
    plain = [
        name for name in shown[0]._fields if any(isinstance(getattr(row, name), str | int | float) for row in shown)
    ]
    head = "".join(f'<th scope="col">{name}</th>' for name in ("", *plain))
    body = "".join(
        f"<tr><th>{place}</th>{''.join(_cell(getattr(row, name)) for name in plain)}</tr>"
        for place, row in enumerate(shown, 1)
    )
    rest = f"<p>… and {len(rows) - len(shown):,} more</p>" if len(rows) > len(shown) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        cut = value if len(value) <= _CHARACTERS else f"{value[:_CHARACTERS].rstrip()} …"
        whole = cut.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be written
        return f'<td style="text-align: left"><bdi dir="auto">{escape(whole)}</bdi></td>'
    return f"<td>{'' if value is None else value if isinstance(value, int) else f'{value:.4g}'}</td>"


class Added(NamedTuple):
    """What became of pairs that were added."""

    new: int
    replaced: int  # took the place of a pair with the same id and question
    wrong: int  # have label 0 or no answer, and were left out


class Signal(NamedTuple):
    """One interaction that took part in a score: which two words, in which channel, how strong, and its contribution.

    The contributions of a trace's signals and components and its `residual` add up to the score.
    """

    left: int
    right: int
    channel: int
    value: float
    contribution: float


class Component(NamedTuple):
    """A contribution to a score that belongs to no pair of words, such as a feature of the whole pair."""

    name: str
    value: float
    contribution: float
    channel: int | None = None  # of which it is a part, if of any


class Trace(NamedTuple):
    """Why one pair got its score. `grid` is the whole interaction map, (channels, left words, right words).

    With `paths` the signals of each channel, or of these channels, are a way through its map, in the order in which it
    was taken.
    """

    score: float
    signals: list[Signal]
    residual: float
    grid: NDArray[np.float32]
    channels: list[str]
    components: Sequence[Component] = ()
    paths: bool | Sequence[int] = False

    def is_path(self, channel: int) -> bool:
        """Whether the signals of this channel are a way through its map."""
        return self.paths if isinstance(self.paths, bool) else channel in self.paths


@runtime_checkable
class Scorer(Protocol):
    """All that evaluation, mining, the commands and the service know of a model. Higher scores match better."""

    @property
    def name(self) -> str:
        """What reports and tables call it."""
        ...

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """The score of each pair, in their order."""
        ...


@runtime_checkable
class Calibrates(Protocol):
    """A scorer whose scores say how likely a match is. Both are None where this one's do not, whatever others' do."""

    @property
    def threshold(self) -> float | None:
        """The score from which on a pair is said to match."""
        ...

    def probabilities(self, scores: Scores) -> Scores | None:
        """How likely pairs with these scores match."""
        ...


@runtime_checkable
class EncodesCandidates(Protocol):
    """A scorer that reads candidates once and then ranks them for many queries, as a matcher does."""

    def encode(self, texts: Sequence[str], *, progress: bool = False) -> Any:
        """The candidates as it keeps them, for `rank`."""
        ...

    def rank(self, query: str, candidates: Any, *, top: int | None = None) -> list[Ranked]:
        """The candidates by falling score."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A scorer that can say why. The words are those its tokenizer made of the two texts."""

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The words of both texts, and why they got their score."""
        ...


class Searchable(Protocol):
    """What has answers of its own and can be asked."""

    def search(self, questions: Any, /, *, top: int = 10) -> Any:
        """The best answers to each question."""
        ...
