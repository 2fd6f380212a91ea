"""`publish`: the files of a saved folder into a store, then one switch of the pointer that replicas follow."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version as package_version
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from matchloom import artifact
from matchloom.artifact.manifest import manifest_name, next_of, parse, sha256
from matchloom.basics.progress import track
from matchloom.basics.stores import BLOCK, Store, open_store
from matchloom.basics.validation import at_least_one, one_path
from matchloom.publishing import snapshot as s
from matchloom.search.folder import KIND, open_collection
from matchloom.types import MatchloomError

_PATIENCE = 60.0  # seconds for which a writer is waited for
_YOUNG = 3600.0  # seconds; files of a publisher that has not switched yet are younger


class Published(NamedTuple):
    """What became of it."""

    uri: str
    version: int
    files: int
    bytes: int
    sent: int  # bytes that were not there yet
    new: bool  # whether the folder had changed


@dataclass(eq=False)
class _Part:
    """A file that is published: opened, so that it stays as it is while others write."""

    name: str
    stream: BinaryIO
    size: int
    checksum: str


def publish(
    folder: Path | str,
    uri: str | Path,
    *,
    keep: int = 10,
    again: bool = False,
    key: bytes | None = None,
    progress: bool = False,
) -> Published:
    """Write a folder as it is now, as an immutable snapshot, and make it the newest there.

    Files that the store has already are not sent again. Whatever fails before the switch leaves the newest snapshot as
    it was. Searches and changes of the folder go on.

    Args:
        folder: What `fit`, `train` or `Collection.create` made; a Lance collection needs no publishing.
        uri: Where: a path, file://, s3://, gs:// or abfs://, which has nothing else in it.
        keep: How many of the newest snapshots stay there.
        again: Send every file, also those that are there.
        key: Signs the snapshot; replicas with this key take no other.
        progress: Whether to show a bar.
    """
    at_least_one("keep", keep)
    path, store = one_path("folder", folder), open_store(str(uri))
    kind = artifact.kind_of(path)
    if kind is None:
        raise MatchloomError(f"{path} is no folder that 'matchloom fit', 'train' or 'index' made", code="missing")
    if kind == "archive":
        raise MatchloomError(
            f"{path} is a Lance collection, which many can read where it is; publish a collection of files",
            code="not_supported",
        )
    with ExitStack() as stack:
        with artifact.writing(path, wait=_PATIENCE, held=True):  # for as long as files are opened
            parts = [_opened(stack, one) for one in _files(path, kind)]
        files = {part.name: s.File(part.checksum, part.size) for part in parts}
        before = s.read_newest(store)
        total = sum(part.size for part in parts)
        if before is not None and not again and _same(store, before, files, key):
            return Published(store.uri, before.version, len(parts), total, 0, new=False)
        missing = [part for part in parts if again or store.size(_place(part)) != part.size]
        for part in track(missing, "publishing", show=progress):
            _send(store, part)
    number = _last(store, before) + 1
    made = s.Snapshot(s.FORMAT, number, kind, time.time(), package_version("matchloom"), files)
    _switch(store, before, made, key)
    _sweep(store, keep)
    return Published(store.uri, number, len(parts), total, sum(part.size for part in missing), new=True)


class _Source(NamedTuple):
    """A file that is to be published: where it is, or what is in it; checksum and bytes where they are known."""

    name: str
    content: Path | bytes
    checksum: str | None = None
    size: int | None = None


def _files(folder: Path, kind: str) -> Iterator[_Source]:
    """The files of an artifact and of those inside it. Its writer is locked out."""
    manifest = parse(folder, kind, None, remedy="fit it again")
    yield _Source(manifest_name(kind), folder / manifest_name(kind))
    for name, checksum in manifest.checksums.items():
        if "/" not in name:
            later = next_of(folder, kind, name)  # what a killed writer has not renamed yet
            yield _Source(name, later if later.exists() else folder / name, checksum)
    if kind == KIND:
        journal = open_collection(folder).journal
        journal.read()  # one that was cut or altered is refused here, not by every replica
        yield _Source(journal.path.name, journal.path, size=journal.size)  # without what a killed writer left
        yield _Source(journal.confirmed.name, journal.confirmation)  # of the next change its file says another
    for home in manifest.inside.values():
        inner = artifact.kind_of(folder / home)
        if inner is None:
            raise MatchloomError(f"{folder / home} is no saved folder; fit it again", code="damaged")
        for one in _files(folder / home, inner):
            yield one._replace(name=f"{home}/{one.name}")


def _opened(stack: ExitStack, source: _Source) -> _Part:
    content = source.content
    if isinstance(content, bytes):
        return _Part(source.name, BytesIO(content), len(content), sha256(content))
    try:
        stream = stack.enter_context(content.open("rb"))
    except OSError as error:
        raise MatchloomError(f"{content} cannot be read: {error.strerror or error}", code="unreadable") from None
    size = os.fstat(stream.fileno()).st_size if source.size is None else source.size
    part = _Part(source.name, stream, size, source.checksum or "")
    if source.checksum is None:
        digest = hashlib.sha256()
        for piece in _read(part):
            digest.update(piece)
        part.checksum = digest.hexdigest()
    return part


def _read(part: _Part) -> Iterator[bytes]:
    part.stream.seek(0)
    left = part.size
    while left and (piece := part.stream.read(min(BLOCK, left))):
        left -= len(piece)
        yield piece


def _place(part: _Part) -> str:
    return f"{s.FILES}/{part.checksum}"


def _send(store: Store, part: _Part) -> None:
    """Send a file; one that is not what its manifest says is damaged here, and is not sent."""
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for piece in _read(part):
            digest.update(piece)
            yield piece
        if digest.hexdigest() != part.checksum:
            raise MatchloomError(
                f"{part.stream.name} was altered since it was saved; fit or copy it again", code="altered"
            )

    store.put(_place(part), pieces())
    found = store.size(_place(part))
    if found != part.size:
        raise MatchloomError(
            f"{store.uri}/{_place(part)} has {found or 0:,} of {part.size:,} bytes; publish again", code="unwritable"
        )


def _same(store: Store, newest: s.Newest, files: dict[str, s.File], key: bytes | None) -> bool:
    """Whether the newest snapshot holds these files, and all are there."""
    try:
        found = s.read_snapshot(store, newest, key)
    except MatchloomError:
        return False  # whatever is wrong with it, another is written
    return found.files == files and all(
        store.size(f"{s.FILES}/{one.checksum}") == one.bytes for one in set(files.values())
    )


def _last(store: Store, newest: s.Newest | None) -> int:
    """The highest number that any snapshot has or had."""
    numbers = [int(number) for name in store.names(s.SNAPSHOTS) if (number := name.partition("-")[0]).isdecimal()]
    return max([0 if newest is None else newest.version, *numbers])


def _switch(store: Store, before: s.Newest | None, made: s.Snapshot, key: bytes | None) -> None:
    content = s.pack(made)
    name, checksum = s.snapshot_name(made.version, content), sha256(content)
    store.put(name, iter([content]))
    newest = s.Newest(s.FORMAT, made.version, name, checksum, "" if key is None else s.signature_of(checksum, key))
    other = MatchloomError(
        f"{store.uri} was published to by another process meanwhile; one publisher at a time, then publish again",
        code="busy",
    )
    if _number(s.read_newest(store)) != _number(before):
        raise other
    store.put(s.NEWEST, iter([s.pack(newest)]))
    found = s.read_newest(store)
    if found is None or found.sha256 != checksum:
        raise other


def _number(newest: s.Newest | None) -> int:
    return 0 if newest is None else newest.version


def _sweep(store: Store, keep: int) -> None:
    """Remove older snapshots, and files that none of those names that stay; young files may be another publisher's."""
    try:
        names = store.names(s.SNAPSHOTS)
        order = sorted(names, key=lambda name: int(f"0{name.partition('-')[0]}"), reverse=True)
        if len(order) <= keep:
            return
        named = set().union(*(s.checksums_of(store, f"{s.SNAPSHOTS}/{name}") for name in order[:keep]))
        for name in order[keep:]:
            store.remove(f"{s.SNAPSHOTS}/{name}")
        now = time.time()
        for name, written in store.names(s.FILES).items():
            if name not in named and now - written > _YOUNG:
                store.remove(f"{s.FILES}/{name}")
    except (MatchloomError, ValueError):
        return  # what was published is published; the next one sweeps
