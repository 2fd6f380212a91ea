"""What is read from a folder that anybody may have touched: regular files of a bounded size, and what fits together."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matchloom.types import MatchloomError

# What Python, numpy and torch raise when settings or tensors are of other kinds, sizes or depths than they should be.
WRONG = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, RuntimeError)


@contextmanager
def as_saved(path: Path | str, remedy: str) -> Iterator[None]:
    """Make something of what was read: what does not fit together is refused in one line, whoever wrote it."""
    from safetensors import SafetensorError

    try:
        yield
    except MatchloomError as error:
        if str(path) in str(error):
            raise
        raise MatchloomError(f"{path}: {error}", code=error.code) from None
    except OSError as error:
        raise MatchloomError(
            f"{error.filename or path} cannot be read: {error.strerror or error}; {remedy}", code="unreadable"
        ) from None
    except (SafetensorError, MemoryError, *WRONG) as error:
        detail = " ".join(str(error).split())[:100]
        raise MatchloomError(
            f"{path} holds what does not fit ({type(error).__name__}: {detail}); {remedy}", code="damaged"
        ) from None


def read_regular(path: Path, most: int, remedy: str) -> bytes:
    """All bytes of a regular file. A link, a pipe, a device, a folder, or more than `most` bytes are refused."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe does not block
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise MatchloomError(
                f"{path} is a link; put the file itself there, or {remedy}", code="unreadable"
            ) from None
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}; {remedy}", code="unreadable") from None
    except ValueError:
        raise MatchloomError(f"{str(path)!r} is no name of a file; {remedy}", code="unreadable") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise MatchloomError(f"{path} is no file; {remedy}", code="unreadable")
        if found.st_size > most:
            raise MatchloomError(f"{path} has {found.st_size:,} bytes, more than {most:,}; {remedy}", code="too_large")
        with open(file, "rb", closefd=False) as stream:
            content = stream.read(found.st_size + 1)
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}; {remedy}", code="unreadable") from None
    finally:
        os.close(file)
    if len(content) > found.st_size:
        raise MatchloomError(f"{path} grew while it was read; {remedy}", code="altered")
    return content


def is_folder(path: Path, *, follow: bool = True) -> bool:
    """Whether there is such a folder; what may not be looked at is refused, not told as missing."""
    try:
        return stat.S_ISDIR(path.stat(follow_symlinks=follow).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise MatchloomError(
            f"{path} cannot be read: {reason}; check its name and permissions", code="unreadable"
        ) from None
