"""Files below a URI: a folder, or an object store by what pyarrow reads (s3://, gs://, abfs://).

A file is there whole or not at all, and nothing is changed in place but the pointer to the newest snapshot. What a
store answers in error becomes one line with the URI and the file.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast
from urllib.parse import unquote, urlsplit

from matchloom.basics.extras import named_extras
from matchloom.basics.files import atomic_write, make_folder
from matchloom.basics.validation import one_path
from matchloom.types import MatchloomError

BLOCK = 8 * 2**20  # bytes that are read or sent at a time; an object store answers each read by a request
_URI = re.compile(r"[a-z][a-z0-9+.-]*://", re.I)
_TOLD = 200  # letters of a store's own words


class Store(Protocol):
    """Files by name below a URI."""

    uri: str

    def read(self, name: str, most: int) -> bytes | None:
        """A small file; None where there is none."""
        ...

    def fetch(self, name: str, size: int) -> Iterator[bytes]:
        """A file in pieces, at most so many bytes."""
        ...

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Write a file whole, or not at all."""
        ...

    def size(self, name: str) -> int | None:
        """How many bytes a file has; None where there is none."""
        ...

    def names(self, folder: str) -> dict[str, float]:
        """The files of a folder, and when each was written, in seconds since 1970."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...


def is_uri(given: str) -> bool:
    """Whether this is a URI and no path."""
    return _URI.match(given) is not None


def one_place(name: str, value: object) -> Path | str:
    """A folder, or a URI of an object store as it was given."""
    if isinstance(value, str) and is_uri(value) and not value.lower().startswith("file://"):
        return value
    if isinstance(value, str) and value.lower().startswith("file://"):
        return cast(FolderStore, open_store(value)).folder
    return one_path(name, value)


def shown(uri: str) -> str:
    """A URI without what nobody else should read: names, passwords and options."""
    if not is_uri(uri):
        return uri
    found = urlsplit(uri)
    return f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path}".rstrip("/")


def open_store(uri: str) -> Store:
    """The store of a URI or path; nothing is asked of it yet."""
    if not is_uri(uri):
        return FolderStore(Path(uri), uri)
    if uri.lower().startswith("file://"):
        found = urlsplit(uri)
        if found.netloc not in ("", "localhost"):
            raise MatchloomError(f"{uri} names another machine; expected file:///path", code="bad_value")
        return FolderStore(Path(unquote(found.path)), uri)
    return ObjectStore(uri)


def _failed(uri: str, name: str, error: Exception, done: str) -> MatchloomError:
    told = " ".join(str(getattr(error, "strerror", None) or error).split())[:_TOLD]
    line = f"{uri}/{name} cannot be {done}: {told or type(error).__name__}"
    return MatchloomError(line, code="unreadable" if done == "read" else "unwritable")


class FolderStore:
    """A folder, also one that machines share."""

    def __init__(self, folder: Path, uri: str) -> None:
        self.folder = folder
        self.uri: str = uri.rstrip("/")

    def _opened(self, name: str) -> BinaryIO:
        """A regular file: a pipe or a device in its place would be waited for, or read, without end."""
        made = os.open(self.folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(made).st_mode):
            return os.fdopen(made, "rb")
        os.close(made)
        raise OSError(errno.EINVAL, "it is no file")

    def read(self, name: str, most: int) -> bytes | None:
        """A small file; None where there is none."""
        try:
            with self._opened(name) as stream:
                content = stream.read(most + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(self.uri, name, error, "read") from None
        return _bounded(self.uri, name, content, most)

    def fetch(self, name: str, size: int) -> Iterator[bytes]:
        """A file in pieces, at most so many bytes."""
        try:
            with self._opened(name) as stream:
                yield from _pieces(stream, size)
        except OSError as error:
            raise _failed(self.uri, name, error, "read") from None

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Write a file whole, or not at all."""
        make_folder((self.folder / name).parent)
        with atomic_write(self.folder / name, "wb") as stream:
            for piece in pieces:
                stream.write(piece)

    def size(self, name: str) -> int | None:
        """How many bytes a file has; None where there is none."""
        try:
            return (self.folder / name).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(self.uri, name, error, "read") from None

    def names(self, folder: str) -> dict[str, float]:
        """The files of a folder, and when each was written, in seconds since 1970."""
        found: dict[str, float] = {}
        with suppress(FileNotFoundError):
            for path in (self.folder / folder).iterdir():
                with suppress(FileNotFoundError):  # another has just removed it
                    found[path.name] = path.stat().st_mtime
        return found

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.folder / name).unlink(missing_ok=True)


class ObjectStore:
    """A file system of pyarrow's, with the store's own credentials, timeouts and retries."""

    def __init__(self, uri: str) -> None:
        self.uri: str = shown(uri)
        self._given = uri

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        with named_extras(f"{self.uri}: an object store", "parquet"):
            from pyarrow import ArrowInvalid
            from pyarrow.fs import FileSystem
        try:
            files, path = FileSystem.from_uri(self._given)
        except ArrowInvalid as error:
            raise MatchloomError(f"{self.uri} is no URI of a store: {error}", code="bad_value") from None
        return files, path.rstrip("/")

    @contextmanager
    def _asked(self, name: str, done: str = "read") -> Iterator[tuple[Any, str]]:
        try:
            files, path = self._opened
            yield files, f"{path}/{name}"
        except FileNotFoundError:
            raise
        except OSError as error:  # what pyarrow makes of every answer in error, and of a connection that is lost
            raise _failed(self.uri, name, error, done) from None

    def read(self, name: str, most: int) -> bytes | None:
        """A small file; None where there is none."""
        try:
            with self._asked(name) as (files, path), files.open_input_stream(path) as stream:
                return _bounded(self.uri, name, stream.read(most + 1), most)
        except FileNotFoundError:
            return None

    def fetch(self, name: str, size: int) -> Iterator[bytes]:
        """A file in pieces, at most so many bytes."""
        try:
            with self._asked(name) as (files, path), files.open_input_stream(path) as stream:
                yield from _pieces(stream, size)
        except FileNotFoundError as error:
            raise _failed(self.uri, name, error, "read") from None

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Write a file whole, or not at all."""
        try:
            with self._asked(name, "written") as (files, path):
                stream = files.open_output_stream(path)
                try:
                    for piece in pieces:
                        stream.write(piece)
                except BaseException:
                    with suppress(OSError):
                        stream.close()  # pyarrow cannot give an upload up: it is ended, and what it made removed
                        files.delete_file(path)
                    raise
                stream.close()
        except FileNotFoundError as error:  # no such bucket
            raise _failed(self.uri, name, error, "written") from None

    def size(self, name: str) -> int | None:
        """How many bytes a file has; None where there is none."""
        with self._asked(name) as (files, path):
            found = files.get_file_info(path)
        return found.size if found.is_file else None

    def names(self, folder: str) -> dict[str, float]:
        """The files of a folder, and when each was written, in seconds since 1970."""
        with self._asked(folder) as (files, path):
            from pyarrow.fs import FileSelector

            found = files.get_file_info(FileSelector(path, allow_not_found=True))
        return {one.base_name: one.mtime_ns / 1e9 if one.mtime_ns else 0.0 for one in found if one.is_file}

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError), self._asked(name, "removed") as (files, path):
            files.delete_file(path)


def _pieces(stream: BinaryIO, size: int) -> Iterator[bytes]:
    left = size
    while left > 0 and (piece := stream.read(min(BLOCK, left))):
        left -= len(piece)
        yield piece


def _bounded(uri: str, name: str, content: bytes, most: int) -> bytes:
    if len(content) > most:
        raise MatchloomError(
            f"{uri}/{name} has more than {most:,} bytes, so it is not what was published", code="damaged"
        )
    return content
