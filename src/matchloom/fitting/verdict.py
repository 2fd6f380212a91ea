"""The verdict of a fit in plain words: which system to use, which others are as good, what would help."""

from __future__ import annotations

from matchloom.data.kinds import ANSWERS, PAIRS
from matchloom.fitting.report import Distance, FitReport, SystemFigures

CHANCE = 0.05
_FEW = 50  # test questions below which a figure says little
_SIMPLEST = "bm25_stemmed"
_TEXTS_ALONE = (
    "Each answer has one question. When that question is held out, only the answer's text is left, so the figures "
    "measure search by the answer's text alone. In use, an answer is found by its question, too. To measure that, give "
    "questions that people asked (--test)."
)
_HOLDS = "holds for questions like those in the file."
_HOLD = "hold for questions like those in the file."
_OTHERS = "Questions in other words than those of its author get lower figures: measure with real questions (--test)."
_RARE = 0.02  # of the questions
_WORTH = 0.01  # what twice the questions must have added to be worth asking for


def verdict(report: FitReport) -> list[str]:
    """The lines, the most important first."""
    systems = {one.name: one for one in report.systems if not one.error}
    chosen = systems[report.chosen]
    return [
        _what_to_use(report, chosen, systems),
        *_known(report),
        *([_TEXTS_ALONE] if report.texts_alone else []),
        *_of_what(report),
        *_beside(report, chosen, systems),
        *_more_questions(report, chosen),
        *(
            [f"Only {_counted(report.tested)}: with so few, figures vary much by chance."]
            if report.tested < _FEW
            else []
        ),
    ]


def _known(report: FitReport) -> list[str]:
    """A warning where test questions are training questions, too."""
    if not report.known:
        return []
    some = "All" if report.known >= report.tested else f"{report.known:,} of the"
    return [
        f"{some} {_counted(report.tested)} are also training questions. The figures show how well these are "
        "remembered; they say nothing about new questions. Omit --test, or give questions that are not in the file."
    ]


def _of_what(report: FitReport) -> list[str]:
    """For which questions the figures hold: how like each other those of the file are, how far others are from them."""
    if report.kind != ANSWERS:
        return []
    return [*_alike(report), *([] if report.distance is None else [_far(report.distance, report.measure)])]


def _alike(report: FitReport) -> list[str]:
    like = report.likeness
    if report.texts_alone:
        return []
    if like is None or like.by_cluster is None or like.random is None:
        rare = like is not None and like.similar < _RARE
        alone = ["Hardly any question in the file resembles another question of the same answer."] if rare else []
        return alone if report.distance is not None else [*alone, f"This {_HOLDS} {_OTHERS}"]
    own = "one of the file's own questions" if report.distance is not None else "a held-out question"
    shown = (
        f"{like.similar:.0%} of the questions in the file resemble another question of the same answer, "
        f"{like.copies:.0%} nearly word for word. For {own}, {report.measure} is {like.random:.3f} if similar "
        f"questions stay in training, and {like.by_cluster:.3f} if they are held out, too "
        f"(the same {like.asked:,} questions)."
    )
    return [shown, f"Both figures {_HOLD}" + ("" if report.distance is not None else f" {_OTHERS}")]


def _far(far: Distance, measure: str) -> str:
    """How far the user's test questions are from the file, and what follows."""
    words = f"{far.unknown_words:.0%} of the words of your test questions are in no question of the file"
    nearest = f"the nearest question of the file has a cosine of {far.nearest[1]:.2f}"
    shown = (
        f"{words} (file's own questions: {far.unknown_words_of_file:.0%}), and in the median {nearest} "
        f"(file's own: {far.nearest_of_file[1]:.2f})."
    )
    if far.is_far:
        return (
            f"Your test questions differ much from the file: {shown} Probabilities and stated precisions were learnt "
            f"from the file alone and are too high for such questions. Trust {measure} on them, and add some of them "
            "to the file."
        )
    return f"Your test questions are similar to those of the file: {shown}"


def _counted(questions: int) -> str:
    return "1 test question" if questions == 1 else f"{questions} test questions"


def _what_to_use(report: FitReport, chosen: SystemFigures, systems: dict[str, SystemFigures]) -> str:
    value = chosen.test[report.measure]
    of = "pairs" if report.kind == "pairs" else "questions"
    shown = f"{report.measure} {value:.3f} on {report.tested:,} test {of}"
    if report.kind == "answers":
        asked = (
            ("test" if report.known else "new") + " questions"
            if not report.texts_alone
            else "questions, found by its text alone"
        )
        shown = f"the right answer comes first for {value:.0%} of {report.tested:,} {asked}"
        if "R@3" in chosen.test:
            shown += f", and is among the first three for {chosen.test['R@3']:.0%}"
    before = systems.get(report.chosen_before)
    if before is not None:
        return (
            f"Use {chosen.name}: {shown}. It was chosen by this test figure: development {of} had chosen "
            f"{before.name}, which has {before.test[report.measure]:.3f} on the test {of}, significantly less "
            f"(p {before.shown_p}). So no independent figure is left; measure on new {of} of your own."
        )
    better = max(systems.values(), key=lambda one: one.test[report.measure])
    if better is not chosen and better.p is not None and better.p < CHANCE:
        return (
            f"{chosen.name}, chosen on development {of}, is kept: {shown}. But {better.name} was significantly better "
            f"on the test {of}: compare both on questions of your own."
        )
    simplest = systems.get(_SIMPLEST)
    if chosen.name == _SIMPLEST or (simplest is not None and simplest.test[report.measure] >= value):
        if report.texts_alone:
            return (
                f"Use {chosen.name}: {shown}. BM25 on the answers' texts is as good, but does not use their questions."
            )
        if simplest is None or simplest is chosen:
            return f"BM25 is as good on your data: {shown}. Use {chosen.name}."
        figure = f"{report.measure} {simplest.test[report.measure]:.3f}"
        return f"Use {chosen.name}: {shown}. BM25 is no worse on these {of}: {figure}."
    return f"Use {chosen.name}: {shown}."


def _beside(report: FitReport, chosen: SystemFigures, systems: dict[str, SystemFigures]) -> list[str]:
    """The best of the others, and whether the difference is more than chance."""
    others = [one for one in systems.values() if one is not chosen]
    if not others:
        return []
    best = max(others, key=lambda one: one.test[report.measure])
    difference = chosen.test[report.measure] - best.test[report.measure]
    clear = best.p is not None and best.p < CHANCE
    apart = f"{abs(difference):.3f} {'less' if difference > 0 else 'more'}, a difference that"
    meaning = "is significant" if clear else "may be chance"
    shown = f"{apart} {meaning} (p {best.shown_p})" if difference else "too"
    about = f"Best of the others: {best.name} has {best.test[report.measure]:.3f}, {shown}."
    return [about, *_why_chosen(report, chosen, others)]


def _why_chosen(report: FitReport, chosen: SystemFigures, others: list[SystemFigures]) -> list[str]:
    """Why this one, where another has the higher figure on test or development questions."""
    measure, of = report.measure, "pairs" if report.kind == PAIRS else "questions"
    known = [one for one in others if measure in one.development]
    if report.chosen_before or measure not in chosen.development or not known:
        return []
    ours = chosen.development[measure]
    best = max(known, key=lambda one: one.development[measure])
    theirs = best.development[measure]
    if theirs > ours:
        return [
            f"{chosen.name} does not have the highest figure on development {of}: {best.name} has {measure} "
            f"{theirs:.3f}, and {chosen.name} {ours:.3f}. The most complete system is the default; another one "
            "replaces it only if it is significantly better on these."
        ]
    if any(one.test[measure] > chosen.test[measure] for one in others):
        return [
            f"{chosen.name} was chosen on development {of}, where it has the highest figure: {measure} {ours:.3f}; "
            f"{best.name} has {theirs:.3f}. Test {of} are for measuring only."
        ]
    return []


def _more_questions(report: FitReport, chosen: SystemFigures) -> list[str]:
    """Whether more questions would help, by the learning curve."""
    points = [(count, values[chosen.name]) for count, values in report.curve if chosen.name in values]
    if len(points) < 2:
        return []
    (half, before), (whole, now) = points[-2:]
    gain = now - before
    if gain >= _WORTH:
        where = " Add them first to answers that are confused with each other." if report.confusions else ""
        return [
            f"More questions would help: from {half:,} to {whole:,} questions {report.measure} rose by {gain:.3f}; "
            f"another {whole:,} should add at most as much again.{where}"
        ]
    return [
        f"More questions would hardly help: from {half:,} to {whole:,} questions {report.measure} changed by "
        f"{gain:+.3f}."
    ]
