"""The matcher of an archive: what encodes its pairs, and whether a given one is the one that did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from matchloom.matcher import Matcher
from matchloom.search.lance.manifest import ArchiveManifest
from matchloom.search.lance.positions import as_columns, pooled
from matchloom.search.lance.rows import PairRow
from matchloom.search.lance.table import SAME, TEXTS, Vectors, rows_of, unit
from matchloom.text.tokenize import Tokenizer, stems
from matchloom.types import MatchloomError


def load(matcher: Matcher | Path | str | None) -> Matcher | None:
    """A matcher, or the one in a folder; one that has learnt nothing is refused."""
    if matcher is None:
        return None
    found = matcher if isinstance(matcher, Matcher) else Matcher.load(matcher)
    found.refuse_if_unlearnt("the matcher" if found is matcher else str(matcher))
    return found


def manifest_of(
    table: str, matcher: Matcher | None, given: Matcher | Path | str | None, tokenizer: Tokenizer
) -> ArchiveManifest:
    """The settings of a table that this matcher encodes."""
    if matcher is None:
        tokenizer("")  # an unknown kind is refused
        return ArchiveManifest(table, tokenizer)
    where = str(Path(given).resolve()) if isinstance(given, Path | str) else None
    positions = None
    try:
        if matcher.model.stored_positions:
            size: int | None = int(pooled(matcher.positions([""])).shape[1])
            positions = size
        else:
            size = int(matcher.vectors([""]).shape[1])
    except MatchloomError:  # a model that reads both texts together
        size = None
    words = matcher.tokenizer._replace(max_words=None)
    return ArchiveManifest(
        table,
        words,
        matcher=matcher.digest,
        matcher_name=matcher.name,
        matcher_folder=where,
        vector_size=size,
        position_size=positions,
    )


def fitting(folder: Path | str, manifest: ArchiveManifest, given: Matcher | Path | str | None) -> Matcher | None:
    """The matcher of an archive, refused if it is not the one that made the vectors."""
    where = manifest.matcher_folder if given is None else given
    name = where if isinstance(where, str | Path) else "MATCHER"
    if manifest.matcher is None:
        if given is not None:
            raise MatchloomError(
                f"{folder} was indexed without a matcher; to use one: matchloom index {folder} --reencode {name}"
            )
        return None
    if where is None:
        raise MatchloomError(f"{folder} was encoded by a matcher that had no folder; give the matcher")
    if given is None and not _is_folder(str(where)):
        raise MatchloomError(
            f"{folder} was encoded by the matcher in {str(where)[:200]}, which is not there; give its new place "
            f"(matcher=), or another one: matchloom index {folder} --reencode MATCHER"
        )
    matcher = load(where)
    if manifest.vector_size is not None and matcher is not None and matcher.digest != manifest.matcher:
        raise MatchloomError(
            f"{folder} holds vectors of another matcher than {name} is now; "
            f"to encode its pairs again: matchloom index {folder} --reencode {name}"
        )
    return matcher


def _is_folder(where: str) -> bool:
    try:
        return Path(where).is_dir()
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False


def rows(manifest: ArchiveManifest, matcher: Matcher | None, pairs: Sequence[PairRow]) -> pa.Table:
    """Pairs as the table holds them: texts, the stems of their words, vectors and positions where there are any."""
    cut = manifest.tokenizer
    columns = {name: [getattr(pair, name) for pair in pairs] for name in (*TEXTS, SAME)}
    questions, answers = columns["question"], columns["answer"]
    words = [" ".join(stems(cut(q) + cut(a), cut.language)) for q, a in zip(questions, answers, strict=True)]
    columns["words"] = words
    vectors: tuple[Vectors, Vectors] | None = None
    more: dict[str, Any] = {}
    if manifest.position_size is not None:
        assert matcher is not None
        sides = matcher.positions(questions), matcher.positions(answers, side="right")
        vectors, more = (pooled(sides[0]), pooled(sides[1])), as_columns(*sides)
    elif manifest.vector_size is not None:
        assert matcher is not None  # whatever has vectors has what made them
        vectors = (unit(matcher.vectors(questions)), matcher.vectors(answers, side="right"))
    try:
        return rows_of(columns, vectors, more)
    except UnicodeEncodeError as error:
        broken = error.object[error.start : error.end]
        raise MatchloomError(f"a pair cannot be archived: {broken!r} is half a character; remove it") from None
