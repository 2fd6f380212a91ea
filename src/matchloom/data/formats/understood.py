"""What a source was understood to be, before anything is made of it; and the same as one pairs file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matchloom.basics.validation import one_path
from matchloom.data.formats.columns import COLUMNS, Columns
from matchloom.data.formats.pairs import format_of, read_rows
from matchloom.data.formats.row import LeftOut, OwnColumns, Row
from matchloom.data.formats.scored import ScoredRow, write_scored
from matchloom.data.formats.values import own_columns
from matchloom.data.formats.writing import WRITTEN
from matchloom.types import MatchloomError, Pair

_OURS = ("query", "text", "label", "text_id", "query_id", "group")
_PLACES = 3  # that are named for each reason


@dataclass
class Understood:
    """The pairs of a source, with what was assumed and what was left out.

    Args:
        source: The file or folder.
        format: What it was read as.
        rows: Its pairs, each with its row.
        left_out: What is no pair, and why.
        notes: What was assumed.
    """

    source: Path
    format: str
    rows: list[tuple[Pair, Row]] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, str]:
        """Our columns, and what most rows call them."""
        counts: dict[str, Counter[str]] = {}
        for _, row in self.rows:
            for role, index in row.known.items():
                counts.setdefault(role, Counter())[row.own.names[index]] += 1
        return {role: counts[role].most_common(1)[0][0] for role in _OURS if role in counts}

    @property
    def own(self) -> list[str]:
        """The names of the user's own columns that have a value anywhere."""
        return list(dict.fromkeys(name for _, row in self.rows for name in own_columns(row)))

    def reasons(self) -> list[tuple[str, int, list[str]]]:
        """Why something was left out, how often, and the first places; the most frequent first."""
        places: dict[str, list[str]] = {}
        for one in self.left_out:
            places.setdefault(one.reason, []).append(one.place)
        found = sorted(places.items(), key=lambda item: -len(item[1]))
        return [(reason, len(where), where[:_PLACES]) for reason, where in found]

    def write(self, path: Path) -> None:
        """Write the pairs with the user's own columns, in the format that the name says."""
        write_with_columns(path, [(pair, own_columns(row)) for pair, row in self.rows])


def understand(source: Path | str, *, columns: Columns | None = None, format: str | None = None) -> Understood:  # noqa: A002
    """Read a file or folder and say what it was understood to be; rows that are no pairs are left out and told.

    Args:
        source: The file or folder.
        columns: As for `read_pairs`.
        format: As for `read_pairs`.
    """
    path = one_path("source", source)
    found = Understood(path, format_of(path, format))
    rows = read_rows(
        path,
        format=format,
        columns=columns,
        graded=True,
        whole=True,
        on_left_out=found.left_out.append,
        on_note=found.notes.append,
    )
    try:
        found.rows.extend(rows)
    except MatchloomError as error:
        if error.code == "no_data":  # then the first row that was refused tells more
            raise _first_error(found) or error from None
        raise
    if not found.rows:
        raise _first_error(found) or MatchloomError(f"{path} holds no pairs", code="no_data")
    return found


def _first_error(found: Understood) -> MatchloomError | None:
    return next((one.error for one in found.left_out if one.error is not None), None)


def write_with_columns(path: Path, rows: Sequence[tuple[Pair, dict[str, str]]]) -> None:
    """Write pairs and the user's own columns; of ours, only those that some pair has."""
    kind = format_of(path)
    if kind not in WRITTEN:
        raise MatchloomError(f"{path}: pairs are written as {', '.join(WRITTEN)}; choose one", code="wrong_format")
    ours = [name for name in _OURS if name in ("query", "text") or any(_cell(pair, name) for pair, _ in rows)]
    own = [name for name in dict.fromkeys(name for _, own in rows for name in own) if name not in COLUMNS]
    names = (*ours, *own)
    lines = (
        ScoredRow(OwnColumns(names, [_cell(p, name) for name in ours] + [o.get(name, "") for name in own]), ())
        for p, o in rows
    )
    write_scored(path, kind, lines, (), "")


def _cell(pair: Pair, name: str) -> str:
    value = getattr(pair, name)
    return "" if value is None else repr(value).removesuffix(".0") if isinstance(value, float) else value
