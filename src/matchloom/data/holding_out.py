"""Questions held out of a collection of right pairs, such that what is left still knows the answers."""

from __future__ import annotations

from collections.abc import Sequence

from matchloom.data.ids import digest, fold
from matchloom.data.same_answers import answers_of
from matchloom.types import Pair


def hold_out_questions(pairs: Sequence[Pair], part: float, *, seed: int = 0) -> tuple[list[Pair], list[Pair]]:
    """Right pairs to learn from, and those of a part of the questions, drawn by their digests.

    An answer keeps a question where it has several, for users ask again what is known, in other words; only where
    hardly any answer has two may its only question go.
    """
    questions: dict[str, list[int]] = {}
    for n, pair in enumerate(pairs):
        questions.setdefault(fold(pair.query), []).append(n)
    answers = answers_of(pairs)
    asked: dict[int, set[str]] = {}
    for question, places in questions.items():
        for n in places:
            asked.setdefault(answers[n], set()).add(question)
    order = sorted(questions, key=lambda question: digest(str(seed), question))
    rephrased = [question for question in order if all(len(asked[answers[n]]) > 1 for n in questions[question])]
    several = len(rephrased) >= 0.3 * len(order)
    count = max(1, min(round(part * len(order)), len(order) - 1))
    held: set[str] = set()
    for question in rephrased if several else order:
        if len(held) == count:
            break
        homes = {answers[n] for n in questions[question]}
        if not several or all(len(asked[home] - held) > 1 for home in homes):
            held.add(question)
    kept = [pair for pair in pairs if fold(pair.query) not in held]
    return kept, [pair for pair in pairs if fold(pair.query) in held]
