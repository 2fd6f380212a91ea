"""Independent labelled pairs, each of which matches or not: average precision, AUC, accuracy and F1 over all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import RenderableType

from matchloom.calibration import labels
from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.identity import with_ids
from matchloom.evaluation.measures import as_float32
from matchloom.evaluation.render import RenderedReport, ScorerFigures
from matchloom.evaluation.resolve import scorer_of
from matchloom.lexical import Words, fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Calibrates, MatchloomError, Pair, Scorer, Scores

MEASURES = ("AP", "AUC", "accuracy", "F1")
_BASELINES = ("overlap", "bm25_stemmed")
Floats = NDArray[np.float64]


class LabelledFigures(NamedTuple):
    """Each measure, and what each pair added to it times their number, such that the mean is the measure."""

    values: dict[str, float]
    each: dict[str, Floats]


@dataclass(frozen=True, repr=False)
class LabelledReport:
    """The figures of one scorer on independent labelled pairs.

    Accuracy and F1 are at `threshold`, which the scorer brought from its own development pairs; without one they are
    left out: a threshold chosen here would flatter it. It shows itself, as Report does.
    """

    name: str
    values: Mapping[str, float]
    threshold: float | None
    pairs: int
    positives: int
    baselines: Sequence[tuple[str, str, Mapping[str, float]]]  # name, note, figures
    warnings: Sequence[str]
    each: Mapping[str, Floats]

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {value:.4f}" for name, value in self.values.items())
        return f"LabelledReport({self.name}: {values}; {self.pairs:,} pairs)"

    def __rich__(self) -> RenderableType:
        return self._shown().for_terminal()

    def _repr_html_(self) -> str:
        return self._shown().for_notebook(self._title)

    def to_html(self) -> str:
        """One page that needs no other file and no network."""
        return self._shown().for_page(self._title)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and numbers."""
        return {
            "scorer": self.name,
            "kind": "pairs",
            "pairs": self.pairs,
            "positives": self.positives,
            "threshold": self.threshold,
            "values": dict(self.values),
            "baselines": [
                {"name": name, "note": note, "values": dict(values)} for name, note, values in self.baselines
            ],
            "warnings": list(self.warnings),
        }

    @property
    def _title(self) -> str:
        return f"{self.name} on labelled pairs"

    def _shown(self) -> RenderedReport:
        def row(name: str, values: Mapping[str, float], note: str = "", own: bool = False) -> ScorerFigures:
            return ScorerFigures(name, {one: values.get(one, float("nan")) for one in MEASURES}, note, own=own)

        at = "" if self.threshold is None else f"a match from {self.threshold:.4g} on"
        sections = [[row(self.name, self.values, at, own=True)], [row(*one[::2], one[1]) for one in self.baselines]]
        line = f"{self.pairs:,} independent pairs, {self.positives:,} of which match"
        return RenderedReport([some for some in sections if some], line, self.warnings)


def evaluate_pairs(
    scorer: Scorer | str | ArrayLike,
    pairs: PairsLike,
    *,
    baselines: bool = True,
    tokenizer: Words | None = None,
    collection: Iterable[str] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> LabelledReport:
    """Measure a scorer on independent labelled pairs: whether each matches, and not which of a list is best.

    Args:
        scorer: A matcher, any other scorer, the name of a lexical one, or a score for each pair.
        pairs: Labelled pairs, in any form that `evaluate` takes.
        baselines: Measure overlap and stemmed BM25 beside it, and what saying yes to everything is worth.
        tokenizer: How the baselines find words; like the scorer, or English, by default.
        collection: Texts in which baselines and named scorers count words; those of the pairs by default.
        seed: Of a random scorer.
        progress: Whether to show bars.
    """
    rows = list(with_ids(as_pairs(pairs)))
    unlabelled = sum(pair.label is None for pair in rows)
    if unlabelled:
        raise MatchloomError(
            f"{unlabelled} of {len(rows)} pairs have no label; to measure, every one needs it", code="bad_labels"
        )
    right = labels(rows)
    texts = sorted({pair.text for pair in rows}) if collection is None else list(collection)
    words = tokenizer or getattr(scorer, "tokenizer", None) or Tokenizer("english")
    chosen = scorer_of(scorer, texts, tokenizer=words, seed=seed)
    threshold = chosen.threshold if isinstance(chosen, Calibrates) else None
    scores = _scores(chosen, rows, progress)
    figures = measure_labelled(scores, right, threshold)
    beside: list[tuple[str, str, Mapping[str, float]]] = []
    warnings = []
    if baselines:
        part = float(right.mean())
        always = {"AP": part, "AUC": 0.5, "accuracy": max(part, 1 - part), "F1": 2 * part / (1 + part)}
        beside.append(("always the same", "the more frequent label; yes for F1", always))
        for name in _BASELINES:
            baseline = fit_scorer(name, texts, tokenizer=words, seed=seed)
            beside.append((name, "", measure_labelled(baseline.score(rows, progress=progress), right, None).values))
        above = [f"{name} {values['AP']:.4f}" for name, _, values in beside if values["AP"] > figures.values["AP"]]
        if above:
            warnings.append(f"this scorer's AP {figures.values['AP']:.4f} is below {', '.join(above)}")
    if threshold is None:
        warnings.append(
            "this scorer has no threshold, so that there is no accuracy; 'matchloom fit' finds one for your pairs"
        )
    name = chosen.name if isinstance(chosen, Scorer) else "given scores"
    count = len(rows), int(right.sum())
    return LabelledReport(name, figures.values, threshold, *count, beside, warnings, figures.each)


def measure_labelled(scores: ArrayLike, right: NDArray[np.bool_], threshold: float | None) -> LabelledFigures:
    """The figures of these scores, equal ones together; accuracy and F1 where there is a threshold.

    >>> measure_labelled([0.9, 0.1, 0.6], np.array([True, False, True]), 0.7).values["accuracy"]
    0.6666666666666666
    """
    from sklearn.metrics import average_precision_score, roc_auc_score  # a second that lists need not wait

    if right.all() or not right.any():
        raise MatchloomError("the pairs to measure on all have one label; both are needed", code="bad_labels")
    found = np.asarray(scores, np.float64)
    values = {"AP": float(average_precision_score(right, found)), "AUC": float(roc_auc_score(right, found))}
    each = {"AP": _precisions(found, right), "AUC": _placements(found, right)}
    if threshold is not None:
        said = found >= threshold
        each["accuracy"] = (said == right).astype(np.float64)
        each["F1"] = 2.0 * (said & right) * len(right) / (said.sum() + right.sum())
        values |= {name: float(each[name].mean()) for name in ("accuracy", "F1")}
    return LabelledFigures(values, each)


def _scores(scorer: Scorer | ArrayLike, rows: Sequence[Pair], progress: bool) -> Scores:
    return as_float32(scorer.score(rows, progress=progress) if isinstance(scorer, Scorer) else scorer, len(rows))


def _precisions(scores: Floats, right: NDArray[np.bool_]) -> Floats:
    """The precision at each positive pair's score, 0 for negatives, such that their mean is the average precision."""
    values, places = np.unique(-scores, return_inverse=True)
    true, said = np.bincount(places, right, len(values)).cumsum(), np.bincount(places).cumsum()
    found: Floats = np.where(right, (true / said)[places], 0.0) * len(right) / right.sum()
    return found


def _placements(scores: Floats, right: NDArray[np.bool_]) -> Floats:
    """The part of the other label that each pair stands on the right side of, ties half, such that the mean is AUC."""
    found = np.zeros(len(scores))
    for side in (True, False):
        others = np.sort(scores[right != side])
        own = scores[right == side]
        below = (np.searchsorted(others, own, "left") + np.searchsorted(others, own, "right")) / 2
        part = below / len(others)
        found[right == side] = (part if side else 1 - part) * len(scores) / (2 * len(own))
    return found
