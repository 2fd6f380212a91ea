"""Files read line by line and written whole: a bad file is told in one line, a failed write leaves the old file."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import shutil
import stat
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, BinaryIO, Literal, TextIO, cast, overload

from matchloom.types import MatchloomError

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
UTF8_BOM = b"\xef\xbb\xbf"
_MAX_LINE = 10_000_000
_BLANK = 1_000_000  # lines in a row without anything
_HELD: ContextVar[Mapping[str, int]] = ContextVar("held", default=MappingProxyType({}))  # open files by their paths
TEMPORARY = re.compile(r"\..+\.(?P<process>[1-9][0-9]*)-[0-9]+\.tmp", re.ASCII | re.DOTALL)  # while it is written


def max_line() -> int:
    """How many bytes a line may have, 10,000,000 unless the environment has another MATCHLOOM_MAX_LINE.

    A small .gz file can hold a line of gigabytes; without a limit it would fill the memory before anyone could say why.
    """
    given = os.environ.get("MATCHLOOM_MAX_LINE", "")
    if not given:
        return _MAX_LINE
    if not given.isascii() or not given.isdigit() or not int(given):
        raise MatchloomError(
            f"MATCHLOOM_MAX_LINE is {given!r}; expected a number of bytes, such as {_MAX_LINE}", code="bad_value"
        )
    return int(given)


class _Held(io.RawIOBase):
    """A file that was opened before, from its first byte on; several may read it, each at its own place."""

    def __init__(self, file: int) -> None:
        self._file, self._at = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: os.fstat(self._file).st_size}
        self._at = max(0, starts[whence] + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        found = os.pread(self._file, len(buffer), self._at)
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


@contextmanager
def held(path: Path, file: int) -> Iterator[BinaryIO]:
    """Within this, whoever opens `path` here reads `file`, whatever has its name by now: a pipe would be waited for.

    Args:
        path: What was opened.
        file: Its descriptor, which is closed at the end.
    """
    token = _HELD.set({**_HELD.get(), str(path): file})
    try:
        yield open_raw(path)
    finally:
        _HELD.reset(token)
        os.close(file)


def open_raw(path: Path) -> BinaryIO:
    """Open a file for reading as it is."""
    file = _HELD.get().get(str(path))
    return path.open("rb") if file is None else io.BufferedReader(_Held(file))


@contextmanager
def open_bytes(path: Path | str) -> Iterator[io.BufferedReader]:
    """Open a file for reading, plain or gzip (told by its first bytes, not its name)."""
    try:
        with cast("io.BufferedReader", open_raw(Path(path))) as raw:
            if raw.peek(2)[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    yield io.BufferedReader(unzipped, 1 << 16)
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise MatchloomError(
            f"{path} is damaged or cut off: {error}; fetch or write the file again", code="damaged"
        ) from None
    except OSError as error:
        if error.filename not in (None, str(path)):
            raise  # of another file, which the caller read or wrote in between
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None


@contextmanager
def open_utf8(path: Path | str) -> Iterator[io.BufferedReader]:
    """Open a text file, plain or gzip, as UTF-8: what starts with UTF-16's byte order mark is converted."""
    with open_bytes(path) as stream:
        if stream.peek(2)[:2] in _UTF16:
            yield io.BufferedReader(_FromUTF16(path, stream), 1 << 16)
        else:
            yield stream


class _FromUTF16(io.RawIOBase):
    """The UTF-8 of a UTF-16 stream."""

    def __init__(self, path: Path | str, stream: io.BufferedReader) -> None:
        self._path = path
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            raw = self._stream.read(max(2, len(buffer) // 2))
            try:
                self._left = self._decoder.decode(raw, final=not raw).encode()
            except UnicodeError as error:
                raise MatchloomError(f"{self._path} is damaged or cut off: {error}", code="damaged") from None
            if not raw:
                break
        given, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)


def read_lines(path: Path | str, *, max_bytes: int | None = None) -> Iterator[tuple[int, str]]:
    r"""Yield (line number, line) of a text file in UTF-8 or UTF-16 (by its mark), plain or gzip, one at a time.

    Lines end with a line feed only, which stays on, so that a text may hold the rarer line separators of Unicode
    and the caller can see whether the last line is whole. A byte order mark is dropped. A line of more than `max_bytes`
    (see max_line) is refused before it is read to its end, and so are a million blank lines in a row.
    """
    limit = max_line() if max_bytes is None else max_bytes
    number = blank = 0
    with open_utf8(path) as stream:
        while raw := stream.readline(limit + 1):
            number += 1
            if number == 1:
                raw = raw.removeprefix(UTF8_BOM)
            if len(raw) > limit:
                raise MatchloomError(
                    f"{path}, line {number}: longer than {limit:,} bytes; expected one row a line (if it is, set "
                    "MATCHLOOM_MAX_LINE to more bytes)",
                    code="too_large",
                )
            blank = 0 if raw.strip() else blank + 1
            if blank > _BLANK:  # a small .gz holds billions of them
                raise MatchloomError(
                    f"{path}, line {number}: more than {_BLANK:,} blank lines in a row; is it what you meant?",
                    code="too_large",
                )
            if b"\0" in raw:
                raise MatchloomError(
                    f"{path}, line {number}: found a NUL byte; expected UTF-8 text (is it UTF-16?)", code="bad_row"
                )
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise MatchloomError(
                    f"{path}, line {number}: byte {error.start + 1} (0x{raw[error.start]:02x}) is not UTF-8; "
                    "if the file is Latin-1, convert it: iconv -f LATIN1 -t UTF-8 OLD > NEW",
                    code="bad_row",
                ) from None
            yield number, line


def refuse_utf16(path: Path | str, start: bytes) -> None:
    """Say how to convert a file that starts with UTF-16's byte order mark."""
    if start.startswith(_UTF16):
        raise MatchloomError(f"{path} is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW", code="wrong_format")


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder; what may not be looked at is refused, not told as missing."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        raise MatchloomError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", code="unreadable"
        ) from None


def check_file(path: Path, missing: str) -> None:
    """Refuse what is not there, with the message `missing`, and tell apart what is there and cannot be looked at."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise MatchloomError(missing, code="missing") from None
    except (OSError, ValueError) as error:
        raise MatchloomError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}; check its permissions",
            code="unreadable",
        ) from None
    if not stat.S_ISREG(mode):
        raise MatchloomError(f"{path} is no file; {missing}", code="missing")


@overload
def atomic_write(path: Path | str, mode: Literal["w"] = "w") -> AbstractContextManager[TextIO]: ...
@overload
def atomic_write(path: Path | str, mode: Literal["wb"]) -> AbstractContextManager[BinaryIO]: ...
def atomic_write(path: Path | str, mode: Literal["w", "wb"] = "w") -> AbstractContextManager[IO[Any]]:
    """Write a file (text is UTF-8) whole or not at all: it takes its name only when all of it is on the disk.

    A full disk, an exception or a kill inside the `with` leaves the file that was there before.

    >>> with atomic_write("notes.txt") as file:
    ...     _ = file.write("all or nothing")
    >>> Path("notes.txt").read_text()
    'all or nothing'
    """
    return _atomic_write(Path(path), mode)


@contextmanager
def _atomic_write(path: Path, mode: Literal["w", "wb"]) -> Iterator[IO[Any]]:
    encoding = {"w": "utf-8", "wb": None}[mode]
    newline = {"w": "\n", "wb": None}[mode]
    try:
        special = path.exists() and not path.is_file()  # /dev/null, a pipe: nothing to replace
        target = path if special else path.resolve()  # a link keeps pointing where it did
        there = target.parent.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # of a link to itself, or a name with a NUL
        raise MatchloomError(
            f"{path} was not written: {getattr(error, 'strerror', None) or error}", code="unwritable"
        ) from None
    name = f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp"  # as TEMPORARY has it
    temporary = target if special else target.with_name(name)
    if not there:
        raise MatchloomError(
            f"{path} was not written: the folder {target.parent} does not exist; create it first", code="unwritable"
        )
    try:
        with temporary.open(mode, encoding=encoding, newline=newline) as stream:
            yield stream
            stream.flush()
            if not special:
                os.fsync(stream.fileno())
        if not special:
            temporary.replace(target)
    except UnicodeEncodeError as error:
        broken = error.object[error.start : error.end]
        raise MatchloomError(
            f"{path} was not written: {broken!r} is half a character and has no UTF-8", code="bad_value"
        ) from None
    except OSError as error:
        if error.filename not in (None, str(temporary)):
            raise  # of another file, which the caller read or wrote in between
        raise MatchloomError(
            f"{path} was not written ({error.strerror or error}); what was there before is unchanged", code="unwritable"
        ) from None
    finally:
        if not special:
            with suppress(OSError):  # what went wrong before is what counts
                temporary.unlink(missing_ok=True)


def write_lines(path: Path | str, lines: Iterable[bytes]) -> None:
    """Write lines as they come, whole or not at all; a name that ends with .gz asks for gzip."""
    with atomic_write(path, "wb") as file:
        if str(path).lower().endswith(".gz"):
            # No name and no time inside: the same lines give the same bytes.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
                zipped.writelines(lines)
        else:
            file.writelines(lines)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be made a folder: {error.strerror or error}") from None


def sweep_leftovers(folder: Path) -> None:
    """Remove temporary files and folders (see TEMPORARY) whose process is no more, and nothing else."""
    try:
        found = [(entry.path, TEMPORARY.fullmatch(entry.name)) for entry in os.scandir(folder)]
    except OSError:
        return  # what is to be written there will say what is wrong
    for path, name in found:
        if name is not None and not _is_alive(int(name["process"])):
            with suppress(OSError):  # another one was quicker, or it is not ours to remove
                if Path(path).is_dir() and not Path(path).is_symlink():
                    shutil.rmtree(path)
                else:
                    Path(path).unlink()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # of another user
    return True
