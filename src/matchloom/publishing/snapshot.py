"""What a snapshot is: the files of a saved folder by their checksums, under a number that only grows.

    newest.json                  which snapshot is the newest; the only file that is ever replaced
    snapshots/7-3f9c01ab.json    the files of version 7: name, bytes, SHA-256
    files/<SHA-256>              their contents; versions share those that are equal

Checksums tell accidents. Who may write to the store may write checksums, too: with a key, which publisher and replicas
know and the store does not, the pointer bears an HMAC of the snapshot, and replicas refuse what has none.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from matchloom.artifact.checks import WRONG, read_regular
from matchloom.artifact.manifest import checksum_of, dumps, is_name, sha256
from matchloom.basics.stores import Store
from matchloom.types import MatchloomError

FORMAT = 1
NEWEST, SNAPSHOTS, FILES = "newest.json", "snapshots", "files"
KEY = "MATCHLOOM_SNAPSHOT_KEY"
_MOST = 16 * 2**20  # bytes of a snapshot's list of files
_LEAST_KEY = 16  # bytes
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SNAPSHOT = re.compile(rf"{SNAPSHOTS}/([0-9]{{1,12}})-[0-9a-f]{{8}}\.json")
_DEPTH = 6  # folders within folders
_FILES = 20_000  # of a snapshot; each is made and synced
_REMEDY = "publish again"
_T = TypeVar("_T")


class File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One file of a snapshot."""

    checksum: str
    bytes: int


class Snapshot(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The files of one version."""

    format: int
    version: int
    kind: str
    published: float  # seconds since 1970
    matchloom: str  # the version that wrote it
    files: dict[str, File]
    checksum: str = ""


class Newest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which snapshot is the newest."""

    format: int
    version: int
    snapshot: str
    sha256: str  # of the snapshot's own file
    signature: str = ""
    checksum: str = ""


def snapshot_name(version: int, content: bytes) -> str:
    """Where a snapshot is kept; two publishers never write the same name with other contents."""
    return f"{SNAPSHOTS}/{version}-{sha256(content)[:8]}.json"


def pack(found: Snapshot | Newest) -> bytes:
    """As it is stored, with its checksum."""
    plain = msgspec.to_builtins(found)
    del plain["checksum"]
    return dumps(plain)


def read_newest(store: Store) -> Newest | None:
    """The pointer; None where nothing was published yet."""
    content = store.read(NEWEST, _MOST)
    if content is None:
        return None
    found = _parsed(store.uri, NEWEST, content, Newest)
    named = _SNAPSHOT.fullmatch(found.snapshot)
    if named is None or int(named[1]) != found.version or not _SHA256.fullmatch(found.sha256):
        raise MatchloomError(f"{store.uri}/{NEWEST} names no snapshot; {_REMEDY}", code="damaged")
    return found


def read_snapshot(store: Store, newest: Newest, key: bytes | None = None) -> Snapshot:
    """The snapshot that a pointer names; what is damaged, forged or of another format is refused in one line."""
    if key is not None and not hmac.compare_digest(newest.signature, signature_of(newest.sha256, key)):
        why = "has no signature" if not newest.signature else "has the signature of another key, or was forged"
        raise MatchloomError(f"{store.uri}/{newest.snapshot} {why}; publish again with the key", code="altered")
    content = store.read(newest.snapshot, _MOST)
    if content is None:
        raise MatchloomError(f"{store.uri}/{newest.snapshot} is not there; {_REMEDY}", code="missing")
    if sha256(content) != newest.sha256:
        raise MatchloomError(
            f"{store.uri}/{newest.snapshot} was altered since it was published; {_REMEDY}", code="altered"
        )
    found = unpack_snapshot(store.uri, newest.snapshot, content)
    if found.version != newest.version:
        raise MatchloomError(
            f"{store.uri}/{NEWEST} names version {newest.version}, {found.version} is there; {_REMEDY}", code="damaged"
        )
    return found


def unpack_snapshot(uri: str, name: str, content: bytes) -> Snapshot:
    """A list of files; names that lead elsewhere are refused."""
    found = _parsed(uri, name, content, Snapshot)
    if len(found.files) > _FILES:
        raise MatchloomError(
            f"{uri}/{name} names {len(found.files):,} files; a folder has {_FILES:,} at most; {_REMEDY}", code="damaged"
        )
    for own, file in found.files.items():
        steps = own.split("/")
        if len(steps) > _DEPTH or not all(map(is_name, steps)):
            raise MatchloomError(
                f"{uri}/{name} names {own[:80]!r}, which is no file of a folder; {_REMEDY}", code="damaged"
            )
        if not _SHA256.fullmatch(file.checksum) or file.bytes < 0:
            raise MatchloomError(f"{uri}/{name} has no checksum of {own}; {_REMEDY}", code="damaged")
    return found


def checksums_of(store: Store, name: str) -> set[str]:
    """The files that a snapshot of the store names; none where it is gone."""
    content = store.read(name, _MOST)
    return (
        set() if content is None else {one.checksum for one in unpack_snapshot(store.uri, name, content).files.values()}
    )


def signature_of(checksum: str, key: bytes) -> str:
    """What only those can make who know the key."""
    return hmac.new(key, checksum.encode(), hashlib.sha256).hexdigest()


def read_key(path: Path | None, environment: Mapping[str, str] = os.environ) -> bytes | None:
    """The key of a file, or of MATCHLOOM_SNAPSHOT_KEY; None where there is neither."""
    if path is None:
        found, told = environment.get(KEY, "").strip().encode() or None, KEY
    else:
        found, told = read_regular(path, 10_000, "name a file with a key").strip(), str(path)
    if found is not None and len(found) < _LEAST_KEY:
        raise MatchloomError(
            f"{told} holds {len(found)} characters; a key needs at least {_LEAST_KEY}", code="bad_value"
        )
    return found


def _parsed(uri: str, name: str, content: bytes, kind: type[_T]) -> _T:
    damaged = MatchloomError(f"{uri}/{name} is damaged or was altered; {_REMEDY}", code="damaged")
    try:
        plain: Any = json.loads(content)
        number = plain["format"]
        if type(number) is not int:
            raise TypeError
        if number == FORMAT:
            found = msgspec.convert(plain, kind)
            whole = checksum_of(plain) == plain["checksum"]
    except WRONG:
        raise damaged from None
    if number != FORMAT:
        told = "upgrade matchloom" if number > FORMAT else _REMEDY
        raise MatchloomError(
            f"{uri}/{name} has format {number}, this matchloom reads {FORMAT}; {told}", code="wrong_format"
        )
    if not whole:
        raise damaged
    return found
