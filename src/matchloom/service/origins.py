"""Pages of other sites: none may ask here, but those that `--allow-origin` names, and these may only ask.

What is for owners (changes, the desk, figures) is refused to every page of another site, whatever it was allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from matchloom.service.problems import Refused
from matchloom.types import MatchloomError

Headers = list[tuple[bytes, bytes]]
_OWNERS = ("/v1/collections/", "/v1/archives/", "/v1/reload", "/v1/run", "/metrics")
_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type, x-api-key, x-request-id, idempotency-key"),
    (b"access-control-max-age", b"600"),
]
_SHARED = (b"cross-origin-resource-policy", b"cross-origin")
_OWN = (b"cross-origin-resource-policy", b"same-origin")
WIDGET = "/widget.js"


def is_for_owners(path: str) -> bool:
    """Whether a path changes what is served or tells what only its owner should know."""
    return path.startswith(_OWNERS)


class Origins:
    """The origins whose pages may ask, such as https://shop.example."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(_checked(one) for one in allowed)

    def check(self, origin: bytes | None, host: str, path: str) -> Headers:
        """What to answer a page of this origin with, or a refusal. Requests of programs and of our own have none."""
        shared = _SHARED if path == WIDGET else _OWN
        if origin is None:
            return [shared]
        told = origin.decode("latin-1")
        if _netloc(told) == host:
            return [shared]
        if told not in self._allowed or is_for_owners(path):
            raise Refused(403, "cross_origin", "pages of other sites may not send requests here")
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin"), _SHARED]

    @staticmethod
    def preflight(method: str, headers: Mapping[bytes, bytes]) -> Headers | None:
        """What a browser is told that asks whether it may ask; None for any other request."""
        asks = method == "OPTIONS" and b"origin" in headers and b"access-control-request-method" in headers
        return _PREFLIGHT if asks else None


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _checked(origin: str) -> str:
    """An origin as browsers write it: scheme, host and port alone, in lower case."""
    try:
        parts = urlsplit(origin)
        whole = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        if whole and parts.path in ("", "/") and parts.username is None and origin.isascii():
            port = "" if parts.port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{parts.port}"
            host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
            return f"{parts.scheme}://{host}{port}"
    except ValueError:
        pass
    raise MatchloomError(
        f"{origin!r} is no origin; expected a scheme and a host, such as https://shop.example (no path, no '*')",
        code="bad_value",
    )
