"""What the results of a table say: its rows beside the published ones, ties, order, blind probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from scipy.stats import spearmanr, ttest_rel

from experiments.reproduction.results import Entry, Results
from experiments.reproduction.tables import PaperTable, Row
from matchloom.evaluation.baselines import LEAK_P
from matchloom.evaluation.significance import paired_randomisation

SUBSETS = {"both": "with both labels", "positive": "with a positive", "all": "all"}
FEWEST = 3  # rows that have an order to speak of


def table_rows(table: PaperTable, done: Results) -> list[list[str]]:
    """Head and rows: means and deviations over seeds, and p of the difference to each rival named.

    A table without any test figures has development figures of all its measures instead.
    """
    tested = any("test" in run for runs in done["systems"].values() for run in runs)
    first, others = table.measures[0], table.subsets[1:]
    head = ["system"]
    if tested:
        head += [f"test {m}" for m in table.measures]
        head += [f"{m}, {SUBSETS[subset]}" for subset in others for m in table.measures]
    shown = [first] if tested else list(table.measures)
    head += [f"dev {m}" for m in shown]
    if tested:
        head += [f"p against {rival}" for rival in table.against]
        head += [f"t-test against {rival}" for rival in table.against if table.t_test]
    head += ["seeds", "minutes", "published"]
    rows = [head]
    for row, runs in _with_runs(table, done):
        cells = [row.name]
        if tested:
            cells += [over_seeds([run["test"][m] for run in runs if "test" in run]) for m in table.measures]
            cells += [
                over_seeds([run["other_subsets"][subset][m] for run in runs if subset in run.get("other_subsets", {})])
                for subset in others
                for m in table.measures
            ]
        cells += [over_seeds([run["development"][m] for run in runs]) for m in shown]
        if tested:
            rivals = [[] if name == row.name else done["systems"].get(name, []) for name in table.against]
            cells += [shown_p(p_value(runs, rival)) for rival in rivals]
            cells += [shown_p(t_test(runs, rival)) for rival in rivals if table.t_test]
        cells += [str(len(runs)), f"{mean(run['minutes'] for run in runs):.1f}", _published(row)]
        rows.append(cells)
    return rows


def _with_runs(table: PaperTable, done: Results) -> list[tuple[Row, list[Entry]]]:
    found = [(row, done["systems"].get(row.name, [])) for row in table.rows]
    return [(row, runs) for row, runs in found if runs]


def _published(row: Row) -> str:
    said = [" / ".join(f"{value:.3f}" for value in row.published)]
    if row.published_development is not None:
        said.append(f"dev {row.published_development:.3f}")
    return " ".join(said).strip()


def over_seeds(values: Sequence[float]) -> str:
    """Mean and deviation.

    >>> over_seeds([0.5, 0.7]), over_seeds([0.5]), over_seeds([])
    ('0.600 ±0.141', '0.500', '')
    """
    return "" if not values else f"{mean(values):.3f}" + (f" ±{stdev(values):.3f}" if len(values) > 1 else "")


def p_value(runs: Sequence[Entry], others: Sequence[Entry]) -> float | None:
    """The paired randomisation test over queries, each query's values being the means over seeds."""
    values = _per_query(runs, others)
    return None if values is None else paired_randomisation(*values)


def t_test(runs: Sequence[Entry], others: Sequence[Entry]) -> float | None:
    """The paired t-test over the same values; None where no query differs."""
    values = _per_query(runs, others)
    if values is None or values[0] == values[1]:
        return None
    p = float(ttest_rel(*values).pvalue)
    return p if p == p else None


def _per_query(runs: Sequence[Entry], others: Sequence[Entry]) -> tuple[list[float], list[float]] | None:
    """Both systems' values of the same queries; None where a run has none, or seeds have other queries."""
    kept = [[run["per_query"] for run in some if "per_query" in run] for some in (runs, others)]
    if not all(kept) or len({frozenset(values) for some in kept for values in some}) > 1:
        return None
    queries = sorted(kept[0][0])
    first, second = ([mean(values[query] for values in some) for query in queries] for some in kept)
    return first, second


def shown_p(p: float | None) -> str:
    """A p for a table; nothing where there is none."""
    return "" if p is None else f"{p:.3f}"


def tie_lines(table: PaperTable, done: Results) -> list[str]:
    """The lowest and highest figures over the orders of tied scores, of the rows where that changes a figure."""
    lines = []
    for row, runs in _with_runs(table, done):
        bounded = [run for run in runs if "lowest" in run and "highest" in run]
        ranges = []
        for m in table.measures if bounded else ():
            low, high = (f"{mean(run[side][m] for run in bounded):.3f}" for side in ("lowest", "highest"))
            if low != high:
                ranges.append(f"{m} {low} to {high}")
        if ranges:
            lines.append(f"- {row.name}: {', '.join(ranges)}")
    return lines


def order_lines(table: PaperTable, done: Results) -> list[str]:
    """How far our order of the rows is the published one, and where the paper's own model stands."""
    first = table.measures[0]
    tested: dict[str, tuple[float, float]] = {}
    chosen: dict[str, tuple[float, float]] = {}
    for row, runs in _with_runs(table, done):
        figures = [run["test"][first] for run in runs if "test" in run]
        if row.published and figures:
            tested[row.name] = row.published[0], mean(figures)
        if row.published_development is not None:
            chosen[row.name] = row.published_development, mean(run["development"][first] for run in runs)
    return [*_order_line(f"test {first}", tested, table.own), *_order_line(f"dev {first}", chosen, table.own)]


def _order_line(what: str, figures: Mapping[str, tuple[float, float]], own: str) -> list[str]:
    if len(figures) < FEWEST:
        return []
    published, ours = zip(*figures.values(), strict=True)
    rho = float(spearmanr(published, ours).statistic)
    line = f"- {what}: Spearman's correlation between the published order of {len(figures)} rows and ours is {rho:.2f}"
    if own in figures:
        place = 1 + sum(value > figures[own][1] for _, value in figures.values())
        line += f"; the paper's own model, {own}, is " + ("first" if place == 1 else f"number {place}")
    return [line + "."]


def best_row(table: PaperTable, done: Results) -> tuple[str, float, float, int] | None:
    """Of the rows that were tested, that with the highest development figure: name, development, test, seeds."""
    first = table.measures[0]
    found = []
    for row, runs in _with_runs(table, done):
        tested = [run["test"][first] for run in runs if "test" in run]
        if tested and not row.chosen_on_test:
            found.append((row.name, mean(run["development"][first] for run in runs), mean(tested), len(runs)))
    return max(found, key=lambda one: one[1], default=None)


def probe_lines(table: PaperTable, done: Results) -> list[str]:
    """What the blind probes got, means over seeds."""
    lines = []
    for row, runs in _with_runs(table, done):
        probed: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for run in runs:
            for probe in run.get("probes", []):
                probed.setdefault((probe["name"], probe["note"]), []).append(probe)
        for (name, note), found in probed.items():
            figures = ", ".join(f"{m} {mean(probe['values'][m] for probe in found):.3f}" for m in table.measures)
            lowest = min(probe["p"] for probe in found)
            result = ": **not at chance**" if lowest < LEAK_P else ""
            lines.append(f"- {row.name}, {name} ({note}): {figures}, lowest p {lowest:.3g}{result}")
    return lines


def leaks(table: PaperTable, done: Results) -> list[str]:
    """The names of the blind probes that are not at chance."""
    runs = [run for _, some in _with_runs(table, done) for run in some]
    return sorted({probe["name"] for run in runs for probe in run.get("probes", []) if probe["p"] < LEAK_P})


def commits(table: PaperTable, done: Results) -> list[str]:
    """The sources of all runs."""
    runs = [run for _, some in _with_runs(table, done) for run in some]
    return sorted({run["commit"] for run in runs} | {run["resumed_at"] for run in runs if "resumed_at" in run})


def minutes(done: Results) -> dict[str, float]:
    """How long a run of each row took."""
    return {name: round(mean(run["minutes"] for run in runs), 2) for name, runs in done["systems"].items() if runs}
