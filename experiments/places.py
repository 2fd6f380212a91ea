"""Where things are: the repository, the results, the pages that are made of them, and the data sets beside it."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
DOCS = ROOT / "docs"
FIGURES = DOCS / "figures"
DATA = Path(os.environ.get("MATCHLOOM_DATA", ROOT.parent / "shared" / "data"))
