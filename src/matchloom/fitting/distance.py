"""How far questions are from those of a file: words that it does not have, and the cosine with its nearest question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.data.identity import digest, questions_of
from matchloom.fitting.report import Distance
from matchloom.search.features.tfidf import TfIdf
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair

FEWEST_ASKED = 10  # questions below which a figure says nothing
MOST_COMPARED = 20_000  # questions of a file whose likeness is looked at
_SAMPLE, _BLOCK = 500, 100
_QUANTILES = (0.1, 0.5, 0.9)


def distance(known: Sequence[Pair], asked: Sequence[Pair], tokenizer: Tokenizer) -> Distance | None:
    """Of the questions that are asked, beside a sample of those that are known; None where there are too few.

    Words of both sides count in the vectors, so that a word that the file does not have makes a question farther.
    """
    ours = sorted(questions_of(known), key=digest)
    theirs = sorted(questions_of(asked), key=digest)[:_SAMPLE]
    if min(len(ours), len(theirs)) < FEWEST_ASKED:
        return None
    words = [tokenizer(question) for question in (*ours, *theirs)]
    frequency = Counter(word for own in words[: len(ours)] for word in set(own))
    vectors = TfIdf.fit([*ours, *theirs], words).matrix([*ours, *theirs], words)
    of_file, others = vectors[: len(ours)], vectors[len(ours) :]
    some = min(_SAMPLE, len(ours))
    nearest = _nearest(others, of_file, own=False)
    beside = _nearest(of_file[:some], of_file, own=True)
    return Distance(
        len(theirs),
        some,
        _unknown(words[len(ours) :], frequency, 0),
        _unknown(words[:some], frequency, 1),
        np.quantile(nearest, _QUANTILES).round(4).tolist(),
        np.quantile(beside, _QUANTILES).round(4).tolist(),
        float(((nearest[:, None] < beside).mean() + (nearest[:, None] <= beside).mean()) / 2),
    )


def _nearest(some: sp.csr_array, known: sp.csr_array, *, own: bool) -> NDArray[np.float64]:
    """The highest cosine of each with one that is known; the first of these are the questions themselves if `own`."""
    found = []
    for start in range(0, some.shape[0], _BLOCK):
        cosines = (some[start : start + _BLOCK] @ known.T).toarray() / 2  # of two blocks of length one
        if own:
            rows = np.arange(len(cosines))
            cosines[rows, start + rows] = -1.0
        found.append(cosines.max(axis=1))
    return np.concatenate(found)


def _unknown(texts: Sequence[Sequence[str]], frequency: Counter[str], own: int) -> float:
    """The part of the words that no other question has; `own` is how often a question counts itself."""
    words = [word for text in texts for word in dict.fromkeys(text)]
    return sum(frequency[word] <= own for word in words) / max(1, len(words))
