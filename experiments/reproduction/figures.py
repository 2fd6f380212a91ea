"""The papers' figures and ours, drawn from a folder of results; a plot whose data are not there is not drawn.

A `Plot` names the results that it needs; its `points` says what of them it shows, or that there is nothing to show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.reproduction.tables import read_table, table_names
from matchloom.basics.files import make_folder
from matchloom.basics.plots import new_figure, save_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BLUE, _PALE, _DARK, _ORANGE = "#2f6fb0", "#8fb4dc", "#1c3f66", "#b35a00"
# Figure 2 of M2S-Net: our name of a system and the paper's.
_VARIANTS = {
    "M2S-Net Euc": "Euc",
    "M2S-Net Cos": "Cos",
    "M2S-Net Shallow": "Shallow\n(1 block)",
    "M2S-Net Metric-1": "Metric",
    "M2S-Net Metric-2": "Metric-2\n(3 blocks)",
    "M2S-Net Metric-2, two blocks": "Metric-2\n(2 blocks)",
    "M2S-Net Metric-4": "Metric-4",
    "M2S-Net Metric-4, no position bias": "Metric-4\n(no bias)",
}
_RIVALS = {"BM25": ":", "Soft coverage": "--"}


class Plot(NamedTuple):
    """A picture of some results."""

    name: str  # of the picture
    results: str  # the stem of the file that it needs
    caption: str
    points: Callable[[Any], Any]  # what it shows of them; nothing: it is not drawn
    draw: Callable[[Any], Figure]


def drawable(folder: Path) -> list[str]:
    """The plots that the results in a folder give."""
    return [plot.name for plot in PLOTS if _points(plot, folder)]


def draw_plots(folder: Path, figures: Path) -> list[str]:
    """Draw them, and say which; none where matplotlib is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return []
    drawn = []
    for plot in PLOTS:
        points = _points(plot, folder)
        if points:
            make_folder(figures)
            save_plot(plot.draw(points), figures / f"{plot.name}.png")
            drawn.append(plot.name)
    return drawn


def _points(plot: Plot, folder: Path) -> Any:
    path = folder / f"{plot.results}.json"
    if not path.exists():
        return None
    try:
        return plot.points(json.loads(path.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError, AttributeError):  # of other fields than we know
        return None


Published = float | None
Curve = list[tuple[int, list[float], Published]]  # a setting, the figure of each seed, the published one


def _curve(table: str, pattern: str, measure: str, others: Mapping[str, int] | None = None) -> Callable[[Any], Curve]:
    """The test figures of the rows whose names hold a number, by that number; `others` have theirs by their names."""
    named = others or {}

    def points(done: Any) -> Curve:
        published = {}
        if table in table_names():
            published = {row.name: row.published[0] for row in read_table(table).rows if row.published}
        found: Curve = []
        for name, runs in done["systems"].items():
            match = re.fullmatch(pattern, name)
            values = [run["test"][measure] for run in runs if "test" in run]
            if values and (match or name in named):
                found.append((int(match[1]) if match else named[name], values, published.get(name)))
        return sorted(found) if len(found) > 1 else []

    return points


def _draw_curve(label: str, measure: str) -> Callable[[Curve], Figure]:
    def draw(points: Curve) -> Figure:
        """Means as a line, every seed as a dot, the published figures as another line."""
        figure = new_figure(6, 3.6)
        ax = figure.subplots()
        ax.plot([x for x, _, _ in points], [mean(values) for _, values, _ in points], "o-", color=_BLUE, label="ours")
        for x, values, _ in points:
            if len(values) > 1:
                ax.plot([x] * len(values), values, "o", color=_DARK, markersize=3)
        theirs = [(x, value) for x, _, value in points if value is not None]
        if theirs:
            ax.plot(*zip(*theirs, strict=True), "s--", color=_ORANGE, label="published, on other data")
        ax.set_xticks([x for x, _, _ in points])
        ax.set(xlabel=label, ylabel=f"test {measure}")
        _plain(ax)
        return figure

    return draw


def _variants(done: Any) -> dict[str, dict[str, list[float]]]:
    """AP and RR of each variant of M2S-Net, and of what needs no training."""
    found = {
        name: {m: [run["test"][m] for run in runs if "test" in run] for m in ("AP", "RR")}
        for name, runs in done["systems"].items()
        if name in _VARIANTS or name in _RIVALS
    }
    found = {name: values for name, values in found.items() if values["AP"]}
    return found if sum(name in _VARIANTS for name in found) > 1 else {}


def _draw_variants(systems: dict[str, dict[str, list[float]]]) -> Figure:
    """Each variant on the clean test, with deviations, every seed as a dot, and what needs no training."""
    figure = new_figure(11, 4.2)
    shown = {name: label for name, label in _VARIANTS.items() if name in systems}
    for ax, measure in zip(figure.subplots(1, 2), ("AP", "RR"), strict=True):
        for x, name in enumerate(shown):
            values = systems[name][measure]
            spread = stdev(values) if len(values) > 1 else 0.0
            ax.bar(x, mean(values), yerr=spread, capsize=4, color=_PALE, edgecolor=_BLUE, width=0.7)
            ax.plot([x] * len(values), values, "o", color=_DARK, markersize=3)
            ax.text(x, 0.505, f"{mean(values):.3f}", ha="center", fontsize=8)
        for name, line in _RIVALS.items():
            if name in systems:
                value = systems[name][measure][0]
                ax.axhline(value, linestyle=line, color=_ORANGE, linewidth=1, label=f"{name} {value:.3f}")
        ax.set_xticks(range(len(shown)), shown.values(), fontsize=7)
        ax.set(ylim=(0.5, 0.95), title=f"{measure}, clean test (68 questions)")
        _plain(ax)
    return figure


def _draw_alpha(rows: list[dict[str, Any]]) -> Figure:
    """A line for each fusion, its best alpha circled, and BM25 alone."""
    figure = new_figure(9, 4.5)
    ax = figure.subplots()
    for row in rows:
        if row["alpha"] is not None:
            (line,) = ax.plot(*zip(*row["curve"], strict=True), marker="o", markersize=3, label=row["name"])
            ax.plot(row["alpha"], row["train"], "o", markersize=8, markerfacecolor="none", color=line.get_color())
        elif row["name"] == "BM25":
            ax.axhline(row["train"], linestyle=":", color="black", linewidth=1, label=f"BM25 alone {row['train']:.3f}")
    ax.set(xlabel="alpha", ylabel="MAP, training questions held out", xlim=(-0.02, 1.02))
    ax.grid(alpha=0.3)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    return figure


_CORPORA = ("TREC-QA", "WikiQA")
_SPEED = "pairs ranked a second"


def _speeds(done: Any) -> dict[str, list[tuple[str, float, float]]]:
    """Of each corpus every system with its speed and its AP."""
    rows = {name: row for name, row in done["rows"].items() if _SPEED in row.get("speed", {})}
    found = {
        corpus: [(name, row["speed"][_SPEED], row[corpus]["AP"]) for name, row in rows.items() if corpus in row]
        for corpus in _CORPORA
    }
    return {corpus: points for corpus, points in found.items() if len(points) > 1}


def _draw_speeds(corpora: dict[str, list[tuple[str, float, float]]]) -> Figure:
    figure = new_figure(5.5 * len(corpora), 3.8)
    for ax, (corpus, points) in zip(figure.subplots(1, len(corpora), squeeze=False)[0], corpora.items(), strict=True):
        for n, (name, speed, quality) in enumerate(sorted(points, key=lambda point: point[1])):
            ax.plot(speed, quality, "o", color=_BLUE)
            above = 7 if n % 2 else -14  # neighbours would write over each other
            ax.annotate(name, (speed, quality), xytext=(0, above), textcoords="offset points", fontsize=8, ha="center")
        ax.set_xscale("log")
        ax.margins(0.35, 0.2)
        ax.set(xlabel=_SPEED, ylabel="AP", title=corpus)
        _plain(ax)
    return figure


# The systems of experiments/benchmarks/faq.py that the picture of the results shows.
_FAQ = {
    "encoder_ranker": ("matchloom with MiniLM", _DARK, "-"),
    "answer_ranker": ("matchloom, no encoder", _BLUE, "-"),
    "linear_classifier": ("scikit-learn: linear SVM", _ORANGE, "--"),
    "encoder_nearest": ("MiniLM: the nearest text", "#777777", "--"),
    "nearest_question": ("BM25: the nearest question", "#777777", ":"),
}


def _faq(done: Any) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for row in sorted(done["rows"], key=lambda row: row["questions"]):
        if row["system"] in _FAQ:
            found.setdefault(row["system"], []).append((row["questions"], mean(row["P@1"])))
    return found


def _draw_faq(found: dict[str, list[tuple[int, float]]]) -> Figure:
    figure = new_figure(7, 3.8)
    ax = figure.subplots()
    for system, (name, colour, line) in _FAQ.items():
        if system in found:
            ax.plot(*zip(*found[system], strict=True), line, marker="o", color=colour, label=name)
    ax.set(xlabel="questions to learn from", ylabel="first answer right (P@1)", title="CovidFAQ: 519 new questions")
    _plain(ax)
    return figure


def _plain(ax: Any) -> None:
    """No frame above and beside, a legend where there is something to say."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="best", fontsize=8)


PLOTS: tuple[Plot, ...] = (
    Plot("faq", "faq", "An FAQ: the first answer right, by the number of questions", _faq, _draw_faq),
    Plot(
        "mv_lstm_k",
        "qa",
        "MV-LSTM's Table 2: P@1 of the cosine interaction against k",
        _curve("qa", r"MV-LSTM cosine, k = (\d+)", "P@1"),
        _draw_curve("k", "P@1"),
    ),
    Plot(
        "match_srnn_d",
        "qa",
        "Match-SRNN: P@1 against the dimensions d of the spatial GRU",
        _curve("qa", r"Match-SRNN, d = (\d+)", "P@1", {"Match-SRNN, identity, epsilon .1": 10}),
        _draw_curve("d", "P@1"),
    ),
    Plot("m2s_net_figure2", "m2s_net_table3", "M2S-Net's Figure 2: its variants", _variants, _draw_variants),
    Plot(
        "cntn_figure3",
        "retrieval",
        "CNTN's Figure 3: MAP on the training questions against alpha",
        lambda done: done["rows"],
        _draw_alpha,
    ),
    Plot("quality_speed", "encoders", "Quality against speed of pretrained encoders", _speeds, _draw_speeds),
)
