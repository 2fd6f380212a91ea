"""Whatever is saved: after any harm it is refused, or it is what it was (tests/artifact/damaging.py does the harm)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.artifact.damaging import Damaged
from tests.artifact.samples import SAMPLES

ARTIFACTS: dict[str, Callable[[Path], Damaged]] = {
    f"artifacts: {kind}": partial(lambda folder, kind: Damaged(folder, kind), kind=kind) for kind in SAMPLES
}
