"""The report of a fit as one page that needs nothing else: is it any good, and what should I do?

It is plain HTML without a script; all text from outside is cut and escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from matchloom.data.kinds import ANSWERS, PAIRS
from matchloom.explanation.markup import asset, document, figure, frame, safe_text, signed
from matchloom.explanation.rounding import decimals
from matchloom.fitting.chart import draw_curve, drawable, systems_of
from matchloom.fitting.report import Asked, FitReport, SystemFigures

# What a person still reads; every cut is seen on the page.
_QUESTION, _ANSWER, _LINE = 300, 240, 600  # letters
_CONFUSIONS, _ASKED, _WORDS = 20, 10, 8
_SURE = 0.05  # p below which a difference is called clear

_MEANINGS = (
    (r"P@1", "how often the first answer is right"),
    (r"(?:R|Success)@(\d+)", r"how often a right answer is among the first \1"),
    (r"RR(?:@\d+)?", "one divided by the rank of the right answer: 1 if it came first, 0.5 if second"),
    (r"AP", "average precision: 1 if all right answers stand above all others"),
    (r"nDCG@(\d+)", r"how near the first \1 are to the best order possible"),
    (r"accuracy", "how often match or no match was told rightly"),
    (r"AUC", "how often a pair that matches scores above one that does not"),
    (r"F1", "between precision and recall of the pairs told to match"),
)

_FOOTER = "Test figures were looked at once, when everything was chosen. Figures are rounded. Made by matchloom."


def render(report: FitReport) -> str:
    """One self-contained HTML page: no network, no other file, no script."""
    title = f"matchloom fit: {_cut(report.verdict[0] if report.verdict else report.chosen, 90)}"
    return document(title, body(report), _FOOTER, style=asset("page.css", "matchloom.fitting"))


def body(report: FitReport) -> str:
    """What the page says, for a page that has its style."""
    sections = [
        _verdict(report),
        _systems(report),
        _curve(report),
        _confusions(report),
        _asked_section(report, report.worst, "Where it is wrong", "The mistakes it was surest of."),
        _asked_section(report, report.best, "Where it is right", "The clearest hits."),
        _notes(report),
        _next(report),
    ]
    return "\n".join(filter(None, sections))


def fragment(report: FitReport) -> str:
    """The page as a notebook shows it."""
    return frame(render(report), "What fit found")


def _cut(text: str, letters: int) -> str:
    """The beginning of a text from outside, on one line, as HTML."""
    line = " ".join(text[: 20 * letters].split())
    short = len(line) <= letters and len(text) <= 20 * letters
    return safe_text(line) if short else f"{safe_text(line[:letters].rstrip())} …"


def _quoted(text: str, letters: int = _ANSWER) -> str:
    """A user's text, which may run from right to left."""
    return f'<bdi dir="auto">{_cut(text, letters)}</bdi>' if text.strip() else '<span class="note">(no text)</span>'


def _number(value: float, places: int = 3) -> str:
    if math.isnan(value):
        return "–"
    if not drawable(value) or abs(value) >= 1e5:
        return f"{value:.3g}".replace("-", "−")
    return figure(value, places)


def _chance(p: float) -> str:
    return "&lt; 0.001" if p < 0.001 else _number(p)


def _duration(seconds: float) -> str:
    if not (math.isfinite(seconds) and seconds >= 0):
        return "–"
    if seconds < 100:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"


def _unit(report: FitReport, count: int | None = None) -> str:
    return f"{'pair' if report.kind == PAIRS else 'question'}{'' if count == 1 else 's'}"


def _section(name: str, inside: str, *, about: str = "", css: str = "") -> str:
    note = f'<p class="note">{about}</p>\n' if about else ""
    return f'<section class="block {css}"><h2>{name}</h2>\n{note}{inside}\n</section>'


def _table(label: str, heads: Sequence[tuple[str, str]], rows: Iterable[str], css: str) -> str:
    """A table whose rows become blocks on a phone. Roles keep it a table for who hears it, whatever the style does."""
    head = "".join(f'<th scope="col" role="columnheader" class="{css}">{name}</th>' for name, css in heads)
    return (
        f'<div class="stack {css}"><table role="table" aria-label="{label}">\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        '<tbody role="rowgroup">\n' + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _verdict(report: FitReport) -> str:
    first = report.verdict[0] if report.verdict else f"{report.chosen} was chosen."
    more = "\n".join(f'<p class="said">{_cut(line, _LINE)}</p>' for line in report.verdict[1:])
    unit = _unit(report, report.tested)
    facts = [
        ("The file", _cut(report.about, _LINE) or _cut(report.kind, _LINE)),
        ("Measured on", f"{report.tested:,} test {unit} that no system had learnt from, looked at once"),
        (
            "Chosen on",
            f"{report.developed:,} development {_unit(report, report.developed)}, by {_cut(report.measure, 40)}",
        ),
        ("It took", _duration(60 * report.minutes)),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{said}</dd>" for name, said in facts)
    return (
        f'<header class="verdict"><p class="kicker">What matchloom fit found</p>\n<h1>{_cut(first, _LINE)}</h1>\n{more}'
        f'</header>\n<div class="card about"><dl>{rows}</dl></div>'
    )


def _systems(report: FitReport) -> str:
    if not report.systems:
        return ""
    main = _cut(report.measure, 40)
    others = [name for name in report.measures if name != report.measure]
    bars = _Bars(report)
    heads = [
        ("system", ""),
        (main, ""),
        *((_cut(name, 40), "number") for name in others),
        ("p", "number"),
        ("time", "number"),
    ]
    table = _table("Systems", heads, (_system(report, one, others, bars) for one in report.systems), "systems")
    about = (
        "Test figures; higher is better. p is the chance of a difference as large as that from "
        f"{_cut(report.chosen, 60)}, were both equally good. Time is what making the system took."
    )
    if bars.intervals:
        widest = "" if _is_proportion(report) else ", at its widest"
        about += f" The thin line on a bar is the 95% interval of {main}{widest}."
    return _section(
        f"How good, on {report.tested:,} test {_unit(report, report.tested)}", table + _terms(report), about=about
    )


def _terms(report: FitReport) -> str:
    """What the measures mean, those that are known."""
    rows = []
    for name in dict.fromkeys([report.measure, *report.measures]):
        for pattern, meaning in _MEANINGS:
            if found := re.fullmatch(pattern, name, re.IGNORECASE):
                rows.append(f"<dt>{_cut(name, 40)}</dt><dd>{found.expand(meaning)}</dd>")
                break
    return f'\n<div class="terms"><dl>{"".join(rows)}</dl></div>' if rows else ""


def _system(report: FitReport, one: SystemFigures, others: Sequence[str], bars: _Bars) -> str:
    chosen = one.name == report.chosen
    mark = ' <span class="badge good">chosen</span>' if chosen else ""
    if one.baseline and not chosen:
        mark = ' <span class="badge">baseline</span>'
    head = (
        f'<tr role="row"{" class=is-chosen" if chosen else ""}>'
        f'<th scope="row" role="rowheader">{_cut(one.name, 60)}{mark}'
        f'<span class="what">{_cut(one.about, _ANSWER)}</span></th>'
    )
    time = f'<td role="cell" class="number" data-name="time">{_duration(one.seconds)}</td></tr>'
    if one.error:
        why = _cut(one.error, _LINE)
        return f'{head}<td role="cell" class="failed whole" colspan="{len(others) + 2}">{why}</td>{time}'
    figures = "".join(
        f'<td role="cell" class="number" data-name="{_cut(name, 40)}">'
        f"{_number(one.test[name]) if name in one.test else ''}</td>"
        for name in others
    )
    p = "" if one.p is None else f"{_chance(one.p)} <small>{_said_of(report, one)}</small>"
    return f'{head}{bars.cell(one)}{figures}<td role="cell" class="number"{" data-name=p" if p else ""}>{p}</td>{time}'


def _said_of(report: FitReport, one: SystemFigures) -> str:
    """What p says of a difference, in a word or two."""
    if not (one.p is not None and one.p < _SURE):
        return "may be chance"
    chosen = next((other for other in report.systems if other.name == report.chosen), None)
    ours, theirs = (s.test.get(report.measure, math.nan) if s else math.nan for s in (chosen, one))
    return "clearly lower" if theirs < ours else "clearly higher" if theirs > ours else ""


def _is_proportion(report: FitReport) -> bool:
    """Whether the measure is 1 or 0 for each question, so that its interval is that of a proportion."""
    return re.fullmatch(r"P@1|Success@\d+|accuracy", report.measure, re.IGNORECASE) is not None


def interval(mean: float, count: int) -> tuple[float, float]:
    """The 95% interval of a mean of `count` values between 0 and 1, by Wilson's formula.

    It is that of a proportion. Other means of such values vary less, so that theirs is no wider.
    """
    z2 = 1.959964**2
    middle = (mean + z2 / (2 * count)) / (1 + z2 / count)
    half = math.sqrt(z2 * (mean * (1 - mean) / count + z2 / (4 * count * count))) / (1 + z2 / count)
    return max(0.0, middle - half), min(1.0, middle + half)


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
        ends = [value for value in found.values() if drawable(value)]
        ends += [high for _, high in self.intervals.values()]
        self.low, self.high = min([0.0, *ends]), max([0.0, *ends])
        if 0.5 < self.high <= 1:
            self.high = 1.0  # the whole way is what could be reached

    def _at(self, value: float) -> float:
        return 100 * (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0

    def cell(self, one: SystemFigures) -> str:
        start = f'<td role="cell" class="main whole" data-name="{_cut(self.measure, 40)}">'
        value = one.test.get(self.measure)
        if value is None:
            return f"{start}</td>"
        bar = line = said = ""
        if drawable(value):
            a, b = sorted((self._at(0.0), self._at(value)))
            bar = f'<i style="--from:{a:.2f}%;--size:{b - a:.2f}%"></i>'
        if one.name in self.intervals:
            low, high = self.intervals[one.name]
            line = f'<u style="--low:{self._at(low):.2f}%;--wide:{self._at(high) - self._at(low):.2f}%"></u>'
            said = f"<small>{_number(low)} to {_number(high)}</small>"
        return (
            f'{start}<div class="with"><span class="track" aria-hidden="true">{bar}{line}</span>'
            f'<span class="figure">{_number(value)}</span>{said}</div></td>'
        )


def _curve(report: FitReport) -> str:
    names = systems_of(report.curve)
    if not names:
        return ""
    axis = f"training {_unit(report)}"
    pictures = [
        draw_curve(report.curve, report.chosen, width=w, height=h, x_name=f"{axis} (log scale)", css=css)
        for w, h, css in ((760, 340, "wide"), (370, 300, "narrow"))
    ]
    heads = "".join(f'<th scope="col" class="number">{_cut(name, 60)}</th>' for name in names)
    rows = "\n".join(
        f'<tr><th scope="row" class="number">{count:,}</th>'
        + "".join(f'<td class="number">{_number(values[n]) if n in values else ""}</td>' for n in names)
        + "</tr>"
        for count, values in report.curve
    )
    table = (
        f'<details><summary>The figures</summary>\n<div class="scroll-x" tabindex="0" role="region" '
        f'aria-label="Figures of the learning curve"><table>\n<thead><tr><th scope="col" class="number">{axis}</th>'
        f"{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div></details>"
    )
    about = (
        f"{_cut(report.measure, 40)} of each system when it learns from fewer {_unit(report)}. Where the bold line "
        "still rises at its end, more would probably help."
    )
    return _section(f"Would more {_unit(report)} help?", "\n".join([*pictures, table]), about=about)


def _confusions(report: FitReport) -> str:
    if not report.confusions:
        return ""
    rows = [
        f'<tr role="row"><td role="cell" class="whole" data-name="right answer">{_quoted(one.right)}</td>'
        f'<td role="cell" class="whole" data-name="taken for">{_quoted(one.first)}</td>'
        f'<td role="cell" class="number times" data-name="times">{one.times:,}</td>'
        f'<td role="cell" class="whole" data-name="for example">{_quoted(one.example, _QUESTION)}</td></tr>'
        for one in report.confusions[:_CONFUSIONS]
    ]
    heads = [("right answer", ""), ("taken for", ""), ("times", "number times"), ("for example", "")]
    about = "If two answers say nearly the same, join them; if not, add questions that tell them apart."
    left = _left_out(len(report.confusions) - _CONFUSIONS)
    return _section(
        "Answers taken for one another", _table("Confusions", heads, rows, "confusions") + left, about=about
    )


def _left_out(count: int) -> str:
    return f'\n<p class="note">({count:,} more are in fit.json)</p>' if count > 0 else ""


def _asked_section(report: FitReport, asked: Sequence[Asked], name: str, about: str) -> str:
    if not asked:
        return ""
    cards = "\n".join(_asked(report, one) for one in asked[:_ASKED])
    return _section(name, f'<div class="asked">\n{cards}\n</div>{_left_out(len(asked) - _ASKED)}', about=about)


def _asked(report: FitReport, one: Asked) -> str:
    if one.rank == 1:
        state, texts = '<span class="badge good">right</span>', [("Came first", one.first)]
        if one.right.split() != one.first.split():
            texts.append(("Also right", one.right))
    else:
        place = "not found" if one.rank is None else f"at rank {one.rank:,}"
        said = "wrong" if report.kind == PAIRS else f"right answer {place}"
        state = f'<span class="badge bad">{said}</span>'
        texts = [("Came first", one.first), ("Right", one.right)]
    if report.kind == PAIRS:  # there is no ranking that anything could lead
        texts = [("Found", one.first), ("Right", one.right)]
    rows = "".join(f"<dt>{name}</dt><dd>{_quoted(text)}</dd>" for name, text in texts)
    return (
        f'<article class="card"><h3>{_quoted(one.question, _QUESTION)}</h3>\n'
        f'<p class="state">{state} <span>score <span class="figure">{_number(one.score)}</span></span></p>\n'
        f"<dl>{rows}</dl>{_moved(one.words)}</article>"
    )


def _moved(words: Sequence[tuple[str, float]]) -> str:
    """The words that moved the score of what came first, each with a bar from a common zero."""
    found = [(word, added) for word, added in words if drawable(added)][:_WORDS]
    if not found:
        return ""
    low, high = min(0.0, *(added for _, added in found)), max(0.0, *(added for _, added in found))
    places = max(0, min(6, decimals(added for _, added in found) - 1))

    def at(value: float) -> float:
        return 100 * (value - low) / (high - low) if high > low else 0.0

    rows = []
    for word, added in found:
        a, b = sorted((at(0.0), at(added)))
        rows.append(
            f'<tr><th scope="row"><bdi>{_cut(word, 40)}</bdi></th>'
            f'<td class="fall" aria-hidden="true"><div style="--zero:{at(0.0):.2f}%">'
            f'<i class="{"down" if added < 0 else "up"}" style="--from:{a:.2f}%;--size:{b - a:.2f}%"></i></div></td>'
            f'<td class="number">{signed(added, places)}</td></tr>'
        )
    return (
        '\n<div class="moved"><p class="note">Words that moved the score most</p>\n'
        '<table aria-label="Words that moved the score most"><tbody>\n' + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _notes(report: FitReport) -> str:
    if not report.notes:
        return ""
    items = "\n".join(f"<li>{_cut(line, _LINE)}</li>" for line in report.notes)
    return _section("Notes", f'<ul class="notes">\n{items}\n</ul>')


def _next(report: FitReport) -> str:
    """What to type now. The page does not know the name of its folder, which may be moved."""
    commands = [
        ("Rank texts of your own, one per line:", 'matchloom rank DIR "question" texts.txt'),
        ("See why a text gets its score:", 'matchloom explain DIR "question" "text"'),
    ]
    if report.kind == ANSWERS:
        commands.insert(0, ("Ask it a question:", 'matchloom search DIR "question"'))
    inside = "\n".join(
        f"<div><p>{about}</p><pre><code>{safe_text(line)}</code></pre></div>" for about, line in commands
    )
    return _section(
        "What next", f'<div class="next">\n{inside}\n</div>', about="DIR is the folder that this page lies in."
    )
