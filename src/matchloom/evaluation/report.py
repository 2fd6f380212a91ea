"""One result with all that is needed to believe it: tie bounds, baselines, blind probes, the subset, and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import RenderableType

from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.identity import with_ids
from matchloom.evaluation.baselines import Baseline, Probe, surroundings
from matchloom.evaluation.measures import DEFAULT_MEASURES, CandidateLists, Measured, as_float32
from matchloom.evaluation.render import RenderedReport, ScorerFigures
from matchloom.evaluation.resolve import scorer_of
from matchloom.evaluation.significance import paired_randomisation
from matchloom.evaluation.subset import Subset, select_questions
from matchloom.evaluation.ties import TieBounds, bounds_of
from matchloom.lexical import Vectors, Words
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scorer


@dataclass(frozen=True, repr=False)
class Report:
    """The figures of one scorer. `values` are the aggregates, `low` and `high` their bounds over orders of ties.

    It shows itself: `rich.print(report)` in a terminal, as the last line of a notebook's cell, `to_html()` as a page;
    `to_dict()` is for programs.
    """

    name: str
    subset: Subset
    measured: Measured
    bounds: TieBounds
    baselines: list[Baseline]
    probes: list[Probe]
    warnings: list[str]
    seed: int

    @property
    def values(self) -> dict[str, float]:
        """The aggregate of each measure."""
        return self.measured.values

    @property
    def low(self) -> dict[str, float]:
        """The lowest aggregate over all orders of tied scores."""
        return self.bounds.low.values

    @property
    def high(self) -> dict[str, float]:
        """The highest aggregate over all orders of tied scores."""
        return self.bounds.high.values

    @property
    def per_query(self) -> dict[str, dict[str, float]]:
        """query_id -> measure -> value."""
        return _by_query(self.measured)

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {value:.4f}" for name, value in self.values.items())
        count = len(self.warnings)
        warnings = f", {count} warning{'' if count == 1 else 's'}" if count else ""
        return f"Report({self.name}: {values}; {self.subset.kept} questions{warnings})"

    def __rich__(self) -> RenderableType:
        return self._shown().for_terminal()

    def _repr_html_(self) -> str:
        return self._shown().for_notebook(self._title)

    def to_html(self) -> str:
        """One page that needs no other file and no network."""
        return self._shown().for_page(self._title)

    @property
    def _title(self) -> str:
        return f"{self.name} on candidate lists"

    def _shown(self) -> RenderedReport:
        own = [ScorerFigures(self.name, self.values, own=True)]
        if any(self.bounds.matter(name) for name in self.values):
            why = "by the order of tied scores"
            own += [ScorerFigures("  lowest", self.low, why), ScorerFigures("  highest", self.high, why)]
        baselines = [ScorerFigures(one.name, one.measured.values, one.note) for one in self.baselines]
        probes = [
            ScorerFigures(one.name, one.measured.values, f"{one.note}: ", alarm="above chance")
            if one.leaks
            else ScorerFigures(
                one.name, one.measured.values, f"{one.note}: {'at chance' if one.telling else 'too few to tell'}"
            )
            for one in self.probes
        ]
        return RenderedReport([rows for rows in (own, baselines, probes) if rows], self.subset.line(), self.warnings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and numbers; what is undefined is None."""
        return {
            "scorer": self.name,
            "seed": self.seed,
            "subset": {
                "protocol": self.subset.protocol,
                "questions": self.subset.questions,
                "kept": self.subset.kept,
                "without_positive": self.subset.without_positive,
                "without_negative": self.subset.without_negative,
                "pairs": self.subset.count,
                "line": self.subset.line(),
            },
            "values": _plain(self.values),
            "lowest": _plain(self.low),
            "highest": _plain(self.high),
            "tied_questions": self.bounds.tied_queries,
            "baselines": [
                {"name": f.name, "note": f.note, "values": _plain(f.measured.values)} for f in self.baselines
            ],
            "probes": [
                {"name": p.name, "note": p.note, "values": _plain(p.measured.values), "p": p.p, "leaks": p.leaks}
                for p in self.probes
            ],
            "warnings": self.warnings,
            "per_query": {query: _plain(row) for query, row in self.per_query.items()},
        }


def evaluate(
    scorer: Scorer | str | ArrayLike,
    pairs: PairsLike,
    *,
    measures: Iterable[str] = DEFAULT_MEASURES,
    subset: str = "both",
    baselines: bool = True,
    vectors: Vectors | None = None,
    tokenizer: Words | None = None,
    collection: Iterable[str] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Report:
    """Measure a scorer, or scores that were made elsewhere, on labelled pairs: as Pairs, tuples, dicts, a data frame or
    the path of a file (see as_pairs).

    The result does not depend on the order of the pairs, except for the baseline called "input order", which shows what
    that order gives away.

    Args:
        scorer: A matcher, any other scorer, the name of a lexical one such as "bm25", or a score for each pair.
        pairs: Labelled pairs; those with one `query_id` are one list.
        measures: ir-measures names.
        subset: Which questions count: "both" for those with both labels, "positive" for those with a positive, or
            "all".
        baselines: Measure simple scorers and blind probes on the same lists.
        vectors: Word vectors for the baseline soft coverage, which is skipped without them.
        tokenizer: How the baselines find words; like the scorer, or English, by default.
        collection: Texts in which baselines and named scorers count words; those of the pairs by default.
        seed: Of the random baseline, the probes and the tests.
        progress: Whether to show bars.
    """
    rows = list(with_ids(as_pairs(pairs)))
    chosen = select_questions(rows, subset)
    lists = CandidateLists.of(chosen.pairs, [measures] if isinstance(measures, str) else measures)
    known = None if collection is None else list(collection)
    words = tokenizer or getattr(scorer, "tokenizer", None) or Tokenizer("english")
    texts = sorted({pair.text for pair in chosen.pairs}) if known is None else known
    scorer = scorer_of(scorer, texts, tokenizer=words, vectors=vectors, seed=seed)
    if isinstance(scorer, Scorer):
        name = scorer.name
        scores = as_float32(scorer.score(chosen.pairs, progress=progress), len(chosen.pairs))
    else:
        name = "given scores"
        scores = as_float32(scorer, len(rows))[chosen.rows]
    measured, bounds = lists.measure(scores), bounds_of(lists, scores)
    warnings = independent_warnings(chosen, len(rows))
    warnings += tie_warnings(measured, bounds, constant=len(scores) > 1 and bool(np.ptp(scores) == 0))
    beside = None
    if baselines:
        beside = surroundings(
            chosen.pairs,
            lists,
            tokenizer=words,
            scorer=scorer if isinstance(scorer, Scorer) else None,
            vectors=vectors,
            collection=known,
            seed=seed,
            progress=progress,
        )
        warnings += _floor_warnings(measured, beside.baselines, seed)
        warnings += _leak_warnings(
            beside.probes, beside.baselines, beside.order_follows_labels, shared=_is_shared(chosen.pairs)
        )
    return Report(
        name,
        chosen,
        measured,
        bounds,
        beside.baselines if beside else [],
        beside.probes if beside else [],
        warnings,
        seed,
    )


def independent_warnings(chosen: Subset, pairs: int) -> list[str]:
    """Where hardly a question has several texts, the file is no file of lists."""
    if chosen.protocol != "both" or pairs >= 2 * chosen.questions or chosen.kept * 10 >= chosen.questions * 3:
        return []
    return [
        f"{chosen.kept:,} of {chosen.questions:,} questions have positives and negatives: these look like independent "
        "labelled pairs, which matchloom.evaluation.evaluate_pairs (evaluate --kind pairs) measures all"
    ]


def tie_warnings(measured: Measured, bounds: TieBounds, *, constant: bool) -> list[str]:
    """What the order of equal scores could change."""
    warnings = ["all scores are equal: this scorer ranks nothing"] if constant else []
    ranges = [
        f"{name} anywhere from {bounds.low.values[name]:.4f} to {bounds.high.values[name]:.4f}"
        for name in measured.values
        if bounds.matter(name)
    ]
    if ranges:
        warnings.append(
            f"ties matter ({bounds.tied_queries} questions have some): their order makes {', '.join(ranges)}"
        )
    return warnings


def _floor_warnings(measured: Measured, baselines: list[Baseline], seed: int) -> list[str]:
    first = next(iter(measured.values))
    own = measured.values[first]
    above = []
    for baseline in baselines:
        value = baseline.measured.values[first]
        if baseline.name != "input order" and value > own:
            p = paired_randomisation(baseline.measured.per_query[first], measured.per_query[first], seed=seed)
            above.append(f"{baseline.name} {value:.4f} ({_p(p)})")
    return [f"this scorer's {first} {own:.4f} is below {', '.join(above)}"] if above else []


def _is_shared(pairs: Sequence[Pair]) -> bool:
    """Whether every question is ranked against the same texts: then some are right more often, and no list leaks."""
    lists: dict[str, set[str]] = {}
    for pair in pairs:
        lists.setdefault(pair.query_id, set()).add(pair.text_id)
    first = next(iter(lists.values()), set())
    return len(lists) > 1 and all(texts == first for texts in lists.values())


def _leak_warnings(
    probes: list[Probe], baselines: list[Baseline], order_follows_labels: bool, *, shared: bool
) -> list[str]:
    chance, listed = baselines[0].measured.values, baselines[1].measured.values
    first = next(iter(chance))
    warnings = [
        f"{'some texts are right more often than others' if shared else 'the candidate lists leak'}: without the "
        f"question, {probe.name} ({probe.note}) gets {first} {probe.measured.values[first]:.4f} where chance is "
        f"{chance[first]:.4f} ({_p(probe.p)})"
        for probe in probes
        if probe.leaks
    ]
    if order_follows_labels:
        warnings.append(
            f"the input lists positives first: its order alone gets {first} {listed[first]:.4f} where chance is "
            f"{chance[first]:.4f}; the figures here do not use it, a tool that sorts stably does"
        )
    return warnings


def _by_query(measured: Measured) -> dict[str, dict[str, float]]:
    columns = {name: column.tolist() for name, column in measured.per_query.items()}
    return {query: {name: columns[name][i] for name in columns} for i, query in enumerate(measured.queries)}


def _p(p: float) -> str:
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _plain(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in values.items()}
