"""What a folder may be, and what reads it: the one table of kinds. Each is imported when such a folder is read."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from matchloom.artifact.checks import is_folder
from matchloom.artifact.manifest import holds
from matchloom.basics.extras import named_extras
from matchloom.basics.validation import one_path
from matchloom.types import MatchloomError, Scorer, Searchable

#: The loader of each kind, as module:name. A folder that has the manifest of two is of the first.
KINDS: dict[str, str] = {
    "collection": "matchloom.search.collection:Collection.open",
    "fit": "matchloom.fitting.fitted:Fitted.load",
    "archive": "matchloom.search.lance.collection:LanceCollection.open",
    "matcher": "matchloom.matcher:Matcher.load",
    "trans_lm": "matchloom.lexical.trans_lm:TransLM.load",
    "list_fusion": "matchloom.fitting.list_fusion:ListFusion.load",
    "calibrated": "matchloom.fitting.calibrated:Calibrated.load",
    "pair_classifier": "matchloom.fitting.pair_classifier:PairClassifier.load",
    "words": "matchloom.fitting.word_scorers:WordScorer.load",
}


def kind_of(folder: Path | str) -> str | None:
    """Which artifact a folder holds, whole or not; None where it holds none or is none."""
    path = Path(folder)
    return next((kind for kind in KINDS if holds(path, kind)), None)


def load(folder: Path | str) -> Scorer | Searchable:
    """Load what `fit`, `train` or `index` made, whatever it is. What is damaged or newer is refused in one line.

    A matcher needs the extra `networks`, with a pretrained encoder `encoder`, an archive `archive`.

    Args:
        folder: Its folder.
    """
    path = one_path("folder", folder)
    found: Scorer | Searchable = load_kind(path)
    return found


def load_kind(folder: Path) -> Any:
    """Read a folder by the loader of its kind."""
    kind = kind_of(folder)
    if kind is None:
        told = "is no folder that 'matchloom fit', 'train' or 'index' made" if is_folder(folder) else "is not a folder"
        raise MatchloomError(f"{folder} {told}; expected what one of these writes", code="missing")
    module, _, name = KINDS[kind].partition(":")
    with named_extras(str(folder)):
        loader: Any = reduce(getattr, name.split("."), import_module(module))
        return loader(folder)
