"""Is a collection whole? What was looked at, what was found, and in one line what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from matchloom.search.folder import REMEDY, open_collection
from matchloom.types import MatchloomError


class Finding(NamedTuple):
    """One thing that was looked at, and what was found."""

    what: str
    whole: bool
    text: str


@dataclass(frozen=True)
class CheckUp:
    """What a check of a collection found; it is true if the collection is whole."""

    folder: Path | str
    findings: list[Finding] = field(default_factory=list)
    remedy: str = REMEDY

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.whole for finding in self.findings)

    def __bool__(self) -> bool:
        return self.whole

    @property
    def verdict(self) -> str:
        """In one line."""
        if self.whole:
            return f"{self.folder} is whole."
        names = ", ".join(finding.what for finding in self.findings if not finding.whole)
        return f"{self.folder} is damaged ({names}); {self.remedy}."

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        findings = [finding._asdict() for finding in self.findings]
        return {"archive": str(self.folder), "whole": self.whole, "findings": findings, "verdict": self.verdict}


def check_collection(folder: Path) -> CheckUp:
    """Compare every file with its checksum, every line of the journal with its own, and read every entry."""
    return CheckUp(folder, list(_findings(folder)))


def _findings(folder: Path) -> Iterator[Finding]:
    from matchloom.search.collection import Collection

    try:
        opened = open_collection(folder)
        opened.saved.verify()
    except MatchloomError as error:
        yield Finding("files", False, str(error))
        return
    yield Finding("files", True, "all match their checksums")
    try:
        changes = len(opened.journal.read())
    except MatchloomError as error:
        yield Finding("changes", False, str(error))
        return
    rest = "; an incomplete last line, which was never confirmed, is ignored"
    yield Finding("changes", True, f"{changes:,} since the fit, each whole{rest if opened.journal.changed() else ''}")
    try:
        entries = Collection.open(folder).entries
        asked = sum(len(entries[n].questions) for n in range(len(entries)))
    except MatchloomError as error:
        yield Finding("entries", False, str(error))
        return
    yield Finding("entries", True, f"{len(entries):,} with {asked:,} questions can be read")
