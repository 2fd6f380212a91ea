"""Whether an answer is shown as the answer, or as one of the nearest where none is sure.

Where held-out questions earned a probability: it is at least a half, and so much that by them four of five such
answers are right; and that any answer is right must be likely, too. Where none was earned, all that there is says how
likely any answer fits, by what other collections taught, and is high for most questions: it must be nearly certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchloom.types import Hits

if TYPE_CHECKING:
    from matchloom.search.calibration import Calibration

_PRECISION, _LEAST, _UNPROVEN = 0.8, 0.5, 0.6
#: How likely it must be that any answer is right, were half of all questions without one; the second counts where no
#: probability was earned.
_ANY, _ANY_ALONE = 0.5, 0.63


class Confidence:
    """The threshold of a collection, worked out once for each fit."""

    def __init__(self) -> None:
        self._made: tuple[Calibration, float] | None = None

    def of(self, calibration: Calibration | None, hits: Hits) -> bool | None:
        """Whether the first answer is sure; None where nothing is known of that."""
        if not hits:
            return None if hits.known is None else False
        if calibration is None:
            return None
        likely = hits[0].probability
        if likely is None:
            return None if hits.known is None else calibration.even(hits.known) >= _ANY_ALONE
        return likely >= self._threshold(calibration) and (hits.known is None or calibration.even(hits.known) >= _ANY)

    def _threshold(self, calibration: Calibration) -> float:
        if self._made is None or self._made[0] is not calibration:
            found = calibration.threshold(_PRECISION)
            self._made = (calibration, _UNPROVEN if found is None else max(_LEAST, found))
        return self._made[1]
