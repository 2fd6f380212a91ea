"""The part of a fit's page that says for which questions its figures hold."""

from __future__ import annotations

from matchloom.fitting.report import Distance, FitReport
from matchloom.pages.blocks import Column, Row, badge, facts, section, table
from matchloom.pages.markup import number, truncate


def of_what(report: FitReport) -> str:
    """How similar the file's questions are and what the figure owes to it; how far test questions are."""
    parts = [_similarity(report), _distance(report)]
    about = (
        "Every figure holds for questions like those it was measured on. This section shows how similar they are to "
        "each other, and how far your test questions are from them."
    )
    shown = "\n".join(filter(None, parts))
    return section("For which questions this holds", shown, about=about) if shown else ""


def _similarity(report: FitReport) -> str:
    like = report.likeness
    if like is None:
        return ""
    rows = [
        ("Questions in the file", f"{like.questions:,}"),
        ("With a similar one of the same answer", f"{like.similar:.0%}"),
        ("With a near copy of the same answer", f"{like.copies:.0%}"),
    ]
    if like.random is not None and like.by_cluster is not None:
        measure = truncate(report.measure, 40)
        rows += [
            (f"{measure}, held out at random", f"{number(like.random)} of {like.asked:,} questions"),
            (f"{measure}, held out with all similar ones", f"{number(like.by_cluster)} of the same questions"),
        ]
    return facts(rows, "card about")


def _distance(report: FitReport) -> str:
    far = report.distance
    if far is None:
        return ""
    rows = [
        Row(["words that no other question of the file has", *(f"{x:.0%}" for x in _both_unknown(far))]),
        *(
            Row([f"cosine with the nearest question, {name}", number(ours), number(theirs)])
            for name, ours, theirs in zip(
                ("lowest tenth", "median", "highest tenth"), far.nearest, far.nearest_of_file, strict=True
            )
        ),
    ]
    columns = [
        Column(""),
        Column(f"{far.questions:,} of your test questions", "number"),
        Column(f"{far.compared:,} questions of the file", "number"),
    ]
    mark = badge("far from the file", "bad") if far.is_far else badge("like the file", "good")
    shown = (
        f"In {far.farther:.0%} of all comparisons, a test question is farther from the file than one of the file's own "
        "questions."
    )
    return f'{table("Distance", columns, rows)}\n<p class="note">{shown} {mark}</p>'


def _both_unknown(far: Distance) -> tuple[float, float]:
    return far.unknown_words, far.unknown_words_of_file
