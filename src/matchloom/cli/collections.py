"""What commands that change a collection share: ids, notes, and how they show what there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matchloom
from matchloom.artifact import kind_of
from matchloom.basics.files import read_lines
from matchloom.basics.stores import shown
from matchloom.cli.printing import console, note, print_json, table
from matchloom.types import Added, MatchloomError

if TYPE_CHECKING:
    from matchloom import Collection
    from matchloom.text.tokenize import Tokenizer

_SEARCHABLE = ("collection", "archive")


@dataclass
class Changes:
    """The ids to remove, and those of them that were not there."""

    ids: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, given: Iterable[str]) -> Changes:
        """Ids, or files with an id on each line."""
        return cls(list(dict.fromkeys(one for name in given for one in _ids(name))))

    def refuse_unknown(self) -> None:
        """Report ids that do not exist; last, with all else done: a list may be removed a second time."""
        if self.unknown:
            raise MatchloomError(
                f"{len(self.unknown):,} of {len(self.ids):,} ids to remove do not exist, such as "
                f"{self.unknown[0]!r}; 'matchloom search' shows ids",
                code="missing",
            )


def _ids(given: str) -> list[str]:
    """An id, or the lines of a file."""
    try:
        listed = Path(given).is_file()
    except OSError:  # too long for a name
        listed = False
    return [line.strip() for _, line in read_lines(given) if line.strip()] if listed else [given]


def open_collection(folder: Path | str) -> Collection:
    """What `fit` or `index` made, or one line that says what the folder is."""
    if kind_of(folder) not in _SEARCHABLE:
        raise MatchloomError(
            f"{shown(str(folder))} is no collection; 'matchloom fit' and 'matchloom index' make one from questions "
            "with answers",
            code="missing",
        )
    return matchloom.Collection.open(folder)


def remove_ids(collection: Collection, changes: Changes) -> int:
    """Remove what is there, and note what is not."""
    changes.unknown = collection.unknown(changes.ids)
    return collection.remove(changes.ids)


def note_wrong(added: Added, what: object) -> None:
    """Report pairs that were skipped."""
    if added.wrong:
        note(f"{added.wrong:,} pairs of {what} have label 0 or no answer and were skipped.")


def refuse_other_tokenizer(folder: Path | str, own: Tokenizer, given: str | None) -> None:
    """A collection keeps the tokenizer that it was made with."""
    if given not in (None, own.kind):
        raise MatchloomError(
            f"{folder} has the tokenizer {own.kind}, found --tokenizer {given}; leave it out", code="conflict"
        )


def show_collection(collection: Collection, done: dict[str, Any], json: bool) -> None:
    """Print what was done and what there is."""
    status = collection.status()
    show_status(done, status, _rows(status), json)


def show_status(done: dict[str, Any], status: dict[str, Any], rows: Iterable[tuple[str, str]], json: bool) -> None:
    """What was done and what there is: a table for people, or all of it as JSON."""
    if json:
        print_json({**done, **status})
        return
    shown = table("", "")
    shown.show_header = False
    for key, value in (*((key, f"{value:,}") for key, value in done.items()), *rows):
        shown.add_row(key, value)
    console().print(shown)


def _rows(status: dict[str, Any]) -> list[tuple[str, str]]:
    if "entries" not in status:  # an archive
        return [("pairs", f"{status['pairs']:,}"), ("answers", f"{status['answers']:,}")]
    learnt = "learnt from the questions" if status["learnt"] else "not learnt; 'matchloom fit' learns them"
    rows = [
        ("answers", f"{status['entries']:,}"),
        ("questions", f"{status['questions']:,}"),
        ("searched by", status["scorer"]),
        ("weights", learnt),
    ]
    if status["changed_since_fit"]:
        rows.append(
            ("changed since fit", f"{status['changed_since_fit']:,} answers; 'matchloom refit' learns from them")
        )
    return rows
