"""A user's file to a chosen, measured, explained, searchable folder: what `matchloom fit` does."""

from matchloom.fit.fitted import Fitted, is_fitted
from matchloom.fit.report import FitReport
from matchloom.fit.run import fit

__all__ = ["FitReport", "Fitted", "fit", "is_fitted"]
