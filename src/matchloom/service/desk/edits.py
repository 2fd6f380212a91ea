"""Changes of a collection that are written down: who made them, what was there before, and how to take them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matchloom.data.entries import Entry
from matchloom.data.identity import digest, normalize_text
from matchloom.service.desk.audit import Audit, noting
from matchloom.service.problems import Refused

if TYPE_CHECKING:
    from matchloom.search.collection import Collection


def version_of(entry: Entry) -> str:
    """What differs when an entry does."""
    own = (f"{key}={value}" for key, value in sorted(entry.columns.items()))
    return digest(entry.id, entry.text, *sorted(entry.questions), *own)


class Editor:
    """Changes one collection for one person. Without an audit file changes are made and not written down."""

    def __init__(self, collection: Collection, audit: Audit | None, system: str, who: str) -> None:
        self._collection, self._audit, self._system, self._who = collection, audit, system, who

    def put(
        self, entries: Sequence[Entry], versions: Mapping[str, str], *, new: bool = False, action: str = "put"
    ) -> None:
        """Put entries; refused where one is another than the version that was edited, or where it should be new."""

        def check(before: Mapping[str, Entry | None]) -> None:
            for name, there in before.items():
                if new and there is not None:
                    raise Refused(409, "exists", f"there is an entry with the id {name[:80]!r} already; edit that one")
                wanted = versions.get(name, "")
                if wanted and (there is None or version_of(there) != wanted):
                    raise Refused(
                        409, "changed", f"{name[:80]!r} was changed by somebody else meanwhile; load it again"
                    )

        self._changed(action, entries, (), check)

    def remove(self, ids: Iterable[str]) -> tuple[int, list[str]]:
        """Remove entries; how many there were, and which ids nothing had."""
        names = list(dict.fromkeys(ids))
        before = self._changed("remove", (), names)
        unknown = [name for name in names if before[name] is None]
        return len({one.id for one in before.values() if one is not None}), unknown

    def assign(self, questions: Sequence[str], name: str) -> Entry:
        """Make questions those of an entry."""
        if name not in self._collection:
            raise Refused(404, "unknown", f"no entry has the id {name[:80]!r}")
        old = self._collection[name]
        known = {normalize_text(one) for one in old.questions}
        more = [one for one in questions if normalize_text(one) not in known]
        entry = old._replace(questions=(*old.questions, *more))
        self.put([entry], {old.id: version_of(old)}, action="assign")
        return entry

    def import_(self, put: Sequence[Entry], remove: Sequence[str]) -> None:
        """Put and remove as one change."""
        self._changed("import", put, remove)

    def undo(self, name: str | None) -> tuple[str, list[str]]:
        """Take back a change, or the last one; its id, and the ids of the entries that are as they were."""
        if self._audit is None:
            raise Refused(409, "no_audit", "this service has no audit file, which undo needs")
        wanted = name or self._audit.last(self._system)
        found = None if wanted is None else self._audit.change(self._system, wanted)
        if wanted is None or found is None:
            raise Refused(404, "unknown", "there is no change to undo" if name is None else "no such change")
        was, then = found
        if not was:  # questions that were put away
            self._audit.record(self._system, self._who, "undo", undoes=wanted)
            return wanted, []

        def check(now: Mapping[str, Entry | None]) -> None:
            for key, there in now.items():
                if _key(there) != _key(then.get(key)):
                    raise Refused(409, "changed", f"{key[:80]!r} was changed again since; undo that first")

        put = [one for one in was.values() if one is not None]
        self._changed("undo", put, [key for key, one in was.items() if one is None], check, undoes=wanted)
        return wanted, list(was)

    def _changed(
        self, action: str, put: Sequence[Entry], remove: Sequence[str], check: Any = None, **told: Any
    ) -> dict[str, Entry | None]:
        after: dict[str, Entry | None] = {**dict.fromkeys(remove), **{one.id: one for one in put}}
        with noting(self._audit, self._system, self._who) as note:

            def check_and_note(before: Mapping[str, Entry | None]) -> None:
                if check is not None:
                    check(before)
                real = {name: one for name, one in before.items() if one is not None or after.get(name) is not None}
                note(action, real, {name: after[name] for name in real}, **told)

            return self._collection.apply(put, remove, check=check_and_note)


def _key(entry: Entry | None) -> str | None:
    return None if entry is None else version_of(entry)
