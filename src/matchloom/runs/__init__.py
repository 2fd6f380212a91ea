"""Trainings and fits by their folders, and as pages, while they run and when they are done."""

from matchloom.runs.measured import RunMeasured, measure_run
from matchloom.runs.page import render_fragment, render_page
from matchloom.runs.reading import Run, find_runs, read_run

__all__ = ["Run", "RunMeasured", "find_runs", "measure_run", "read_run", "render_fragment", "render_page"]
