"""Folders of Parquet shards, as batch engines write them: read one after the other, never all at once.

Every footer is looked at before the first row is read, so that a shard that is cut off or has other columns is refused
at once. What changes or vanishes later is noticed when it is read.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from matchloom.basics.extras import need
from matchloom.basics.files import open_bytes
from matchloom.data.formats.archives import names_in
from matchloom.data.formats.columns import Columns, find_columns
from matchloom.types import MatchloomError

_log = logging.getLogger("matchloom")
IN_MEMORY = 5_000_000  # pairs of shards that commands read which need all of them at once
_ENDINGS = (".parquet", ".pq")
T = TypeVar("T")


class Shard(NamedTuple):
    """A Parquet file: where it is, how many rows it has, and what the system says of it."""

    path: Path
    rows: int
    stamp: tuple[int, int, int]


@dataclass(frozen=True)
class Shards:
    """Parquet files of the same columns, in the order of their names; those without rows are left out."""

    source: str
    shards: tuple[Shard, ...]

    def __len__(self) -> int:
        """How many rows there are."""
        return sum(shard.rows for shard in self.shards)

    def chain(self, read: Callable[[Path], Iterator[T]]) -> Iterator[T]:
        """What `read` yields of each shard; one that is no longer what it was is refused."""
        for shard in self.shards:
            refuse_changed(shard.path, shard.stamp)
            try:
                yield from read(shard.path)
            except MatchloomError:
                refuse_changed(shard.path, shard.stamp)  # says more than what reading stumbled over
                raise
            refuse_changed(shard.path, shard.stamp)

    def digest(self) -> str:
        """Of the shards' bytes, whatever their names."""
        found = hashlib.sha256()
        for shard in self.shards:
            with open_bytes(shard.path) as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
            refuse_changed(shard.path, shard.stamp)
        return found.hexdigest()


def find_shards(source: object, columns: Columns | None = None) -> Shards | None:
    """A folder in which all files are Parquet, or a list of paths of Parquet files, as shards; None for all else."""
    if isinstance(source, str | Path) and Path(source).is_dir():
        listed = list_parquet(Path(source))
        if listed is None:
            return None
        name, found = str(source), listed
    elif isinstance(source, list | tuple) and source and all(isinstance(one, str | Path) for one in source):
        found = [Path(one) for one in source]
        if not all(is_parquet(path) for path in found):
            return None
        name = f"{found[0].parent} ({len(found)} shards)"
    else:
        return None
    shards = [_shard(path, columns) for path in found]
    empty = [shard.path.name for shard in shards if not shard.rows]
    if empty:
        _log.warning("%s: %d of %d shards have no rows, such as %s", name, len(empty), len(shards), empty[0])
    if len(empty) == len(shards):
        raise MatchloomError(f"{name} holds no pairs: all {len(shards)} shards are empty", code="no_data")
    return Shards(name, tuple(shard for shard in shards if shard.rows))


def list_parquet(folder: Path) -> list[Path] | None:
    """The files of a folder and of those in it, by name, if all are Parquet and there are any.

    Names that begin with a dot or an underscore (such as _SUCCESS) are those of the engine that wrote the folder.
    """
    found = [folder / name for name in names_in(folder) if not Path(name).name.startswith("_")]
    return found if found and all(is_parquet(path) for path in found) else None


def refuse_many(
    source: object,
    columns: Columns | None = None,
    *,
    most: int | None = None,
    instead: str = "give some of the shards",
) -> None:
    """Refuse a folder of shards with more pairs than are read at once, by what their footers say."""
    shards, most = find_shards(source, columns), IN_MEMORY if most is None else most
    if shards is not None and len(shards) > most:
        raise MatchloomError(
            f"{shards.source} holds {len(shards):,} pairs, and this reads all of them at once, {most:,} at most; "
            f"{instead}",
            code="too_large",
        )


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet by its name."""
    return path.name.lower().endswith(_ENDINGS)


def _shard(path: Path, columns: Columns | None) -> Shard:
    parquet, pyarrow = need("pyarrow.parquet", str(path)), need("pyarrow")
    with open_bytes(path) as stream:
        try:
            file: Any = parquet.ParquetFile(stream, pre_buffer=False)
            names: Sequence[str] = file.schema_arrow.names
            rows = int(file.metadata.num_rows)
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(path, error) from None
    find_columns(str(path), names, columns, header=False)
    return Shard(path, rows, stamp_of(path))


def damaged(path: Path, error: Exception) -> MatchloomError:
    """The line for a file that Arrow cannot read."""
    reason = str(error).partition("\n")[0]
    if isinstance(error, MemoryError):
        return MatchloomError(f"{path}: {too_little_memory(error)}", code="failed")
    return MatchloomError(
        f"{path} cannot be read as Parquet: {reason}; is it cut off, or another format?", code="damaged"
    )


def too_little_memory(error: BaseException) -> str:
    """Why, and what to do."""
    reason = str(error).partition("\n")[0] or type(error).__name__
    return f"too little memory for it ({reason}); write smaller shards, or shorter texts"


def stamp_of(path: Path) -> tuple[int, int, int]:
    """What differs when a file was written again."""
    try:
        found = path.stat()
    except OSError as error:
        raise MatchloomError(
            f"{path} vanished while the shards were read ({error.strerror}); put it back and start again",
            code="missing",
        ) from None
    return found.st_size, found.st_mtime_ns, found.st_ino


def refuse_changed(path: Path, stamp: tuple[int, int, int]) -> None:
    """Say that a shard is no longer what it was when it was found."""
    if stamp_of(path) != stamp:
        raise MatchloomError(
            f"{path} changed while the shards were read; start again when nothing writes there", code="altered"
        )
