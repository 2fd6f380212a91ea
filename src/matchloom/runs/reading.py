"""What a folder tells of the training or fit in it, also while that goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matchloom.artifact import WRONG, holds, is_written, settings_of
from matchloom.basics.files import read_lines
from matchloom.fitting.report import FitReport
from matchloom.types import MatchloomError

TRAINING, FIT = "training", "fit"
_COLLECTION = "collection"
_LOG, _WORK = "log.jsonl", "work"
_MOST = 500  # runs that are listed
_CLOCK = ("pairs_per_second", "seconds", "epoch", "step", "loss")


@dataclass(frozen=True)
class Run:
    """One training or fit. `log` has a line for each evaluation on development pairs; `about` is the matcher's own."""

    name: str
    kind: str
    running: bool
    changed: float  # when its files last did
    log: list[dict[str, Any]] = field(default_factory=list)
    about: Mapping[str, Any] = field(default_factory=dict)
    report: FitReport | None = None
    found: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by a fit so far: figures by system

    @property
    def measure(self) -> str | None:
        """What the development pairs are measured by, if there are any."""
        return next((name for name in (self.log[0] if self.log else {}) if name not in _CLOCK), None)

    def _repr_html_(self) -> str:
        from matchloom.pages.document import frame
        from matchloom.runs.page import render_page

        return frame(render_page(self), "A run")

    @property
    def training(self) -> Mapping[str, Any]:
        """How it was trained, as far as that is written."""
        found = self.about.get("training", {})
        return found if isinstance(found, dict) else {}


def is_run(folder: Path) -> bool:
    """Whether a training or fit writes, or wrote, here."""
    return (folder / _LOG).is_file() or _fitted(folder) is not None or holds(folder / _WORK, "measured")


def find_runs(folder: Path) -> list[Run]:
    """The runs in a folder and in the folders of it, two levels down; those that changed last first."""
    found: list[Run] = []
    for path in _folders(folder):
        if len(found) == _MOST:
            break
        try:
            found.append(read_run(path, path.relative_to(folder).as_posix()))
        except (MatchloomError, OSError, *WRONG):
            continue  # half written, gone meanwhile, or damaged: its own commands say so
    return sorted(found, key=lambda run: (not run.running, -run.changed, run.name))


def _folders(folder: Path, depth: int = 2) -> Iterator[Path]:
    if is_run(folder):
        yield folder
        return
    try:
        inside = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for path in inside if depth else []:
        yield from _folders(Path(path), depth - 1)


def read_run(folder: Path, name: str | None = None) -> Run:
    """The run in a folder."""
    named = name if name not in (None, ".") else folder.resolve().name
    assert named is not None
    if not is_run(folder):
        raise MatchloomError(f"{folder} is no folder of a run; expected what 'matchloom train' or 'fit' writes")
    running = is_written(folder) or is_written(folder / _WORK)
    kind = _fitted(folder)
    changed = _changed(folder / _LOG, folder / f"{kind or FIT}.json", folder / _WORK / "measured.json")
    if kind is not None:
        return Run(named, FIT, running, changed, report=_report(folder, kind))
    if (folder / _LOG).is_file():
        about = settings_of(folder, "matcher") or {}
        return Run(named, TRAINING, running, changed, log=_log(folder / _LOG), about=about)
    return Run(named, FIT, running, changed, found=_found(folder / _WORK))


def _changed(*paths: Path) -> float:
    """When the last of these files changed; 0 where they have gone meanwhile."""
    found = [0.0]
    for path in paths:
        with suppress(OSError):
            found.append(path.lstat().st_mtime)
    return max(found)


def _log(path: Path) -> list[dict[str, Any]]:
    found = []
    try:
        for _, line in read_lines(path):
            entry = json.loads(line)
            numbers = {str(k): float(v) for k, v in entry.items() if isinstance(v, int | float)}
            if numbers.keys() >= {"epoch", "step", "loss"}:
                found.append(numbers)
    except WRONG:
        raise MatchloomError(f"{path} is damaged") from None
    return found


def _fitted(folder: Path) -> str | None:
    """The kind of what `fit` kept in a folder, if it did: a collection that was not measured has no report."""
    if holds(folder, FIT):
        return FIT
    if not holds(folder, _COLLECTION):
        return None
    settings = settings_of(folder, _COLLECTION)
    return None if settings is not None and settings.get("report") is None else _COLLECTION


def _report(folder: Path, kind: str) -> FitReport:
    try:
        return FitReport.from_dict((settings_of(folder, kind) or {})["report"])
    except WRONG:  # msgspec's errors are ValueErrors
        raise MatchloomError(f"{folder / f'{kind}.json'} is damaged; fit it again", code="damaged") from None


def _found(work: Path) -> dict[str, dict[str, float]]:
    """The figures that a fit has so far; those of learning curves, which have a number in their name, are left out."""
    measured = (settings_of(work, "measured") or {}).get("measured")  # being replaced, or damaged: none
    found = {}
    for name, one in measured.items() if isinstance(measured, dict) else ():
        values = one.get("values") if isinstance(one, dict) else None
        if isinstance(values, dict) and not any(part.isdecimal() for part in name.split("/")):
            found[name] = {str(k): float(v) for k, v in values.items() if isinstance(v, float)}
    return found
