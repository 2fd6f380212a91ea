"""A user's file to a chosen, measured, explained, searchable folder: what `matchloom fit` does."""

from matchloom.fitting.fitted import Fitted
from matchloom.fitting.report import FitReport
from matchloom.fitting.run import fit

__all__ = ["FitReport", "Fitted", "fit"]
