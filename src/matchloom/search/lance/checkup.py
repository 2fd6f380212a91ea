"""Is an archive whole? Every file against its seal, every row against its words, vectors and indices against the rows.

Seals (seals.py) find every file that was altered, cut off or lost. The rest is for archives that have none yet, for
files that a killed writer left unsealed, and for what is wrong though every file is what it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from matchloom.basics.progress import bar
from matchloom.layers.int8_positions import DIGITS
from matchloom.matcher import Matcher
from matchloom.search.checkup import CheckUp, Finding
from matchloom.search.lance import encoding as encoder
from matchloom.search.lance.connection import connect
from matchloom.search.lance.home import Home, Where, home_of
from matchloom.search.lance.manifest import ArchiveManifest, locked, manifest_from, read_manifest, table_folder
from matchloom.search.lance.positions import differ, positions_of
from matchloom.search.lance.rows import PairRow
from matchloom.search.lance.seals import Seals, files_of, seal_of, version_of
from matchloom.search.lance.table import POSITIONS, SAME, TEXTS, VECTORS, Distinct, RowIds, Store, vectors_of
from matchloom.text.tokenize import stems
from matchloom.types import MatchloomError

_SAMPLE = 1000  # rows whose vectors are made again
_ASKED = 20  # words that the index is asked for
_REMEDY = "'matchloom doctor {} --repair' goes back to the newest version that is whole"
_TOLERANCE = 1e-4  # of vectors that were made in other batches


class Files(NamedTuple):
    """The files of a table and what its seals say of them."""

    seals: Seals
    there: set[str]
    damaged: dict[str, str]  # what is wrong with each
    unsealed: set[str]


def check_archive(folder: Where, matcher: Matcher | Path | str | None, every_vector: bool, progress: bool) -> CheckUp:
    """Look at everything, while nobody writes; see `LanceCollection.check`."""
    if not isinstance(folder, Path):
        return _look_at_store(home_of(folder), matcher, every_vector, progress)
    with locked(folder, reading=True):
        return look(folder, matcher, every_vector, progress)


def _look_at_store(home: Home, matcher: Matcher | Path | str | None, every_vector: bool, progress: bool) -> CheckUp:
    """What can be asked of an object store, which has digests of its files itself; others may write meanwhile."""
    manifest = home.read()
    found = [Finding("settings", True, "archive.json is whole")]
    try:
        store = Store.open(home.connect(), home.where, manifest.table)
        found += look_at_rows(home.where, manifest, store, Seals(), matcher, every_vector, progress)
    except MatchloomError as error:
        found.append(Finding("table", False, str(error)))
    return CheckUp(home.where, found, "index the pairs again into another URI")


def look(folder: Path, matcher: Matcher | Path | str | None, every_vector: bool, progress: bool) -> CheckUp:
    """The same for one who holds the lock."""
    found: list[Finding] = []
    try:
        manifest: ArchiveManifest | None = read_manifest(folder)
        found.append(Finding("settings", True, "archive.json is whole"))
    except MatchloomError as error:
        manifest = recovered(folder)
        if manifest is None:
            raise
        found.append(Finding("settings", False, str(error)))
    assert manifest is not None
    try:
        files = look_at_files(folder, manifest.table)
        found += _told_of_files(manifest.table, files)
        store = Store.open(connect(folder), folder, manifest.table)
        found += _look_at_version(store, files)
        found += look_at_rows(folder, manifest, store, files.seals, matcher, every_vector, progress)
    except MatchloomError as error:
        found.append(Finding("table", False, str(error)))
    return CheckUp(folder, found, _REMEDY.format(folder))


def recovered(folder: Path) -> ArchiveManifest | None:
    """The settings of the last write, as the seals of the newest table have them."""
    tables = sorted((path.stem for path in folder.glob("pairs-*.seals")), key=lambda name: (len(name), name))
    for table in reversed(tables):
        try:
            manifest = manifest_from(Seals.read(folder, table).settings)
        except ValueError:
            continue
        if manifest.table == table and table_folder(folder, table).is_dir():
            return manifest
    return None


def look_at_files(folder: Path, table: str) -> Files:
    """Compare every file with its seal."""
    root = table_folder(folder, table)
    seals, there = Seals.read(folder, table), files_of(folder, table)
    damaged = dict.fromkeys(seals.files.keys() - there, "is missing")
    for path in root.rglob("*"):
        if path.is_symlink():
            damaged[path.relative_to(root).as_posix()] = "is a symbolic link"
    for name in sorted(there - damaged.keys()):
        path = root / name
        if not path.is_file():
            damaged[name] = "is no file"
        elif name in seals.files and seal_of(path) != seals.files[name]:
            cut = path.stat().st_size < seals.files[name].size
            damaged[name] = "is cut off" if cut else "was altered"
    return Files(seals, there, damaged, there - seals.files.keys() - damaged.keys())


def _told_of_files(table: str, files: Files) -> Iterator[Finding]:
    names = sorted(files.damaged)
    if names:
        rest = f", and {len(names) - 1:,} more" if len(names) > 1 else ""
        told = f"{len(names):,} of {len(files.there):,} are damaged: {names[0]} {files.damaged[names[0]]}{rest}"
        yield Finding("files", False, told)
    elif files.seals.there:
        yield Finding("files", True, f"{len(files.there - files.unsealed):,} are what was written")
    if files.seals.damaged:
        yield Finding("seals", False, f"{files.seals.damaged:,} lines of {table}.seals are damaged")
    if not files.seals.there:
        yield Finding("seals", True, "there are none (they come with the next write), so files are only read")
    elif files.unsealed:
        foreign = sorted(name for name in files.unsealed if version_of(name) is not None)
        if files.seals.begun or files.seals.damaged:
            told = f"{len(files.unsealed):,} files of a write that was cut off; they are only read"
            yield Finding("unsealed", True, told)
        elif foreign:
            yield Finding(
                "unsealed", False, f"version {version_of(foreign[0])} was not written by matchloom: {foreign[0]}"
            )
        else:
            yield Finding("unsealed", True, f"{len(files.unsealed):,} files that are not the table's, and harmless")


def _look_at_version(store: Store, files: Files) -> Iterator[Finding]:
    """The newest version by its name must be the one that opens: a copy of an old one may have a newer one's name."""
    newest = max((number for name in files.there if (number := version_of(name)) is not None), default=0)
    version = store.version
    told = f"the newest is {newest}" if version == newest else f"the newest, {newest}, is in truth {version}"
    sealed = max(files.seals.writes, default=0)
    if version < sealed and version == newest:
        yield Finding("versions", False, f"{told}, but {sealed} was written")
    else:
        yield Finding("versions", version == newest, told)


class _Rows:
    """What is gathered in one pass over all rows."""

    def __init__(self, manifest: ArchiveManifest, words: list[str]) -> None:
        self.manifest = manifest
        self.count = self.empty = self.other_words = self.not_finite = self.cut_off = 0
        self.keys = Distinct()
        self.holding: dict[str, set[int]] = {word: set() for word in words}

    def take(self, batch: pa.RecordBatch) -> None:
        """Look at these rows."""
        table = pa.Table.from_batches([batch])
        pairs = [PairRow(**row) for row in table.select(TEXTS).to_pylist()]
        words, same = table["words"].to_pylist(), table[SAME].to_pylist()
        rows = table["_rowid"].to_pylist()
        self.count += len(rows)
        self.keys.take([pair.key for pair in pairs if pair.key is not None and pair.id is not None])
        cut = self.manifest.tokenizer
        for row, pair, found, answer in zip(rows, pairs, words, same, strict=True):
            if None in (*pair, found, answer):
                self.empty += 1
                continue
            expected = stems(cut(pair.question) + cut(pair.answer), cut.language)
            self.other_words += " ".join(expected) != found or answer != pair.same
            for word in self.holding.keys() & set(expected):
                self.holding[word].add(row)
        if VECTORS in table.column_names:
            self.not_finite += int((~np.isfinite(np.concatenate(vectors_of(table), axis=1))).any(axis=1).sum())
        if self.manifest.position_size is not None:
            width = self.manifest.position_size + DIGITS
            sides = zip(*(table[column].to_pylist() for column in POSITIONS), strict=True)
            self.cut_off += sum(any(not one or len(one) % width for one in both) for both in sides)


def look_at_rows(
    folder: Where,
    manifest: ArchiveManifest,
    store: Store,
    seals: Seals,
    matcher: Matcher | Path | str | None,
    every_vector: bool,
    progress: bool,
    *,
    indices: bool = True,
) -> Iterator[Finding]:
    """Read every row, and compare: counts, words, vectors, indices."""
    expected = len(store)
    names = set(store.columns)
    wanted = {*TEXTS, SAME, "words", *_encoded(manifest)}
    if names != wanted:
        yield Finding("columns", False, f"found {', '.join(sorted(names))}; expected {', '.join(sorted(wanted))}")
        return
    asked = [text.split()[0] for text in store.sample(["words"], _ASKED)["words"].to_pylist() if text and text.split()]
    rows = _Rows(manifest, asked)
    with bar() as shown:
        task = shown.add_task("Reading", total=expected, note="", visible=progress)
        for batch in store.batches(manifest.batch, with_rows=True):
            rows.take(batch)
            shown.advance(task, len(batch))
    yield _told_of_counts(rows, expected, seals.writes[store.version].rows if store.version in seals.writes else None)
    yield Finding(
        "words", not rows.other_words, _of(rows.other_words, rows.count, "do not have the words of their texts")
    )
    if manifest.vector_size is not None:
        yield _told_of_vectors(folder, manifest, store, rows, matcher, every_vector)
    if indices:
        yield from _told_of_indices(store, rows)


def _encoded(manifest: ArchiveManifest) -> list[str]:
    """The columns that a matcher filled."""
    vectors = [VECTORS] if manifest.vector_size is not None else []
    return vectors if manifest.position_size is None else [*vectors, *POSITIONS]


def _told_of_counts(rows: _Rows, expected: int, sealed: int | None) -> Finding:
    problems = []
    if rows.count != expected:
        problems.append(f"{rows.count:,} can be read, but the table counts {expected:,}")
    if sealed is not None and sealed != rows.count:
        problems.append(f"{rows.count:,} can be read, but {sealed:,} were written")
    twice = rows.count - len(rows.keys)
    if twice:
        problems.append(f"{twice:,} have no id of their own")
    if rows.empty:
        problems.append(f"{rows.empty:,} lack a text")
    return Finding("rows", not problems, "; ".join(problems) or f"{rows.count:,} read, as many as there should be")


def _told_of_vectors(
    folder: Where,
    manifest: ArchiveManifest,
    store: Store,
    rows: _Rows,
    given: Matcher | Path | str | None,
    every_vector: bool,
) -> Finding:
    if rows.not_finite:
        return Finding("vectors", False, _of(rows.not_finite, rows.count, "hold numbers that are not finite"))
    if rows.cut_off:
        return Finding("vectors", False, _of(rows.cut_off, rows.count, "have positions that are cut off"))
    if rows.empty:
        return Finding("vectors", True, "finite, but not compared: there are rows without a text")
    try:
        matcher = encoder.fitting(folder, manifest, given)
    except MatchloomError as error:
        return Finding("vectors", True, f"finite, but not compared: {error}")
    batches = (
        store.batches(manifest.batch)
        if every_vector or rows.count <= _SAMPLE
        else iter(store.sample([*TEXTS, *_encoded(manifest)], _SAMPLE).to_batches())
    )
    wrong = count = 0
    for batch in batches:
        there = pa.Table.from_batches([batch])
        made = encoder.rows(manifest, matcher, [PairRow(**row) for row in there.select(TEXTS).to_pylist()])
        sides = zip(vectors_of(there), vectors_of(made), strict=True)
        apart = np.maximum(*(np.abs(found - again).max(axis=1, initial=0.0) for found, again in sides))
        other = apart > _TOLERANCE * max(1.0, np.abs(np.concatenate(vectors_of(made))).max(initial=0.0))
        if manifest.position_size is not None:
            for column in POSITIONS:
                both = (positions_of(rows, column, manifest.position_size) for rows in (there, made))
                other |= np.array([differ(*pair) for pair in zip(*both, strict=True)], dtype=bool)
        wrong += int(other.sum())
        count += len(there)
    which = f"{'all ' if count == rows.count else ''}{count:,} made again by {manifest.matcher_name}"
    return Finding("vectors", not wrong, f"{which}: {_of(wrong, count, 'differ')}")


def _told_of_indices(store: Store, rows: _Rows) -> Iterator[Finding]:
    problems = []
    found = store.indexed()
    if "words" not in found:
        problems.append("there is none of words")
    for column, (inside, outside) in found.items():
        if inside + outside != rows.count:
            problems.append(f"that of {column} counts {inside + outside:,} rows, the table has {rows.count:,}")
    for word, holding in rows.holding.items():
        hits: RowIds = store.nearest([word], None, max(1, rows.count))[0]
        if set(hits) != holding:
            problems.append(f"that of words finds {word!r} in {len(set(hits)):,} rows, the table in {len(holding):,}")
            break
    told = f"{', '.join(sorted(found))} agree with the table ({len(rows.holding)} words looked up)"
    yield Finding("indices", not problems, "; ".join(problems) or told)


def _of(wrong: int, count: int, problem: str) -> str:
    return f"{wrong:,} of {count:,} {problem}" if wrong else f"none of {count:,} {problem}"
