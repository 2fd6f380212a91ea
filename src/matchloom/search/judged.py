"""What judgements teach a collection, and whether they help.

Of each person the last judgement of a question and an entry counts; of several people the majority, and nothing where
they are even. Right: the question becomes one of the entry's questions. Wrong: the entry is no answer to exactly that
question (case and spaces apart), and to no other question is anything changed; an owner's own question stays with its
entry, whoever calls it wrong. A judgement never makes an entry: those of entries that are not there are left aside. A
question that was learnt and that the owner then took away from its entry stays away, whoever calls it right.

Right judgements are learnt only if held-out questions of the owner find their answer not less often, beyond chance.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from matchloom.data.identity import normalize_text
from matchloom.search.arrays import Texts
from matchloom.search.entries import Entries
from matchloom.search.feedback import Judgement, Judgements
from matchloom.search.fusion import worse_beyond_chance
from matchloom.types import Hits, Pair

_LEAST = 5  # questions of the owner from which some can be held out
_FOLDS, _CROSSED, _MOST = 5, 1000, 1000  # every question is held out once, where there are not more than so many
Key = tuple[str, str]  # a question, normalised, and the id of an entry


class Searches(Protocol):
    """What is asked on held-out questions."""

    def search(self, question: Sequence[str], *, top: int | None = 10) -> list[Hits]:
        """The best answers to each question."""
        ...


class Verdict(NamedTuple):
    """What people agree on: that an entry is right for a question, or wrong."""

    question: str
    id: str
    right: bool

    @property
    def key(self) -> Key:
        """What it is about."""
        return normalize_text(self.question), self.id


@dataclass(frozen=True)
class Judged:
    """What a collection has learnt from judgements."""

    verdicts: tuple[Verdict, ...] = ()
    withdrawn: tuple[Key, ...] = ()  # what was learnt as right, and the owner took away

    def __len__(self) -> int:
        return len(self.verdicts)

    @cached_property
    def _wrong(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in self.verdicts:
            if not one.right:
                found.setdefault(one.key[0], []).append(one.id)
        return found

    def wrong_for(self, question: str) -> Sequence[str]:
        """The ids of entries that are no answers to exactly this question."""
        return self._wrong.get(normalize_text(question), ()) if self._wrong else ()

    def taught(self, entries: Entries) -> Entries:
        """Entries with the questions that were found right for them."""
        spelt = {normalize_text(question): question for own in entries.questions for question in own}
        more: dict[str, list[str]] = {}
        for one in self.verdicts:
            if one.right:
                more.setdefault(one.id, []).append(spelt.setdefault(one.key[0], one.question))
        return _with_questions(entries, lambda name, own: sorted({*own, *more.get(name, ())}))

    def untaught(self, entries: Entries) -> Entries:
        """Entries without them: with the owner's questions alone."""
        keys = {one.key for one in self.verdicts if one.right}
        return _with_questions(entries, lambda name, own: [q for q in own if (normalize_text(q), name) not in keys])

    def joined(self, settled: Settled, entries: Entries) -> Judged:
        """With later verdicts; those of entries that are gone, or that people no longer agree on, are dropped."""
        there = [one for one in self.verdicts if entries.row(one.id) is not None]
        asked = {(normalize_text(q), name) for name, own in _asked(entries) for q in own}
        withdrawn = {key for key in self.withdrawn if entries.row(key[1]) is not None}
        withdrawn |= {one.key for one in there if one.right and one.key not in asked}
        kept = {one.key: one for one in there if one.key not in settled.even}
        kept |= {one.key: one for one in settled.verdicts}
        verdicts = [one for one in kept.values() if not (one.right and one.key in withdrawn)]
        return Judged(tuple(sorted(verdicts)), tuple(sorted(withdrawn)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        texts = Texts.of(one.question for one in self.verdicts).arrays("judged.questions")
        ids = Texts.of(one.id for one in self.verdicts).arrays("judged.ids")
        gone = Texts.of(key[0] for key in self.withdrawn).arrays("withdrawn.questions")
        gone |= Texts.of(key[1] for key in self.withdrawn).arrays("withdrawn.ids")
        right = {"judged.right": np.array([one.right for one in self.verdicts], dtype=bool)}
        return {**texts, **ids, **right, **(gone if self.withdrawn else {})}

    @classmethod
    def load(cls, arrays: Mapping[str, NDArray[Any]]) -> Judged:
        """What was saved; a ValueError where that does not fit together."""
        if "judged.right" not in arrays:
            return cls()
        questions, ids = Texts.load(arrays, "judged.questions"), Texts.load(arrays, "judged.ids")
        right = arrays["judged.right"]
        if right.dtype != bool or right.shape != (len(ids),):
            raise ValueError("judgements that do not fit")
        gone: tuple[Key, ...] = ()
        if "withdrawn.ids.starts" in arrays:
            names = (Texts.load(arrays, f"withdrawn.{name}") for name in ("questions", "ids"))
            gone = tuple(zip(*names, strict=True))
        return cls(tuple(map(Verdict, questions, ids, right.tolist())), gone)


class Settled(NamedTuple):
    """What judgements come to, for the entries that are there."""

    verdicts: list[Verdict]
    even: set[Key]  # as many say right as wrong
    removed: list[Judgement]  # of entries that are not there
    contradicting: list[Verdict]  # an owner's own question is called wrong for its entry


class FeedbackReport(NamedTuple):
    """What became of judgements: how many there were, and how often held-out questions found their answer."""

    judgements: int
    right: int  # questions with an entry that is right for them
    wrong: int  # or wrong
    removed: int  # judgements of entries that are not there
    even: int  # questions and entries of which as many say right as wrong
    contradicting: int  # owner's own questions that are called wrong for their entry
    damaged: tuple[str, ...]  # lines that are left out: file, line, reason
    questions: int  # that were held out
    before: float | None
    after: float | None
    learnt: bool

    def lines(self) -> list[str]:
        """For people."""
        found = [
            f"{self.judgements:,} judgements: {self.right:,} questions have a right answer, {self.wrong:,} a wrong one."
        ]
        for count, what in (
            (self.removed, "judgements are about answers that do not exist; they are ignored"),
            (self.even, "questions have as many judgements for an answer as against it; these are not used"),
            (self.contradicting, "of your own questions are judged wrong for their answer; they are kept: check them"),
            (len(self.damaged), f"lines are damaged and skipped: {'; '.join(self.damaged[:3])}"),
        ):
            found += [f"{count:,} {what}."] if count else []
        return [*found, self._compared()]

    def _compared(self) -> str:
        if self.before is None or self.after is None:
            return "They are used; no held-out question could measure their effect."
        figures = f"{self.questions:,} held-out questions: {self.before:.3f} answered without, {self.after:.3f} with"
        return f"They are used. {figures}." if self.learnt else f"They are not used: significantly worse. {figures}."


def settle(judgements: Iterable[Judgement], entries: Entries, own: Entries) -> Settled:
    """What judgements come to; `own` are the same entries with the owner's questions alone."""
    last: dict[tuple[Key, str], Judgement] = {}
    removed = []
    for one in sorted(judgements, key=lambda one: one.time):  # equal times stay in the order of the file
        row = entries.row(one.id) if one.id else entries.find(one.text)
        if row is None:
            removed.append(one)
            continue
        last[(normalize_text(one.question), entries.ids[row]), one.who] = one
    votes: dict[Key, int] = {}
    spelt: dict[Key, str] = {}
    for (key, _), one in last.items():
        votes[key] = votes.get(key, 0) + (1 if one.right else -1)
        spelt.setdefault(key, one.question)
    found = [Verdict(spelt[key], key[1], count > 0) for key, count in votes.items() if count]
    asked = {(normalize_text(q), name) for name, mine in _asked(own) for q in mine}
    verdicts = [one for one in found if one.key not in asked]
    contradicting = [one for one in found if one.key in asked and not one.right]
    return Settled(verdicts, {key for key, count in votes.items() if not count}, removed, contradicting)


class Comparison(NamedTuple):
    """How many questions were held out, and which part found its answer, before and after."""

    questions: int = 0
    before: float | None = None
    after: float | None = None
    worse: bool = False


def compare_on_held_out(
    own: Entries, before: Entries, after: Entries, make: Callable[[Entries], Searches]
) -> Comparison:
    """Hold out questions of the owner, and ask what is made of the other questions, before and after."""
    right: list[list[bool]] = [[], []]
    for held in _folds(own):
        for arm, entries in zip(right, (before, after), strict=True):
            found = make(_without(entries, held)).search(list(held), top=1)
            arm += [bool(hits) and hits[0].id in ids for hits, ids in zip(found, held.values(), strict=True)]
    if not right[0]:
        return Comparison()
    first, second = (np.array(arm) for arm in right)
    worse = worse_beyond_chance(first, second)
    return Comparison(len(first), float(first.mean()), float(second.mean()), worse)


def report_of(given: Judgements, settled: Settled, found: Comparison) -> FeedbackReport:
    """What became of judgements."""
    right = sum(one.right for one in settled.verdicts)
    return FeedbackReport(
        len(given.judgements),
        right,
        len(settled.verdicts) - right,
        len(settled.removed),
        len(settled.even),
        len(settled.contradicting),
        tuple(given.damaged),
        found.questions,
        found.before,
        found.after,
        not found.worse,
    )


def _folds(own: Entries) -> list[dict[str, set[str]]]:
    """Questions that are held out together, normalised, each with the ids of its entries."""
    from matchloom.data.splits import hold_out_questions  # readers of files come with it, which a search needs not

    pairs = [
        Pair(question, text, None, "", name)
        for name, text, mine in zip(own.ids, own.texts, own.questions, strict=True)
        for question in mine or ("",)
    ]
    homes: dict[str, set[str]] = {}
    for pair in pairs:
        if key := normalize_text(pair.query):
            homes.setdefault(key, set()).add(pair.text_id)
    if len(homes) < _LEAST:
        return []
    part = 1 / _FOLDS
    if len(homes) > _CROSSED:
        parts = [hold_out_questions(pairs, part, most=_MOST)[1]]
    else:
        parts = [hold_out_questions(pairs, part, fold_number=n)[1] for n in range(_FOLDS)]
    folds = ({normalize_text(pair.query): homes[normalize_text(pair.query)] for pair in held} for held in parts)
    return [fold for fold in folds if fold]


def _asked(entries: Entries) -> Iterable[tuple[str, Sequence[str]]]:
    """Each id with its questions."""
    return zip(entries.ids, entries.questions, strict=True)


def _without(entries: Entries, held: Container[str]) -> Entries:
    return _with_questions(entries, lambda _, own: [one for one in own if normalize_text(one) not in held])


def _with_questions(entries: Entries, change: Callable[[str, Sequence[str]], Sequence[str]]) -> Entries:
    asked = [tuple(change(name, own)) for name, own in zip(entries.ids, entries.questions, strict=True)]
    return replace(entries, questions=asked)
