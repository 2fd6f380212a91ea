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
from matchloom.retrieval.about import About, read_about, stamp, writing
from matchloom.retrieval.store import Newest, Store
from matchloom.types import MatchloomError

BATCH = 10_000  # pairs in memory, and in one commit


class Archive:
    """A folder that one may write and many may read at a time."""

    def __init__(self, folder: Path, about: About, matcher: Matcher | None, database: Any) -> None:
        """Not for callers: use `create` or `open`."""
        self.folder = folder
        # With the digest for which it was loaded, in one place: several threads may search.
        self._loaded = None if matcher is None or about.matcher is None else (about.matcher, matcher)
        self._moved: tuple[str, str] | None = None  # that digest, and where the matcher is now
        self._about = about
        self._stamp = (0, 0, 0)  # so that the first look reads the settings again: they may be older than the file
        self._database = database
        self._newest = Newest(database, folder)

    def _current(self) -> tuple[About, Store]:
        """The settings as they are now, and the newest version of the table that they name."""
        while True:
            self._refresh()
            about = self._about
            try:
                return about, self._newest.store(about.table)
            except MatchloomError:
                if self._in_use(about):
                    raise

    def _in_use(self, about: About) -> bool:
        """Whether these settings still name the archive's table."""
        return read_about(self.folder).table == about.table

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        """The table, while nobody else writes."""
        with writing(self.folder):
            self._refresh()
            yield Store.open(self._database, self.folder, self._about.table)

    def _keep(self, **changes: Any) -> None:
        """Change some settings, as a writer. A matcher that was moved is known by its new place from now on."""
        if self._moved is not None and self._moved[0] == self._about.matcher:  # not another's, encoded meanwhile
            changes["matcher_folder"] = self._moved[1]
        replace(self._about, **changes).write(self.folder)
        self._refresh()

    def _copy(
        self,
        old: About,
        about: About,
        columns: Sequence[str] | None,
        rows: Callable[[pa.RecordBatch], pa.Table],
        progress: bool,
    ) -> None:
        """Put what `rows` makes of each batch into a new table, and switch to it, as a writer."""
        source = Store.open(self._database, self.folder, old.table)
        new = Store.create(self._database, self.folder, about.table, about.vector_size)
        with bar() as shown:
            task = shown.add_task("Writing", total=len(source), note="", visible=progress)
            for batch in source.batches(BATCH, columns):
                new.append(rows(batch))
                shown.advance(task, len(batch))
            shown.update(task, note="bringing indices up to date")
            replace(about, trained_on=new.maintain(0)).write(self.folder)
        self._refresh()

    def _matcher_of(self, about: About) -> Matcher | None:
        if about.matcher is None:
            return None
        loaded = self._loaded
        if loaded is None or loaded[0] != about.matcher:
            matcher = encoder.fitting(self.folder, about, None)
            assert matcher is not None  # there is one
            self._loaded = loaded = (about.matcher, matcher)
        return loaded[1]

    def _refresh(self) -> bool:
        """Read the settings again if another process replaced them; True if so."""
        now = stamp(self.folder)
        if now == self._stamp:
            return False
        about = read_about(self.folder)
        self._about, self._stamp = about, now
        return True
