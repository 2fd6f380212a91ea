"""Why two questions are similar, where their sentence vectors say so."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from matchloom.matcher import Matcher
from matchloom.search.lance.table import Vectors, unit
from matchloom.text.tokenize import Tokenizer
from matchloom.traces import grid_trace
from matchloom.types import Component, Trace


@runtime_checkable
class TakesApart(Protocol):
    """What makes sentence vectors as sums over words, and can say of which."""

    def vector_parts(self, text: str) -> Vectors | None:
        """What each word added to the text's vector, (words, n), up to a constant; None if the model cannot say."""


class SentenceSimilarity:
    """The cosine of two sentence vectors. It is taken apart by pairs of words where a vector is a sum over words:

        v_t . v_q = sum over i, j of  c_i . c_j  + what biases add,  both at a length of one

    Where it is not (a recurrence), the cosine is one component.
    """

    name = "sentence_vectors"

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    @property
    def tokenizer(self) -> Tokenizer:
        """How a text becomes words."""
        return self._matcher.tokenizer

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The words of both questions, and what they have to do with the cosine."""
        left, right = (self.tokenizer(side) or ["(no words)"] for side in (query, text))
        vectors = self._matcher.vectors([query, text])
        score = float(np.dot(*unit(vectors)))
        parts = self._parts(query, text)
        if parts is None:
            nothing = np.zeros((0, len(left), len(right)), np.float32)
            whole = Component("similarity of sentence vectors", score, score)
            return left, right, Trace(score, [], 0.0, nothing, [], [whole])
        norms = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
        grid = (parts[0] @ parts[1].T / norms.prod())[None]
        return left, right, grid_trace(score, grid, grid, ["sentence vectors"])

    def _parts(self, query: str, text: str) -> tuple[Vectors, Vectors] | None:
        if not isinstance(self._matcher, TakesApart):
            return None
        of_query, of_text = self._matcher.vector_parts(query), self._matcher.vector_parts(text)
        return None if of_query is None or of_text is None else (of_query, of_text)
