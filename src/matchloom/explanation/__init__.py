"""Why a pair got its score: words, positions and values, for the terminal, as JSON and as a page."""

from __future__ import annotations

from matchloom.explanation.cells import Cell, cells, word_contributions
from matchloom.explanation.explained import Explanation, explain, explanation_of
from matchloom.explanation.html import render_html
from matchloom.explanation.mixed import Term, mixed_explanation, mixed_trace, term_of
from matchloom.explanation.source import Source

__all__ = [
    "Cell",
    "Explanation",
    "Source",
    "Term",
    "cells",
    "explain",
    "explanation_of",
    "mixed_explanation",
    "mixed_trace",
    "render_html",
    "term_of",
    "word_contributions",
]
