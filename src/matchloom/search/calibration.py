"""How sure a ranking may be, and whether any answer is right.

    p(answerable | q)    = sigmoid(bias + w . z(q) + ln((1 - rate) / rate))
    p(a | q)             = p(answerable | q) * softmax over entries of score(q, .) / temperature

Signals of a question: `top`, its best fused score over the sum of the weights; `cosine`, the best raw cosine with an
entry (where an encoder was tuned, the lesser of its cosine and that of the encoder as it came); `machine`, the
probability of the first entry by the regression, and `energy`, the logarithm of the sum over entries of e^score by it
(without a regression both are the best value of the support vector machine, the first brought to 0 to 1); `coverage`,
the part of its stems, function words apart, that the collection has. Standardised features know which entry is best and
not whether any is good; these do. z are the signals less their mean, over their deviation, on held-out questions of the
user's own file, so that weights hold for any file.

The weights w come from training parts of several corpora from which some answers, or whole fields of them, were taken
away: questions of those have none, nor have those of other corpora (`python -m experiments.benchmarks.development`).
Learning them from one file alone, with its own answers left out, was worse; where a file has questions without an
answer, these pull them. `rate` is how many questions are taken to have no answer. It is a choice: held-out questions
all have one.

The temperature makes what is shown right on held-out questions: the log loss of the first answer's probability, drawn
towards what fitted these corpora, which falls with the questions an answer has and rises with the answers. A held-out
question leaves its answer with q - 1 of q questions, which is a harder collection than the user's: each counts
((q - 1) / q)^2. Where hardly any question can be left out (one question an entry) signals count as they are, and
answers are given no probability: what other corpora teach of it was wrong by .07 with an encoder and by .09 and more
without, whatever it was made of. How likely it is that there is any answer is still told.

A stated precision: of the answers whose probability is at least a threshold, so many are right. The threshold is the
lowest that held-out questions allow with nine chances in ten, tested from the strictest on and, among many, from a
quarter of them on (Learn then Test:
Angelopoulos et al., 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats
from matchloom.search.fusion import Cases, held_out_share, ranks

ENOUGH = 20  # held-out questions to learn from
SIGNALS = ("top", "cosine", "machine", "energy", "coverage")
RATE = 0.1  # of the questions that have no answer here
_COSINES = ("dense_nearest", "dense_text", "centroid", "text")  # what tells the cosine: the first that there is
_PULL = 1000.0  # of the weights, towards those of other corpora
_PULL_OF_BIAS = 5.0  # questions without an answer that count as much as what other corpora say of it
_PULL_OF_TEMPERATURE = 60.0  # of its logarithm, in questions
_STEPS = 30  # of Newton's method
TEMPERATURES = np.exp(np.linspace(log(0.3), log(6), 100))
_SIZES = (500.0, 300.0)  # questions an answer, and answers, up to which the prior of a temperature was learnt
_SURE = 1e-3  # no probability is nearer to 0 or 1 when the temperature is chosen
_RISK = 0.1  # that a promise is not kept
_TESTS = 100  # thresholds that are tried
_LATER = 4  # thresholds are also tried from this part of the questions on: a quarter


class Prior(NamedTuple):
    """What other corpora taught: bias and weights of signals, standardised and raw, and the temperature.

    The logarithm of the temperature is a constant, and so much for that of the questions an answer, and of the answers.
    """

    standardised: tuple[float, ...]
    raw: tuple[float, ...]
    log_temperature: tuple[float, float, float]

    def temperature(self, questions: float, answers: int) -> float:
        """Of a collection with so many questions an answer, and so many answers to choose from."""
        return exp(float(np.dot(self.log_temperature, sizes_of(questions, answers))))


WORDS = Prior((0.84, 0.16, 0.60, 0.62, 0.0, 0.57), (-2.80, 0.0, 3.15, 4.90, 0.0, 1.88), (0.43, -0.11, 0.19))
ENCODER = Prior((1.55, 0.0, 0.57, 0.0, 1.61, 0.17), (-2.84, 0.0, 2.86, 6.24, 0.0, 0.41), (0.11, -0.09, 0.20))


def sizes_of(questions: float, answers: int) -> tuple[float, float, float]:
    """What a temperature depends on before any question is asked: 1, and two logarithms."""
    most, many = _SIZES
    return 1.0, log(min(max(questions, 1.0), most)), log(min(max(answers, 1), many))


class Calibration(NamedTuple):
    """What turns scores and signals into probabilities."""

    temperature: float
    weights: tuple[float, ...]  # the bias first
    mean: tuple[float, ...] = (0.0,) * len(SIGNALS)
    deviation: tuple[float, ...] = (1.0,) * len(SIGNALS)
    # Of held-out questions, the probability of the first answer and whether it was right, the surest first.
    shown: tuple[float, ...] = ()
    right: tuple[bool, ...] = ()
    rate: float = RATE  # of the questions that are taken to have no answer

    @property
    def earned(self) -> bool:
        """Whether held-out questions of the file chose the temperature: else no answer is given a probability."""
        return bool(self.shown)

    def answerable(self, signals: Floats) -> Floats:
        """How likely it is that any answer is right. (N, 5) -> (N,)"""
        z = np.clip((signals - np.array(self.mean)) / np.array(self.deviation), -8, 8)
        odds = np.full(len(z), self.weights[0] + log((1 - self.rate) / self.rate))
        for column, weight in enumerate(self.weights[1:]):  # one by one: the same bits for one question and for many
            odds += weight * z[:, column]
        return _sigmoid(odds)

    def even(self, known: float) -> float:
        """How likely it would be that any answer is right, were half of all questions without one."""
        return known * self.rate / (known * self.rate + (1 - known) * (1 - self.rate))

    def probabilities(self, scores: Floats, answerable: Floats) -> Floats:
        """Of each entry; those of a question add up to what `answerable` says. (N, C), (N,) -> (N, C)"""
        likely: Floats = np.exp((scores - scores.max(axis=1, keepdims=True)) / self.temperature)
        likely *= (answerable / likely.sum(axis=1))[:, None]
        return likely

    def threshold(self, precision: float) -> float | None:
        """The least probability from which on answers are right so often; None where that cannot be promised."""
        return promised(np.array(self.shown), np.array(self.right, dtype=bool), 1 - precision)

    def threshold_for(self, coverage: float) -> float | None:
        """The highest probability from which on so many of the questions get an answer; None without held-out ones.

        One question more than this part of them, as split conformal prediction has it: a new question that is like the
        held-out ones then gets an answer with at least this chance.
        """
        wanted = ceil((len(self.shown) + 1) * coverage)
        if not self.shown:
            return None
        return self.shown[wanted - 1] if wanted <= len(self.shown) else 0.0

    def coverage(self, threshold: float) -> float:
        """The part of the held-out questions whose first answer has so much probability."""
        return float(np.mean(np.array(self.shown) >= threshold)) if self.shown else 0.0


def signals_of(names: Sequence[str], weights: Floats, raw: Floats, scores: Floats, coverage: Floats) -> Floats:
    """The signals of questions from raw features (N, E, C) and fused scores (N, C). (N, 5)"""
    found = np.zeros((len(raw), len(SIGNALS)))
    found[:, 4] = coverage
    if not raw.shape[2]:
        return found
    found[:, 0] = scores.max(axis=1) / max(float(weights.sum()), 1e-9)
    cosine = next((one for one in _COSINES if one in names), None)
    machine = next((one for one in ("joint", "softmax", "svm") if one in names), None)
    for column, name in ((1, cosine), (3, machine)):
        if name is not None:
            found[:, column] = _highest(raw[:, list(names).index(name)])
    if "dense_untuned" in names:  # a tuned encoder finds foreign questions near, too; the one that it was does not
        found[:, 1] = np.minimum(found[:, 1], _highest(raw[:, list(names).index("dense_untuned")]))
    if machine == "svm":
        found[:, 2] = np.clip((1 + found[:, 3]) / 2, 0, 1)
    elif machine is not None:
        values = raw[:, list(names).index(machine)]
        apart = np.where(np.isnan(values), -np.inf, values - found[:, [3]])
        every = np.maximum(np.exp(np.minimum(apart, 0)).sum(axis=1), 1.0)
        found[:, 2] = 1 / every
        found[:, 3] += np.log(every)
    return found


def _highest(values: Floats) -> Floats:
    """Of the entries that have one. (N, C) -> (N,)"""
    found: Floats = np.max(values, axis=1, where=~np.isnan(values), initial=-1.0)
    return found


def learn_calibration(
    names: Sequence[str], cases: Cases, weights: Floats, unanswerable: Floats, questions: float = inf
) -> Calibration:
    """From what a fusion with these weights says of held-out questions.

    `unanswerable` are signals of questions that have no answer (M, 5), `questions` how many an answer has on the mean.
    """
    prior = ENCODER if any(name.startswith("dense") for name in names) else WORDS
    start = prior.temperature(questions, cases.present.shape[1])
    counted = cases.counted > 0
    if counted.sum() < ENOUGH:
        return Calibration(start, prior.raw)
    signals = cases.signals[counted]
    mean, deviation = signals.mean(axis=0), np.maximum(signals.std(axis=0), 1e-6)
    own = Calibration(start, prior.standardised, tuple(mean.tolist()), tuple(deviation.tolist()))
    if len(unanswerable):
        own = own._replace(weights=_pulled(own, signals, unanswerable))
    scores = np.where(cases.present, cases.features @ weights, -np.inf)[counted]
    right = (ranks(cases, weights) == 1)[counted]
    answerable = own.answerable(signals)
    own = own._replace(temperature=fit_temperature(scores, right, answerable, start, questions))
    likely = answerable * first_share(scores, own.temperature)
    order = np.argsort(-likely, kind="stable")
    return own._replace(shown=tuple(likely[order].tolist()), right=tuple(right[order].tolist()))


def _pulled(start: Calibration, answerable: Floats, unanswerable: Floats) -> tuple[float, ...]:
    """Logistic regression of questions with and without an answer, both sides counting alike, drawn to the start.

    A handful of questions without an answer says little of where to part them from others: on development tasks two of
    them alone were worse than none, and with the pull better.
    """
    rows = np.concatenate([answerable, unanswerable])
    z = np.clip((rows - np.array(start.mean)) / np.array(start.deviation), -8, 8)
    x = np.hstack([np.ones((len(z), 1)), z])
    y = np.repeat([1.0, 0.0], [len(answerable), len(unanswerable)])
    each = len(rows) / 2 / np.repeat([len(answerable), len(unanswerable)], [len(answerable), len(unanswerable)])
    first = w = np.array(start.weights)
    pull = _PULL * np.array([1e-6, *[1.0] * (len(w) - 1)])  # the bias is free
    for _ in range(_STEPS):
        p = _sigmoid(x @ w)
        slope = x.T @ (each * (p - y)) + pull * (w - first)
        curve = (x * (each * p * (1 - p))[:, None]).T @ x + np.diag(pull)
        w = w - np.linalg.solve(curve, slope)
    own = len(unanswerable) / (len(unanswerable) + _PULL_OF_BIAS)
    w[0] = own * w[0] + (1 - own) * first[0]
    return tuple(w.tolist())


def fit_temperature(
    scores: Floats, right: NDArray[np.bool_], answerable: Floats, start: float, questions: float = inf
) -> float:
    """The temperature that held-out questions of answers with so many of them ask for, drawn towards the start."""
    losses = held_out_share(questions) * losses_of(first_shares(scores), right, answerable)
    losses += _PULL_OF_TEMPERATURE * (np.log(TEMPERATURES) - log(start)) ** 2
    return float(TEMPERATURES[int(np.argmin(losses))])


def losses_of(firsts: Floats, right: NDArray[np.bool_], answerable: Floats) -> Floats:
    """The log loss of the first answers' probabilities, summed over questions. (T, N), (N,), (N,) -> (T,)"""
    p = np.clip(answerable * firsts, _SURE, 1 - _SURE)
    found: Floats = -np.log(np.where(right, p, 1 - p)).sum(axis=1)
    return found


def first_shares(scores: Floats) -> Floats:
    """The share of the first answer at each of `TEMPERATURES`. (T, N)"""
    return np.stack([first_share(scores, temperature) for temperature in TEMPERATURES.tolist()])


def first_share(scores: Floats, temperature: float) -> Floats:
    """The share of the first answer in a softmax."""
    apart = scores - scores.max(axis=1, keepdims=True)
    found: Floats = 1 / np.exp(apart / temperature).sum(axis=1)
    return found


def promised(shown: Floats, right: NDArray[np.bool_], wrong: float, risk: float = _RISK) -> float | None:
    """The lowest probability from which on at most this part of the answers is wrong, with this risk; None if none.

    Both sides are ordered by falling probability. Thresholds are tried from the strictest on, until one fails. Among
    many questions one wrong answer near the top would end this at once, so they are also tried from a quarter of the
    questions on; each of the two ways gets half of the risk.
    """
    if not 0 < wrong < 1 or not len(shown):
        return None
    later = len(shown) // _LATER
    two = later > _least(wrong, risk / 2)
    own = risk / 2 if two else risk
    starts = [_least(wrong, own), *([later] if two else [])]
    found = [one for start in starts if (one := _promised_from(start, shown, right, wrong, own)) is not None]
    return min(found, default=None)


def _least(wrong: float, risk: float) -> int:
    """How many right answers in a row prove something: fewer do not."""
    return ceil(log(risk) / log(1 - wrong))


def _promised_from(start: int, shown: Floats, right: NDArray[np.bool_], wrong: float, risk: float) -> float | None:
    found = None
    for m in np.unique(np.linspace(min(start, len(shown)), len(shown), _TESTS).astype(int)).tolist():
        threshold = float(shown[m - 1])
        inside = shown >= threshold
        if _at_most(int((~right[inside]).sum()), int(inside.sum()), wrong) > risk:
            break
        found = threshold
    return found


def _at_most(count: int, of: int, chance: float) -> float:
    """How likely it is that at most so many of some events with this chance happen."""
    steps = np.arange(1, count + 1)
    logs = np.cumsum(np.log((of - steps + 1) / steps) + log(chance / (1 - chance)))
    return float(np.exp(of * np.log1p(-chance) + np.concatenate([[0.0], logs])).sum())


def _sigmoid(x: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-np.clip(x, -40, 40)))
    return found
