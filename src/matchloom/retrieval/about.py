"""What an archive says of itself: one small file, replaced whole, that names the table in use and what encoded it."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from matchloom.files import atomic_write
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError

FORMAT = 2  # 1 held words where 2 holds stems
ALPHA = 0.7  # the paper's
_FILE = "archive.json"


@dataclass(frozen=True)
class About:
    """The settings of an archive. `matcher` is the digest of the matcher that made the vectors."""

    table: str
    tokenizer: Tokenizer
    alpha: float = ALPHA
    matcher: str | None = None
    matcher_name: str | None = None
    matcher_folder: str | None = None
    vector_size: int | None = None
    trained_on: int = 0  # rows that the vector index was trained on

    def write(self, folder: Path) -> None:
        """Take effect for every reader at once."""
        content = {"format": FORMAT, **asdict(self), "tokenizer": self.tokenizer._asdict()}
        with atomic_write(folder / _FILE) as file:
            file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_about(folder: Path) -> About:
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
        return About(**{**content, "tokenizer": Tokenizer(**content["tokenizer"])})
    except (FileNotFoundError, NotADirectoryError):
        raise MatchloomError(
            f"{folder} is no archive: it has no {_FILE}; 'matchloom index {folder} PAIRS' makes one"
        ) from None
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror}") from None
    except MatchloomError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        raise MatchloomError(f"{path} is damaged; index the pairs into a new folder") from None


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
        with (folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _sweep(folder)
            yield
    except PermissionError:
        raise MatchloomError(f"{folder} cannot be written; check its permissions") from None


def _sweep(folder: Path) -> None:
    """Remove tables that are not in use: a re-encoding that was cut off, or one that this one replaced."""
    used = read_about(folder).table if (folder / _FILE).exists() else None
    for path in folder.glob("pairs-*.lance"):
        if path.name != f"{used}.lance":
            shutil.rmtree(path, ignore_errors=True)


def prepare(folder: Path) -> None:
    """Make the folder of a new archive; one that holds anything else is refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be made an archive: {error.strerror}") from None
    if _FILE in found:
        raise MatchloomError(f"{folder} is an archive already; open it, or choose another folder")
    others = [name for name in found if name != "lock" and not (name.startswith("pairs-") and name.endswith(".lance"))]
    if others:  # what is left of a creation that was cut off may be there
        raise MatchloomError(f"{folder} holds other files, such as {sorted(others)[0]}; choose an empty folder")
