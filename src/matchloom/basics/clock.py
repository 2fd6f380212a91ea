"""How long something took, as a file says it.

Equal runs write equal files but for these numbers. Who wants equal bytes sets SOURCE_DATE_EPOCH, as for builds that can
be repeated (https://reproducible-builds.org/specs/source-date-epoch/): then no duration is written.
"""

from __future__ import annotations

import os

VARIABLE = "SOURCE_DATE_EPOCH"


def written(duration: float) -> float:
    """A duration for a file; 0 where files must not depend on the clock."""
    return 0.0 if os.environ.get(VARIABLE) else duration
