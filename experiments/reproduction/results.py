"""The file of a table's results: an entry for each row and seed, which several processes may add to."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from matchloom.artifact import writing
from matchloom.basics.files import atomic_write, is_there
from matchloom.types import MatchloomError

FORMAT = 1  # a file without one is of this format

Results = dict[str, Any]
Entry = dict[str, Any]


class Place(NamedTuple):
    """Where the results of a table are; those of a smoke run are apart, so that nobody takes them for any."""

    out: Path
    table: str
    fast: bool = False

    @property
    def stem(self) -> str:
        """The name of the file, and of the folder beside it."""
        return f"{self.table}.fast" if self.fast else self.table

    @property
    def results(self) -> Path:
        """The manifest of every run."""
        return self.out / f"{self.stem}.json"

    def folder(self, row: str, seed: int) -> Path:
        """Where a run trains, and its matcher if it is kept."""
        return self.out / self.stem / run_name(row, seed)

    def run_file(self, row: str, seed: int) -> Path:
        """Its scores, query by query."""
        return self.out / self.stem / f"{run_name(row, seed)}.run.gz"

    def lock(self, row: str, seed: int) -> Path:
        """What the process that is at it holds."""
        return self.out / self.stem / f"{run_name(row, seed)}.lock"


def run_name(row: str, seed: int) -> str:
    """What a run is called."""
    return f"{row}, seed {seed}".replace("/", "-")


def read_results(path: Path) -> Results:
    """The results so far."""
    if not is_there(path):
        return {"systems": {}}
    remedy = "move it away, or choose another --out"
    try:
        done = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise MatchloomError(f"{path} is cut off, or no file of results; {remedy}") from None
    if isinstance(done, dict) and isinstance(done.get("format", FORMAT), int) and done.get("format", FORMAT) > FORMAT:
        raise MatchloomError(f"{path} was written by a newer matchloom (format {done['format']}); {remedy}")
    if not _is_results(done):
        raise MatchloomError(f"{path} is no file of results; {remedy}")
    return dict(done)


def _is_results(done: Any) -> bool:
    if not isinstance(done, dict) or not isinstance(done.get("systems"), dict):
        return False
    runs = [run for some in done["systems"].values() for run in (some if isinstance(some, list) else [None])]
    return all(isinstance(run, dict) and isinstance(run.get("seed"), int) for run in runs)


def has_run(done: Results, row: str, seed: int) -> bool:
    """Whether a run is done."""
    return any(run["seed"] == seed for run in done["systems"].get(row, []))


def add_run(path: Path, row: str, entry: Entry, about: Results) -> None:
    """Put one run in place of an earlier one with its seed; `about` is what all runs share."""
    with writing(path.parent, wait=math.inf):
        done = {**read_results(path), "format": FORMAT, **about}
        others = [run for run in done["systems"].get(row, []) if run["seed"] != entry["seed"]]
        done["systems"][row] = sorted([*others, entry], key=lambda run: run["seed"])
        with atomic_write(path) as file:
            json.dump(done, file, indent=1)
            file.write("\n")
