"""Candidates that were encoded for an earlier request: a list that comes again is ranked without reading it again."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # torch comes with it, which a service without a network need not wait for
    from matchloom.matcher import Candidates, Matcher

_BYTES = 256_000_000


class EncodedCandidates:
    """The lists that were used last, as many as fit."""

    def __init__(self, matcher: Matcher, limit: int = _BYTES) -> None:
        self._matcher, self._limit = matcher, limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, tuple[Candidates, int]] = OrderedDict()
        self._size = 0

    def of(self, texts: Sequence[str]) -> Candidates:
        """These texts encoded."""
        key = _digest(texts)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        made = self._matcher.encode(texts)
        size = sum(block.encoded.numel() * block.encoded.element_size() for block in made.blocks)
        with self._lock:
            if key not in self._kept and size <= self._limit:
                self._kept[key] = (made, size)
                self._size += size
            while self._size > self._limit:
                self._size -= self._kept.popitem(last=False)[1][1]
        return made


def _digest(texts: Sequence[str]) -> bytes:
    """Lengths stand before the texts, so that no two lists make the same bytes."""
    found = hashlib.blake2b(repr([len(text) for text in texts]).encode(), digest_size=16)
    found.update("".join(texts).encode(errors="surrogatepass"))
    return found.digest()
