"""API keys: read from a file or the environment, compared in constant time, never shown.

A line of the file is `KEY`, `NAME KEY` or `NAME KEY ask`. The name stands in the audit file; a key that may only ask
can be put into a page that everybody reads.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from matchloom.types import MatchloomError

VARIABLE = "MATCHLOOM_API_KEY"
_SHORTEST, _LONGEST_NAME = 16, 64
_ASK = "ask"  # a role: searches, explanations and thumbs, and nothing that is for owners


class Holder(NamedTuple):
    """Who holds a key. Who may only ask changes nothing, and sees nothing that is the owner's."""

    name: str
    owner: bool = True


LOCAL = Holder("local")  # who reaches a service without keys


class Keys:
    """Some keys, of which only digests are held: nothing that prints this object can print a key."""

    def __init__(self, keys: Iterable[str] = (), holders: Iterable[Holder] = ()) -> None:
        self._digests = [_digest(key.encode()) for key in keys]
        named = list(holders)
        self._holders = named or [Holder(f"key {n + 1}") for n in range(len(self._digests))]

    def __repr__(self) -> str:
        return f"Keys({len(self._digests)})"

    def __bool__(self) -> bool:
        return bool(self._digests)

    def allow(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether these headers carry a key."""
        return self.holder(headers) is not None

    def holder(self, headers: Mapping[bytes, bytes]) -> Holder | None:
        """Whose key these headers carry: `Authorization: Bearer KEY` or `X-API-Key: KEY`; None where it is nobody's.

        Without keys everybody may. Every key is compared to its end, whichever fits.
        """
        if not self._digests:
            return LOCAL
        given = headers.get(b"x-api-key", b"")
        scheme, _, rest = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            given = rest.strip()
        found = _digest(given)
        same = [hmac.compare_digest(found, one) for one in self._digests]
        return self._holders[same.index(True)] if any(same) else None


def read_keys(path: Path | None, environment: Mapping[str, str] = os.environ) -> Keys:
    """The keys of a file, one a line, and of the environment; they are no arguments, which every user could see."""
    found: list[tuple[str, Holder]] = []
    if path is not None:
        try:
            lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise MatchloomError(f"the key file {path} cannot be read: {why}", code="unreadable") from None
        if not lines:
            raise MatchloomError(f"the key file {path} is empty; expected a key a line", code="no_data")
        found = [_read(path, n + 1, line) for n, line in enumerate(lines)]
    if environment.get(VARIABLE):
        found.append((environment[VARIABLE], Holder("environment")))
    for key, _ in found:
        if len(key) < _SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
            raise MatchloomError(
                f"a key must have {_SHORTEST} printable ASCII characters or more and no spaces, and one has not; make "
                "one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
                code="bad_value",
            )
    return Keys([key for key, _ in found], [holder for _, holder in found])


def _read(path: Path, number: int, line: list[str]) -> tuple[str, Holder]:
    """The key of a line and its holder; no message repeats what the line says."""
    match line:
        case [key]:
            return key, Holder(f"key {number}")
        case [name, key] if name != _ASK and len(name) <= _LONGEST_NAME:
            return key, Holder(name)
        case [name, key, role] if role == _ASK and len(name) <= _LONGEST_NAME:
            return key, Holder(name, owner=False)
    raise MatchloomError(
        f"{path}, line {number}: expected KEY, NAME KEY or NAME KEY ask; keys and names have no spaces",
        code="bad_value",
    )


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
