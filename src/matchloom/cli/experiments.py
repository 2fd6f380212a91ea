"""The repository's folder `experiments`, which no wheel has: the papers' tables and the readers of public corpora."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_MARK = Path("experiments", "reproduction", "tables")  # others may have a folder `experiments`, too


def experiment(module: str) -> Any:
    """A module of `experiments`, from where Python finds it, the clone of this package or the current folder."""
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / _MARK).is_dir() and str(root) not in sys.path:
            sys.path.insert(0, str(root))
    try:
        return import_module(f"experiments.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "experiments":
            raise
        from matchloom.types import MatchloomError

        raise MatchloomError(
            "the papers' tables and all corpora but pydocs are in the folder experiments/ of matchloom's repository, "
            "which is not here; clone the repository and run this in its folder"
        ) from None
