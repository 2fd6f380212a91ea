"""What an archive says of itself: one small file, replaced whole, that names the table in use and what encoded it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from matchloom import artifact
from matchloom.artifact.checks import is_folder
from matchloom.artifact.lock import LOCK
from matchloom.basics.files import atomic_write
from matchloom.text.languages import ENGLISH, FUNCTION_WORDS
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError

# 1 held words where 2 holds stems; 2 held question vectors of any length; 3 one question an answer; 4 no positions.
FORMAT = 5
_WITHOUT_POSITIONS = 4  # what an archive without them still says, so that an older matchloom opens it
ALPHA = 0.7  # the paper's
BATCH = 10_000  # pairs in memory, and in one commit
BATCH_OF_POSITIONS = 1_000  # where each pair is some ten thousand bytes, and a while to encode
FILE = "archive.json"
LARGEST = 1_000_000  # bytes of settings; they have some hundred

_Count = Annotated[int, Meta(ge=0, lt=2**53)]


class _TokenizerKinds(Struct, forbid_unknown_fields=True):
    """What the settings of a tokenizer may be."""

    kind: Literal["english", "chinese", "japanese", "whitespace"]
    lower: bool = True
    max_words: Annotated[int, Meta(ge=1, lt=2**53)] | None = None
    language: str = ENGLISH  # an archive of an earlier matchloom has none


class _Kinds(Struct, forbid_unknown_fields=True):
    """What the settings may be; `seal` is the digest of the others, so that a digit that was altered is noticed."""

    format: Annotated[int, Meta(ge=0)]
    table: Annotated[str, Meta(pattern=r"^pairs-[0-9]{1,9}\Z")]
    tokenizer: _TokenizerKinds
    alpha: Annotated[float, Meta(ge=0, le=1)] = ALPHA
    matcher: Annotated[str, Meta(max_length=128)] | None = None
    matcher_name: Annotated[str, Meta(max_length=256)] | None = None
    matcher_folder: str | None = None
    vector_size: Annotated[int, Meta(ge=1, lt=2**20)] | None = None
    position_size: Annotated[int, Meta(ge=1, lt=2**20)] | None = None
    trained_on: _Count = 0
    written: _Count = 0
    seal: str | None = None  # an archive of an earlier matchloom has none


class _AnyFormat(Struct):
    format: Annotated[int, Meta(ge=0)]


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
    position_size: int | None = None  # numbers of a position, where the archive stores them
    trained_on: int = 0  # rows that the vector index was trained on
    written: int = 0  # rows put into the table or taken out of it, by which readers know that what they counted is old

    @property
    def batch(self) -> int:
        """How many pairs are in memory, and in one commit."""
        return BATCH if self.position_size is None else BATCH_OF_POSITIONS

    @property
    def next_table(self) -> str:
        """The name of a table that will take the place of this one."""
        return f"pairs-{int(self.table.removeprefix('pairs-')) + 1}"

    def settings(self) -> dict[str, Any]:
        """As they are written, without their seal."""
        settings = {"format": FORMAT, **asdict(self), "tokenizer": self.tokenizer._asdict()}
        if self.position_size is None:
            del settings["position_size"]
            settings["format"] = _WITHOUT_POSITIONS
        return settings

    def content(self) -> bytes:
        """The file, with its seal."""
        settings = self.settings()
        return (json.dumps({**settings, "seal": _seal(settings)}, indent=2, ensure_ascii=False) + "\n").encode()

    def write(self, folder: Path) -> None:
        """Take effect for every reader at once."""
        _refuse_links(folder, FILE)
        try:
            with atomic_write(folder / FILE, "wb") as file:
                file.write(self.content())
        except OSError as error:
            raise MatchloomError(f"{folder / FILE} cannot be written: {error.strerror or error}") from None


def read_manifest(folder: Path) -> ArchiveManifest:
    """The settings in a folder; what is no archive, damaged or newer is refused in one line."""
    path = folder / FILE
    try:
        _refuse_links(folder, FILE)
        if path.exists() and not path.is_file():
            raise MatchloomError(f"{path} is no file, so {folder} is no archive; index the pairs into a new folder")
        if path.stat().st_size > LARGEST:
            raise ValueError
        content = path.read_bytes()
    except NotADirectoryError:
        raise MatchloomError(f"{folder} is a file; expected an archive's folder") from None
    except FileNotFoundError:
        raise MatchloomError(
            f"{folder} is no archive: it has no {FILE}; 'matchloom index {folder} PAIRS' makes one"
        ) from None
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}") from None
    except MatchloomError:
        raise
    except ValueError:
        raise _damaged(folder) from None
    try:
        return manifest_of_bytes(folder, content)
    except MatchloomError:
        raise
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        raise _damaged(folder) from None


def manifest_of_bytes(where: Path | str, content: bytes) -> ArchiveManifest:
    """Settings as they were written; what is damaged is a ValueError."""
    version = msgspec.json.decode(content, type=_AnyFormat).format
    if version > FORMAT:
        raise MatchloomError(f"{where} has format {version}, this matchloom reads up to {FORMAT}; upgrade matchloom")
    if version < _WITHOUT_POSITIONS:
        raise MatchloomError(
            f"{where} has format {version}, this matchloom reads {_WITHOUT_POSITIONS} and {FORMAT}; index its "
            "pairs again into a new folder"
        )
    return manifest_from(msgspec.json.decode(content))


def manifest_from(settings: Any) -> ArchiveManifest:
    """Settings that were read, each of its kind and together what was written; else a ValueError."""
    found = msgspec.convert(settings, type=_Kinds)
    if found.seal is not None:
        rest = {name: value for name, value in settings.items() if name != "seal"}
        if found.seal != _seal(rest):
            raise ValueError
    tokenizer = Tokenizer(**msgspec.structs.asdict(found.tokenizer))
    if tokenizer.language not in FUNCTION_WORDS:
        raise ValueError
    plain = {name: value for name, value in msgspec.structs.asdict(found).items() if name not in ("format", "seal")}
    return ArchiveManifest(**{**plain, "tokenizer": tokenizer})


def _seal(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _damaged(folder: Path) -> MatchloomError:
    return MatchloomError(
        f"{folder / FILE} is damaged; 'matchloom doctor {folder} --repair' mends it where it can, or index the pairs "
        "into a new folder"
    )


def _refuse_links(folder: Path, *names: str) -> None:
    """A link in an archive that came from elsewhere could lead a writer to any file of its user."""
    for name in names:
        if (folder / name).is_symlink():
            raise MatchloomError(f"{folder / name} is a symbolic link; an archive has none: put the file itself there")


def table_folder(folder: Path, table: str) -> Path:
    """Where a table is; a link in its place is refused."""
    _refuse_links(folder, f"{table}.lance", f"{table}.seals")
    return folder / f"{table}.lance"


def stamp(folder: Path) -> tuple[int, int, int]:
    """What changes whenever the settings are replaced."""
    try:
        found = (folder / FILE).stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """One writer at a time, also among processes; the lock ends with its process. Leftovers of dead ones go."""
    with locked(folder):
        _sweep(folder)
        yield


@contextmanager
def locked(folder: Path, *, reading: bool = False) -> Iterator[None]:
    """While nobody writes. With `reading`, what may not be written can still be looked at."""
    if not is_folder(folder):
        raise MatchloomError(f"{folder} cannot be written: there is no such folder", code="unwritable")
    if reading and not os.access(folder, os.W_OK):
        yield
        return
    with artifact.writing(folder, wait=math.inf):
        yield


def _sweep(folder: Path) -> None:
    """Remove tables that are not in use: a re-encoding that was cut off, or one that this one replaced."""
    used = read_manifest(folder).table if (folder / FILE).exists() else None
    for path in folder.glob("pairs-*.lance"):
        if path.name != f"{used}.lance" and (used is not None or not _holds_rows(path)):
            shutil.rmtree(path, ignore_errors=True)  # of a link it removes nothing
            path.with_suffix(".seals").unlink(missing_ok=True)
    for path in folder.glob(f".{FILE}.*.tmp"):  # only who holds the lock writes them
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
        if path.name == FILE:
            raise MatchloomError(f"{folder} is an archive already; open it, or choose another folder")
        if path.match("pairs-*.lance"):
            if _holds_rows(path):
                raise MatchloomError(
                    f"{folder} holds the pairs of an archive ({path.name}) but no {FILE}; put that file back, or "
                    "choose another folder"
                )
        elif path.name != LOCK and not path.match(f".{FILE}.*.tmp") and not path.match("pairs-*.seals"):
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
