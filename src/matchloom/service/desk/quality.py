"""How a collection fares: day by day, refit by refit, and which of its entries deserve a look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from matchloom.service.desk.audit import Record
from matchloom.service.desk.questions import Asked, AskedQuestion
from matchloom.service.refits import Result
from matchloom.types import Pair

if TYPE_CHECKING:
    from matchloom.search.collection import Collection
    from matchloom.search.entries import Entries
    from matchloom.search.feedback import Judgement

_DAYS, _LISTED = 60, 20
_CHECKED = 5000  # entries that are compared with one another


def quality(
    collection: Collection,
    asked: Asked | None,
    judgements: Sequence[Judgement],
    records: Iterable[Record],
    last: Result | None,
) -> dict[str, Any]:
    """Everything that the page of quality shows."""
    entries = collection.entries
    figures = collection.leave_one_out
    return {
        "left_out": None
        if figures is None
        else {"questions": figures.questions, "precision": figures.precision_at_1, "recall_at_3": figures.recall_at_3},
        "promises": promises(collection),
        "changed_since_fit": collection.changed,
        "days": days(() if asked is None else asked.questions, judgements),
        "refits": refits(records),
        "confused": confused(entries, last),
        "finds": finds(entries),
        "never_found": None if asked is None or not asked.questions else never_found(entries, asked.questions),
        "questions_logged": None if asked is None else len(asked.questions),
    }


def promises(collection: Collection) -> list[dict[str, Any]]:
    """The part of held-out questions that get an answer at stated precisions; None where it cannot be promised."""
    calibration = collection.calibration
    found = []
    for precision in (0.8, 0.9, 0.95):
        threshold = None if calibration is None else calibration.threshold(precision)
        covered = None if calibration is None or threshold is None else calibration.coverage(threshold)
        found.append({"precision": precision, "coverage": covered})
    return found


def days(asked: Iterable[AskedQuestion], judgements: Iterable[Judgement]) -> list[dict[str, Any]]:
    """For each day how many questions were asked, how many got a confident answer, and what people said of answers."""
    counts: dict[str, Counter[str]] = {}
    for line in asked:
        own = counts.setdefault(_day(line.time), Counter())
        own["asked"] += 1
        own["confident"] += line.confident is True
    for one in judgements:
        counts.setdefault(_day(one.time), Counter())["up" if one.right else "down"] += 1
    names = ("asked", "confident", "up", "down")
    return [{"day": day, **{name: counts[day][name] for name in names}} for day in sorted(counts)[-_DAYS:]]


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return "1970-01-01"


def refits(records: Iterable[Record]) -> list[dict[str, Any]]:
    """What became of refits, the oldest first."""
    own = [one for one in records if one.action in ("refit", "promote", "follow") and one.told]
    rows = [{"time": one.time, "who": one.who, "action": one.action, **one.told} for one in own[:_DAYS]]
    return rows[::-1]


def confused(entries: Entries, last: Result | None) -> list[dict[str, Any]]:
    """Answers that held-out questions found in place of theirs, by the last refit."""
    rows = []
    for right, found, count in () if last is None else last.confused[:_LISTED]:
        sides = [None if (n := entries.row(name)) is None else entries[n] for name in (right, found)]
        if None not in sides:
            told = [{"id": one.id, "text": one.text} for one in sides if one is not None]
            rows.append({"right": told[0], "found": told[1], "count": count})
    return rows


def finds(entries: Entries) -> list[dict[str, Any]]:
    """Entries that contradict or repeat one another."""
    if len(entries) > _CHECKED:
        return []
    from matchloom.data.checkup import Placed
    from matchloom.data.checkup.finds import contradictions, near_answers, near_questions

    rows = [
        Placed(Pair(question, text, None, "", name), name)
        for name, text, own in zip(entries.ids, entries.texts, entries.questions, strict=True)
        for question in own or ("",)
    ]
    found = []
    for look in (contradictions, near_questions, near_answers):
        listed = [{"kind": one.kind, "ids": list(one.places), "text": one.text} for one in look(rows)]
        found += listed[:_LISTED]
    return found


def never_found(entries: Entries, asked: Iterable[AskedQuestion]) -> dict[str, Any]:
    """Entries that came first for no question that was asked."""
    found = {line.id for line in asked}
    ids = [n for n, name in enumerate(entries.ids) if name not in found]
    listed = [{"id": entries.ids[n], "text": entries.texts[n]} for n in ids[:_LISTED]]
    return {"count": len(ids), "entries": listed}
