"""Several scorers in one, for candidate lists: weights that the development lists ask for.

    score(q, t) = sum over scorers e of  w_e s_e(q, t) / d_e,      w_e >= 0

d_e is the deviation of a scorer's scores within a list, taken over all development lists together. A deviation for each
list would follow a query's own scale; but then a text's score would depend on the other texts of its list, and a single
pair would have neither score nor explanation. The lexical scorers here have no scale of the query's own to
begin with, and development questions showed no difference.

The weights are learnt as those of answer ranking are (`matchloom.search.fusion`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchloom.artifact import as_saved, packed, read, write
from matchloom.data.identity import digest, with_ids
from matchloom.explanation.mixed import mixed_trace, term_of
from matchloom.fitting.word_scorers import REMEDY
from matchloom.search.fusion import Cases, learn_fusion
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scorer, Scores, Trace

WEIGHTS, FORMAT = "weights.safetensors", 2  # 1 had its checksums in the weights
#: Where weights start and are drawn back to, as new splits of SemEval 3B, TREC-QA and WikiQA chose: as much of words
#: alone as of the network that knows words in their context. With four parts network and one part words (what two of
#: them had chosen before) the fusion fell behind stemmed BM25 on SemEval, whose few questions cannot correct it.
PRIOR: Mapping[str, float] = {"normalized_bm25": 1.5, "overlap": 0.0, "knrm": 0.0, "mv_lstm": 1.5}
_LEAST = 1e-9
Floats = NDArray[np.float64]


class ListFusion:
    """A weighted sum of scorers, learnt from judged candidate lists."""

    name = "list_fusion"

    def __init__(
        self, scorers: Sequence[Scorer], weights: Floats, deviations: Floats, why: str, tokenizer: Tokenizer
    ) -> None:
        self.scorers: list[Scorer] = list(scorers)
        self.weights = weights
        self.deviations = deviations
        self.why = why
        self.tokenizer = tokenizer

    @classmethod
    def fit(cls, scorers: Sequence[Scorer], lists: Sequence[Pair], tokenizer: Tokenizer) -> ListFusion:
        """Learn the weights from held-out judged lists."""
        raw = np.stack([scorer.score(lists) for scorer in scorers], axis=1).astype(np.float64)
        cases, deviations = _cases(raw, lists)
        names = [scorer.name for scorer in scorers]
        fusion = learn_fusion(names, cases, PRIOR)
        return cls(scorers, fusion.weights, deviations, fusion.why, tokenizer)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair; it depends on that pair only."""
        total = np.zeros(len(pairs))
        for scorer, factor in zip(self.scorers, self._factors(), strict=True):
            if factor:
                total += factor * scorer.score(pairs, progress=progress).astype(np.float64)
        return total.astype(np.float32)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The traces of all scorers that have a weight, in one."""
        terms = []
        for scorer, factor in zip(self.scorers, self._factors(), strict=True):
            if factor:
                score = float(scorer.score([Pair(query, text)])[0])
                terms.append(term_of(scorer.name, factor, scorer, query, text, score, self.tokenizer))
        return mixed_trace(terms, one_text=True)

    def _factors(self) -> list[float]:
        return [float(factor) for factor in self.weights / self.deviations]

    def save(self, folder: Path | str) -> None:
        """Write the weights, and each scorer inside."""
        settings = {
            "why": self.why,
            "tokenizer": self.tokenizer._asdict(),
            "scorers": [one.name for one in self.scorers],
        }
        tensors = {"weights": self.weights, "deviations": self.deviations}
        inside: Any = {one.name: one for one in self.scorers}
        write(folder, "list_fusion", FORMAT, settings, {WEIGHTS: packed(tensors)}, inside=inside)

    @classmethod
    def load(cls, folder: Path | str) -> ListFusion:
        """Read what `save` wrote; what is missing, altered, exchanged or newer is refused in one line."""
        saved = read(folder, "list_fusion", FORMAT, remedy=REMEDY)
        settings, tensors = saved.settings, saved.tensors(WEIGHTS, finite=True)
        with as_saved(folder, REMEDY):
            scorers = [saved.inside(name) for name in settings["scorers"]]
            weights, deviations = (tensors[name] for name in ("weights", "deviations"))
            kinds = {(x.shape, str(x.dtype)) for x in (weights, deviations)}
            if kinds != {((len(scorers),), "float64")} or not (deviations > 0).all():
                raise MatchloomError(f"{folder} holds weights that do not fit its scorers; {REMEDY}", code="damaged")
            return cls(scorers, weights, deviations, str(settings["why"]), Tokenizer.from_dict(settings["tokenizer"]))


def _cases(raw: Floats, lists: Sequence[Pair]) -> tuple[Cases, Floats]:
    """Lists with a positive and a negative, their scores around the list's mean, and the deviations within lists."""
    members: dict[str, list[tuple[str, int]]] = {}
    for n, pair in enumerate(with_ids(lists)):
        members.setdefault(pair.query_id, []).append((digest(pair.text), n))
    positive = np.array([pair.is_labelled_positive for pair in lists])
    rows = [np.array([n for _, n in sorted(own)]) for _, own in sorted(members.items())]
    rows = [own for own in rows if 0 < positive[own].sum() < len(own)]
    width = max((len(own) for own in rows), default=1)
    features = np.zeros((len(rows), width, raw.shape[1]))
    there, labels = (np.zeros((len(rows), width), dtype=bool) for _ in range(2))
    for case, own in enumerate(rows):
        features[case, : len(own)] = raw[own] - raw[own].mean(axis=0)
        there[case, : len(own)] = True
        labels[case, : len(own)] = positive[own]
    deviations = np.maximum(np.sqrt(np.square(features).sum((0, 1)) / max(1, there.sum())), _LEAST)
    return Cases(features / deviations, there, labels, np.ones(len(rows))), deviations
