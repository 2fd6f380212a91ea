"""One result with all that is needed to believe it: tie bounds, baselines, blind probes, the subset, and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.ids import with_ids
from matchloom.evaluation.baselines import Baseline, Probe, surroundings
from matchloom.evaluation.measures import DEFAULT_MEASURES, CandidateLists, Measured, as_float32
from matchloom.evaluation.significance import paired_randomisation
from matchloom.evaluation.subset import Subset, select_questions
from matchloom.evaluation.ties import TieBounds, bounds_of
from matchloom.lexical import Vectors, Words
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Scorer


@dataclass(frozen=True)
class Report:
    """The figures of one scorer. `values` are the aggregates, `low` and `high` their bounds over orders of ties."""

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

    def table(self) -> RenderableType:
        """The report for a terminal: a table, the subset, the warnings."""
        table = Table(box=SIMPLE, pad_edge=False, show_edge=False, header_style="bold")
        table.add_column("", no_wrap=True)
        for name in self.values:
            table.add_column(name, justify="right")
        table.add_column("", style="dim")
        table.add_row(Text(self.name, style="bold"), *_cells(self.values, "bold"), "")
        if any(self.bounds.matter(name) for name in self.values):
            table.add_row("  lowest", *_cells(self.low), "by the order of tied scores")
            table.add_row("  highest", *_cells(self.high), "by the order of tied scores")
        if self.baselines:
            table.add_section()
            for baseline in self.baselines:
                table.add_row(baseline.name, *_cells(baseline.measured.values), baseline.note)
        if self.probes:
            table.add_section()
            for probe in self.probes:
                found = "[red]above chance[/]" if probe.leaks else "at chance" if probe.telling else "too few to tell"
                note = f"{probe.note}: {found}"
                table.add_row(probe.name, *_cells(probe.measured.values), note)
        lines = [Text(self.subset.line(), style="dim")]
        lines += [Text(f"! {warning}", style="yellow") for warning in self.warnings]
        return Group(table, *lines)

    def to_json(self) -> dict[str, Any]:
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
                "pairs": len(self.subset.pairs),
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
    scorer: Scorer | ArrayLike,
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

    `subset` says which questions count (see select_questions). With `baselines`, simple scorers and blind probes are
    measured on the same lists; their words come from `tokenizer` (or else from the scorer's own, or English), their
    statistics from `collection` (or else from the texts of the pairs). The result does not depend on the order of
    the pairs, except for the baseline called "input order", which says what that order gives away.
    """
    rows = list(with_ids(as_pairs(pairs)))
    chosen = select_questions(rows, subset)
    lists = CandidateLists.of(chosen.pairs, measures)
    if isinstance(scorer, Scorer):
        name = scorer.name
        scores = as_float32(scorer.score(chosen.pairs, progress=progress), len(chosen.pairs))
    else:
        name = "given scores"
        scores = as_float32(scorer, len(rows))[chosen.rows]
    measured, bounds = lists.measure(scores), bounds_of(lists, scores)
    warnings = _tie_warnings(measured, bounds, constant=len(scores) > 1 and bool(np.ptp(scores) == 0))
    beside = None
    if baselines:
        beside = surroundings(
            chosen.pairs,
            lists,
            tokenizer=tokenizer or getattr(scorer, "tokenizer", None) or Tokenizer("english"),
            scorer=scorer if isinstance(scorer, Scorer) else None,
            vectors=vectors,
            collection=collection,
            seed=seed,
            progress=progress,
        )
        warnings += _floor_warnings(measured, beside.baselines, seed)
        warnings += _leak_warnings(beside.probes, beside.baselines, beside.order_follows_labels)
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


def _tie_warnings(measured: Measured, bounds: TieBounds, *, constant: bool) -> list[str]:
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


def _leak_warnings(probes: list[Probe], baselines: list[Baseline], order_follows_labels: bool) -> list[str]:
    chance, listed = baselines[0].measured.values, baselines[1].measured.values
    first = next(iter(chance))
    warnings = [
        f"the candidate lists leak: without the question, {probe.name} ({probe.note}) gets {first} "
        f"{probe.measured.values[first]:.4f} where chance is {chance[first]:.4f} ({_p(probe.p)})"
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


def _cells(values: dict[str, float], style: str = "") -> list[Text]:
    return [Text(f"{value:.4f}", style=style) for value in values.values()]


def _p(p: float) -> str:
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _plain(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in values.items()}
