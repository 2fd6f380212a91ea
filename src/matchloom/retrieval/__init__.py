"""Questions that were asked before, with their answers, in an archive on disk."""

from __future__ import annotations

from matchloom.retrieval.index import Added, QuestionIndex
from matchloom.retrieval.searcher import Answer
from matchloom.retrieval.tuning import Tuned, draw_curve

__all__ = ["Added", "Answer", "QuestionIndex", "Tuned", "draw_curve"]
