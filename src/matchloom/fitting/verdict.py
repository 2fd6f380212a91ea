"""The verdict of a fit in plain words: what to use, what would have done as well, what would help."""

from __future__ import annotations

from matchloom.data.kinds import ANSWERS, PAIRS
from matchloom.fitting.report import Distance, FitReport, SystemFigures

CHANCE = 0.05
_FEW = 50  # test questions below which a figure says little
_SIMPLEST = "bm25_stemmed"
_TEXTS_ALONE = (
    "Each answer has one question, and held out it leaves its answer with none: so this is how often an answer is "
    "found by its text alone. In use it has its question, too, and is found by that as well. How often, only questions "
    "that people asked can tell: give some with --test."
)
_HOLDS = "holds for questions like those in the file."
_HOLD = "hold for questions like those in the file."
_OTHERS = "People who ask in other words than its author get less: measure with their questions (--test)."
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
        *([f"Only {_counted(report.tested)}: figures this small move by chance."] if report.tested < _FEW else []),
    ]


def _known(report: FitReport) -> list[str]:
    """What test questions say that were learnt from."""
    if not report.known:
        return []
    some = "All" if report.known >= report.tested else f"{report.known:,} of the"
    return [
        f"{some} {_counted(report.tested)} stand in training, too: the figures say how well these are remembered, and "
        "nothing of new questions. Leave --test out, or give questions that are not in the file."
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
        alone = ["Hardly any question of the file resembles another one of its answer."] if rare else []
        return alone if report.distance is not None else [*alone, f"This {_HOLDS} {_OTHERS}"]
    own = "one of the file's own questions" if report.distance is not None else "a held-out question"
    told = (
        f"{like.similar:.0%} of the questions in the file resemble another one of their answer, {like.copies:.0%} "
        f"nearly word for word. For {own}, {report.measure} is {like.random:.3f} where these are known, and "
        f"{like.by_cluster:.3f} where they are held out with it ({like.asked:,} questions, asked both ways)."
    )
    return [told, f"Both figures {_HOLD}" + ("" if report.distance is not None else f" {_OTHERS}")]


def _far(far: Distance, measure: str) -> str:
    """How far the user's test questions are from the file, and what follows."""
    words = f"{far.unknown_words:.0%} of the words of your test questions are in no question of the file"
    nearest = f"the nearest question of the file has a cosine of {far.nearest[1]:.2f}"
    told = (
        f"{words} ({far.unknown_words_of_file:.0%} among the file's own), and {nearest} on the median "
        f"({far.nearest_of_file[1]:.2f})."
    )
    if far.is_far:
        return (
            f"Your test questions are far from the file: {told} So what is learnt from the file alone (probabilities, "
            f"precisions that are stated) promises too much for them; trust {measure} on them, and add some "
            "to the file."
        )
    return f"Your test questions are like those of the file: {told}"


def _counted(questions: int) -> str:
    return "1 test question" if questions == 1 else f"{questions} test questions"


def _what_to_use(report: FitReport, chosen: SystemFigures, systems: dict[str, SystemFigures]) -> str:
    value = chosen.test[report.measure]
    of = "pairs" if report.kind == "pairs" else "questions"
    told = f"{report.measure} {value:.3f} on {report.tested:,} test {of}"
    if report.kind == "answers":
        asked = (
            ("test" if report.known else "new") + " questions"
            if not report.texts_alone
            else "questions, found by its text alone"
        )
        told = f"the right answer comes first for {value:.0%} of {report.tested:,} {asked}"
        if "R@3" in chosen.test:
            told += f", and is among the first three for {chosen.test['R@3']:.0%}"
    before = systems.get(report.chosen_before)
    if before is not None:
        return (
            f"Use {chosen.name}: {told}. This figure has chosen it: development {of} had chosen {before.name}, "
            f"which has {before.test[report.measure]:.3f} on the test {of}, less by more than chance "
            f"(p {before.shown_p}). So no clean figure is left; measure on {of} of your own."
        )
    better = max(systems.values(), key=lambda one: one.test[report.measure])
    if better is not chosen and better.p is not None and better.p < CHANCE:
        return (
            f"{chosen.name}, chosen on development {of}, is kept: {told}. But {better.name} was better on the test "
            f"{of}, by more than chance: look at both on questions of your own."
        )
    simplest = systems.get(_SIMPLEST)
    if chosen.name == _SIMPLEST or (simplest is not None and simplest.test[report.measure] >= value):
        if report.texts_alone:
            return (
                f"Use {chosen.name}: {told}. BM25 is as good at that, but knows nothing of the answers' own questions."
            )
        if simplest is None or simplest is chosen:
            return f"BM25 is as good on your data: {told}. Use {chosen.name}."
        figure = f"{report.measure} {simplest.test[report.measure]:.3f}"
        return f"Use {chosen.name}: {told}. BM25 is no worse on these {of}: {figure}."
    return f"Use {chosen.name}: {told}."


def _beside(report: FitReport, chosen: SystemFigures, systems: dict[str, SystemFigures]) -> list[str]:
    """The best of the others, and whether the difference is more than chance."""
    others = [one for one in systems.values() if one is not chosen]
    if not others:
        return []
    best = max(others, key=lambda one: one.test[report.measure])
    difference = chosen.test[report.measure] - best.test[report.measure]
    clear = best.p is not None and best.p < CHANCE
    apart = f"{abs(difference):.3f} {'less' if difference > 0 else 'more'}, which is"
    told = f"{apart} {'more than' if clear else 'no more than'} chance (p {best.shown_p})" if difference else "too"
    about = f"Next to it: {best.name} has {best.test[report.measure]:.3f}, {told}."
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
            f"{chosen.name} is not chosen for the highest figure: on development {of} {best.name} has {measure} "
            f"{theirs:.3f}, and {chosen.name} {ours:.3f}. The best equipped system is taken unless another is better "
            "by more than chance there."
        ]
    if any(one.test[measure] > chosen.test[measure] for one in others):
        return [
            f"{chosen.name} was chosen on development {of}, where none has more: {measure} {ours:.3f}, and {best.name} "
            f"{theirs:.3f}. Test {of} only measure."
        ]
    return []


def _more_questions(report: FitReport, chosen: SystemFigures) -> list[str]:
    """What the learning curve says of more questions."""
    points = [(count, values[chosen.name]) for count, values in report.curve if chosen.name in values]
    if len(points) < 2:
        return []
    (half, before), (whole, now) = points[-2:]
    gain = now - before
    if gain >= _WORTH:
        rarely = " Ask for them where answers are taken for one another." if report.confusions else ""
        return [
            f"More questions would help: from {half:,} to {whole:,} of them {report.measure} rose by {gain:.3f}; "
            f"about {whole:,} more should add as much again at best.{rarely}"
        ]
    return [
        f"More questions would hardly help: from {half:,} to {whole:,} of them {report.measure} moved by {gain:+.3f}."
    ]
