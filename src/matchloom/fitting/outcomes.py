"""What a fit has measured so far, kept in its folder: a fit that was stopped goes on without measuring it again.

A figure is kept under what it is of (a stage, a system, a number), and the file as a whole under a digest of the data,
the seed and the settings: figures of other data are never taken for these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from matchloom.artifact import WRONG, holds, read, write
from matchloom.data.identity import digest, pairs_digest
from matchloom.fitting.systems import Outcome
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

FORMAT = 2  # 1 had no checksums
_REMEDY = "start anew with overwrite=True"


def key_of(
    pairs: Sequence[Pair], test: Sequence[Pair], kind: str, tokenizer: Tokenizer, seed: int, encoder: str = ""
) -> str:
    """What tells one fit from another; the time it may take is not of it."""
    return digest(str(FORMAT), pairs_digest(pairs, test), kind, repr(tokenizer), str(seed), encoder)


class _Figures(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The figures of one system, or why it has none."""

    error: str | None = None
    values: dict[str, float] = {}
    each: dict[str, list[float]] = {}
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    """What `measured.json` has to hold."""

    key: str
    measured: dict[str, _Figures]


class OutcomeStore:
    """Outcomes by name, written after each; without a folder they are only remembered."""

    def __init__(self, folder: Path | None, key: str, *, resume: bool, measures: Sequence[str]) -> None:
        self._folder, self._key, self._measures = folder, key, set(measures)
        self._kept: dict[str, _Figures] = {}
        if resume and folder is not None and holds(folder, "measured"):
            self._kept = self._read(folder)
        self.resumed: int = len(self._kept)

    def has(self, *name: object) -> bool:
        """Whether anything is kept under this name."""
        return _key(name) in self._kept

    def outcome(self, *name: object) -> tuple[Outcome, float] | None:
        """The outcome that is kept under this name, with the seconds it took; what failed before fails again."""
        found = self._kept.get(_key(name))
        if found is None:
            return None
        if found.error is not None:
            raise MatchloomError(found.error)
        each = {measure: np.array(values, dtype=np.float64) for measure, values in found.each.items()}
        return Outcome(found.values, each), found.seconds

    def keep(self, outcome: Outcome | MatchloomError, seconds: float, *name: object) -> None:
        """Keep an outcome, or why there is none."""
        if isinstance(outcome, MatchloomError):
            self._kept[_key(name)] = _Figures(error=str(outcome))
        else:
            each = {measure: values.tolist() for measure, values in outcome.each.items()}
            self._kept[_key(name)] = _Figures(values=dict(outcome.values), each=each, seconds=seconds)
        if self._folder is not None:
            measured = msgspec.to_builtins(self._kept)
            write(self._folder, "measured", FORMAT, {"key": self._key, "measured": measured})

    def _read(self, folder: Path) -> dict[str, _Figures]:
        settings = read(folder, "measured", FORMAT, remedy=_REMEDY).settings
        try:
            found = msgspec.convert(settings, _Settings)
            if not all(map(self._is_ok, found.measured.values())):
                raise ValueError
        except WRONG:  # msgspec's errors are ValueErrors
            raise MatchloomError(
                f"{folder / 'measured.json'} holds figures that no fit has; {_REMEDY}", code="damaged"
            ) from None
        if found.key != self._key:
            raise MatchloomError(
                f"{folder.parent} was begun with other data, another seed or other settings, and cannot go on "
                f"with these; {_REMEDY}",
                code="mismatch",
            )
        return found.measured

    def _is_ok(self, one: _Figures) -> bool:
        """Whether there are figures of every measure, or a reason why there are none."""
        figures = [*one.values.values(), *(value for values in one.each.values() for value in values)]
        every = self._measures <= one.values.keys() & one.each.keys()
        return one.error is not None or (every and not any(map(math.isinf, figures)))


def _key(name: Sequence[object]) -> str:
    return "/".join(str(one) for one in name)
