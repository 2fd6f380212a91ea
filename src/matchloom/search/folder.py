"""The folder of a collection: what was fitted, in files that are mapped, and the journal of changes since.

    collection.json         the manifest: settings, weights, checksums
    index-3.safetensors     entries and features as they were fitted; every fit has a new name
    changes-3.jsonl         what was changed since (`journal.py`)
    changes-3.confirmed     how long that was when a change was last confirmed
    report.html             where `fit` made it
    encoder/                a pretrained encoder as it came, where there is one; tuned layers are in the index

A fit is written beside the old one and switched to by the manifest's rename: a reader has one or the other, and what it
has mapped stays there until it lets go. Changes that came while a fit was made are copied into its journal.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from matchloom import artifact
from matchloom.artifact.checks import as_saved
from matchloom.artifact.lock import LOCK
from matchloom.artifact.mapped import Mapped, open_mapped
from matchloom.search.arrays import map_arrays, write_arrays
from matchloom.search.journal import Change, Journal
from matchloom.search.saved import check_settings
from matchloom.types import MatchloomError

KIND, FORMAT = "collection", 1
REMEDY = "copy the collection again, or fit it again"
ENCODER = "encoder"
REFIT_LOCK = ".refit.lock"  # held while somebody refits


class Opened(NamedTuple):
    """What is in a folder now."""

    settings: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    journal: Journal
    saved: Mapped


def write_collection(
    folder: Path,
    settings: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    changes: Sequence[Change],
    *,
    files: Mapping[str, bytes],
    encoder: Any = None,
) -> None:
    """Write a fit and the changes since; the caller holds the lock of a folder that others write, too."""
    number = _number(folder) + 1
    settings = {**settings, "number": number, "digest": _digest(settings, arrays)}
    index = f"index-{number}.safetensors"
    journal = Journal(folder / journal_name(number), _seed(settings))
    with artifact.writing(folder, wait=math.inf, held=True):
        journal.remove()
        try:
            journal.append(changes)
            artifact.write(
                folder,
                KIND,
                FORMAT,
                settings,
                {**files, index: lambda stream: write_arrays(stream, arrays)},
                inside={} if encoder is None else {ENCODER: encoder},
            )
        except BaseException:
            if _number(folder) != number:  # it was not switched to
                journal.remove()
            raise
        kept = {journal.path.name, journal.confirmed.name, index}
        for old in (*folder.glob("changes-*"), *folder.glob("index-*.safetensors")):
            if old.name not in kept:  # also what a writer left that was killed here
                old.unlink(missing_ok=True)


def open_collection(folder: Path) -> Opened:
    """Map what was fitted; what is damaged, altered or newer is refused in one line."""
    saved = open_mapped(folder, KIND, FORMAT, remedy=REMEDY)
    with as_saved(folder, REMEDY):
        check_settings(saved.settings)
    number = saved.settings["number"]
    arrays = map_arrays(saved.path(f"index-{number}.safetensors"), REMEDY)
    return Opened(saved.settings, arrays, Journal(folder / journal_name(number), _seed(saved.settings)), saved)


def refuse_used(folder: Path) -> None:
    """A new collection needs a folder of its own: one that holds anything is refused."""
    try:
        others = sorted(path.name for path in folder.iterdir() if path.name != LOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be made a collection: {error.strerror}", code="unwritable") from None
    if others:
        raise MatchloomError(f"{folder} holds other files, such as {others[0]}; choose an empty folder", code="exists")


def stamp(folder: Path) -> tuple[int, int]:
    """What changes when another fit is switched to."""
    found = (folder / f"{KIND}.json").lstat()
    return found.st_ino, found.st_mtime_ns


def journal_name(number: int) -> str:
    """The file of changes since a fit."""
    return f"changes-{number}.jsonl"


def _number(folder: Path) -> int:
    """Of the fit that is there; 0 where there is none."""
    found = artifact.settings_of(folder, KIND)
    number = None if found is None else found.get("number")
    return number if isinstance(number, int) else 0


def _seed(settings: Mapping[str, Any]) -> str:
    """What the first line of the journal follows, so that no other collection's is taken for it."""
    return f"{KIND} {settings['number']} {settings['digest']}"


def _digest(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Of the entries, and of how they were fitted."""
    made = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in ("ids", "texts", "questions"):
        made.update(arrays[f"{name}.starts"].tobytes() + arrays[f"{name}.block"].tobytes())
    return made.hexdigest()[:32]
