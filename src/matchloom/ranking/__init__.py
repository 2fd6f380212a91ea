"""From a question to the ranked answers of an FAQ or an answer archive, learnt from the user's own file alone."""

from __future__ import annotations

from matchloom.ranking.answers import Answers, RankedAnswer
from matchloom.ranking.mixture import LeftOut, Mixture
from matchloom.ranking.ranker import AnswerRanker

__all__ = ["AnswerRanker", "Answers", "LeftOut", "Mixture", "RankedAnswer"]
