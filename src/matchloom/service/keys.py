"""API keys: read from a file or the environment, compared in constant time, never shown."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from matchloom.types import MatchloomError

VARIABLE = "MATCHLOOM_API_KEY"
_SHORTEST = 16


class Keys:
    """Some keys, of which only digests are held: nothing that prints this object can print a key."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key.encode()) for key in keys]

    def __repr__(self) -> str:
        return f"Keys({len(self._digests)})"

    def __bool__(self) -> bool:
        return bool(self._digests)

    def allow(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether these headers carry a key: `Authorization: Bearer KEY` or `X-API-Key: KEY`.

        Without keys everybody may. Every key is compared to its end, whichever fits.
        """
        if not self._digests:
            return True
        given = headers.get(b"x-api-key", b"")
        scheme, _, rest = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            given = rest.strip()
        found = _digest(given)
        return sum([hmac.compare_digest(found, one) for one in self._digests]) > 0


def read_keys(path: Path | None, environment: Mapping[str, str] = os.environ) -> Keys:
    """The keys of a file, one a line, and of the environment; they are no arguments, which every user could see."""
    found = []
    if path is not None:
        try:
            found = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise MatchloomError(f"the key file {path} cannot be read: {why}", code="unreadable") from None
        if not found:
            raise MatchloomError(f"the key file {path} is empty; expected a key a line", code="no_data")
    if environment.get(VARIABLE):
        found.append(environment[VARIABLE])
    for key in found:
        if len(key) < _SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
            raise MatchloomError(
                f"a key must have {_SHORTEST} printable ASCII characters or more and no spaces, and one has not; make "
                "one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
                code="bad_value",
            )
    return Keys(found)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
