"""A state that lives: it follows what others write into its folder, and one at a time changes it.

In memory alone it has no folder and no journal, and the rest is the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from matchloom import artifact
from matchloom.basics.growing import Announce
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.folder import KIND, stamp
from matchloom.search.journal import Change, Journal
from matchloom.search.state import State
from matchloom.search.stored import About, Stored, read_state, write_state
from matchloom.search.view import View
from matchloom.types import MatchloomError

_TRIES, _PAUSE = 5, 0.02  # while another fit is switched to; seconds


class LivingState:
    """The state of a collection as it is now, by whomever it was changed."""

    def __init__(self, state: State, about: About | None = None) -> None:
        self.folder: Path | None = None
        self.state = state
        self.about: About = about or About()
        self.patience: float = 30.0  # seconds that a change waits for another writer
        self.announce: Announce | None = None  # told of each change before it is written
        self.stamp: tuple[int, int] = (0, 0)  # of the fit in the folder
        self.changes: list[Change] = []  # since the fit
        self.lock: threading.RLock = threading.RLock()
        self._journal: Journal | None = None
        self._held = 0  # bytes of the journal that the state holds

    @classmethod
    def of_folder(cls, folder: Path) -> LivingState:
        """What a folder holds."""
        stored, seen = _read_whole(folder, None)
        made = cls(stored.state)
        made.folder = folder
        made._hold(stored, seen)
        return made

    def current(self) -> State:
        """The state as it is now, with what other processes wrote."""
        if not self.is_current() and self.folder is not None:
            with self.lock:
                self._follow(self.folder)
        return self.state

    def is_current(self) -> bool:
        """Whether nobody has written since this was read."""
        journal, folder = self._journal, self.folder
        if folder is None or journal is None:
            return True
        try:
            return stamp(folder) == self.stamp and not journal.changed(self._held)
        except OSError:
            return True  # the folder is gone: what was read goes on

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one who changes it, as it is now."""
        with self._locked(), self.lock:
            self.current()
            yield

    def change(self, change: Change) -> None:
        """Change it, on the disk when this returns; the caller is the one who writes."""
        view = self.state.view.changed(change)  # what cannot be read is refused before it is written
        if self._journal is not None:
            try:
                self._journal.append([change], self._announcing(change))
            except BaseException:
                self._load()  # as the folder has it: no word of the change is known
                raise
        self.changes.append(change)
        self._take(view)

    def _announcing(self, change: Change) -> Callable[[Path, int, bytes], None] | None:
        """What tells of a change where it will stand, and what it does."""
        announce = self.announce
        if announce is None:
            return None
        ids = [entry.id for entry in change.put]
        counts = {"new": sum(self.state.view.row_of(name) is None for name in ids), "put": ids}
        counts["removed"] = list(change.remove)
        return lambda path, start, content: announce(path, start, content, counts)

    def switch(self, state: State, later: Sequence[Change], number: int) -> None:
        """Take up a fit that has learnt so many changes, and what was changed while it was made."""
        view = state.view
        for change in later:
            view = view.changed(change)
        before = self.state, self.changes, self.about
        self.state, self.changes = state.having(view), list(later)
        self.about = self.about._replace(since_report=self.about.since_report + number)
        if self.folder is not None:
            try:
                self._write(self.folder)
            except BaseException:
                self.state, self.changes, self.about = before
                raise
            self._load()

    def save(self, folder: Path) -> None:
        """Write it as a folder: all of it or nothing."""
        if self.folder is None or not folder.exists() or not folder.samefile(self.folder):
            with self.lock:
                self._write(folder)
            return
        with self.writing():  # what others have changed is kept
            self._write(folder)
            self._load()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The folder's lock. It comes before the lock of threads, so that nobody who searches waits for it."""
        if self.folder is None:
            yield
            return
        if not artifact.holds(self.folder, KIND):
            raise MatchloomError(f"{self.folder} is no longer there, or no collection any more", code="missing")
        with artifact.writing(self.folder, wait=self.patience):
            yield

    def _take(self, view: View) -> None:
        """From now on searches see this. What it holds of the journal is said last: till then others wait for it."""
        self.state = self.state.having(view)
        self._held = 0 if self._journal is None else self._journal.size

    def _write(self, folder: Path) -> None:
        write_state(folder, self.state, self.changes, self.about)

    def _load(self) -> None:
        """Read the folder as it is now."""
        assert self.folder is not None
        self._hold(*_read_whole(self.folder, self.state.sentences))

    def _hold(self, stored: Stored, seen: tuple[int, int]) -> None:
        self.state, self.about, self._journal = stored.state, stored.about, stored.journal
        self.changes, self._held = stored.changes, stored.journal.size
        self.stamp = seen

    def _follow(self, folder: Path) -> None:
        """Read what others have written since."""
        assert self._journal is not None
        if stamp(folder) != self.stamp:
            self._load()
            return
        try:
            changes = self._journal.read()
        except MatchloomError:
            self._load()  # another fit was switched to, or what could not be written was taken back
            return
        view = self.state.view
        for change in changes:
            view = view.changed(change)
        self.changes += changes
        self._take(view)


def _read_whole(folder: Path, sentences: SentenceVectors | None) -> tuple[Stored, tuple[int, int]]:
    """A folder as it is now and its stamp; read again where another fit is switched to meanwhile."""
    for left in reversed(range(_TRIES)):
        seen = stamp(folder) if artifact.holds(folder, KIND) else (0, 0)
        try:
            return read_state(folder, sentences), seen
        except MatchloomError:
            if not left or not artifact.holds(folder, KIND):
                raise
            if stamp(folder) == seen and not artifact.is_written(folder):
                raise
            time.sleep(_PAUSE)
    raise AssertionError  # the last try returns or raises
