"""Judgements: people say of an answer that it is right for a question, or wrong. Kept in a file that only grows.

    {"question": ..., "id": ..., "label": 1, "who": ..., "time": 1750000000.0, "system": ...}

One line each, on the disk before it is confirmed; several processes may write. A last line without an end is what a
killed writer or a full disk left: readers pass over it, and the next writer removes it. Lines of earlier versions
(query, text, text_id) are read, too. What judgements teach is in `judged.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matchloom.basics.files import is_there
from matchloom.text.tokenize import replace_surrogates
from matchloom.types import MatchloomError

_MOST = 2**28  # bytes of a file
_LONGEST = 2**20  # bytes of a line
_WAIT, _POLL = 5.0, 0.005  # seconds for another writer, who needs milliseconds
_NEW = {"question", "id", "label", "time"}
_OLD = {"query", "text", "label", "text_id", "system"}


class Judgement(NamedTuple):
    """That an entry is right for a question, or wrong. Without a name in `who` it is nobody's in particular."""

    question: str
    id: str
    right: bool
    who: str = ""
    time: float = 0.0  # seconds since 1970
    system: str = ""  # the name under which the collection was served
    text: str = ""  # of the entry, where a line of an earlier version has no id

    def to_json(self) -> dict[str, Any]:
        """As the file has it."""
        own = {"question": self.question, "id": self.id, "label": int(self.right), "who": self.who}
        return {**own, "time": round(self.time, 3), "system": self.system}


class Judgements(NamedTuple):
    """What a file holds, and what is damaged in it: the file, the line and the reason."""

    judgements: list[Judgement]
    damaged: list[str]

    def of_system(self, name: str) -> Judgements:
        """Those of one collection, where the file has judgements of several."""
        served = {one.system for one in self.judgements} - {""}
        if len(served) < 2:
            return self
        if name not in served:
            raise MatchloomError(
                f"the judgements are of {len(served)} systems ({', '.join(sorted(served))[:200]}), and none is "
                f"{name!r}; keep the lines of one",
                code="mismatch",
            )
        return Judgements([one for one in self.judgements if one.system in ("", name)], self.damaged)


class _Line(msgspec.Struct):
    label: float
    question: str = ""
    id: str = ""
    who: str = ""
    time: float = 0.0
    system: str = ""
    query: str = ""
    text: str = ""
    text_id: str = ""


def read_feedback(path: Path | str) -> Judgements:
    """The judgements of a file, in its order. Damaged lines are left out and named; a file of nothing else is refused.

    Args:
        path: What `matchloom serve --feedback` wrote.
    """
    path = Path(path)
    found, damaged = [], []
    file = _open(path, os.O_RDONLY)
    with os.fdopen(file, "rb") as stream:
        _check_size(path, os.fstat(file).st_size)
        number = 0
        while line := stream.readline(_LONGEST + 1):
            number += 1
            if not line.endswith(b"\n") and len(line) <= _LONGEST and not _whole(line):
                break  # a writer was killed, or is writing now
            try:
                found.append(_judgement(line))
            except ValueError as error:
                damaged.append(f"{path}, line {number}: {error}")
            while len(line) > _LONGEST and not line.endswith(b"\n"):
                line = stream.readline(_LONGEST + 1)
    if damaged and not found:
        raise MatchloomError(f"{damaged[0]}; expected judgements that 'matchloom serve' kept", code="bad_row")
    return Judgements(found, damaged)


def is_feedback(path: Path | str) -> bool:
    """Whether a file holds judgements, by its first line; nothing is refused here."""
    path = Path(path)
    if not is_there(path) or not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            first = json.loads(stream.readline(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and (first.keys() >= _NEW or first.keys() == _OLD)


class FeedbackFile:
    """A file that grows by one line for each judgement."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def keep(self, judgement: Judgement) -> None:
        """Append one line, whole: it is on the disk when this returns, or the file is as it was."""
        line = json.dumps(judgement.to_json(), ensure_ascii=False).encode(errors="replace") + b"\n"
        if len(line) > _LONGEST:
            raise MatchloomError(
                f"a judgement has {len(line):,} bytes; at most {_LONGEST:,} are kept", code="too_large"
            )
        try:
            file = self._locked()
            try:
                self._append(file, line)
            finally:
                os.close(file)
        except OSError as error:
            raise MatchloomError(f"{self.path} was not written: {error.strerror or error}", code="unwritable") from None

    def _append(self, file: int, line: bytes) -> None:
        size = self._mended(file)
        _check_size(self.path, size + len(line))
        try:
            if os.write(file, line) != len(line):
                raise OSError(0, "the disk is full")
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)  # no half of a line, and none that was not confirmed
            raise

    def _locked(self) -> int:
        """The file, held by nobody else; one that was moved away meanwhile is let go."""
        end = time.monotonic() + _WAIT
        while True:
            file = _open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file), self.path.stat(follow_symlinks=False)):
                    return file
            except (BlockingIOError, FileNotFoundError):
                pass
            except OSError:
                return file  # a file system without locks: a single write must do
            os.close(file)
            if time.monotonic() > end:
                raise MatchloomError(f"{self.path} is being written by another; try again", code="busy")
            time.sleep(_POLL)

    @staticmethod
    def _mended(file: int) -> int:
        """The size after a last line without an end was removed; one that is whole, as editors leave it, is ended."""
        size = os.fstat(file).st_size
        begin = max(0, size - _LONGEST)
        tail = os.pread(file, _LONGEST, begin)
        if not tail or tail.endswith(b"\n"):
            return size
        last = tail[tail.rfind(b"\n") + 1 :]
        if len(last) == _LONGEST:
            raise MatchloomError("the file of judgements ends in something else; move it away", code="damaged")
        if _whole(last):
            os.write(file, b"\n")
            return size + 1
        os.ftruncate(file, size - len(last))
        return size - len(last)


def _open(path: Path, how: int) -> int:
    """A regular file; a pipe in its place is refused, and a link where it would be written."""
    reads = how == os.O_RDONLY
    try:
        file = os.open(path, how | os.O_CLOEXEC | os.O_NONBLOCK | (0 if reads else os.O_NOFOLLOW), 0o600)
    except OSError as error:
        if not reads:
            raise
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise MatchloomError(f"{path} is no file; expected one of judgements", code="wrong_type")


def _check_size(path: Path, size: int) -> None:
    if size > _MOST:
        raise MatchloomError(
            f"{path} has more than {_MOST:,} bytes of judgements; refit with it, then move it away", code="too_large"
        )


def _whole(line: bytes) -> bool:
    try:
        _judgement(line)
    except ValueError:
        return False
    return True


def _judgement(line: bytes) -> Judgement:
    """The judgement of a line; a ValueError says what is wrong."""
    if len(line) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST:,} bytes")
    try:
        found = msgspec.json.decode(line, type=_Line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no judgement: {str(error)[:120]}") from None
    question, name = found.question or found.query, found.id or found.text_id
    if found.label not in (0, 1):
        raise ValueError(f"label is {found.label:g}; expected 1 or 0")
    if not question.strip() or not (name or found.text.strip()):
        raise ValueError("no question or no answer")
    return Judgement(
        replace_surrogates(question), name, found.label == 1, found.who, found.time, found.system, found.text
    )


def as_judgements(feedback: Path | str | Judgements | Iterable[Judgement]) -> Judgements:
    """Judgements, or those of a file."""
    if isinstance(feedback, str | Path):
        return read_feedback(feedback)
    return feedback if isinstance(feedback, Judgements) else Judgements(list(feedback), [])
