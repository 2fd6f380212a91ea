"""Who changed what, and when: a file that only grows, from which a change can be undone.

    {"id": ..., "time": ..., "who": ..., "system": ..., "action": "put", "before": {id: entry or null}, "after": {...}}

A change of many entries takes several lines with the same id. They are written before the change is made, so that none
is made without them; where it then fails, a line of the action "void" takes them back. A full file is moved aside
(FILE.1, ...).
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matchloom.basics.growing import LONGEST, Announce, GrowingFile
from matchloom.data.entries import Entry
from matchloom.types import MatchloomError

Entries = Mapping[str, Entry | None]
_MOST, _KEEP = 2**26, 9  # bytes of a file, full files beside it
_SHOWN, _BEGINS = 5, 120  # ids of a change that are listed, characters of their answers
_VOID = "void"  # an action: what it undoes was never done
_UNDONE = ("put", "remove", "import", "assign", "dismiss")  # what "undo" looks for; an undo is undone by its id


class _Entry(msgspec.Struct):
    text: str
    questions: list[str]
    columns: dict[str, str]


class _Line(msgspec.Struct):
    id: str
    time: float
    who: str
    system: str
    action: str
    before: dict[str, _Entry | None] = {}
    after: dict[str, _Entry | None] = {}
    undoes: str = ""
    questions: list[str] = []
    told: dict[str, Any] = {}
    whole: bool = True


class Record(NamedTuple):
    """A change, without the texts that it changed."""

    id: str
    time: float
    who: str
    system: str
    action: str
    ids: list[str]  # the first few
    texts: list[str]  # how their answers begin
    entries: int
    new: int  # of these, not there before
    questions: int  # that were put away
    undone: bool
    told: dict[str, Any]


@dataclass
class _Seen:
    line: _Line
    ids: list[str]
    starts: list[int]
    texts: list[str]
    new: int


class Audit:
    """The file, and what of it is known already: only what was added since is read."""

    def __init__(self, path: Path) -> None:
        self.file: GrowingFile = GrowingFile(path, "change", most=_MOST, keep=_KEEP)
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._end = self._inode = 0
        self._seen: dict[str, _Seen] = {}
        self._undone: dict[str, str] = {}  # a change, and by which change it was undone

    def record(
        self,
        system: str,
        who: str,
        action: str,
        before: Entries | None = None,
        after: Entries | None = None,
        *,
        told: Mapping[str, Any] | None = None,
        announce: Announce | None = None,
        **own: Any,
    ) -> str:
        """Write a change; its id. `own` is what it undoes, or the questions that it puts away."""
        name = secrets.token_hex(8)
        head = {"id": name, "time": round(time.time(), 3), "who": who, "system": system, "action": action, **own}
        lines = _lines({**head, "told": dict(told)} if told else head, before or {}, after or {})
        self.file.append(*lines, announce=announce)
        return name

    def void(self, system: str, who: str, name: str, place: tuple[int, int]) -> None:
        """Take back what was written of a change that was not made; a full disk has room for that, too."""
        try:
            self.record(system, who, _VOID, undoes=name)
        except MatchloomError:
            self.file.take_back(*place)

    def records(self, system: str) -> list[Record]:
        """The changes of a collection, the latest first."""
        with self._lock:
            self._follow()
            found = [
                Record(
                    seen.line.id,
                    seen.line.time,
                    seen.line.who,
                    system,
                    seen.line.action,
                    seen.ids[:_SHOWN],
                    seen.texts,
                    len(seen.ids),
                    seen.new,
                    len(seen.line.questions),
                    seen.line.id in self._undone,
                    seen.line.told,
                )
                for seen in self._seen.values()
                if seen.line.system == system
            ]
        return found[::-1]

    def dismissed(self, system: str) -> set[str]:
        """Questions that somebody put away."""
        with self._lock:
            self._follow()
            away = (one for one in self._seen.values() if one.line.action == "dismiss" and one.line.system == system)
            return {question for one in away if one.line.id not in self._undone for question in one.line.questions}

    def last(self, system: str) -> str | None:
        """The id of the last change that can be undone."""
        found = (one for one in self.records(system) if one.action in _UNDONE and not one.undone)
        return next((one.id for one in found if one.entries or one.questions), None)

    def change(self, system: str, name: str) -> tuple[Entries, Entries] | None:
        """What was there before a change and after; None where there is no such change, or it holds too much."""
        with self._lock:
            self._follow()
            seen = self._seen.get(name)
            if seen is None or seen.line.system != system or name in self._undone:
                return None
            before: dict[str, Entry | None] = {}
            after: dict[str, Entry | None] = {}
            for start in seen.starts:
                line = next(self.file.lines(start), None)
                found = None if line is None else _decoded(line.content)
                if found is None or found.id != name or not found.whole:
                    return None
                before |= _entries(found.before)
                after |= _entries(found.after)
            return before, after

    def _follow(self) -> None:
        """Read what was written since, by whomever."""
        try:
            found = self.file.path.stat()
        except OSError:
            self._forget()
            return
        if found.st_ino != self._inode or found.st_size < self._end:
            self._forget()
            self._inode = found.st_ino
        for line in self.file.lines(self._end):
            self._end = line.start + len(line.content)
            read = _decoded(line.content)
            if read is not None:
                self._take(read, line.start)

    def _take(self, line: _Line, start: int) -> None:
        if line.action == _VOID:
            voided = self._seen.pop(line.undoes, None)
            if voided is not None and self._undone.get(voided.line.undoes) == line.undoes:
                del self._undone[voided.line.undoes]
            return
        ids = list({**line.before, **line.after})
        seen = self._seen.get(line.id)
        if seen is None:
            if line.undoes:
                self._undone[line.undoes] = line.id
                self._undone.pop(self._undone_by(line.undoes), None)
            bare = msgspec.structs.replace(line, before={}, after={})
            seen = self._seen[line.id] = _Seen(bare, [], [], [], 0)
        seen.ids.extend(ids)
        seen.starts.append(start)
        seen.new += sum(line.before.get(name) is None and line.after.get(name) is not None for name in ids)
        for name in ids[: _SHOWN - len(seen.texts)]:
            there = line.after.get(name) or line.before.get(name)
            seen.texts.append("" if there is None else there.text[:_BEGINS])

    def _undone_by(self, name: str) -> str:
        """What a change had undone, if it is one that undoes: that is there again."""
        seen = self._seen.get(name)
        return "" if seen is None else seen.line.undoes


Note = Callable[..., None]


@contextmanager
def noting(audit: Audit | None, system: str, who: str) -> Iterator[Note]:
    """Write changes down as `Audit.record` does, before they are made; what then fails is taken back."""
    noted: list[tuple[str, tuple[int, int]]] = []

    def note(action: str, before: Entries | None = None, after: Entries | None = None, **own: Any) -> None:
        if audit is None:
            return
        place = (0, 0)

        def seen(_: Path | None, start: int, content: bytes, __: Mapping[str, Any]) -> None:
            nonlocal place
            place = start, len(content)

        noted.append((audit.record(system, who, action, before, after, announce=seen, **own), place))

    try:
        yield note
    except BaseException:
        for name, place in noted:
            assert audit is not None
            audit.void(system, who, name, place)
        raise


def _lines(head: Mapping[str, Any], before: Entries, after: Entries) -> Iterator[dict[str, Any]]:
    """One line, or several where it would be too long; an entry that is too long alone is named and left out."""
    names = list({**before, **after})
    made: dict[str, Any] = {**head, "before": {}, "after": {}}
    size = 0
    for name in names:
        sides = {"before": _plain(before.get(name)), "after": _plain(after.get(name))}
        own = len(msgspec.json.encode(sides)) + len(name)
        if own > LONGEST // 2:
            sides, own = {"before": None, "after": None}, len(name)
            made["whole"] = False
        if size and size + own > LONGEST // 2:
            yield made
            made, size = {**head, "before": {}, "after": {}}, 0
        made["before"][name], made["after"][name] = sides["before"], sides["after"]
        size += own
    yield made


def _plain(entry: Entry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    return {"text": entry.text, "questions": list(entry.questions), "columns": dict(entry.columns)}


def _entries(found: Mapping[str, _Entry | None]) -> dict[str, Entry | None]:
    return {
        name: None if one is None else Entry(name, one.text, tuple(one.questions), one.columns)
        for name, one in found.items()
    }


def _decoded(content: bytes) -> _Line | None:
    try:
        return msgspec.json.decode(content, type=_Line)
    except (ValueError, RecursionError):
        return None  # somebody's hand
