"""What a fit has measured so far, kept in its folder: a fit that was stopped goes on without measuring it again.

A figure is kept under what it is of (a stage, a system, a number), and the file as a whole under a digest of the data,
the seed and the settings: figures of other data are never taken for these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from matchloom.basics.files import atomic_write
from matchloom.data.identity import digest, pairs_digest
from matchloom.fitting.systems import Outcome
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

FILE, FORMAT = "measured.json", 1


def key_of(
    pairs: Sequence[Pair], test: Sequence[Pair], kind: str, tokenizer: Tokenizer, seed: int, encoder: str = ""
) -> str:
    """What tells one fit from another; the time it may take is not of it."""
    return digest(str(FORMAT), pairs_digest(pairs, test), kind, repr(tokenizer), str(seed), encoder)


class OutcomeStore:
    """Outcomes by name, written after each; without a folder they are only remembered."""

    def __init__(self, folder: Path | None, key: str, *, resume: bool) -> None:
        self._path = None if folder is None else folder / FILE
        self._key = key
        self._kept: dict[str, Any] = {}
        if resume and self._path is not None and self._path.exists():
            self._kept = self._read(self._path)
        self.resumed = len(self._kept)

    def has(self, *name: object) -> bool:
        """Whether anything is kept under this name."""
        return _key(name) in self._kept

    def outcome(self, *name: object) -> tuple[Outcome, float] | None:
        """The outcome that is kept under this name, with the seconds it took; what failed before fails again."""
        found = self._kept.get(_key(name))
        if found is None:
            return None
        if "error" in found:
            raise MatchloomError(found["error"])
        each = {measure: np.array(values, dtype=np.float64) for measure, values in found["each"].items()}
        return Outcome(found["values"], each), float(found["seconds"])

    def keep(self, outcome: Outcome | MatchloomError, seconds: float, *name: object) -> None:
        """Keep an outcome, or why there is none."""
        if isinstance(outcome, MatchloomError):
            self._kept[_key(name)] = {"error": str(outcome)}
        else:
            each = {measure: values.tolist() for measure, values in outcome.each.items()}
            self._kept[_key(name)] = {"values": dict(outcome.values), "each": each, "seconds": seconds}
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(self._path) as file:
                file.write(json.dumps({"format": FORMAT, "key": self._key, "measured": self._kept}) + "\n")

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(path.read_bytes())
            same, kept = found["key"] == self._key, dict(found["measured"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise MatchloomError(f"{path} is damaged; start anew with overwrite (--overwrite)") from None
        if not same:
            raise MatchloomError(
                f"{path.parent.parent} was begun with other data, another seed or other settings, and cannot go on "
                "with these; start anew with overwrite (--overwrite)"
            )
        return kept


def _key(name: Sequence[object]) -> str:
    return "/".join(str(one) for one in name)
