"""Learning anew from a collection as it is now, aside; what comes of it is kept unless it is worse."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from matchloom.search.aside import confusions
from matchloom.search.entries import Entries
from matchloom.search.feedback import Judgements
from matchloom.search.fusion import compare_weights
from matchloom.search.judged import Comparison, FeedbackReport, Judged, compare_on_held_out, report_of, settle
from matchloom.search.learning import Learnt, learn
from matchloom.search.state import State


class Refit(NamedTuple):
    """What became of a refit: how often held-out questions found their answer, before and after."""

    entries: int
    questions: int
    before: float | None
    after: float | None
    kept: bool  # whether the new fit is in use
    why: str
    feedback: FeedbackReport | None = None  # where there were judgements
    aside: bool = False  # whether it waits to be taken up by `promote`
    confused: tuple[tuple[str, str, int], ...] = ()  # ids: the right answer, the one found in its place, how often


def learn_anew(state: State, given: Judgements | None, *, progress: bool = False) -> tuple[State, Refit]:
    """The state that all entries teach now, and judgements where there are some; `kept` is False where it is worse.

    An encoder that was tuned is tuned again, from how it came: what it says of questions that it learnt from would
    flatter. Whether judgements help is seen with the encoder as it came.
    """
    entries, judged, report = state.view.entries(), state.judged, None
    if given is not None:
        entries, judged, report = _judged(state, given)
    tune = state.sentences is not None and state.sentences.untuned is not None
    learnt = learn(entries, state.settings, state.sentences, tune=tune, progress=progress)
    before, after, worse = _compare(state, learnt)
    done = Refit(len(entries), len(learnt.segment.questions), before, after, False, "", report)
    done = done._replace(confused=confusions(learnt))
    made = replace(State.of(learnt, state.settings), judged=judged)
    if worse:
        return made, done._replace(why="held-out questions find their answer significantly less often")
    return made, done._replace(kept=True, why=learnt.fusion.why)


def _judged(state: State, given: Judgements) -> tuple[Entries, Judged, FeedbackReport]:
    """Entries with what judgements teach, or as they are where held-out questions are worse for it."""
    entries = state.view.entries()
    own = state.judged.untaught(entries)
    settled = settle(given.judgements, entries, own)
    judged = state.judged.joined(settled, entries)
    taught, found = judged.taught(own), Comparison()
    if any(set(one) != set(other) for one, other in zip(taught.questions, entries.questions, strict=True)):

        def made_of(some: Entries) -> State:
            """Other entries, learnt in the same way."""
            return State.of(learn(some, state.settings, state.sentences), state.settings)

        found = compare_on_held_out(own, entries, taught, made_of)
    report = report_of(given, settled, found)
    return (taught, judged, report) if report.learnt else (entries, state.judged, report)


def _compare(state: State, learnt: Learnt) -> tuple[float | None, float | None, bool]:
    """The first answer right on held-out questions: by the old weights, by the new ones, and whether that is worse."""
    if learnt.figures is None or state.fusion.names != learnt.fusion.names:
        return None, None if learnt.figures is None else learnt.figures.precision_at_1, False
    return compare_weights(learnt.cases, state.fusion.weights, learnt.fusion.weights)
