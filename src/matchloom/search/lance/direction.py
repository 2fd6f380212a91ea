"""Where in the vector space the best answers to a question lie, so that one search of an index finds them.

The score to find the largest of is alpha * v_t . v_q + (1 - alpha) * s(t, a). Its first part is a product with v_q; a
vector index could find the nearest questions and stop there, but then a pair whose answer fits very well is missed.
As a function of v_a, s(t, .) is a product for a cosine or a bilinear form, and close to one for a tensor layer or an
MLP. So s(t, a) is computed for a sample of the archive's answers and w . v_a + c is fitted to it by least squares; then

    [alpha * v_t ; (1 - alpha) * w] . [v_q ; v_a]

is the score itself up to a constant where s is linear, and what comes nearest to it where it is not. The index searches
the pairs' two vectors, one behind the other, for the largest such product. It chooses candidates only: their scores are
always computed in full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matchloom.matcher import Matcher
from matchloom.search.lance.table import unit


class CandidateDirection:
    """A sample of an archive's answer vectors, ready to fit a line through any scores of them."""

    SAMPLE = 500

    def __init__(self, answers: NDArray[np.float32]) -> None:
        self._answers = answers
        centred = answers.astype(np.float64) - (answers.mean(axis=0, dtype=np.float64) if len(answers) else 0.0)
        self._fit = np.linalg.pinv(centred, rcond=1e-6)  # (n_s, sample)

    def towards(self, matcher: Matcher, question: NDArray[np.float32], alpha: float) -> NDArray[np.float32]:
        """The direction in which pairs score higher for this question. (2 * n_s,)"""
        scores = matcher.match_vectors(question, self._answers).astype(np.float64)
        slope = self._fit @ (scores - scores.mean()) if len(scores) else np.zeros_like(question)
        return np.concatenate([alpha * unit(question), (1 - alpha) * slope]).astype(np.float32)
