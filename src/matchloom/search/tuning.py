"""alpha by its effect: mean average precision over a grid, as in the paper's Figure 3."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from matchloom.basics.plots import check_plot, new_figure, save_plot
from matchloom.basics.progress import track
from matchloom.data.identity import digest
from matchloom.evaluation.measures import CandidateLists, whole_label
from matchloom.search.lance.manifest import ALPHA
from matchloom.search.lance.rows import answer_key
from matchloom.search.lance.searcher import MixtureScores, Searcher, best_of_answers
from matchloom.search.lance.snapshot import Snapshot
from matchloom.search.lance.table import SAME, RowIds, Store
from matchloom.types import MatchloomError, Pair, Scorer

GRID = tuple(n / 20 for n in range(21))


class Tuned(NamedTuple):
    """The best alpha, the mean average precision at each point of the grid, and what it was measured on."""

    alpha: float
    curve: list[tuple[float, float]]
    questions: int
    ranked: str  # "judged pairs" or "all candidates"


def tune_alpha(
    searcher: Searcher, snapshot: Snapshot, pairs: list[Pair], rerank: Scorer | None, candidates: int, progress: bool
) -> Tuned:
    """Measure every alpha on judged pairs; see `LanceCollection.tune`."""
    judged, rows_of = _judged(snapshot.store, pairs)
    both = all({False, True} == {label > 0 for label in labels.values()} for labels in judged.values())
    query_ids: list[str] = []
    text_ids: list[str] = []
    labels: list[int | None] = []
    unretrieved: list[tuple[str, int]] = []
    parts: list[MixtureScores] = []
    for question, right in track(judged.items(), "Searching", total=len(judged), show=progress):
        asked = snapshot.asked(question)
        if both:
            ranked = [row for answer in right for row in rows_of[answer]]
        else:  # what any alpha could bring up
            found = (searcher.candidates(snapshot, asked, candidates, alpha) for alpha in (0.0, 0.5, 1.0))
            ranked = list(dict.fromkeys(chain.from_iterable(found)))
        answers: list[str] = []
        if ranked:
            parts.append(searcher.mixture(snapshot, asked, ranked, rerank))
            answers = sorted({*parts[-1].answers})  # as best_of_answers has them
        query_ids += [question] * len(answers)
        text_ids += [digest(answer) for answer in answers]  # ties follow no order of writing
        labels += [right.get(answer) for answer in answers]
        unretrieved += [(question, label) for answer, label in right.items() if answer not in answers]
    lists = CandidateLists(query_ids, text_ids, labels, ["AP"], unretrieved)
    curve = []
    for alpha in GRID:
        mixed = [best_of_answers(alpha * one.similarity + (1 - alpha) * one.match, one.answers)[1] for one in parts]
        curve.append((alpha, lists.measure(np.concatenate([np.zeros(0), *mixed])).values["AP"]))
    return Tuned(best_alpha(curve), curve, len(judged), "judged pairs" if both else "all candidates")


def best_alpha(curve: list[tuple[float, float]]) -> float:
    """The alpha with the highest value; of equals the one nearest to where we start."""
    best = max(value for _, value in curve)
    return min((abs(alpha - ALPHA), alpha) for alpha, value in curve if value == best)[1]


def _judged(store: Store, pairs: list[Pair]) -> tuple[dict[str, dict[str, int]], dict[str, RowIds]]:
    """For each question the judged answers of the archive and their labels, and the rows of each answer.

    Questions without a right answer are left out. A pair that was judged stands for its answer.
    """
    names = sorted({pair.text_id for pair in pairs if pair.text_id})
    by_id = store.find("text_id", names) | store.find("id", names)
    rest = [pair for pair in pairs if pair.text_id not in by_id]
    by_question = store.find("question", sorted({pair.text for pair in rest}))
    by_answer = store.find(SAME, sorted({answer_key(pair.text) for pair in rest if pair.text.strip()}))
    judged: dict[str, dict[int, int]] = defaultdict(dict)
    for pair in pairs:
        rows = by_id.get(pair.text_id) or by_question.get(pair.text) or by_answer.get(answer_key(pair.text))
        if not rows:
            raise MatchloomError(
                f"the judged pair of {pair.query[:40]!r} with text_id {pair.text_id!r}, text {pair.text[:40]!r} is not "
                "in the archive, neither by that id nor as a question or an answer; index it first, or leave it out"
            )
        label = whole_label(pair)
        for row in rows:
            if judged[pair.query].setdefault(row, label) != label:
                raise MatchloomError(
                    f"{pair.query[:40]!r} with text_id {pair.text_id!r}, text {pair.text[:40]!r} is judged twice, as "
                    f"{judged[pair.query][row]} and as {label}; keep one"
                )
    known = sorted({row for rows in judged.values() for row in rows})
    answer_of = dict(zip(known, store.take(known, [SAME])[SAME].to_pylist(), strict=True)) if known else {}
    answers: dict[str, dict[str, int]] = {}
    for question, labels in judged.items():
        found = answers[question] = {}
        for row, label in labels.items():
            found[answer_of[row]] = max(label, found.get(answer_of[row], label))
    useful = {question: labels for question, labels in answers.items() if any(label > 0 for label in labels.values())}
    if not useful:
        raise MatchloomError("no question has a right pair (label 1), so nothing can be tuned; expected judged pairs")
    return useful, store.find(SAME, sorted({*answer_of.values()}))


def draw_curve(tuned: Tuned, path: Path | str) -> None:
    """Write the curve as a picture, by the ending of its name: .png, .svg or .pdf."""
    check_plot(path)
    figure = new_figure(6, 4)
    axes = figure.subplots()
    axes.plot(*zip(*tuned.curve, strict=True), marker="o", markersize=4)
    axes.axvline(tuned.alpha, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlabel="alpha", ylabel="MAP", xlim=(-0.02, 1.02))
    axes.set_title(f"alpha = {tuned.alpha:.2f} over {tuned.questions} questions", fontsize=10)
    axes.grid(alpha=0.3)
    save_plot(figure, path)
