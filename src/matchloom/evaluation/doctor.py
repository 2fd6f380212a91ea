"""An audit of anyone's run file: what is wrong with it, and what that does to the figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.arrays import distinct
from matchloom.data.formats import RunLine, read_qrels, read_run
from matchloom.evaluation.measures import DEFAULT_MEASURES, CandidateLists, Measured, Numbers
from matchloom.evaluation.ties import bounds_of, chance_of
from matchloom.types import MatchloomError

_P = 0.01


class Finding(NamedTuple):
    """One thing about a run. `figures` gives every measure under each way of looking at it, e.g. lowest and highest.

    The first finding of an audit is the plain figure (kind "figure"); all others are troubles.
    """

    kind: str
    text: str
    figures: dict[str, dict[str, float]]


def audit(
    run_path: Path | str, qrels_path: Path | str, measures: Iterable[str] = DEFAULT_MEASURES, *, seed: int = 0
) -> list[Finding]:
    """Audit a TREC run against its judgements.

    The plain figure is trec_eval's, over all judged queries (its option -c): scores as float32, ties by text_id,
    a query without an answer counts 0. Not-a-number ranks last, and of a text listed twice the last line counts.
    """
    labels: dict[str, dict[str, int]] = {}
    findings: list[Finding] = []
    judged_twice = 0
    for judgement in read_qrels(qrels_path):
        row = labels.setdefault(judgement.query_id, {})
        judged_twice += judgement.text_id in row
        row[judgement.text_id] = judgement.label
    if judged_twice:
        findings.append(
            Finding("judged twice", f"{_count(judged_twice, 'judgement')} repeat a query and text; the last counts", {})
        )
    everything = list(read_run(run_path))
    lines = [line for line in everything if line.query_id in labels]
    if not lines:
        raise MatchloomError(
            f"{run_path} and {qrels_path} share no query: the first has {everything[0].query_id!r}, "
            f"the second {next(iter(labels))!r}",
            code="mismatch",
        )
    checkup = _Checkup(lines, labels, list(measures), seed)
    extra = sorted({line.query_id for line in everything} - labels.keys())
    if extra:
        text = f"in the run but not judged: {_count(len(extra), 'query')} ({_some(extra)}), which counts for nothing"
        findings.append(Finding("extra queries", text, {}))
    findings += checkup.not_finite()
    findings += checkup.duplicates()
    findings += checkup.missing_queries()
    findings += checkup.one_sided_queries()
    findings += checkup.ties()
    findings += checkup.ranks()
    plain = checkup.plain.values
    text = f"{_list(plain)} over {len(labels)} judged queries"
    return [Finding("figure", text, {"as trec_eval": plain}), *findings]


class _Checkup:
    """The run as arrays, and one method for each kind of trouble."""

    def __init__(self, lines: list[RunLine], labels: dict[str, dict[str, int]], measures: list[str], seed: int) -> None:
        self.every_line = lines
        self.labels = labels
        self.measures = measures
        self.seed = seed
        self.lines = list({(line.query_id, line.text_id): line for line in lines}.values())
        self.lists = self._lists(self.lines)
        self.scores = _scores(self.lines)
        self.sortable = _sortable(self.scores)
        self.plain = self.lists.measure(self.sortable)

    def not_finite(self) -> list[Finding]:
        nan, infinite = int(np.isnan(self.scores).sum()), int(np.isinf(self.scores).sum())
        if not nan + infinite:
            return []
        figures = {
            "ranked last": self.plain.values,
            "ranked first": self.lists.measure(_sortable(self.scores, nan=np.inf)).values,
        }
        lines = _count(nan, "line")
        text = f"scores are NaN in {lines}, infinite in {infinite}; NaN may land anywhere: {_swing(figures)}"
        return [Finding("not finite", text, figures)]

    def duplicates(self) -> list[Finding]:
        repeated = len(self.every_line) - len(self.lines)
        if not repeated:
            return []
        firsts = list({(line.query_id, line.text_id): line for line in reversed(self.every_line)}.values())
        figures = {
            "last line counts": self.plain.values,
            "first line counts": self._lists(firsts).measure(_sortable(_scores(firsts))).values,
        }
        text = f"query and text are repeated in {_count(repeated, 'line')}; trec_eval refuses this: {_swing(figures)}"
        return [Finding("duplicate ids", text, figures)]

    def missing_queries(self) -> list[Finding]:
        answered = {line.query_id for line in self.lines}
        missing = [query for query in self.lists.queries if query not in answered]
        if not missing:
            return []
        figures = {"over all": self.plain.values, "over answered": _mean_over(self.plain, answered)}
        text = f"judged but not answered: {_count(len(missing), 'query')} ({_some(missing)}): {_swing(figures)}"
        return [Finding("missing queries", text, figures)]

    def one_sided_queries(self) -> list[Finding]:
        """Queries that every order of the same candidates gives the same figure."""
        seen: dict[str, set[bool]] = {query: set() for query in self.lists.queries}
        for line in self.lines:
            seen[line.query_id].add(self.labels[line.query_id].get(line.text_id, 0) > 0)
        only_relevant = sum(found == {True} for found in seen.values())
        none_relevant = sum(found == {False} for found in seen.values())
        if not only_relevant + none_relevant:
            return []
        both = {query for query, found in seen.items() if len(found) == 2}
        figures = {"over all": self.plain.values}
        if both:
            figures["over the others"] = _mean_over(self.plain, both)
        text = (
            f"no order can change the figure of {_count(only_relevant, 'query')} with relevant texts only and of "
            f"{none_relevant} with none; say which questions count: {_swing(figures)}"
        )
        return [Finding("one-sided queries", text, figures)]

    def ties(self) -> list[Finding]:
        findings: list[Finding] = []
        bounds = bounds_of(self.lists, self.sortable)
        if not bounds.tied_queries:
            return findings
        chance = chance_of(self.lists, self.sortable, seed=self.seed)
        listed = self.lists.measure(self.sortable, ties=-np.arange(len(self.lines)))
        first = next(iter(self.lists.measures))

        figures = {
            "as trec_eval": self.plain.values,
            "lowest": bounds.low.values,
            "highest": bounds.high.values,
            "at random": chance.mean.values,
        }
        text = f"scores are tied, and their order is free, in {_count(bounds.tied_queries, 'query')}: {_swing(figures)}"
        findings.append(Finding("ties", text, figures))

        exact = self.lists.measure(_sortable(self.scores, single=False))
        finer = bounds.tied_queries - bounds_of(self.lists, _sortable(self.scores, single=False)).tied_queries
        if finer or not _same(exact.values, self.plain.values):
            figures = {"as float32": self.plain.values, "as float64": exact.values}
            text = f"some scores differ only beyond float32, which is all trec_eval sees: {_swing(figures)}"
            findings.append(Finding("near ties", text, figures))

        constant = self._constant_queries()
        if constant:
            others = {line.query_id for line in self.lines} - set(constant)
            figures = {"as trec_eval": self.plain.values, "at random": chance.mean.values}
            if others:
                figures["over the others"] = _mean_over(self.plain, others)
            where = f"in {_count(len(constant), 'query')}" if others else "throughout"
            text = f"all candidates have one score {where}, so that nothing is ranked: {_swing(figures)}"
            findings.append(Finding("constant scores", text, figures))

        figures = {"as trec_eval": self.plain.values, "in file order": listed.values, "at random": chance.mean.values}
        if chance.p_above(listed, first) < _P:
            text = f"among ties the file lists relevant texts first, a gift to a stable sort: {_swing(figures)}"
            findings.append(Finding("order follows labels", text, figures))
        for p, place in ((chance.p_above(self.plain, first), "first"), (chance.p_below(self.plain, first), "last")):
            if p < _P:
                text = f"among ties the text ids put relevant texts {place} in trec_eval's order: {_swing(figures)}"
                findings.append(Finding("ids follow labels", text, figures))
        return findings

    def ranks(self) -> list[Finding]:
        ranks = np.array([line.rank for line in self.lines], np.float64)
        codes = self.lists.codes
        order = np.lexsort((-self.sortable, ranks, codes))
        rising = (np.diff(self.sortable[order]) > 0) & (np.diff(codes[order]) == 0)
        wrong = len(distinct(codes[order][1:][rising]))
        if not wrong:
            return []
        figures = {
            "by score": self.plain.values,
            "by rank column": self.lists.measure(_sortable(-ranks, single=False), ties=self.sortable).values,
        }
        text = (
            f"the rank column contradicts the scores in {_count(wrong, 'query')}; trec_eval reads scores only: "
            f"{_swing(figures)}"
        )
        return [Finding("ranks contradict scores", text, figures)]

    def _lists(self, lines: Sequence[RunLine]) -> CandidateLists:
        retrieved = {(line.query_id, line.text_id) for line in lines}
        unretrieved = [
            (query, label)
            for query, row in self.labels.items()
            for text, label in row.items()
            if (query, text) not in retrieved
        ]
        return CandidateLists(
            [line.query_id for line in lines],
            [line.text_id for line in lines],
            [self.labels[line.query_id].get(line.text_id) for line in lines],
            self.measures,
            unretrieved,
        )

    def _constant_queries(self) -> list[str]:
        seen: dict[int, set[float]] = {}
        lengths = np.bincount(self.lists.codes)
        for code, score in zip(self.lists.codes.tolist(), self.sortable.tolist(), strict=True):
            seen.setdefault(code, set()).add(score)
        return [self.lists.queries[code] for code, found in seen.items() if len(found) == 1 and lengths[code] > 1]


def _scores(lines: Sequence[RunLine]) -> Numbers:
    return np.array([line.score for line in lines], np.float64)


def _sortable(scores: Numbers, *, single: bool = True, nan: float = -np.inf) -> Numbers:
    """Finite numbers in the order of the scores: equal where those are, NaN in the place of `nan`."""
    values: NDArray[np.floating] = np.where(np.isnan(scores), nan, scores)
    with np.errstate(over="ignore"):
        values = values.astype(np.float32) if single else values
    places: Numbers = np.unique(values, return_inverse=True)[1].astype(np.float64)
    return places


def _mean_over(measured: Measured, queries: set[str]) -> dict[str, float]:
    rows = [i for i, query in enumerate(measured.queries) if query in queries]
    return {name: float(np.nanmean(column[rows])) for name, column in measured.per_query.items()}


def _same(a: dict[str, float], b: dict[str, float]) -> bool:
    return all(abs(a[name] - b[name]) <= 1e-9 for name in a)


def _swing(figures: dict[str, dict[str, float]]) -> str:
    """The figures of the first measure that changes, in words."""
    ways = list(figures.values())
    moved = [name for name in ways[0] if any(abs(way[name] - ways[0][name]) > 1e-9 for way in ways)]
    if not moved:
        return f"no figure changes ({_list(ways[0])})"
    return f"{moved[0]} " + ", ".join(f"{way[moved[0]]:.4f} {name}" for name, way in figures.items())


def _list(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in values.items())


def _count(number: int, noun: str) -> str:
    several = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
