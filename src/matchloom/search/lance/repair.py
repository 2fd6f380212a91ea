"""A damaged archive goes back to the newest version of its table that is whole.

A version is whole if its manifest and every file that this names are what was sealed, and all its rows can be read and
agree with their words. Its rows are copied into a new table with new indices, as `compact` does, so that nothing of the
damaged files is in use afterwards; these are put aside, not deleted.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from matchloom.basics.progress import bar
from matchloom.search.checkup import CheckUp
from matchloom.search.lance.checkup import Files, look, look_at_files, look_at_rows, recovered
from matchloom.search.lance.connection import connect
from matchloom.search.lance.manifest import ArchiveManifest, locked, read_manifest, table_folder
from matchloom.search.lance.seals import Sealing, version_of
from matchloom.search.lance.table import Store
from matchloom.types import MatchloomError


class Repaired(NamedTuple):
    """What was wrong with an archive, the version it went back to, what is lost, and where the damaged files are."""

    checkup: CheckUp
    version: int | None  # None where there was nothing to repair
    pairs: int
    lost: list[str]
    kept: Path | None

    def __str__(self) -> str:
        if self.version is None:
            return f"{self.checkup.folder} is whole; nothing was changed."
        lost = "; ".join(self.lost) if self.lost else "nothing is lost"
        return (
            f"{self.checkup.folder} has the {self.pairs:,} pairs of version {self.version} again; {lost}. "
            f"The damaged files are in {self.kept}; delete it when you need them no more."
        )


def repair_archive(folder: Path, progress: bool) -> Repaired:
    """Go back to what is whole; see `LanceCollection.repair`."""
    with locked(folder):
        checkup = look(folder, None, False, progress)
        if checkup.whole:
            return Repaired(checkup, None, 0, [], None)
        manifest = _settings(folder)
        files = look_at_files(folder, manifest.table)
        version, store, scratch = _newest_whole(folder, manifest, files)
        new = replace(manifest, table=_free(folder, manifest.table, 2))
        with scratch:
            pairs = _copy(folder, new, store, f"repaired, from version {version}", progress)
        kept = _put_aside(folder, manifest.table)
        return Repaired(checkup, version, pairs, _lost(files, version, pairs), kept)


def _settings(folder: Path) -> ArchiveManifest:
    try:
        return read_manifest(folder)
    except MatchloomError:
        found = recovered(folder)
        if found is None or (folder / "archive.json").is_symlink():
            raise
        return found


def _newest_whole(folder: Path, manifest: ArchiveManifest, files: Files) -> tuple[int, Store, _Scratch]:
    names = {number: name for name in files.there if (number := version_of(name)) is not None}
    for number in sorted(names, reverse=True):
        if names[number] in files.damaged or _uses_damaged(folder, manifest, files, names[number]):
            continue
        scratch = _Scratch(folder, manifest.table, files, names[number])
        try:
            store = scratch.open()
            whole = store.version == number and (len(store) or not _had_rows(files))
            findings = look_at_rows(folder, manifest, store, files.seals, None, False, False, indices=False)
            if whole and all(finding.whole for finding in findings):
                return number, store, scratch
        except MatchloomError:
            pass
        scratch.remove()
    raise MatchloomError(
        f"{folder}: no version of its table with any pairs is whole, so there is nothing to go back to; index the "
        "pairs again into a new folder"
    )


def _had_rows(files: Files) -> bool:
    writes = files.seals.writes
    return not writes or writes[max(writes)].rows > 0


def _uses_damaged(folder: Path, manifest: ArchiveManifest, files: Files, name: str) -> bool:
    """Whether a version names a damaged file: a data file by its name, a file of deletions by its number."""
    content = (table_folder(folder, manifest.table) / name).read_bytes()
    for damaged in files.damaged:
        kind, _, rest = damaged.partition("/")
        if kind == "data" and rest.encode() in content:
            return True
        if kind == "_deletions":
            number = rest.rpartition(".")[0].rpartition("-")[2]
            if not number.isdigit() or _varint(int(number)) in content:
                return True
    return False


def _varint(number: int) -> bytes:
    """As protobuf writes a number."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


class _Scratch:
    """A table that has one version of another, by hard links where the file system has them."""

    def __init__(self, folder: Path, table: str, files: Files, version: str) -> None:
        self._folder, self._name = folder, _free(folder, table, 1)
        root, self._root = table_folder(folder, table), folder / f"{self._name}.lance"
        for name in sorted(files.there - files.damaged.keys()):
            if name == version or name.split("/")[0] in ("data", "_deletions", "_indices"):
                target = self._root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.link(root / name, target)
                except OSError:
                    shutil.copyfile(root / name, target)

    def open(self) -> Store:
        """The version."""
        return Store.open(connect(self._folder), self._folder, self._name)

    def remove(self) -> None:
        """Leave the other alone."""
        shutil.rmtree(self._root, ignore_errors=True)

    def __enter__(self) -> _Scratch:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def _free(folder: Path, table: str, further: int) -> str:
    """The name of a table that is not there: what a killed repair left under it goes."""
    name = f"pairs-{int(table.removeprefix('pairs-')) + further}"
    root = table_folder(folder, name)
    shutil.rmtree(root, ignore_errors=True)
    root.with_suffix(".seals").unlink(missing_ok=True)
    return name


def _copy(folder: Path, manifest: ArchiveManifest, source: Store, done: str, progress: bool) -> int:
    positions = manifest.position_size is not None
    new = Store.create(connect(folder), folder, manifest.table, manifest.vector_size, positions=positions)
    with bar() as shown:
        task = shown.add_task("Writing", total=len(source), note="", visible=progress)
        for batch in source.batches(manifest.batch):
            new.append(pa.Table.from_batches([batch]))
            shown.advance(task, len(batch))
        manifest = replace(manifest, trained_on=new.maintain(0), written=manifest.written + len(new))
        Sealing(folder, manifest.table).seal(new.version, len(new), done, manifest.settings())
        manifest.write(folder)
    return len(new)


def _put_aside(folder: Path, table: str) -> Path:
    number = 1
    while (folder / f"damaged-{number}").exists():
        number += 1
    kept = folder / f"damaged-{number}"
    kept.mkdir()
    for path in (folder / f"{table}.lance", folder / f"{table}.seals"):
        if path.exists():
            path.rename(kept / path.name)
    return kept


def _lost(files: Files, version: int, pairs: int) -> list[str]:
    """What was written after a version, as far as it is known."""
    writes = files.seals.writes
    later = [f"version {number} ({writes[number].done})" for number in sorted(writes) if number > version]
    later = [told for told in later if not told.endswith(("(indices)", "()"))]
    unsealed = sorted(
        number
        for name in files.there
        if (number := version_of(name)) is not None and number not in writes and number > version
    )
    if unsealed and not later and max(writes, default=0) <= version:
        later.append(f"version {unsealed[-1]}, which was never reported")
    if not later:
        return []
    there_were = writes[max(writes)].rows if writes else pairs
    counts = f"; there were {there_were:,} pairs, now there are {pairs:,}" if there_were != pairs else ""
    return [f"lost: {', '.join(later)}{counts}"]
