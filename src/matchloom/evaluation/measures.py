"""Rankings into figures: any measure by its ir-measures name, never depending on the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import ir_measures
import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchloom.data.identity import with_ids
from matchloom.types import MatchloomError, Pair, Scores

DEFAULT_MEASURES = ("AP", "RR", "P@1", "nDCG@10")

Numbers = NDArray[np.float64]

_HIGHEST_LABEL = 1000  # trec_eval's time grows with the square of the highest label
_HIGHEST_CUTOFF = 1_000_000


@dataclass(frozen=True)
class Measured:
    """What one ranking of every list is worth: by measure and query, and as a whole."""

    queries: list[str]
    per_query: dict[str, Numbers]  # measure -> one value for each of `queries`
    values: dict[str, float]  # measure -> the aggregate, as ir-measures has it (nearly always the mean)

    @classmethod
    def of(
        cls, queries: list[str], per_query: dict[str, Numbers], measures: Mapping[str, ir_measures.Measure]
    ) -> Measured:
        """With the aggregates of these values."""
        values: dict[str, float] = {}
        for name, column in per_query.items():
            aggregator = measures[name].aggregator()
            for value in column[~np.isnan(column)].tolist():  # a few measures are undefined for some queries
                aggregator.add(value)
            values[name] = float(aggregator.result())
        return cls(queries, per_query, values)


class CandidateLists:
    """Candidate lists with their labels, ready to measure many rankings of them.

    Lists are made from parallel sequences; a label None means "not judged" (counts as not relevant). `unretrieved`
    holds (query, label) of texts that were judged but are in no list: they count against recall.
    """

    def __init__(
        self,
        query_ids: Sequence[str],
        text_ids: Sequence[str],
        labels: Sequence[int | None],
        measures: Iterable[str] = DEFAULT_MEASURES,
        unretrieved: Iterable[tuple[str, int]] = (),
    ) -> None:
        unretrieved = list(unretrieved)
        self.measures = parse_measures(measures)
        self.queries = sorted({*query_ids, *(query for query, _ in unretrieved)})
        number = {query: i for i, query in enumerate(self.queries)}
        self.codes = np.array([number[query] for query in query_ids], np.int64)
        self.labels = np.array([max(label or 0, 0) for label in labels], np.int64)
        if len(self.labels) and self.labels.max() > _HIGHEST_LABEL:
            raise MatchloomError(
                f"label {self.labels.max()} is too high; labels are whole numbers up to {_HIGHEST_LABEL}",
                code="bad_value",
            )
        # The place of each text by its ids: what breaks ties, and what random orders are drawn over.
        order = sorted(range(len(text_ids)), key=lambda i: (query_ids[i], text_ids[i]))
        for i, j in pairwise(order):
            if text_ids[i] == text_ids[j] and query_ids[i] == query_ids[j]:
                raise MatchloomError(
                    f"query_id {query_ids[i]!r} lists text_id {text_ids[i]!r} twice; ids must differ within a list",
                    code="bad_row",
                )
        self.places = np.empty(len(order), np.int64)
        self.places[order] = np.arange(len(order))
        # ir-measures sees plain numbers for ids: some providers choke on others, and no tie is left for ids to break.
        self._names = np.array([str(i) for i in range(len(order))], object)
        qrels: dict[str, dict[str, int]] = {str(i): {} for i in range(len(self.queries))}
        for i, label in enumerate(labels):
            if label is not None:
                qrels[str(self.codes[i])][self._names[i]] = int(self.labels[i])
        for i, (query, label) in enumerate(unretrieved, start=len(order)):
            qrels[str(number[query])][str(i)] = min(max(label, 0), _HIGHEST_LABEL)
        # One evaluator for all of trec_eval's, one for each other measure: together, ir-measures would count as 0 what
        # a measure by itself leaves undefined.
        apart = [[m] for m in self.measures.values() if not ir_measures.pytrec_eval.supports(m)]
        together = [m for m in self.measures.values() if [m] not in apart]
        try:
            self._evaluators = [ir_measures.evaluator(some, qrels) for some in [together, *apart] if some]
        except (ValueError, RuntimeError, TypeError) as error:
            raise MatchloomError(
                f"cannot measure {', '.join(self.measures)}: {_one_line(error)}", code="not_supported"
            ) from None

    @classmethod
    def of(cls, pairs: Iterable[Pair], measures: Iterable[str] = DEFAULT_MEASURES) -> CandidateLists:
        """The lists of labelled pairs; empty ids are filled from content."""
        rows = list(with_ids(pairs))
        labels = [whole_label(pair) for pair in rows]
        return cls([pair.query_id for pair in rows], [pair.text_id for pair in rows], labels, measures)

    def __len__(self) -> int:
        return len(self.codes)

    def measure(self, scores: ArrayLike, ties: ArrayLike | None = None) -> Measured:
        """Measure one ranking. Equal scores (as float32) are ordered by the higher of `ties`, then by text_id from
        the last, which is trec_eval's rule."""
        values = as_float32(scores, len(self))
        second = np.zeros(len(self)) if ties is None else np.asarray(ties)
        order = np.lexsort((-self.places, -second, -values, self.codes))
        starts = np.searchsorted(self.codes[order], np.arange(len(self.queries) + 1))
        run = {
            str(code): dict(zip(self._names[order[start:end]], map(float, range(end - start, 0, -1)), strict=True))
            for code, (start, end) in enumerate(pairwise(starts.tolist()))
            if end > start
        }
        per_query = {name: np.full(len(self.queries), np.nan) for name in self.measures}
        columns = {id(measure): per_query[name] for name, measure in self.measures.items()}  # hashing one is slow
        try:
            for metric in chain.from_iterable(evaluator.iter_calc(run) for evaluator in self._evaluators):
                columns[id(metric.measure)][int(metric.query_id)] = metric.value
        except Exception as error:  # a provider may be a program of its own and fail in any way
            raise MatchloomError(
                f"cannot measure {', '.join(self.measures)}: {_one_line(error)}", code="not_supported"
            ) from None
        return Measured.of(self.queries, per_query, self.measures)


def measure(pairs: Iterable[Pair], scores: ArrayLike, measures: Iterable[str] = DEFAULT_MEASURES) -> Measured:
    """Measure the ranking that `scores` make of each query's candidates.

    Equal to trec_eval: scores count as float32, equal ones are ordered by text_id, a label above 0 is relevant.

    >>> pairs = [Pair("q", "good", 1), Pair("q", "bad", 0)]
    >>> measure(pairs, [0.2, 0.7], ["RR", "P@1"]).values
    {'RR': 0.5, 'P@1': 0.0}
    """
    return CandidateLists.of(pairs, measures).measure(scores)


def parse_measures(names: Iterable[str]) -> dict[str, ir_measures.Measure]:
    """The ir-measures of these names, each once, in order."""
    parsed: dict[str, ir_measures.Measure] = {}
    for name in names:
        try:
            found = ir_measures.parse_measure(name)
            found.validate_params()  # type: ignore[no-untyped-call]
        except (NameError, ValueError, AssertionError, KeyError, TypeError, AttributeError):
            raise MatchloomError(
                f"measure {name!r} is unknown or incomplete; examples: AP, RR, P@1, R@10, nDCG@10, Success@5",
                code="unknown_name",
            ) from None
        cutoff = found.params.get("cutoff", 1)
        if not 1 <= cutoff <= _HIGHEST_CUTOFF:  # trec_eval ends the whole process at 0
            raise MatchloomError(f"measure {name!r}: the number behind @ is 1 to {_HIGHEST_CUTOFF:,}", code="bad_value")
        if found not in parsed.values():
            parsed[name] = found
    if not parsed:
        raise MatchloomError("no measure was named; examples: AP, RR, P@1, R@10, nDCG@10, Success@5", code="no_data")
    return parsed


def whole_label(pair: Pair) -> int:
    """The label as a whole number; what is not one is refused."""
    if pair.label is None or pair.label != pair.label or int(pair.label) != pair.label:
        raise MatchloomError(
            f"query_id {pair.query_id!r}, text_id {pair.text_id!r}: label {pair.label} is no whole number; "
            "to measure, label every pair 1 (matches) or 0 (does not)",
            code="bad_row",
        )
    return int(pair.label)


def as_float32(scores: ArrayLike, expected: int) -> Scores:
    """The scores as trec_eval sees them; refused where they are too few or not finite."""
    values = np.asarray(scores, np.float64)
    if values.shape != (expected,):
        raise MatchloomError(
            f"scores: expected one for each of {expected} pairs, found shape {values.shape}", code="mismatch"
        )
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(single))
    if len(bad):
        raise MatchloomError(
            f"scores: {len(bad)} of {expected} are not finite (the first is {values[bad[0]]}, of pair {bad[0] + 1}); "
            "nothing was measured",
            code="bad_value",
        )
    return single


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
