"""What an archive says of itself: one small file, replaced whole, that names the table in use and what encoded it."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from matchloom.files import atomic_write
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError

_log = logging.getLogger(__name__)

FORMAT = 4  # 1 held words where 2 holds stems; 2 held question vectors of any length; 3 one question an answer
ALPHA = 0.7  # the paper's
_FILE = "archive.json"
_PATIENCE = 2.0  # seconds for which a writer waits without a word


@dataclass(frozen=True)
class ArchiveManifest:
    """The settings of an archive. `matcher` is the digest of the matcher that made the vectors."""

    table: str
    tokenizer: Tokenizer
    alpha: float = ALPHA
    matcher: str | None = None
    matcher_name: str | None = None
    matcher_folder: str | None = None
    vector_size: int | None = None
    trained_on: int = 0  # rows that the vector index was trained on
    written: int = 0  # rows put into the table or taken out of it, by which readers know that what they counted is old

    @property
    def next_table(self) -> str:
        """The name of a table that will take the place of this one."""
        return f"pairs-{int(self.table.removeprefix('pairs-')) + 1}"

    def write(self, folder: Path) -> None:
        """Take effect for every reader at once."""
        content = {"format": FORMAT, **asdict(self), "tokenizer": self.tokenizer._asdict()}
        try:
            with atomic_write(folder / _FILE) as file:
                file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise MatchloomError(f"{folder / _FILE} cannot be written: {error.strerror or error}") from None


def read_manifest(folder: Path) -> ArchiveManifest:
    """The settings in a folder; what is no archive, damaged or newer is refused in one line."""
    path = folder / _FILE
    try:
        content = json.loads(path.read_bytes())
        version = content.pop("format")
        if type(version) is int and version > FORMAT:
            raise MatchloomError(
                f"{folder} has format {version}, this matchloom reads up to {FORMAT}; upgrade matchloom"
            )
        if type(version) is int and version < FORMAT:
            raise MatchloomError(
                f"{folder} has format {version}, this matchloom reads {FORMAT}; index its pairs again into a new folder"
            )
        manifest = ArchiveManifest(**{**content, "tokenizer": Tokenizer(**content["tokenizer"])})
        if type(version) is not int or not _sound(manifest):
            raise ValueError
        return manifest
    except NotADirectoryError:
        raise MatchloomError(f"{folder} is a file; expected an archive's folder") from None
    except FileNotFoundError:
        raise MatchloomError(
            f"{folder} is no archive: it has no {_FILE}; 'matchloom index {folder} PAIRS' makes one"
        ) from None
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror}") from None
    except MatchloomError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        raise MatchloomError(f"{path} is damaged; index the pairs into a new folder") from None


def _sound(manifest: ArchiveManifest) -> bool:
    """Whether every setting is of its kind."""
    cut = manifest.tokenizer
    texts = (manifest.matcher, manifest.matcher_name, manifest.matcher_folder)
    counts = (
        manifest.trained_on,
        manifest.written,
        *(n for n in (manifest.vector_size, cut.max_words) if n is not None),
    )
    return (
        re.fullmatch(r"pairs-[0-9]+", manifest.table) is not None
        and type(manifest.alpha) in (int, float)
        and 0 <= manifest.alpha <= 1
        and all(text is None or type(text) is str for text in texts)
        and all(type(count) is int and count >= 0 for count in counts)
        and type(cut.kind) is str
        and type(cut.lower) is bool
    )


def stamp(folder: Path) -> tuple[int, int, int]:
    """What changes whenever the settings are replaced."""
    try:
        found = (folder / _FILE).stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """One writer at a time, also among processes; the lock ends with its process. Leftovers of dead ones go."""
    try:
        file = (folder / "lock").open("ab")
    except OSError as error:
        raise MatchloomError(
            f"{folder} cannot be written: {error.strerror}; check that it is there, and its permissions"
        ) from None
    with file:
        _lock(file, folder)
        _sweep(folder)
        yield


def _lock(file: IO[bytes], folder: Path) -> None:
    start = time.monotonic()
    while time.monotonic() - start < _PATIENCE:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return
    _log.warning("%s is being written by another process or thread; waiting for it", folder)
    fcntl.flock(file, fcntl.LOCK_EX)


def _sweep(folder: Path) -> None:
    """Remove tables that are not in use: a re-encoding that was cut off, or one that this one replaced."""
    used = read_manifest(folder).table if (folder / _FILE).exists() else None
    for path in folder.glob("pairs-*.lance"):
        if path.name != f"{used}.lance" and (used is not None or not _holds_rows(path)):
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f".{_FILE}.*.tmp"):  # only who holds the lock writes them
        path.unlink(missing_ok=True)


def prepare(folder: Path) -> None:
    """Make the folder of a new archive; one that holds more than what a creation that was cut off left is refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = list(folder.iterdir())
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be made an archive: {error.strerror}") from None
    others = []
    for path in sorted(found):
        if path.name == _FILE:
            raise MatchloomError(f"{folder} is an archive already; open it, or choose another folder")
        if path.match("pairs-*.lance"):
            if _holds_rows(path):
                raise MatchloomError(
                    f"{folder} holds the pairs of an archive ({path.name}) but no {_FILE}; put that file back, or "
                    "choose another folder"
                )
        elif path.name != "lock" and not path.match(f".{_FILE}.*.tmp"):
            others.append(path.name)
    if others:
        raise MatchloomError(f"{folder} holds other files, such as {others[0]}; choose an empty folder")


def _holds_rows(table: Path) -> bool:
    return any((table / "data").glob("*"))


def size_of(folder: Path) -> int:
    """What a folder holds; files that others remove meanwhile do not count."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(where) / name).stat().st_size
            except OSError:
                continue
    return total
