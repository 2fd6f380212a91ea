"""The papers' figures from benchmarks/results, as pictures in docs/figures: `python -m benchmarks.figures`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from matplotlib.figure import Figure

HERE = Path(__file__).parent
FIGURES = HERE.parent / "docs" / "figures"
# Figure 2 of M2S-Net: our name of a system and the paper's.
FIGURE_2 = {
    "M2S-Net Euc": "Euc",
    "M2S-Net Cos": "Cos",
    "M2S-Net Shallow": "Shallow\n(one block)",
    "M2S-Net Metric-1": "Metric",
    "M2S-Net Metric-2": "Metric-2\n(three blocks)",
    "M2S-Net Metric-2, two blocks": "Metric-2\n(two blocks)",
    "M2S-Net Metric-4": "Metric-4",
    "M2S-Net Metric-4, no position bias": "Metric-4\n(no bias)",
}
RIVALS = {"BM25": ":", "Soft coverage": "--"}


def figure_2(systems: dict[str, list[dict[str, Any]]]) -> Figure:
    """AP and RR of each variant on the clean test, with deviations, every seed as a dot, and what needs no training."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    shown = {name: label for name, label in FIGURE_2.items() if systems.get(name)}
    for ax, measure in zip(figure.subplots(1, 2), ("AP", "RR"), strict=True):
        for x, name in enumerate(shown):
            values = [run["test"][measure] for run in systems[name]]
            spread = stdev(values) if len(values) > 1 else 0.0
            ax.bar(x, mean(values), yerr=spread, capsize=4, color="#8fb4dc", edgecolor="#2f6fb0", width=0.7)
            ax.plot([x] * len(values), values, "o", color="#1c3f66", markersize=3)
            ax.text(x, 0.505, f"{mean(values):.3f}", ha="center", fontsize=8)
        for name, line in RIVALS.items():
            if systems.get(name):
                value = systems[name][0]["test"][measure]
                ax.axhline(value, linestyle=line, color="#b35a00", linewidth=1, label=f"{name} {value:.3f}")
        ax.set_xticks(range(len(shown)), shown.values(), fontsize=7)
        ax.set(ylim=(0.5, 0.95), title=f"{measure}, clean test (68 questions)")
        ax.legend(loc="upper left", fontsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    return figure


def figure_3(rows: list[dict[str, Any]]) -> Figure:
    """Figure 3 of CNTN: MAP on the training questions against alpha, a line for each mixture, and BM25 alone."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
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


# Where a figure's results are, what draws it, and its name.
DRAWN: tuple[tuple[str, str, Callable[[Any], Figure], str], ...] = (
    ("m2s_net_table3", "systems", figure_2, "m2s_net_figure2"),
    ("retrieval", "rows", figure_3, "cntn_figure3"),
)


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    for results, key, draw, name in DRAWN:
        path = HERE / "results" / f"{results}.json"
        if path.exists():
            draw(json.loads(path.read_text(encoding="utf-8"))[key]).savefig(FIGURES / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
