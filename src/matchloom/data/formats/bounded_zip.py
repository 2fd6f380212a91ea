"""The members of a zip archive, within bounds: what they unpack to is counted, whatever the archive says of itself."""

from __future__ import annotations

import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matchloom.basics.files import open_raw
from matchloom.types import MatchloomError

_MEMBERS = 10_000
_BYTES = 1 << 30  # of all members together
_CHUNK = 1 << 16
# What zipfile raises of archives that are damaged, among them some of its own mistakes.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OverflowError),
    *(UnicodeDecodeError, struct.error),
)


class BoundedZip:
    """An open archive. Its names are shown and never used as paths.

    Args:
        path: The file.
        archive: The same, open.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self._left = _BYTES

    def files(self) -> list[zipfile.ZipInfo]:
        """The members that are files, by name; links and folders are none."""
        members = self._archive.infolist()
        if len(members) > _MEMBERS:
            raise MatchloomError(
                f"{self._path} holds {len(members):,} files; at most {_MEMBERS:,} are read", code="too_large"
            )
        return sorted((one for one in members if not one.is_dir() and not _is_link(one)), key=lambda one: one.filename)

    def chunks(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        """What a member holds, piece by piece; refused when all together becomes too large."""
        if member.flag_bits & 1:
            raise MatchloomError(f"{self._path}: {member.filename!r} is encrypted; unpack it first", code="unreadable")
        with self._archive.open(member) as stream:
            while chunk := stream.read(_CHUNK):
                self._left -= len(chunk)
                if self._left < 0:
                    raise MatchloomError(
                        f"{self._path} unpacks to more than {_BYTES:,} bytes, which is not read; is it what you meant?",
                        code="too_large",
                    )
                yield chunk


@contextmanager
def open_zip(path: Path, kind: str = "zip archive") -> Iterator[BoundedZip]:
    """Open an archive, or another `kind` of file that is one; what is damaged inside is told in one line, too."""
    try:
        with open_raw(path) as stream, zipfile.ZipFile(stream) as archive:
            yield BoundedZip(path, archive)
    except _DAMAGED as error:
        raise MatchloomError(f"{path} is damaged, or no {kind}: {error}", code="damaged") from None
    except OSError as error:
        if error.filename not in (None, str(path)):
            raise  # of another file
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None


def _is_link(member: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(member.external_attr >> 16)
