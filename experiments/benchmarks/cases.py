"""The papers' worked examples, explained by matchers that were trained here: a picture for each.

    matchloom reproduce qa --data ../shared/data --only "epsilon .1" --keep --out runs
    python -m experiments.benchmarks.cases "runs/qa/Match-SRNN, tied, epsilon .1, seed 0"  # to docs/figures/case_*.png

MV-LSTM's Table 1 and Match-SRNN's Figure 5 (memory stick), MV-LSTM's Table 4 (free and free): the right answer above,
the wrong one below. A map shows how strongly each two words interact; rings are the cells that add most to the score
(of MV-LSTM those that k-max pooling kept), a line is the path of the largest gates, on the dimension with the largest
weight. M2S-Net's Table 1 (Amtrak) needs a matcher of TREC-QA: `--amtrak FOLDER`. Scores go to
experiments/results/cases.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom import Matcher
from matchloom.basics.files import atomic_write
from matchloom.basics.plots import new_figure, save_plot
from matchloom.types import Trace

RESULTS = places.RESULTS / "cases.json"
FIGURES = places.FIGURES
STICK = "How to get rid of memory stick error of my sony cyber shot?"
FREE = "How could learn Russian by Internet for free? Any good websites?"
RINGS = 8
AMTRAK = "When did Amtrak begin operations ?"  # parted as TREC-QA parts its texts


class Case(NamedTuple):
    """A question, its right answer and a wrong one, where the paper has one."""

    name: str
    title: str
    question: str
    right: str
    wrong: str = ""


CASES = (
    Case(
        "memory_stick",
        "MV-LSTM, Table 1; Match-SRNN, Figure 5",
        STICK,
        "You might want to try to format the memory stick but what is the error message you are receiving.",
        "Never heard of stack underflow error, overflow yes, overflow is due to running out of virtual memory.",
    ),
    Case(
        "free_free",
        "MV-LSTM, Table 4",
        FREE,
        "Not sure free will get you unforgettable languages, however that will give you some basic vocabulary and "
        "great system for remembering it.",
        "In the Yahoo! home page you will get whole list of sites offering this game for free or visit www.iwin.com "
        "for free download.",
    ),
)
OF_TREC = Case("amtrak", "M2S-Net, Table 1", AMTRAK, "Amtrak has not turned a profit since it was founded in 1971 .")


def draw(case: Case, matcher: Matcher, name: str, path: Path) -> dict[str, float]:
    """Right and wrong answer, one above the other; their scores."""
    texts = {"right": case.right, **({"wrong": case.wrong} if case.wrong else {})}
    figure = new_figure(11, 3.6 * len(texts))
    scores = {}
    for ax, (kind, text) in zip(figure.subplots(len(texts), 1, squeeze=False)[:, 0], texts.items(), strict=True):
        query, words, trace = matcher.trace(case.question, text)
        scores[kind] = trace.score
        _map(ax, query, words, trace)
        ax.set_title(f"{case.title}: {kind} answer by {name}, score {trace.score:.2f}", fontsize=9)
    save_plot(figure, path)
    return scores


def _map(ax: Any, query: list[str], words: list[str], trace: Trace) -> None:
    """The map of the channel that adds most to the score, with its cells or its path."""
    added = [sum(abs(s.contribution) for s in trace.signals if s.channel == c) for c in range(len(trace.channels))]
    channel = max(range(len(added)), key=added.__getitem__)
    ax.imshow(trace.grid[channel], cmap="Greys", aspect="auto")
    own = [signal for signal in trace.signals if signal.channel == channel]
    if not trace.is_path(channel):
        own = sorted(own, key=lambda signal: -abs(signal.contribution))[:RINGS]
    across, down = [signal.right for signal in own], [signal.left for signal in own]
    if trace.is_path(channel):
        ax.plot(across, down, color="#c0392b", linewidth=2)
    else:
        ax.scatter(across, down, s=160, facecolors="none", edgecolors="#c0392b", linewidths=1.5)
    ax.set_xticks(range(len(words)), words, rotation=45, ha="right", fontsize=7)
    ax.set_yticks(range(len(query)), query, fontsize=7)
    ax.set_ylabel(trace.channels[channel], fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matchers", type=Path, nargs="+", help="matchers of qa that --keep kept, one of a model")
    parser.add_argument("--amtrak", type=Path, nargs="*", default=[], help="matchers of TREC-QA")
    given = parser.parse_args()
    rows = []
    for cases, folders in ((CASES, given.matchers), ((OF_TREC,), given.amtrak)):
        for folder in folders:
            matcher = Matcher.load(folder)
            for case in cases:
                picture = f"case_{case.name}_{matcher.name}.png"
                scores = draw(case, matcher, folder.name, FIGURES / picture)
                rows.append({"case": case.title, "matcher": folder.name, "picture": picture, **scores})
                print(rows[-1])
    with atomic_write(RESULTS) as file:
        json.dump({"commit": commit(), "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
