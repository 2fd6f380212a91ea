"""CNTN's Table 5 and Figure 3 on InsuranceQA, English or Chinese: an archived pair (q, a) for a new question t.

    matchloom reproduce cntn_chinese_near --data ../shared/data --out runs --keep
    python -m experiments.benchmarks.question_retrieval zh runs/cntn_chinese_near --data ../shared/data

The archive holds the training questions with their first answer. New questions are those of valid and test which share
an answer with an archived question: these archived pairs are right for them (79 of valid, 70 of test). As in the paper,
the candidates are the 20 archived questions nearest to t by a vector space model (TF-IDF, cosine); only questions with
a right one among these count. Pairs are ranked by alpha * v_t . v_q + (1 - alpha) * s(t, a), each divided by its
deviation over the candidates of valid; alpha has the highest MAP on valid, of a grid of 0.05. Okapi and TransLM rank by
t and q alone, as a first part with alpha = 1.

Figures, with a paired t-test against Okapi over the questions as the paper has it, go to
experiments/results/question_retrieval_<language>.json, MAP against alpha to docs/figures/cntn_figure3_<language>.png.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import ttest_rel

from experiments import places
from experiments.corpora import insuranceqa_answers, read_insuranceqa
from experiments.corpora.insuranceqa import Language, Split
from experiments.reproduction.provenance import commit
from experiments.reproduction.tasks import KINDS
from matchloom import Matcher
from matchloom.basics.files import atomic_write
from matchloom.basics.plots import new_figure, save_plot
from matchloom.data.negatives import Pool
from matchloom.evaluation.measures import CandidateLists
from matchloom.lexical import fit_scorer
from matchloom.search.lance.table import unit
from matchloom.search.tuning import GRID, best_alpha
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scores

MEASURES = ["AP", "P@10"]
CANDIDATES = 20
# Our rows of the tables named above, and the paper's MAP and P@10.
PUBLISHED: dict[Language, dict[str, tuple[float, float]]] = {
    "en": {
        "Okapi": (0.325, 0.229),
        "TransLM": (0.386, 0.252),
        "NBOW+MLP": (0.393, 0.268),
        "CNN+MLP": (0.418, 0.274),
        "CNTN-V": (0.439, 0.281),
    },
    "zh": {
        "Okapi": (0.293, 0.203),
        "TransLM": (0.307, 0.229),
        "NBOW+MLP": (0.315, 0.233),
        "CNN+MLP": (0.323, 0.241),
        "CNTN-V": (0.335, 0.249),
    },
}


class Archived(NamedTuple):
    """A training question, its first answer, and the ids of all its right answers."""

    question: str
    answer: str
    right: frozenset[str]


class Asked(NamedTuple):
    """New questions and their candidates: rows of the archive, and which of them are right."""

    questions: list[str]
    rows: list[list[int]]
    right: list[list[bool]]


def archive(folder: Path, language: Language, tokenizer: Tokenizer) -> list[Archived]:
    """The training questions by id."""
    answers = insuranceqa_answers(folder, language=language, truncate=tokenizer)
    return [
        Archived(question, answers[own[0]], frozenset(own)) for question, own in questions(folder, "train", language)
    ]


def questions(folder: Path, split: Split, language: Language) -> list[tuple[str, list[str]]]:
    """The questions of a part with the ids of their right answers."""
    found: dict[str, tuple[str, list[str]]] = {}
    for pair in read_insuranceqa(folder, split, language=language, gold="all"):
        found.setdefault(pair.query_id, (pair.query, []))[1].append(pair.text_id)
    return [found[key] for key in sorted(found)]


def asked(folder: Path, split: Split, language: Language, rows: Sequence[Archived], near: Pool) -> Asked:
    """Those of a part that have a positive pair among their candidates."""
    by_text: dict[str, list[int]] = {}
    for n, one in enumerate(rows):
        by_text.setdefault(one.question, []).append(n)
    shared = frozenset().union(*(one.right for one in rows))
    found = Asked([], [], [])
    for question, own in questions(folder, split, language):
        if shared.isdisjoint(own):
            continue
        best = near.nearest(question, CANDIDATES, (), cosine=True)
        candidates = sorted(n for row in best for n in by_text[near.texts[row]])[:CANDIDATES]
        right = [not rows[n].right.isdisjoint(own) for n in candidates]
        if any(right):
            found.questions.append(question)
            found.rows.append(candidates)
            found.right.append(right)
    return found


def lists_of(some: Asked) -> CandidateLists:
    """To measure on."""
    ids = [(f"t{t}", f"q{n}") for t, rows in enumerate(some.rows) for n in rows]
    labels = [int(right) for own in some.right for right in own]
    return CandidateLists([t for t, _ in ids], [q for _, q in ids], labels, MEASURES)


def parts(name: str, kept: Path, seed: int, some: Asked, rows: Sequence[Archived], words: Tokenizer) -> list[Scores]:
    """One or both parts of the fusion for every candidate of every question."""
    pairs = [(t, rows[n]) for t, own in zip(some.questions, some.rows, strict=True) for n in own]
    if name in ("Okapi", "TransLM"):
        texts = [one.question for one in rows]
        known = [Pair(one.question, one.answer, 1.0) for one in rows]
        scorer = fit_scorer("bm25" if name == "Okapi" else "trans_lm", texts, tokenizer=words, pairs=known)
        return [scorer.score([Pair(t, one.question) for t, one in pairs])]
    matcher = Matcher.load(kept / f"{name}, seed {seed}")
    left, right = (
        unit(matcher.vectors(texts)) for texts in ([t for t, _ in pairs], [one.question for _, one in pairs])
    )
    similar = np.asarray((left * right).sum(1), np.float32)
    return [similar, matcher.score([Pair(t, one.answer) for t, one in pairs])]


def measured(
    name: str, kept: Path, seed: int, valid: Asked, test: Asked, rows: Sequence[Archived], words: Tokenizer
) -> dict[str, Any]:
    """A row: alpha by valid, figures on test."""
    chosen, tested = (parts(name, kept, seed, some, rows, words) for some in (valid, test))
    if len(chosen) > 1:  # a cosine and a score of any size: alpha weighs them where both have the same spread
        spread = [float(part.std()) for part in chosen]
        chosen, tested = (
            [np.asarray(part / by, np.float32) for part, by in zip(both, spread, strict=True)]
            for both in (chosen, tested)
        )
    curve = [
        (a, lists_of(valid).measure(_mixed(chosen, a)).values["AP"]) for a in (GRID if len(chosen) > 1 else (1.0,))
    ]
    alpha = best_alpha(curve)
    found = lists_of(test).measure(_mixed(tested, alpha))
    each = dict(zip(found.queries, found.per_query["AP"].tolist(), strict=True))
    return {"name": name, "alpha": alpha, "curve": curve, "test": found.values, "per_query": each}


def _mixed(both: list[Scores], alpha: float) -> Scores:
    return both[0] if len(both) == 1 else np.asarray(alpha * both[0] + (1 - alpha) * both[1], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=("en", "zh"))
    parser.add_argument("kept", type=Path, help="the folder of the table's matchers, which --keep kept")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", type=Path, default=places.ROOT / "experiments", help="where results/ and ../docs/figures are"
    )
    given = parser.parse_args()
    folder, words = given.data / "insuranceqa", Tokenizer(KINDS[given.language], max_words=50)
    published = PUBLISHED[given.language]
    rows = archive(folder, given.language, words)
    near = Pool([one.question for one in rows], words, progress=True)
    valid, test = (asked(folder, split, given.language, rows, near) for split in ("valid", "test"))
    found = [measured(name, given.kept, given.seed, valid, test, rows, words) for name in published]
    first = list(found[0]["per_query"].values())
    shown = Table("", "alpha", *MEASURES, "p of t against Okapi", "published")
    for row in found:
        own, row["published"] = list(row["per_query"].values()), published[row["name"]]
        row["p"] = None if row is found[0] else float(ttest_rel(own, first).pvalue)
        p = "" if row["p"] is None else f"{row['p']:.3f}"
        figures = (f"{row['test'][measure]:.3f}" for measure in MEASURES)
        shown.add_row(row["name"], f"{row['alpha']:.2f}", *figures, p, " / ".join(map(str, row["published"])))
    Console().print(
        f"{len(rows):,} archived pairs; {len(valid.rows)} questions to choose alpha, {len(test.rows)} to test"
    )
    Console().print(shown)
    done = {
        "commit": commit(),
        "language": given.language,
        "kept": f"runs/{given.kept.name}",
        "archive": len(rows),
        "valid": len(valid.rows),
        "test": len(test.rows),
        "rows": found,
    }
    with atomic_write(given.out / "results" / f"question_retrieval_{given.language}.json") as file:
        json.dump(done, file, indent=1)
        file.write("\n")
    draw(found, given.out.parent / "docs" / "figures" / f"cntn_figure3_{given.language}.png")


def draw(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Figure 3: MAP on valid against alpha."""
    figure = new_figure(8, 4)
    ax = figure.subplots()
    for row in found:
        if len(row["curve"]) > 1:
            ax.plot(*zip(*row["curve"], strict=True), marker="o", markersize=3, label=row["name"])
        else:
            style = ":" if row["name"] == "Okapi" else "--"
            ax.axhline(row["curve"][0][1], linestyle=style, linewidth=1, color="black", label=row["name"])
    ax.set(xlabel="alpha", ylabel="MAP, questions of valid")
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    save_plot(figure, path)


if __name__ == "__main__":
    main()
