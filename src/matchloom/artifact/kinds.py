"""What a folder may be, and what reads it: the one table of kinds. Each is imported when such a folder is read."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from matchloom.artifact.checks import is_folder
from matchloom.artifact.manifest import holds, manifest_name
from matchloom.basics.extras import named_extras
from matchloom.basics.stores import one_place, open_store, shown
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
    """Which artifact a folder holds, whole or not; None where it holds none or is none.

    A URI of an object store can hold an archive; what `publish` writes there is a copy, which `serve` reads.
    """
    path = one_place("folder", folder)
    if isinstance(path, str):
        return "archive" if open_store(path).size(manifest_name("archive")) is not None else None
    return next((kind for kind in KINDS if holds(path, kind)), None)


def load(folder: Path | str) -> Scorer | Searchable:
    """Load what `fit`, `train` or `index` made, whatever it is. What is damaged or newer is refused in one line.

    A matcher needs the extra `networks`, with a pretrained encoder `encoder`, an archive `archive`.

    Args:
        folder: Its folder.
    """
    found: Scorer | Searchable = load_kind(one_place("folder", folder))
    return found


def load_kind(folder: Path | str) -> Any:
    """Read a folder by the loader of its kind."""
    kind = kind_of(folder)
    if kind is None and isinstance(folder, str):
        raise MatchloomError(f"{shown(folder)} holds no archive of 'matchloom index --store lance'", code="missing")
    if kind is None and isinstance(folder, Path):
        problem = (
            "is no folder that 'matchloom fit', 'train' or 'index' made" if is_folder(folder) else "is not a folder"
        )
        raise MatchloomError(f"{folder} {problem}; expected what one of these writes", code="missing")
    assert kind is not None
    module, _, name = KINDS[kind].partition(":")
    with named_extras(shown(str(folder))):
        loader: Any = reduce(getattr, name.split("."), import_module(module))
        return loader(folder)
