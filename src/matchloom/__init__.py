"""matchloom matches two texts and shows why.

from matchloom import evaluate, explain, read_pairs, train

matcher = train(read_pairs("pairs.tsv"))
print(matcher.rank("how do I open a file?", ["open(path) opens a file", "print writes to the screen"]))
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # for checkers, which take it as true; `typing` itself would be most of an import of this file
if TYPE_CHECKING:
    from typing import Any

    from matchloom.artifact import load
    from matchloom.comparison import compare
    from matchloom.data.formats import read_pairs
    from matchloom.data.negatives import mine_negatives
    from matchloom.evaluation import evaluate
    from matchloom.explanation import explain
    from matchloom.fitting import Fitted, fit
    from matchloom.lexical import BM25
    from matchloom.matcher import Matcher
    from matchloom.models import MODELS
    from matchloom.search.collection import Collection
    from matchloom.training.config import TrainConfig
    from matchloom.training.run import train
    from matchloom.types import Pair

__all__ = [
    "BM25",
    "Collection",
    "Fitted",
    "MODELS",
    "Matcher",
    "Pair",
    "TrainConfig",
    "compare",
    "evaluate",
    "explain",
    "fit",
    "load",
    "mine_negatives",
    "read_pairs",
    "train",
]

_HOMES = {
    "BM25": "lexical",
    "Collection": "search.collection",
    "Fitted": "fitting",
    "MODELS": "models",
    "Matcher": "matcher",
    "Pair": "types",
    "TrainConfig": "training.config",
    "compare": "comparison",
    "evaluate": "evaluation",
    "explain": "explanation",
    "fit": "fitting",
    "load": "artifact",
    "mine_negatives": "data.negatives",
    "read_pairs": "data.formats",
    "train": "training.run",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: torch takes seconds that `matchloom --help` need not wait."""
    if name == "__version__":
        from importlib.metadata import version

        return version("matchloom")
    if name not in _HOMES:
        raise AttributeError(f"module 'matchloom' has no attribute {name!r}")
    from matchloom.basics.extras import named_extras

    with named_extras(f"matchloom.{name}"):
        return getattr(import_module(f"matchloom.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
