"""The report of a fit as one page that needs nothing else: is it any good, and what should I do?

It is plain HTML without a script; all text from outside is cut and escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from matchloom.data.kinds import ANSWERS, PAIRS
from matchloom.evaluation.significance import interval
from matchloom.fitting.report import Asked, FitReport, SystemFigures
from matchloom.fitting.validity import of_what
from matchloom.pages.blocks import Cell, Column, Row, badge, facts, section, table
from matchloom.pages.chart import curve
from matchloom.pages.contributions import Axis
from matchloom.pages.document import document, frame
from matchloom.pages.markup import duration, number, quoted, safe_text, signed, truncate
from matchloom.pages.numbers import decimals, drawable

# What a person still reads; every cut is seen on the page.
_QUESTION, _ANSWER, _LINE = 300, 240, 600  # characters
_CONFUSIONS, _ASKED, _WORDS = 20, 10, 8
_SURE = 0.05  # p below which a difference is called clear

_MEANINGS = (
    (r"P@1", "how often the first answer is right"),
    (r"(?:R|Success)@(\d+)", r"how often a right answer is among the first \1"),
    (r"RR(?:@\d+)?", "one divided by the rank of the right answer: 1 if it came first, 0.5 if second"),
    (r"AP", "average precision: 1 if all right answers are ranked above all others"),
    (r"nDCG@(\d+)", r"how near the first \1 are to the best possible order"),
    (r"accuracy", "how often the decision match or no match is right"),
    (r"AUC", "how often a pair that matches scores above one that does not"),
    (r"F1", "harmonic mean of precision and recall of the pairs that were decided to match"),
)

_FOOTER = "Test figures were measured once, after everything was chosen. Figures are rounded. Made by matchloom."


def render(report: FitReport) -> str:
    """One self-contained HTML page: no network, no other file, no script."""
    title = f"matchloom fit: {truncate(report.verdict[0] if report.verdict else report.chosen, 90)}"
    return document(title, body(report), _FOOTER)


def body(report: FitReport) -> str:
    """What the page says, for a page that has its style."""
    sections = [
        _verdict(report),
        _systems(report),
        _curve(report),
        of_what(report),
        _promises(report),
        _confusions(report),
        _asked_section(report, report.worst, "Where it is wrong", "The wrong answers with the highest scores."),
        _asked_section(report, report.best, "Where it is right", "The right answers that are clearest."),
        _notes(report),
        _next(report),
    ]
    return "\n".join(filter(None, sections))


def fragment(report: FitReport) -> str:
    """The page as a notebook shows it."""
    return frame(render(report), "What fit found")


def _unit(report: FitReport, count: int | None = None) -> str:
    return f"{'pair' if report.kind == PAIRS else 'question'}{'' if count == 1 else 's'}"


def _verdict(report: FitReport) -> str:
    first = report.verdict[0] if report.verdict else f"{report.chosen} was chosen."
    more = "\n".join(f'<p class="said">{truncate(line, _LINE)}</p>' for line in report.verdict[1:])
    unit = _unit(report, report.tested)
    about = [
        ("The file", truncate(report.about, _LINE) or truncate(report.kind, _LINE)),
        ("Measured on", f"{report.tested:,} held-out test {unit}, measured once"),
        (
            "Chosen on",
            f"{report.developed:,} development {_unit(report, report.developed)}, by {truncate(report.measure, 40)}"
            ": the most complete system, unless another is significantly better"
            + (f"; then by the test {_unit(report)}" if report.chosen_before else ""),
        ),
        *([("Language", truncate(report.language, _LINE))] if report.language else []),
        ("It took", duration(60 * report.minutes)),
    ]
    return (
        f'<header class="verdict"><p class="kicker">What matchloom fit found</p>\n'
        f"<h1>{truncate(first, _LINE)}</h1>\n{more}"
        f"</header>\n{facts(about, 'card about')}"
    )


def _systems(report: FitReport) -> str:
    if not report.systems:
        return ""
    main = truncate(report.measure, 40)
    others = [name for name in report.measures if name != report.measure]
    bars = _Bars(report)
    columns = [
        Column("system"),
        Column(main, "main whole"),
        *(Column(truncate(name, 40), "number") for name in others),
        Column("p", "number"),
        Column("time", "number"),
    ]
    rows = [_system(report, one, others, bars) for one in report.systems]
    shown = table("Systems", columns, rows, css="systems", narrow="stack")
    about = (
        "Test figures; higher is better. p is the probability of a difference from "
        f"{truncate(report.chosen, 60)} this large if both were equally good. Time is for making the system."
    )
    if bars.intervals:
        widest = "" if _is_proportion(report) else ", at its widest"
        about += f" The thin line on a bar is the 95% interval of {main}{widest}."
    return section(
        f"How good, on {report.tested:,} test {_unit(report, report.tested)}", shown + _terms(report), about=about
    )


def _terms(report: FitReport) -> str:
    """What the measures mean, those that are known."""
    rows = []
    for name in dict.fromkeys([report.measure, *report.measures]):
        for pattern, meaning in _MEANINGS:
            if found := re.fullmatch(pattern, name, re.IGNORECASE):
                rows.append((truncate(name, 40), found.expand(meaning)))
                break
    return "\n" + facts(rows, "terms") if rows else ""


def _system(report: FitReport, one: SystemFigures, others: Sequence[str], bars: _Bars) -> Row:
    chosen = one.name == report.chosen
    mark = f" {badge('chosen', 'good')}" if chosen else f" {badge('baseline')}" if one.baseline else ""
    head = f'{truncate(one.name, 60)}{mark}<span class="what">{truncate(one.about, _ANSWER)}</span>'
    css = "is-chosen" if chosen else ""
    if one.error:
        return Row([head, Cell(truncate(one.error, _LINE), "failed", len(others) + 2), duration(one.seconds)], css)
    figures = [number(one.test[name]) if name in one.test else "" for name in others]
    p = ""
    if one.p is not None:
        p = f"{'&lt; 0.001' if one.p < 0.001 else number(one.p)} <small>{_said_of(report, one)}</small>"
    return Row([head, bars.cell(one), *figures, p, duration(one.seconds)], css)


def _said_of(report: FitReport, one: SystemFigures) -> str:
    """Whether a difference is significant, in a word or two."""
    if not (one.p is not None and one.p < _SURE):
        return "may be chance"
    chosen = next((other for other in report.systems if other.name == report.chosen), None)
    ours, theirs = (s.test.get(report.measure, math.nan) if s else math.nan for s in (chosen, one))
    return "clearly lower" if theirs < ours else "clearly higher" if theirs > ours else ""


def _is_proportion(report: FitReport) -> bool:
    """Whether the measure is 1 or 0 for each question, so that its interval is that of a proportion."""
    return re.fullmatch(r"P@1|Success@\d+|accuracy", report.measure, re.IGNORECASE) is not None


class _Bars:
    """The cells of the main measure: all bars start at 0 and share one scale."""

    def __init__(self, report: FitReport) -> None:
        self.measure = report.measure
        found = {s.name: s.test[self.measure] for s in report.systems if not s.error and self.measure in s.test}
        means = _is_proportion(report) if report.kind == PAIRS else True
        self.intervals = {
            name: interval(value, report.tested)
            for name, value in found.items()
            if means and report.tested > 0 and 0 <= value <= 1
        }
        self.axis = Axis.of([*found.values(), *(high for _, high in self.intervals.values())])
        if 0.5 < self.axis.high <= 1:
            self.axis = Axis(self.axis.low, 1.0)  # the whole way is what could be reached

    def cell(self, one: SystemFigures) -> str:
        value, ends = one.test.get(self.measure), self.intervals.get(one.name)
        if value is None:
            return ""
        said = f"<small>{number(ends[0])} to {number(ends[1])}</small>" if ends else ""
        shown = f'<span class="figure">{number(value)}</span>{said}'
        return f'<div class="with">{self.axis.track(value, ends)}{shown}</div>'


def _curve(report: FitReport) -> str:
    values = [(name, value) for _, found in report.curve for name, value in found.items()]
    lines = {
        name: [(count, found[name]) for count, found in report.curve if name in found]
        for name, value in values
        if drawable(value)
    }
    axis = f"training {_unit(report)}"
    drawn = curve(lines, chosen=report.chosen, x_name=f"{axis} (log scale)")
    if not drawn:
        return ""
    rows = [
        Row([f"{count:,}", *(number(found[name]) if name in found else "" for name in lines)])
        for count, found in report.curve
    ]
    columns = [Column(axis, "number"), *(Column(truncate(name, 60), "number") for name in lines)]
    figures = (
        f"<details><summary>The figures</summary>\n{table('Figures of the learning curve', columns, rows)}</details>"
    )
    about = (
        f"{truncate(report.measure, 40)} of each system when it learns from fewer {_unit(report)}. If the bold line "
        f"still rises at its end, more {_unit(report)} would probably help."
    )
    return section(f"Would more {_unit(report)} help?", f"{drawn}\n{figures}", about=about)


def _confusions(report: FitReport) -> str:
    if not report.confusions:
        return ""
    rows = [
        Row([quoted(one.right, _ANSWER), quoted(one.first, _ANSWER), f"{one.times:,}", quoted(one.example, _QUESTION)])
        for one in report.confusions[:_CONFUSIONS]
    ]
    columns = [Column("right answer"), Column("confused with", "whole"), Column("times", "number times")]
    columns.append(Column("for example", "whole"))
    about = "If two answers say nearly the same, merge them; if not, add questions that distinguish them."
    shown = table("Confusions", columns, rows, css="confusions", narrow="stack")
    return section("Answers that are confused", shown + _more(len(report.confusions) - _CONFUSIONS), about=about)


def _promises(report: FitReport) -> str:
    """For each stated precision: how many questions get an answer."""
    if not report.promises:
        return ""
    rows = []
    for one in report.promises:
        measured = "" if one.precision is None else f"{one.precision:.1%}"
        least = "cannot be guaranteed" if one.threshold is None else f"{one.threshold:.2f}"
        answered = "" if one.threshold is None else f"{one.coverage:.0%}"
        rows.append(Row([f"{one.stated:.0%}", answered, measured, least]))
    columns = [
        Column("stated precision of the answers shown"),
        Column("questions that get an answer", "number"),
        Column("right on test questions", "number"),
        Column("least probability", "number"),
    ]
    about = (
        "State a precision (--precision 0.95), and less certain answers are not shown. The least probability was "
        "chosen on held-out questions; it holds for questions like those in the file."
    )
    made = table("Promises", columns, rows, narrow="stack") + _coverages(report)
    return section("When to give no answer", made, about=about)


def _coverages(report: FitReport) -> str:
    """What a stated coverage gives."""
    rows = [
        Row([f"{one.stated:.0%}", f"{one.coverage:.0%}", "" if one.precision is None else f"{one.precision:.1%}"])
        for one in report.coverages
    ]
    columns = [
        Column("questions that should get an answer"),
        Column("test questions that got one", "number"),
        Column("right on test questions", "number"),
    ]
    about = '<p class="note">Or state how many questions get an answer (--coverage 0.8): the most certain ones do.</p>'
    return f"\n{about}\n" + table("Coverages", columns, rows, narrow="stack") if rows else ""


def _more(count: int) -> str:
    return f'\n<p class="note">({count:,} more are in fit.json)</p>' if count > 0 else ""


def _asked_section(report: FitReport, asked: Sequence[Asked], name: str, about: str) -> str:
    if not asked:
        return ""
    cards = "\n".join(_asked(report, one) for one in asked[:_ASKED])
    return section(name, f'<div class="questions">\n{cards}\n</div>{_more(len(asked) - _ASKED)}', about=about)


def _asked(report: FitReport, one: Asked) -> str:
    if one.rank == 1:
        state, texts = badge("right", "good"), [("Came first", one.first)]
        if one.right.split() != one.first.split():
            texts.append(("Also right", one.right))
    else:
        place = "not found" if one.rank is None else f"at rank {one.rank:,}"
        said = "wrong" if report.kind == PAIRS else f"right answer {place}"
        state = badge(said, "bad")
        texts = [("Came first", one.first), ("Right", one.right)]
    if report.kind == PAIRS:  # there is no ranking that anything could lead
        texts = [("Found", one.first), ("Right", one.right)]
    said_of = facts((name, quoted(text, _ANSWER)) for name, text in texts)
    return (
        f'<article class="card"><h3>{quoted(one.question, _QUESTION)}</h3>\n'
        f'<p class="state">{state} <span>score <span class="figure">{number(one.score)}</span></span></p>\n'
        f"{said_of}{_reasons(one.words)}</article>"
    )


def _reasons(words: Sequence[tuple[str, float]]) -> str:
    """The words that changed the score of the first answer most, each with a bar from a common zero."""
    found = [(word, added) for word, added in words if drawable(added)][:_WORDS]
    if not found:
        return ""
    axis = Axis.of(added for _, added in found)
    places = max(0, min(6, decimals(added for _, added in found) - 1))
    rows = [
        Row(
            [
                f"<bdi>{truncate(word, 40)}</bdi>",
                axis.bar(0.0, added, "down" if added < 0 else "up"),
                signed(added, places),
            ]
        )
        for word, added in found
    ]
    name = "Words that changed the score most"
    shown = table(name, [Column(""), Column("", "fall"), Column("", "number")], rows, narrow="")
    return f'\n<div class="reasons"><p class="note">{name}</p>\n{shown}</div>'


def _notes(report: FitReport) -> str:
    if not report.notes:
        return ""
    items = "\n".join(f"<li>{truncate(line, _LINE)}</li>" for line in report.notes)
    return section("Notes", f'<ul class="notes">\n{items}\n</ul>')


def _next(report: FitReport) -> str:
    """The next commands. The page does not know the name of its folder, which may be moved."""
    commands = [
        ("Rank texts of your own, one per line:", 'matchloom rank DIR "question" texts.txt'),
        ("See why a text got its score:", 'matchloom explain DIR "question" "text"'),
    ]
    if report.kind == ANSWERS:
        commands.insert(0, ("Ask it a question:", 'matchloom search DIR "question"'))
    inside = "\n".join(
        f"<div><p>{about}</p><pre><code>{safe_text(line)}</code></pre></div>" for about, line in commands
    )
    return section("What next", f'<div class="next">\n{inside}\n</div>', about="DIR is the folder of this page.")
