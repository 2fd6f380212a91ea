"""`check`: all finds of a file of pairs, as lines, as a page, and as a file without what can be put right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matchloom.data.checkup.finds import FINDERS, KINDS, Find, Placed, in_training
from matchloom.data.checkup.fix import Fixed, fix_rows
from matchloom.data.formats.columns import Columns
from matchloom.data.formats.understood import Understood, understand, write_with_columns
from matchloom.pages import blocks
from matchloom.pages.document import document
from matchloom.pages.markup import quoted, safe_text

_PLACES = 5  # that a line names
_ON_PAGE = 200  # finds of a kind
_LETTERS = 160  # of a text in a line


@dataclass(frozen=True)
class Checkup:
    """What was found in pairs.

    Args:
        rows: How many there are.
        finds: All finds by kind, kinds in the order of `KINDS`; none of a kind that was not found.
        source: The file's name, where there is one.
    """

    rows: int
    finds: dict[str, list[Find]] = field(default_factory=dict)
    source: str = ""

    def summary(self) -> list[str]:
        """A line for each kind of find, with the places of the first."""
        return [
            f"{len(found):,} x {KINDS[kind]} ({_places(found[0].places)}{', ...' if len(found) > 1 else ''})"
            for kind, found in self.finds.items()
        ]

    def lines(self, most: int = 5) -> list[str]:
        """For each kind a line, and below it a line for each of the first finds."""
        lines = []
        for kind, found in self.finds.items():
            lines.append(f"{len(found):,} x {KINDS[kind]}")
            lines += [f"  {_places(one.places)}: {_short(one.text)}" for one in found[:most]]
            if 0 < most < len(found):
                lines.append(f"  and {len(found) - most:,} more")
        return lines or [f"nothing found in {self.rows:,} rows"]

    def to_dict(self, most: int | None = None) -> dict[str, object]:
        """The counts and the finds, at most so many of a kind."""
        shown = {
            kind: [{"places": list(one.places[:100]), "text": one.text} for one in found[:most]]
            for kind, found in self.finds.items()
        }
        counts = {kind: len(found) for kind, found in self.finds.items()}
        return {"source": self.source, "rows": self.rows, "counts": counts, "finds": shown}

    def to_html(self) -> str:
        """A page with every kind of find."""
        title = f"Check of {safe_text(self.source or 'pairs')}"
        facts = [("rows", f"{self.rows:,}"), *((KINDS[kind], f"{len(own):,}") for kind, own in self.finds.items())]
        sections = "".join(_section(kind, found) for kind, found in self.finds.items())
        return document(title, f"<h1>{title}</h1>{blocks.facts(facts)}{sections or '<p>Nothing was found.</p>'}")

    def _repr_html_(self) -> str:
        return self.to_html()


def check(rows: Sequence[Placed], *, test: Iterable[Placed] = (), source: str = "") -> Checkup:
    """Look for what makes a bad collection: see `KINDS`.

    Args:
        rows: Pairs, each with its place.
        test: Pairs that something made of these will be measured on.
        source: What to call the rows.
    """
    found = [find for finder in FINDERS for find in finder(rows)]
    found += in_training(rows, test)
    return Checkup(len(rows), _by_kind(found), source)


def check_file(
    path: Path | str, *, test: Path | str | None = None, columns: Columns | None = None, fix: Path | None = None
) -> tuple[Checkup, Fixed | None]:
    """Check a file or folder; rows that cannot be read are finds, too. With `fix`, write what is left of it when clean.

    Args:
        path: The file or folder.
        test: A file of pairs to measure on.
        columns: As for `read_pairs`.
        fix: The file to write.
    """
    read = understand(path, columns=columns)
    others = [] if test is None else _placed(understand(test, columns=columns))
    checkup = check(_placed(read), test=others, source=str(path))
    unreadable = [Find("unreadable", (one.place,), one.reason) for one in read.left_out if one.error is not None]
    found = _by_kind([*unreadable, *(find for own in checkup.finds.values() for find in own)])
    fixed = None
    if fix is not None:
        fixed = fix_rows(read.rows, others, len(unreadable))
        write_with_columns(fix, fixed.rows)
    return Checkup(checkup.rows + len(unreadable), found, checkup.source), fixed


def _placed(read: Understood) -> list[Placed]:
    return [Placed(pair, row.place) for pair, row in read.rows]


def _by_kind(found: Iterable[Find]) -> dict[str, list[Find]]:
    kinds: dict[str, list[Find]] = {kind: [] for kind in KINDS}
    for find in found:
        kinds[find.kind].append(find)
    return {kind: own for kind, own in kinds.items() if own}


def _places(places: Sequence[str]) -> str:
    more = f" and {len(places) - _PLACES:,} more" if len(places) > _PLACES else ""
    return ", ".join(places[:_PLACES]) + more


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LETTERS else f"{line[:_LETTERS].rstrip()} ..."


def _section(kind: str, found: Sequence[Find]) -> str:
    rows = (blocks.Row((safe_text(_places(one.places)), quoted(one.text, 300))) for one in found[:_ON_PAGE])
    name = f"{KINDS[kind]}: {len(found):,}"
    about = f"The first {_ON_PAGE:,} are shown." if len(found) > _ON_PAGE else ""
    shown = blocks.table(KINDS[kind], (blocks.Column("where"), blocks.Column("what")), rows)
    return blocks.section(name, shown, about=about)
