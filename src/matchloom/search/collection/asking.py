"""How a collection is asked: one question at once, many in blocks on the cores that help; whether the first is sure."""

from __future__ import annotations

from collections.abc import Sequence

from matchloom.basics.parallel import side_by_side, usable_cores
from matchloom.basics.progress import track
from matchloom.explanation.budget import CellBudget
from matchloom.search.calibration import Calibration
from matchloom.search.collection.living import LivingState
from matchloom.search.confidence import Confidence
from matchloom.search.view import Where
from matchloom.types import Hits, MatchloomError, Sureness

_PERHAPS = 3  # answers that are given where none is sure enough
_AT_ONCE = 256  # questions that are compared together
_WORTH = 64  # questions that are worth a thread
_QUICK = 2_000  # entries that were changed since the fit, up to which a search takes a millisecond or two


class Asking:
    """Questions to a state that lives."""

    def __init__(self, living: LivingState) -> None:
        self._living = living
        self._confidence = Confidence()

    @property
    def is_quick(self) -> bool:
        """Whether a search takes a millisecond or two: no encoder, few entries, and nothing to read before."""
        living = self._living
        small = living.state.sentences is None and living.state.settings.baseline is None and living.state.is_small
        return small and living.state.view.changes <= _QUICK and living.is_current()

    def many(
        self,
        asked: Sequence[str],
        *,
        top: int | None,
        where: Where | None,
        budget: CellBudget,
        least: float | None,
        progress: bool,
    ) -> list[Hits]:
        """The answers to each question.

        Few entries are compared so quickly that Python's own part, which holds its lock, is most of the time; an
        encoder has all cores to itself; explanations share a budget.
        """
        state = self._living.state
        small = state.sentences is not None or state.settings.baseline is not None or state.is_small
        cores = 1 if budget or small else usable_cores()
        size = min(_AT_ONCE, max(_WORTH, -(-len(asked) // cores)))
        blocks = [asked[n : n + size] for n in range(0, len(asked), size)]
        found = side_by_side(lambda block: self.together(block, top, where, budget, least), blocks, cores)
        shown = track(found, state.name, total=len(blocks), show=progress)
        return [hits for block in shown for hits in block]

    def together(
        self, questions: Sequence[str], top: int | None, where: Where | None, budget: CellBudget, least: float | None
    ) -> list[Hits]:
        """The answers to questions that are compared together, and whether the first ones are sure."""
        state = self._living.current()
        found = state.search(questions, top=top, where=where, budget=budget)
        for hits in found:
            hits.confident = self._confidence.of(state.calibration, hits)
        return [_answered(hits, least) for hits in found]

    def sureness(self, question: str, texts: Sequence[str], least: float | None) -> Sureness:
        """How sure it is of texts that were ranked for a question, best first."""
        state = self._living.current()
        found = state.search([question], top=None)[0] if question.strip() else Hits()
        answers = {hit.id: hit for hit in found}
        rows = [state.view.row_of_text(text) for text in texts]
        own = [None if row is None else answers.get(state.view.entry(row).id) for row in rows]
        probabilities = tuple(None if hit is None else hit.probability for hit in own)
        first = Hits([own[0]] if own and own[0] is not None else [], found.known)
        answered = None if least is None else bool(first) and (first[0].probability or 0.0) >= least
        return Sureness(probabilities, found.known, answered, self._confidence.of(state.calibration, first))


def threshold_of(calibration: Calibration | None, precision: float | None, coverage: float | None) -> float | None:
    """The least probability that a first answer needs to be shown; None where neither is stated.

    With `precision`, that from which on so many of the answers are right, refused where that is not proven; with
    `coverage`, that which so many of the first answers have.
    """
    if precision is None and coverage is None:
        return None
    if precision is not None and coverage is not None:
        raise MatchloomError("precision and coverage exclude each other; state one of them", code="conflict")
    for name, value in (("precision", precision), ("coverage", coverage)):
        if value is not None and not 0 < value < 1:
            raise MatchloomError(f"{name} is {value}; expected a number between 0 and 1", code="bad_value")
    if coverage is not None:
        found = None if calibration is None else calibration.threshold_for(coverage)
        if found is None:
            raise MatchloomError(
                "coverage needs probabilities, which this collection has not learnt: give answers more questions, and "
                "refit",
                code="not_supported",
            )
        return found
    assert precision is not None
    found = None if calibration is None else calibration.threshold(precision)
    if found is None:
        count = 0 if calibration is None else len(calibration.shown)
        raise MatchloomError(
            f"a precision of {precision} cannot be guaranteed with {count:,} held-out questions; state a lower one, or "
            "add questions and refit",
            code="not_supported",
        )
    return found


def _answered(hits: Hits, threshold: float | None) -> Hits:
    """Say whether the first answer is sure enough; where it is not, the nearest few are what there is."""
    if threshold is None:
        return hits
    answered = bool(hits) and (hits[0].probability or 0.0) >= threshold
    return Hits(hits if answered else hits[:_PERHAPS], hits.known, answered, hits.confident)
