"""A short round of what `make fuzz` does for minutes: always the same tries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.archives import Archives
from tests.hostile.artifacts import ARTIFACTS
from tests.hostile.corpus_files import CorpusFiles
from tests.hostile.data_files import DataFiles
from tests.hostile.forged import FORGED
from tests.hostile.fuzz import rng_of
from tests.hostile.odd_texts import OddTexts
from tests.hostile.trying import Kind

ROUND: dict[str, tuple[Callable[[Path], Kind], int]] = {
    "data files": (DataFiles, 200),
    "corpus files": (CorpusFiles, 400),
    "odd texts": (OddTexts, 60),
    "archives": (Archives, 4),
    **{name: (kind, 12) for name, kind in FORGED.items()},
    **{name: (kind, 30) for name, kind in ARTIFACTS.items()},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUND)
def test_a_round(name: str, tmp_path: Path) -> None:
    make, tries = ROUND[name]
    kind = make(tmp_path)
    for seed in range(tries):
        kind.attempt(rng_of(name, seed))
