"""Rows of all files of a zip archive or of a folder, each by the reader of its own format."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from matchloom.artifact import kind_of
from matchloom.data.formats.bounded_zip import open_zip
from matchloom.data.formats.columns import Columns
from matchloom.data.formats.row import Found, LeftOut, Note, Row
from matchloom.types import MatchloomError

_FILES = 10_000  # of a folder
# A file among others is left out where it is no file of pairs at all; what is broken in one that is stays an error.
_NO_PAIRS = ("wrong_format", "bad_columns", "no_data", "conflict")


def zip_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The rows of the files of an archive; each is unpacked under a name of ours, read and removed."""
    with open_zip(path) as archive, tempfile.TemporaryDirectory(prefix="matchloom-") as folder:
        for number, member in enumerate(archive.files()):
            ending = _ending(member.filename)
            if ending is None:
                yield LeftOut(member.filename, "no format is known by this name")
                continue
            unpacked = Path(folder) / f"{number}{ending}"
            with unpacked.open("wb") as file:
                file.writelines(archive.chunks(member))
            yield from _of_file(path, member.filename, unpacked, given)
            unpacked.unlink()


def folder_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The rows of the files of a folder and of the folders in it, by name; those that are hidden are not read."""
    kind = kind_of(path)
    if kind is not None:
        raise MatchloomError(
            f"{path} is what matchloom made ({kind}), no folder of files with pairs", code="wrong_format"
        )
    for name in names_in(path):
        if _ending(name) is None:
            yield LeftOut(name, "no format is known by this name")
        elif not (path / name).is_file() and (path / name).exists():
            yield LeftOut(name, "it is not a regular file")  # a pipe would be waited for, a device never ends
        else:
            yield from _of_file(path, name, path / name, given)


def names_in(path: Path) -> list[str]:
    """The files of a folder and of the folders in it, by name; those that are hidden are not among them."""
    names: list[str] = []

    def refuse(error: OSError) -> None:
        raise MatchloomError(f"{error.filename} cannot be read: {error.strerror or error}", code="unreadable")

    for folder, folders, files in os.walk(path, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names += [(Path(folder) / name).relative_to(path).as_posix() for name in files if not name.startswith(".")]
        if len(names) > _FILES:
            raise MatchloomError(f"{path} holds more than {_FILES:,} files, which are not read", code="too_large")
    return sorted(names)


def _ending(name: str) -> str | None:
    """How a name ends that says a format, in lower case; an archive inside another one is not opened."""
    from matchloom.data.formats.readers import FORMATS

    file = PurePosixPath(name.replace("\\", "/"))
    if file.name.startswith(".") or "__MACOSX" in file.parts:
        return None
    inner = file.name.lower().removesuffix(".gz")
    ending = PurePosixPath(inner).suffix
    known = ending in FORMATS and FORMATS[ending] != "zip"
    return ending + (".gz" if file.name.lower().endswith(".gz") else "") if known else None


def _of_file(path: Path, name: str, file: Path, given: Columns | None) -> Iterator[Found]:
    """What the reader of a file yields, under the name that the user knows."""
    from matchloom.data.formats.readers import FORMATS, READERS

    reader = READERS[FORMATS[Path(file.name.removesuffix(".gz")).suffix]]
    some = False
    try:
        for found in reader(file, given):
            some = some or isinstance(found, Row)
            yield _renamed(found, path, name, file)
    except MatchloomError as error:
        line = _told(str(error), path, name, file)
        if error.code not in _NO_PAIRS or some:
            raise MatchloomError(line, code=error.code) from None
        yield LeftOut(name, line.removeprefix(f"{path}, {name}").lstrip(",: ") or "it holds no pairs")
    else:
        if not some:
            yield LeftOut(name, "it holds no pairs")


def _renamed(found: Found, path: Path, name: str, file: Path) -> Found:
    if isinstance(found, Note):
        return Note(f"{name}: {found.text}")
    if isinstance(found, LeftOut) and found.error is not None:
        error = MatchloomError(_told(str(found.error), path, name, file), code=found.error.code)
        return LeftOut(f"{name}, {found.place}", found.reason, error)
    return found._replace(place=f"{name}, {found.place}")


def _told(message: str, path: Path, name: str, file: Path) -> str:
    return message.replace(str(file), f"{path}, {name}")
