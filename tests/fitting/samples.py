from __future__ import annotations

from dataclasses import replace

from matchloom.data.kinds import ANSWERS
from matchloom.fitting.report import Asked, Confusion, FitReport, SystemFigures


def small_report() -> FitReport:
    """A report with every part of it, of a help desk."""
    return FitReport(
        kind=ANSWERS,
        about="questions with their answers (120 pairs)",
        measure="P@1",
        measures=("P@1", "R@3", "RR"),
        systems=[
            SystemFigures(
                "bm25_stemmed", "stemmed BM25", {}, {"P@1": 0.4, "R@3": 0.6, "RR": 0.5}, 0.0004, 1.25, baseline=True
            ),
            SystemFigures(
                "nearest_question", "known questions", {}, {"P@1": 0.75, "R@3": 0.8, "RR": 0.7}, 0.31, baseline=True
            ),
            SystemFigures("mv_lstm", "a network", seconds=181, error="it learnt nothing"),
            SystemFigures("answer_ranker", "a fusion", {}, {"P@1": 0.8, "R@3": 0.9, "RR": 0.85}, None, 24.0),
        ],
        chosen="answer_ranker",
        tested=100,
        developed=1,
        verdict=["8 of 10 questions get the right answer first.", "More questions would help."],
        minutes=4.2,
        curve=[
            (250, {"bm25_stemmed": 0.4, "answer_ranker": 0.6}),
            (1000, {"bm25_stemmed": 0.41, "answer_ranker": 0.8}),
        ],
        confusions=[Confusion("Change it under Orders.", "It is on the invoice.", 7, "change my address")],
        best=[Asked("forgot password", "Reset it.", "Reset it.", 1, 1.5, [("password", 0.9)])],
        worst=[
            Asked("change address", "Change it.", "Invoice.", 2, 0.9, [("change", 0.4), ("address ~ invoice", -0.1)]),
            Asked("where is it", "Track it.", "Our shops.", None, 0.4),
        ],
        notes=["14 questions stand twice in the file."],
    )


def bare_report() -> FitReport:
    """A report with as little as there can be."""
    return replace(
        small_report(),
        about="",
        systems=[],
        tested=0,
        developed=0,
        verdict=[],
        curve=[],
        confusions=[],
        best=[],
        worst=[],
        notes=[],
    )
