"""The folder of an archive: its settings, its matcher and its table, while others write; and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from matchloom.matcher import Matcher
from matchloom.progress import bar
from matchloom.retrieval import encoder
from matchloom.retrieval.manifest import ArchiveManifest, read_manifest, stamp, writing
from matchloom.retrieval.store import Newest, Store
from matchloom.types import MatchloomError

BATCH = 10_000  # pairs in memory, and in one commit


class Archive:
    """A folder that one may write and many may read at a time."""

    def __init__(self, folder: Path, manifest: ArchiveManifest, matcher: Matcher | None, database: Any) -> None:
        """Not for callers: use `create` or `open`."""
        self.folder = folder
        # With the digest for which it was loaded, in one place: several threads may search.
        self._loaded = None if matcher is None or manifest.matcher is None else (manifest.matcher, matcher)
        self._moved: tuple[str, str] | None = None  # that digest, and where the matcher is now
        self._manifest = manifest
        self._stamp = (0, 0, 0)  # so that the first look reads the settings again: they may be older than the file
        self._database = database
        self._newest = Newest(database, folder)

    def _current(self) -> tuple[ArchiveManifest, Store]:
        """The settings as they are now, and the newest version of the table that they name."""
        while True:
            self._refresh()
            manifest = self._manifest
            try:
                return manifest, self._newest.store(manifest.table)
            except MatchloomError:
                if self._in_use(manifest):
                    raise

    def _in_use(self, manifest: ArchiveManifest) -> bool:
        """Whether these settings still name the archive's table."""
        return read_manifest(self.folder).table == manifest.table

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        """The table, while nobody else writes."""
        with writing(self.folder):
            self._refresh()
            yield Store.open(self._database, self.folder, self._manifest.table)

    def _keep(self, **changes: Any) -> None:
        """Change some settings, as a writer. A matcher that was moved is known by its new place from now on."""
        if self._moved is not None and self._moved[0] == self._manifest.matcher:  # not another's, encoded meanwhile
            changes["matcher_folder"] = self._moved[1]
        replace(self._manifest, **changes).write(self.folder)
        self._refresh()

    def _copy(
        self,
        old: ArchiveManifest,
        manifest: ArchiveManifest,
        columns: Sequence[str] | None,
        rows: Callable[[pa.RecordBatch], pa.Table],
        progress: bool,
    ) -> None:
        """Put what `rows` makes of each batch into a new table, and switch to it, as a writer."""
        source = Store.open(self._database, self.folder, old.table)
        new = Store.create(self._database, self.folder, manifest.table, manifest.vector_size)
        with bar() as shown:
            task = shown.add_task("Writing", total=len(source), note="", visible=progress)
            for batch in source.batches(BATCH, columns):
                new.append(rows(batch))
                shown.advance(task, len(batch))
            shown.update(task, note="bringing indices up to date")
            replace(manifest, trained_on=new.maintain(0)).write(self.folder)
        self._refresh()

    def _matcher_of(self, manifest: ArchiveManifest) -> Matcher | None:
        if manifest.matcher is None:
            return None
        loaded = self._loaded
        if loaded is None or loaded[0] != manifest.matcher:
            matcher = encoder.fitting(self.folder, manifest, None)
            assert matcher is not None  # there is one
            self._loaded = loaded = (manifest.matcher, matcher)
        return loaded[1]

    def _refresh(self) -> bool:
        """Read the settings again if another process replaced them; True if so."""
        now = stamp(self.folder)
        if now == self._stamp:
            return False
        manifest = read_manifest(self.folder)
        self._manifest, self._stamp = manifest, now
        return True
