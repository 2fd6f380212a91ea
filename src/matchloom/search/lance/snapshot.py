"""One version of an archive, whatever others write meanwhile, and what was counted in it."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np

from matchloom.matcher import Matcher, Positions
from matchloom.search.lance.manifest import ArchiveManifest
from matchloom.search.lance.positions import pooled
from matchloom.search.lance.table import Store, Vectors

T = TypeVar("T")

_SMALL = 1000  # pairs that are counted again after every write


class Asked(NamedTuple):
    """A new question: t, and its vector v_t and positions where the archive has any."""

    text: str
    vector: Vectors | None = None
    positions: Positions | None = None


class Snapshot(NamedTuple):
    """One version of the archive with what encodes it, whatever others write meanwhile."""

    manifest: ArchiveManifest
    store: Store
    matcher: Matcher | None

    def asked(self, question: str) -> Asked:
        """A question as this archive compares it."""
        if self.matcher is None or self.manifest.vector_size is None:
            return Asked(question)
        if self.manifest.position_size is not None:
            positions = self.matcher.positions([question])
            return Asked(question, pooled(positions)[0], positions[0])
        return Asked(question, np.asarray(self.matcher.vectors([question])[0], np.float32))


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
