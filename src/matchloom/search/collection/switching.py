"""A refit of a state that lives: learnt beside it, then switched to, kept aside, or dropped where it is worse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from matchloom import artifact
from matchloom.search.aside import Since, clear_aside, open_aside, write_aside
from matchloom.search.collection.living import LivingState
from matchloom.search.feedback import Judgement, Judgements, as_judgements
from matchloom.search.folder import REFIT_LOCK
from matchloom.search.refitting import Refit, learn_anew
from matchloom.search.state import State
from matchloom.types import MatchloomError

Feedback = str | Path | Judgements | Iterable[Judgement]


def refit(living: LivingState, feedback: Feedback | None, system: str | None, aside: bool, progress: bool) -> Refit:
    """Learn from all entries as they are now; searches and changes go on meanwhile."""
    given = None if feedback is None else as_judgements(feedback)
    if given is not None:
        served = "" if living.folder is None else living.folder.resolve().name  # unless it is given another
        given = given.of_system(system or served, alone=system is not None)
    with _refitting(living.folder):
        return _refit(living, given, aside, progress)


def promote(living: LivingState) -> Refit:
    """Switch to the fit that waits, with all that was changed since."""
    with living.writing():
        found = open_aside(living.folder, living.stamp)
        made = LivingState.of_folder(found.folder)
        living.switch(made.state, living.changes[found.learnt :], found.changes)
    clear_aside(living.folder)
    return Refit(**found.refit)._replace(kept=True, aside=False, feedback=None)


def _refit(living: LivingState, given: Judgements | None, aside: bool, progress: bool) -> Refit:
    with living.lock:
        state, count = living.current(), len(living.changes)
        seen = living.stamp
    made, done = learn_anew(state, given, progress=progress)
    if aside:
        waiting = done._replace(kept=False, aside=True)
        _keep_aside(living, made, waiting, not done.kept, Since(seen, count, state.view.changes))
        return waiting
    if not done.kept:
        return done
    with living.writing():
        if living.stamp != seen:
            return done._replace(kept=False, why="another fit was kept meanwhile")
        living.switch(made, living.changes[count:], state.view.changes)
    return done


def _keep_aside(living: LivingState, state: State, done: Refit, worse: bool, since: Since) -> None:
    if living.folder is None:
        raise MatchloomError("only a collection in a folder keeps a fit aside; save it first", code="not_supported")
    made = LivingState(state, living.about)
    plain = {**done._asdict(), "feedback": None}
    write_aside(living.folder, made.save, plain, worse, since)


@contextmanager
def _refitting(folder: Path | None) -> Iterator[None]:
    """Be the one who refits: a second one would do the same work for nothing."""
    if folder is None:
        yield
        return
    with artifact.try_lock(folder / REFIT_LOCK) as ours:
        if not ours:
            raise MatchloomError(f"{folder} is being refitted by another process; wait for it", code="busy")
        yield
