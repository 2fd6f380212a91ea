"""Measures, what they are worth, and audits of other people's."""

from matchloom.evaluation.answerability import AnswerabilityReport, evaluate_answers
from matchloom.evaluation.doctor import Finding, audit
from matchloom.evaluation.labelled import LabelledReport, evaluate_pairs
from matchloom.evaluation.measures import DEFAULT_MEASURES, Measured, measure
from matchloom.evaluation.report import Report, evaluate
from matchloom.evaluation.significance import Difference, compare_runs, paired_randomisation
from matchloom.evaluation.subset import SUBSETS
from matchloom.evaluation.ties import TieBounds, tie_bounds

__all__ = [
    "DEFAULT_MEASURES",
    "SUBSETS",
    "AnswerabilityReport",
    "Difference",
    "Finding",
    "LabelledReport",
    "Measured",
    "Report",
    "TieBounds",
    "audit",
    "compare_runs",
    "evaluate",
    "evaluate_answers",
    "evaluate_pairs",
    "measure",
    "paired_randomisation",
    "tie_bounds",
]
