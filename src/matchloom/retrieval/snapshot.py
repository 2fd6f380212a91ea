"""One version of an archive, whatever others write meanwhile, and what was counted in it."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np

from matchloom.matcher import Matcher
from matchloom.retrieval.manifest import ArchiveManifest
from matchloom.retrieval.store import Store, Vectors

T = TypeVar("T")

_SMALL = 1000  # pairs that are counted again after every write


class Snapshot(NamedTuple):
    """One version of the archive with what encodes it, whatever others write meanwhile."""

    manifest: ArchiveManifest
    store: Store
    matcher: Matcher | None

    def vector(self, question: str) -> Vectors | None:
        """v_t, where the archive has vectors."""
        if self.matcher is None or self.manifest.vector_size is None:
            return None
        return np.asarray(self.matcher.vectors([question])[0], np.float32)


class Gathered(Generic[T]):
    """What was gathered from a sample of the archive, and when it should be gathered again."""

    def __init__(self, value: T, snapshot: Snapshot) -> None:
        self.value = value
        self._manifest, self._rows = snapshot.manifest, len(snapshot.store)

    def stale(self, manifest: ArchiveManifest) -> bool:
        """Whether this is another table, or a tenth of its rows was written since; of a small one, any."""
        if manifest is self._manifest:
            return False
        written = abs(manifest.written - self._manifest.written)
        return (
            manifest.table != self._manifest.table
            or written * 10 > self._rows
            or (written > 0 and self._rows <= _SMALL)
        )
