"""A fit that was measured and waits beside the one in use, until somebody takes it up or makes another.

It is a collection of its own below the folder, with a note of what it was made of: which fit was in use, and how many
of the changes since it has learnt. What was changed later is changed in it, too, when it is taken up.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from matchloom.basics.files import atomic_write
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.search.learning import Learnt

_FOLDER, _NOTE = ".aside", "aside.json"
_LARGEST = 1_000_000  # bytes of a note
_CONFUSED = 50  # pairs of answers that are told


class Since(NamedTuple):
    """What a fit was made of."""

    stamp: tuple[int, int]  # of the fit that was in use
    learnt: int  # of the changes since then that it has learnt
    changes: int  # entries that these changed


class Aside(NamedTuple):
    """A fit that waits."""

    folder: Path
    learnt: int
    changes: int
    refit: dict[str, Any]


class _Note(msgspec.Struct, forbid_unknown_fields=True):
    stamp: tuple[int, int]
    count: int
    changes: int
    worse: bool
    refit: dict[str, Any]


def write_aside(
    folder: Path, save: Callable[[Path], None], refit: Mapping[str, Any], worse: bool, since: Since
) -> None:
    """Keep a fit aside in place of the one that waited; the note is written last, so that no half is taken up."""
    clear_aside(folder)
    save(folder / _FOLDER)
    note = _Note(since.stamp, since.learnt, since.changes, worse, dict(refit))
    with atomic_write(folder / _FOLDER / _NOTE) as file:
        file.write(msgspec.json.encode(note).decode() + "\n")


def open_aside(folder: Path | None, stamp: tuple[int, int]) -> Aside:
    """The fit that waits; refused where there is none, where it is worse, and where another fit was kept since."""
    note = None if folder is None else _read(folder)
    if folder is None or note is None:
        raise MatchloomError(
            "no fit waits to be promoted; make one with 'matchloom refit FOLDER --aside'", code="missing"
        )
    if note.stamp != stamp:
        raise MatchloomError(f"{folder} was fitted again since; refit it aside once more", code="conflict")
    if note.worse:
        raise MatchloomError(
            "the waiting fit is significantly worse on held-out questions, and is not used",
            code="conflict",
        )
    refit = {**note.refit, "confused": tuple(tuple(one) for one in note.refit.get("confused", ()))}
    return Aside(folder / _FOLDER, note.count, note.changes, refit)


def waits(folder: Path, stamp: tuple[int, int]) -> bool:
    """Whether a fit waits that could be taken up."""
    note = _read(folder)
    return note is not None and note.stamp == stamp and not note.worse


def clear_aside(folder: Path | None) -> None:
    """Drop the fit that waits."""
    if folder is not None:
        (folder / _FOLDER / _NOTE).unlink(missing_ok=True)
        shutil.rmtree(folder / _FOLDER, ignore_errors=True)


def _read(folder: Path) -> _Note | None:
    try:
        with (folder / _FOLDER / _NOTE).open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=_Note)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None


def confusions(learnt: Learnt) -> tuple[tuple[str, str, int], ...]:
    """Answers that held-out questions found in place of theirs: the right id, the id found, how often; most first."""
    cases, ids = learnt.cases, learnt.segment.entries.ids
    if not len(cases.features) or cases.features.shape[1] != len(ids):
        return ()  # of a large collection only candidates are compared
    scores = np.where(cases.present, cases.features @ learnt.fusion.weights, -np.inf)
    found, right = scores.argmax(axis=1), np.where(cases.positive, scores, -np.inf).argmax(axis=1)
    rows = np.arange(len(found))
    wrong = (cases.counted > 0) & cases.positive.any(axis=1) & ~cases.positive[rows, found]
    pairs = Counter(zip(right[wrong].tolist(), found[wrong].tolist(), strict=True))
    most = sorted(pairs.items(), key=lambda one: (-one[1], one[0]))[:_CONFUSED]
    return tuple((ids[first], ids[second], count) for (first, second), count in most)
