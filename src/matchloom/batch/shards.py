"""One shard: a Parquet file in, a Parquet file of the same name out, written whole, with what it was made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from matchloom.basics.extras import need
from matchloom.basics.files import atomic_write, make_folder
from matchloom.batch.works import ROWS, Function
from matchloom.data.formats.shards import (
    damaged,
    is_parquet,
    list_parquet,
    refuse_changed,
    stamp_of,
    too_little_memory,
)
from matchloom.types import MatchloomError

_MADE_OF = b"matchloom.batch"  # in the metadata of a shard that is written


class Job(NamedTuple):
    """A file to be read, the file to be written, and what tells whether that was done."""

    source: str
    target: str
    stamp: tuple[int, int, int]  # of the source as it was found
    digest: str  # of the work


class ShardDone(NamedTuple):
    """What became of a shard."""

    source: str
    rows: int
    problem: str | None = None


def find_jobs(source: Path, out: Path, digest: str) -> list[Job]:
    """The Parquet files of a folder and of those in it, or the one file, in the order of their names."""
    paths = list_parquet(source) if source.is_dir() else [source] if is_parquet(source) else None
    if paths is None:
        raise MatchloomError(
            f"{source} is no Parquet file, and no folder of them alone; move other files elsewhere", code="wrong_format"
        )
    if out.exists() and (source == out or (source.is_dir() and source.samefile(out))):
        raise MatchloomError(f"{out} is what is read; choose another folder to write to", code="conflict")
    root = source if source.is_dir() else source.parent
    return [Job(str(path), str(out / path.relative_to(root)), stamp_of(path), digest) for path in paths]


def is_done(shard: Job) -> bool:
    """Whether the shard was written before, by this work, from this source; another's is refused."""
    target = Path(shard.target)
    if not target.exists():
        return False
    with opened(target) as file:
        made_of = (file.schema_arrow.metadata or {}).get(_MADE_OF, b"").decode("utf-8", "replace")
    if made_of != _made_of(shard):
        raise MatchloomError(
            f"{target} holds rows of other work, or of another {Path(shard.source).name}; remove it, or choose another "
            "folder",
            code="exists",
        )
    return True


def do_shard(function: Function, shard: Job, whole: bool) -> ShardDone:
    """Read a shard, do the work, write what it makes: all of it or nothing. What is wrong is told, not raised."""
    try:
        rows = _do(function, shard, whole)
    except MatchloomError as error:
        told = str(error).replace("the table, ", "").replace("the table: ", "")
        named = told if shard.source in told or shard.target in told else f"{shard.source}: {told}"
        return ShardDone(shard.source, 0, named)
    except MemoryError as error:
        return ShardDone(shard.source, 0, f"{shard.source}: {too_little_memory(error)}")
    except OSError as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ShardDone(shard.source, 0, f"{shard.source}: {why}")
    return ShardDone(shard.source, rows)


def _do(function: Function, shard: Job, whole: bool) -> int:
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    source, count = Path(shard.source), 0
    refuse_changed(source, shard.stamp)
    make_folder(Path(shard.target).parent)
    with opened(source) as file, atomic_write(shard.target, "wb") as stream:
        writer = None
        try:
            for table in _tables(file, source, whole):
                made = function(table)
                if writer is None:
                    metadata = {**(made.schema.metadata or {}), _MADE_OF: _made_of(shard).encode()}
                    writer = parquet.ParquetWriter(stream, made.schema.with_metadata(metadata))
                writer.write_table(made.replace_schema_metadata(writer.schema.metadata))
                count += made.num_rows
        except (arrow.ArrowException, UnicodeDecodeError) as error:  # rows that are no texts show in the work
            raise damaged(source, error) from None
        finally:
            if writer is not None:
                writer.close()
        refuse_changed(source, shard.stamp)
    return count


def _tables(file: Any, path: Path, whole: bool, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows of an open file, all at once or some thousand at a time; what cannot be read is told."""
    arrow = need("pyarrow")
    try:
        if whole or not file.metadata.num_rows:
            yield file.read()  # also of no rows: the shard that is written has its columns
            return
        for batch in file.iter_batches(batch_size=ROWS, columns=columns):
            yield arrow.Table.from_batches([batch])
    except (arrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise damaged(path, error) from None


def read_tables(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows of a Parquet file, some thousand at a time, with these columns or all; a file without rows has none."""
    with opened(path) as file:
        if file.metadata.num_rows:
            yield from _tables(file, path, False, columns)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A Parquet file that is closed at the end; one that is cut off, or none, is refused."""
    arrow, parquet = need("pyarrow", str(path)), need("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(path)
    except FileNotFoundError:
        raise MatchloomError(f"{path} vanished while shards were read", code="missing") from None
    except (arrow.ArrowException, OSError) as error:
        raise damaged(path, error) from None
    with file:
        yield file


def _made_of(shard: Job) -> str:
    return f"{shard.digest} {shard.stamp[0]} {shard.stamp[1]}"
