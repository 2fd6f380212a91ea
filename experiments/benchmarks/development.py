"""Choose the constants of a collection: priors of the fusion, coefficients of p(answerable), temperatures.

    python -m experiments.benchmarks.development --words      # from scratch
    python -m experiments.benchmarks.development --encoder    # with the first pretrained encoder that is found
    python -m experiments.benchmarks.development --tuned      # with one that is tuned: half an hour

Everything is chosen on collections drawn from training parts (`development_tasks`); no test file is opened. What the
features say of each task is kept in a folder (--cache), so that choosing again takes minutes. To
experiments/results/development.json go, for each way:

    priors       forty tables of priors and pulls around the one in `search/fusion.py`, drawn with a fixed seed: mean
                 P@1 of the one that is there, of the best, and of what leaving one corpus out chooses (chosen on the
                 other corpora, measured on the one left out). Another table is worth shipping where that last figure
                 is above the first
    alone        P@1 of single features on the same tasks: what the fusion must not fall below
    answerable   coefficients of some of the signals in `search/calibration.py`, from questions whose answers were
                 taken away and questions of other corpora; AUROC, recall where 95% are kept, how many questions of
                 other corpora are shown as nine tenths right, and calibration error, all by coefficients of the other
                 corpora: for several sets of signals, and apart for one question an answer
                 With them goes the temperature: how the logarithm of what fitted each task depends on the questions an
                 answer has and on the answers. Where a task's own questions teach one, the calibration error is
                 with that, drawn towards what the other corpora say; of one question an answer it is by the other
                 corpora alone. `ECE by chance` is what it would be if every probability were true

With --answerable only the last is chosen, and what is there of the others stays. With --tuned nothing is chosen: on
tasks of 100 to 1,100 questions the figures of `answerable` are those of the constants that are there.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from experiments import places
from experiments.benchmarks.development_features import Measured, by_task, load, mean_of_corpora
from experiments.benchmarks.quality import CACHE
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.basics.progress import track
from matchloom.evaluation.answerability import auroc, calibration_error, recall_at_kept
from matchloom.lexical.columns import Floats
from matchloom.search import fusion
from matchloom.search.calibration import (
    ENCODER,
    ENOUGH,
    RATE,
    SIGNALS,
    TEMPERATURES,
    first_share,
    first_shares,
    fit_temperature,
    losses_of,
    signals_of,
    sizes_of,
)
from matchloom.search.fusion import learn_fusion, prior_of, pull_of

RESULTS = places.RESULTS / "development.json"
CANDIDATES, SPREAD = 40, 0.7  # tables of priors, and the deviation of the logarithm of each number
ALONE = ("svm", "softmax", "joint", "bm25_doc", "dense_nearest", "dense_softmax")
#: Signals of which coefficients are chosen. Where those of the regression are as good at telling, energy shows fewer
#: questions of other fields as surely answered.
SETS = (
    SIGNALS,
    ("top", "cosine", "machine", "coverage"),
    ("cosine", "machine", "coverage"),
    ("cosine", "energy", "coverage"),
    ("cosine", "machine", "energy", "coverage"),
)
_FAR = 0.5  # of the questions without an answer, in weight
_SURELY = 0.9
_DRAWS = 20  # of who is right, were every probability true
LEFT = 3  # the side of held-out questions
_RIDGE = 1e-4


# ---- priors


def standardised(raw: Floats) -> Floats:
    """As a search does it. (N, E, A)"""
    mean, spread = fusion.scale(raw)
    found: Floats = (raw - mean[:, :, None]) / spread[:, :, None]
    return found


def right_at_first(one: Measured, weights: Floats) -> float:
    """P@1 of the questions that are asked."""
    scores = np.einsum("nea,e->na", standardised(one.asked), weights)
    return float(one.right[np.arange(len(scores)), scores.argmax(axis=1)].mean())


def candidates() -> list[tuple[float, dict[str, float]]]:
    """A pull and factors of the priors; the first is what is there."""
    draw = np.random.default_rng(0)
    names = sorted({*fusion.PRIOR, *fusion.PRIOR_OF_MANY, *fusion.PRIOR_OF_JOINT})
    found = [(1.0, dict.fromkeys(names, 1.0))]
    for _ in range(CANDIDATES):
        factors = np.exp(SPREAD * draw.standard_normal(len(names)))
        found.append((float(draw.choice([0.3, 1.0, 3.0])), dict(zip(names, factors.tolist(), strict=True))))
    return found


def choose_priors(every: Sequence[Measured]) -> dict[str, Any]:
    """P@1 of the candidates, and which of them each corpus would be given by the others."""
    tables: list[dict[int, float]] = []
    for pull, factors in track(candidates(), "priors", total=CANDIDATES + 1, show=True):
        row: dict[int, float] = {}
        for n, one in enumerate(every):
            own = {name: factors.get(name, 1.0) * prior for name, prior in prior_of(one.names, worth=one.worth).items()}
            pulled = pull * pull_of(one.names)
            fused = learn_fusion(one.names, one.left, own, pulled, questions=one.questions)
            row[n] = right_at_first(one, fused.weights)
        tables.append(row)
    families = sorted({one.family for one in every})
    left_out: dict[int, float] = {}
    for family in families:
        others = [other for other in families if other != family]
        best = max(range(len(tables)), key=lambda n: mean_of_corpora(tables[n], every, others))
        left_out |= {n: value for n, value in tables[best].items() if every[n].family == family}
    best = max(range(len(tables)), key=lambda n: mean_of_corpora(tables[n], every))
    return {
        "what is there": mean_of_corpora(tables[0], every),
        "chosen by other corpora": mean_of_corpora(left_out, every),
        "best of all": mean_of_corpora(tables[best], every),
        "best, pull and factors": candidates()[best],
        "by task": by_task(tables[0], every),
    }


def alone(every: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """P@1 of single features."""
    found = {}
    for name in ALONE:
        row = {
            n: right_at_first(one, np.array([float(own == name) for own in one.names]))
            for n, one in enumerate(every)
            if name in one.names
        }
        if row:
            found[name] = {**by_task(row, every), "mean": mean_of_corpora(row, every)}
    return found


# ---- whether there is an answer, and how sure one may be


class Signalled:
    """The signals of a task's questions by the weights that it learns, and their scores: asked, gone, far, left out."""

    def __init__(self, one: Measured) -> None:
        self.one = one
        prior = prior_of(one.names, worth=one.worth)
        weights = learn_fusion(one.names, one.left, prior, questions=one.questions).weights
        sides = (one.asked, one.gone, one.far)
        self.scores = [np.einsum("nea,e->na", standardised(side), weights) for side in sides]
        self.sides = [
            signals_of(one.names, weights, side, own, coverage)
            for side, own, coverage in zip(sides, self.scores, one.coverage, strict=True)
        ]
        self.firsts = first_shares(self.scores[0])
        self.right = one.right[np.arange(len(self.scores[0])), self.scores[0].argmax(axis=1)]
        self.sizes = sizes_of(one.questions, one.asked.shape[2])
        counted = one.left.counted > 0
        self.learns = int(counted.sum()) >= ENOUGH
        if self.learns:
            left = one.left.signals[counted]
            self.left_scores = np.where(one.left.present, one.left.features @ weights, -np.inf)[counted]
            left[:, 0] = self.left_scores.max(axis=1) / max(float(weights.sum()), 1e-9)
            self.left_right = (fusion.ranks(one.left, weights) == 1)[counted]
            mean, deviation = left.mean(axis=0), np.maximum(left.std(axis=0), 1e-6)
            self.sides = [np.clip((side - mean) / deviation, -8, 8) for side in (*self.sides, left)]

    def known(self, weights: Floats, side: int) -> Floats:
        """How likely it is that there is an answer to the questions of a side."""
        shift = np.log((1 - RATE) / RATE) + weights[0]
        found: Floats = 1 / (1 + np.exp(-(self.sides[side] @ weights[1:] + shift)))
        return found

    def fitting(self, weights: Floats) -> float:
        """The logarithm of the temperature that makes the probabilities of what is asked right."""
        return float(np.log(TEMPERATURES[int(np.argmin(losses_of(self.firsts, self.right, self.known(weights, 0))))]))

    def shown(self, weights: Floats, temperatures: Floats) -> tuple[Floats, Floats]:
        """The probabilities of first answers to what is asked, and to far questions, as they would be shown."""
        start = float(np.exp(temperatures @ self.sizes))
        if self.learns:
            known = self.known(weights, LEFT)
            start = fit_temperature(self.left_scores, self.left_right, known, start, self.one.questions)
        asked, far = (self.known(weights, side) * first_share(self.scores[side], start) for side in (0, 2))
        return asked, far


def shares(some: Sequence[Signalled]) -> Floats:
    """How much each task counts: families of corpora count alike, and in them corpora."""
    corpora = Counter(one.one.corpus for one in some)
    families = Counter({one.one.corpus: one.one.family for one in some}.values())
    return np.array([1 / corpora[one.one.corpus] / families[one.one.family] for one in some])


def coefficients(some: Sequence[Signalled], names: Sequence[str]) -> Floats:
    """Bias and weights of the signals, none below 0 and 0 for those that are not named.

    Questions with and without an answer count alike.
    """
    from scipy.optimize import minimize

    rows, labels, weights = [], [], []
    for one, each in zip(some, shares(some).tolist(), strict=True):
        for side, label, share in zip(one.sides[:LEFT], (1, 0, 0), (1, 1 - _FAR, _FAR), strict=True):
            rows.append(side)
            labels.append(np.full(len(side), label))
            weights.append(np.full(len(side), each * share / len(side)))
    x, y, each = np.vstack(rows), np.concatenate(labels), np.concatenate(weights) / sum(map(np.sum, weights))
    spread = x.std(axis=0) + 1e-9
    x = x / spread

    def loss(w: Floats) -> tuple[float, Floats]:
        odds = w[0] + x @ w[1:]
        gap = each * (1 / (1 + np.exp(-odds)) - y)
        value = each @ (np.logaddexp(0, odds) - y * odds) + _RIDGE * (w[1:] ** 2).sum()
        return float(value), np.concatenate([[gap.sum()], x.T @ gap + 2 * _RIDGE * w[1:]])

    bounds = [(None, None), *[(0, None if name in names else 0) for name in SIGNALS]]
    found: Floats = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", bounds=bounds).x
    found[1:] /= spread
    return found


def log_temperatures(some: Sequence[Signalled], weights: Floats) -> Floats:
    """How the logarithm of what fits tasks depends on their sizes, by least squares."""
    each = np.sqrt(shares(some))[:, None]
    sizes, fitting = (np.array(one) for one in zip(*((one.sizes, [one.fitting(weights)]) for one in some), strict=True))
    found: Floats = np.linalg.lstsq(each * sizes, each * fitting, rcond=1e-6)[0][:, 0]
    return found


def figures_of(one: Signalled, weights: Floats, temperatures: Floats, draw: np.random.Generator) -> dict[str, float]:
    """How well these constants tell questions with an answer from others, and how right the probabilities are."""
    asked, gone, outside = (side @ weights[1:] for side in one.sides[:LEFT])
    likely, far = one.shown(weights, temperatures)
    drawn = [calibration_error(likely, draw.random(len(likely)) < likely) for _ in range(_DRAWS)]
    return {
        "near AUROC": auroc(asked, gone),
        "far AUROC": auroc(asked, outside),
        "near recall": recall_at_kept(asked, gone),
        "far recall": recall_at_kept(asked, outside),
        "far >= .9": float((far >= _SURELY).mean()),
        "ECE": calibration_error(likely, one.right),
        "shown less right": float(likely.mean() - one.right.mean()),
        "ECE by chance": float(np.mean(drawn)),
    }


def choose_answerable(every: Sequence[Signalled], names: Sequence[str]) -> dict[str, Any]:
    """Coefficients of these signals, and how well those of other corpora tell questions with an answer from others."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    draw = np.random.default_rng(0)
    others: dict[str, tuple[Floats, Floats]] = {}
    for family in sorted({one.one.family for one in every}):
        some = [one for one in every if one.one.family != family]
        weights = coefficients(some, names)
        others[family] = weights, log_temperatures(some, weights)
    for n, one in enumerate(every):
        for name, value in figures_of(one, *others[one.one.family], draw).items():
            found[name][n] = value
    tasks = [one.one for one in every]
    weights = coefficients(every, names)
    return {
        "bias, " + ", ".join(SIGNALS): weights.tolist(),
        "log temperature: 1, ln questions, ln answers": log_temperatures(every, weights).tolist(),
        **{name: mean_of_corpora(values, tasks) for name, values in found.items()},
        "by task": {name: by_task(values, tasks) for name, values in found.items()},
    }


def chosen_answerable(every: Sequence[Measured]) -> dict[str, Any]:
    """Whether there is an answer, and temperatures."""
    known = [one for one in every if one.worth == 1]  # what an encoder does in a language it does not know is no guide
    signalled = [Signalled(one) for one in known]
    several, single = ([one for one in signalled if one.learns is learns] for learns in (True, False))
    return {
        "answerable": {", ".join(names): choose_answerable(several, names) for names in SETS},
        "answerable, one question an answer": {", ".join(names): choose_answerable(single, names) for names in SETS},
        "answerable, commit": commit(),
    }


def by_what_is_there(every: Sequence[Measured]) -> dict[str, Any]:
    """How well the constants of an encoder as it comes do with one that is tuned."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    draw = np.random.default_rng(0)
    for n, one in enumerate(every):
        weights, temperatures = (np.array(own) for own in (ENCODER.standardised, ENCODER.log_temperature))
        for name, value in figures_of(Signalled(one), weights, temperatures, draw).items():
            found[name][n] = value
    return {
        **{name: mean_of_corpora(values, every) for name, values in found.items()},
        "by task": {name: by_task(values, every) for name, values in found.items()},
        "commit": commit(),
    }


def chosen_priors(every: Sequence[Measured]) -> dict[str, Any]:
    """Priors of the fusion, on tasks that are drawn to compare rankings."""
    ranked = [one for one in every if not one.corpus.endswith(("_small", "_fields"))]
    return {"priors": choose_priors(ranked), "alone": alone(ranked), "commit": commit()}


def main() -> None:
    """Choose, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--encoder", action="store_true")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--answerable", action="store_true")
    parser.add_argument("--cache", type=Path, default=CACHE)
    arguments = parser.parse_args()
    for way in ("words", "encoder", "tuned"):
        if not getattr(arguments, way):
            continue
        every = load(arguments.cache, way)
        found = by_what_is_there(every) if way == "tuned" else chosen_answerable(every)
        if way != "tuned" and not arguments.answerable:
            found |= chosen_priors(every)
        kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        kept[way] = {**kept.get(way, {}), **found}
        Console(width=160).print({way: found})
        with atomic_write(RESULTS) as file:
            file.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
