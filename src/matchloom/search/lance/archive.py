"""The folder of an archive: its settings, its matcher and its table, while others write; and how it is written."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from matchloom.basics.progress import bar
from matchloom.matcher import Matcher
from matchloom.search.lance import encoding as encoder
from matchloom.search.lance.home import Home, Where, home_of
from matchloom.search.lance.manifest import ArchiveManifest
from matchloom.search.lance.rows import PairRow, answer_key
from matchloom.search.lance.snapshot import Snapshot
from matchloom.search.lance.table import SAME, TEXTS, Store
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError


class Archive:
    """A folder, or a URI of an object store, that one may write and many may read at a time."""

    def __init__(self, home: Home, manifest: ArchiveManifest, matcher: Matcher | None, database: Any) -> None:
        """Not for callers: use `create` or `open`."""
        self.home, self.folder = home, home.where
        # With the digest for which it was loaded, in one place: several threads may search.
        self._loaded = None if matcher is None or manifest.matcher is None else (manifest.matcher, matcher)
        self._moved: tuple[str, str] | None = None  # that digest, and where the matcher is now
        self._manifest = manifest
        self._stamp: object = None  # so that the first look reads the settings again: they may be older than the file
        self._database = database
        self._newest = home.newest(database)

    @classmethod
    def create(cls, where: Where, matcher: Matcher | Path | str | None, tokenizer: Tokenizer) -> Archive:
        """A new one, where nothing is yet."""
        loaded, home = encoder.load(matcher), home_of(where)
        database = None if isinstance(where, Path) else home.connect()
        home.prepare(database)
        with home.writing():
            home.prepare(database)  # another may have made it meanwhile
            manifest = encoder.manifest_of("pairs-1", loaded, matcher, tokenizer)
            database = database or home.connect()
            made = _new_table(database, home, manifest)
            home.made(manifest.table).seal(made.version, 0, "created", manifest.settings())
            home.write(manifest)
        return cls(home, manifest, loaded, database)

    @classmethod
    def open(cls, where: Where, matcher: Matcher | Path | str | None) -> Archive:
        """One that is there; a matcher that is not the one which made its vectors is refused."""
        home = home_of(where)
        manifest = home.read()
        given = None if matcher is None else encoder.fitting(home.where, manifest, matcher)
        opened = cls(home, manifest, given, home.connect())
        if isinstance(matcher, Path | str) and manifest.matcher is not None:
            opened._moved = (manifest.matcher, str(Path(matcher).resolve()))  # kept with the next write
        opened.current()
        return opened

    # ---- reading

    @property
    def manifest(self) -> ArchiveManifest:
        """The settings as they are now, whoever replaced them."""
        self._refresh()
        return self._manifest

    @property
    def batch(self) -> int:
        """How many pairs to write at a time, by the settings as they were last read."""
        return self._manifest.batch

    def current(self) -> tuple[ArchiveManifest, Store]:
        """The settings as they are now, and the newest version of the table that they name."""
        while True:
            manifest = self.manifest
            try:
                return manifest, self._newest.store(manifest.table)
            except MatchloomError:
                if self.in_use(manifest):
                    raise

    def snapshot(self) -> Snapshot:
        """The archive as it is now; it stays so while others write."""
        manifest, store = self.current()
        return Snapshot(manifest, store, self.matcher_of(manifest))

    def in_use(self, manifest: ArchiveManifest) -> bool:
        """Whether these settings still name the archive's table."""
        return self.home.read().table == manifest.table

    def matcher_of(self, manifest: ArchiveManifest) -> Matcher | None:
        """What encodes the table of these settings; loaded when it is first needed."""
        if manifest.matcher is None:
            return None
        loaded = self._loaded
        if loaded is None or loaded[0] != manifest.matcher:
            matcher = encoder.fitting(self.folder, manifest, None)
            assert matcher is not None  # there is one
            self._loaded = loaded = (manifest.matcher, matcher)
        return loaded[1]

    def status(self) -> dict[str, Any]:
        """What there is: pairs, how many of them the indices hold, the matcher, alpha, and the bytes on the disk."""
        manifest, store = self.current()
        return {
            "pairs": len(store),
            "answers": store.answers(),
            **store.status(),
            "matcher": manifest.matcher_name,
            "matcher_folder": manifest.matcher_folder,
            "vector_size": manifest.vector_size,
            "position_size": manifest.position_size,
            "tokenizer": manifest.tokenizer.kind,
            "alpha": manifest.alpha,
            "bytes": self.home.size(),
        }

    # ---- writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The settings as they are, while nobody else writes."""
        with self.home.writing():
            self._refresh()
            yield

    @contextmanager
    def changing(self, done: list[str]) -> Iterator[Store]:
        """The table, while nobody else writes. What it is afterwards is sealed; `done` says what was done to it."""
        with self.writing(), self.home.sealing(self._manifest.table) as work:
            store = Store.open(self._database, self.folder, self._manifest.table)
            before = store.version
            try:
                yield store
            finally:
                self._newest.forget()
            if store.version != before or work.unsealed:
                work.seal(store.version, len(store), ", ".join(done), self._manifest.settings())

    def keep(self, **changes: Any) -> None:
        """Change some settings, as a writer. A matcher that was moved is known by its new place from now on."""
        if self._moved is not None and self._moved[0] == self._manifest.matcher:  # not another's, encoded meanwhile
            changes["matcher_folder"] = self._moved[1]
        self.home.write(replace(self._manifest, **changes))
        self._refresh()

    def upsert(self, pairs: Sequence[PairRow]) -> int:
        """Add pairs in one commit; how many took the place of one with the same key."""
        done: list[str] = []
        with self.changing(done) as store:
            manifest, replaced = self._manifest, 0
            if pairs:
                replaced = store.upsert(encoder.rows(manifest, self.matcher_of(manifest), pairs))
                done += [f"{len(pairs) - replaced:,} added", *([f"{replaced:,} replaced"] if replaced else [])]
            self.keep(written=manifest.written + len(pairs))
        return replaced

    def append(self, rows: Callable[[pa.Schema], Iterator[pa.RecordBatch]]) -> int:
        """Fill an archive that has no pairs by one commit of a stream of rows, and make its indices; how many.

        They go into a second table: an archive that is cut off meanwhile is empty, and may be filled again.

        Args:
            rows: Batches of the columns that it is given, each key once.
        """
        with self.home.writing():
            old = self.home.read()
            if len(Store.open(self._database, self.folder, old.table)):
                raise MatchloomError(f"{self.folder} holds pairs already; add to it, or build another", code="exists")

            def fill(new: Store) -> int:
                new.append(pa.RecordBatchReader.from_batches(new.schema, rows(new.schema)))
                return len(new)

            count = self._replace(old, replace(old, table=old.next_table), fill, "built")
        self._sweep(old.table)
        return count

    def delete(self, ids: Sequence[str]) -> int:
        """Remove the pairs of these ids or text_ids; how many there were. One that means several answers is refused."""
        done: list[str] = []
        with self.changing(done) as store:
            self._refuse_vague(store, ids)
            count = store.delete(ids)
            done.append(f"{count:,} deleted")
            self.keep(written=self._manifest.written + count)
        return count

    def unknown(self, ids: Sequence[str]) -> list[str]:
        """Those of the ids that no pair has, neither as its id nor as its text_id."""
        store = self.current()[1]
        known = store.find("id", ids).keys() | store.find("text_id", ids).keys()
        return [one for one in dict.fromkeys(ids) if one not in known]

    def answers(self, name: str) -> list[str]:
        """The answers of pairs with this id or text_id."""
        store = self.current()[1]
        rows = store.find("id", [name]).get(name) or store.find("text_id", [name]).get(name)
        found: list[str] = store.take(rows, ["answer"])["answer"].to_pylist() if rows else []
        return found

    def id_of(self, answer: str) -> str | None:
        """The least id of the pairs with this answer."""
        store, key = self.current()[1], answer_key(answer)
        rows = store.find(SAME, [key]).get(key)
        return min(store.take(rows, ["id"])["id"].to_pylist()) if rows else None

    def _refuse_vague(self, store: Store, ids: Sequence[str]) -> None:
        """A text_id that is no pair's own id may be a number within a list, and mean another answer in each."""
        own = store.find("id", ids)
        for name, rows in store.find("text_id", [one for one in ids if one not in own]).items():
            found = store.take(rows, ["id", SAME]).to_pylist()
            answers = len({row[SAME] for row in found})
            if answers > 1:
                raise MatchloomError(
                    f"text_id {name!r} belongs to {answers} different answers; delete them by their own ids, such as "
                    f"{min(row['id'] for row in found)!r}"
                )

    def maintain(self) -> None:
        """Bring the indices up to date, if enough is new."""
        with self.changing(["indices"]) as store:
            trained_on = store.maintain(self._manifest.trained_on)
            if trained_on != self._manifest.trained_on:
                self.keep(trained_on=trained_on)

    def reencode(self, matcher: Matcher | Path | str, progress: bool) -> None:
        """Copy the texts into a second table with other vectors, and switch to it."""
        loaded = encoder.load(matcher)
        with self.home.writing():
            old = self.home.read()
            manifest = encoder.manifest_of(old.next_table, loaded, matcher, old.tokenizer)

            def encoded(batch: pa.RecordBatch) -> pa.Table:
                return encoder.rows(manifest, loaded, [PairRow(**row) for row in batch.to_pylist()])

            self._copy(old, manifest, TEXTS, encoded, progress)
            self._loaded = None if loaded is None or manifest.matcher is None else (manifest.matcher, loaded)
        self._sweep(old.table)

    def compact(self, progress: bool) -> None:
        """Copy everything that can be seen into a second table, and switch to it."""
        with self.home.writing():
            old = self.home.read()
            manifest = replace(old, table=old.next_table)
            self._copy(old, manifest, None, lambda batch: pa.Table.from_batches([batch]), progress)
            if isinstance(self.folder, Path):
                for path in self.folder.glob("damaged-*"):  # of a repair; what was deleted may be in it
                    shutil.rmtree(path, ignore_errors=True)
        self._sweep(old.table)

    def erase(self) -> None:
        """Remove it."""
        self.home.erase(self._database, self._manifest.table)

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

        def fill(new: Store) -> int:
            with bar() as shown:
                task = shown.add_task("Writing", total=len(source), note="", visible=progress)
                for batch in source.batches(manifest.batch, columns):
                    new.append(rows(batch))
                    shown.advance(task, len(batch))
            return 0

        self._replace(old, manifest, fill, "copied")

    def _replace(self, old: ArchiveManifest, manifest: ArchiveManifest, fill: Callable[[Store], int], done: str) -> int:
        """Make and fill another table with its indices, and switch to it, as a writer; how many pairs are new."""
        before = Store.open(self._database, self.folder, old.table).version
        self.home.clear(self._database, manifest.table)
        new = _new_table(self._database, self.home, manifest)
        count = fill(new)
        manifest = replace(manifest, trained_on=new.maintain(0), written=manifest.written + count)
        self.home.made(manifest.table).seal(new.version, len(new), done, manifest.settings())
        if Store.open(self._database, self.folder, old.table).version != before:  # where there is no lock
            self.home.clear(self._database, manifest.table)
            raise MatchloomError(
                f"{self.folder} was written by another meanwhile; nothing was changed: try again when nobody writes "
                "there",
                code="busy",
            )
        self.home.write(manifest)
        self._newest.forget()
        self._refresh()
        return count

    def _sweep(self, old: str) -> None:
        """Whoever takes the lock removes tables out of use; a search that still reads one starts again."""
        with self.home.writing():
            self.home.clear(self._database, old)

    def _refresh(self) -> None:
        """Read the settings again if another process replaced them."""
        now = self.home.stamp()
        if now != self._stamp:
            manifest = self.home.read()
            self._manifest, self._stamp = manifest, now


def _new_table(database: Any, home: Home, manifest: ArchiveManifest) -> Store:
    positions = manifest.position_size is not None
    return Store.create(
        database,
        home.where,
        manifest.table,
        manifest.vector_size,
        positions=positions,
        unlocked=not isinstance(home.where, Path),
    )
