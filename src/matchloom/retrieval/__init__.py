"""Questions that were asked before, with their answers, in an archive on disk."""

from __future__ import annotations

from matchloom.retrieval.index import Answer, QuestionIndex
from matchloom.retrieval.tuning import Tuned, draw_curve

__all__ = ["Answer", "QuestionIndex", "Tuned", "draw_curve"]
