"""The page of a run: its curves as far as they go, what it was trained with, figures, and explained questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matchloom.explanation.html import explanation_block, script
from matchloom.fitting.page import body as fit_body
from matchloom.pages.blocks import Column, Row, badge, facts, section, table
from matchloom.pages.chart import curve
from matchloom.pages.document import document, without_styles
from matchloom.pages.markup import safe_text
from matchloom.runs.measured import Question, RunMeasured
from matchloom.runs.reading import FIT, Run

_FOOTER = (
    "The epoch was chosen by these development figures, so they are not test figures. Figures are rounded. "
    "Made by matchloom."
)
_TOLD = ("loss", "optimizer", "learning_rate", "batch", "negatives", "epochs", "patience", "seed")


def render_page(run: Run, measured: RunMeasured | None = None) -> str:
    """One file that needs nothing else."""
    scripts = "" if measured is None else script()
    return document(f"matchloom run: {safe_text(run.name)}", _body(run, measured), _FOOTER, script=scripts)


def render_fragment(run: Run) -> str:
    """The same as a piece of the service's page."""
    return without_styles(f'<div class="run-page">{_body(run, None)}</div>')


def _body(run: Run, measured: RunMeasured | None) -> str:
    state = "running" if run.running else "finished"
    head = (
        f'<header class="run-head"><p class="kicker">{run.kind} {badge(state, "good" if run.running else "")}</p>\n'
        f"<h1>{safe_text(run.name)}</h1></header>"
    )
    if run.report is not None:
        return f"{head}\n{fit_body(run.report)}"
    sections = [head, _so_far(run) if run.kind == FIT else _training(run, measured)]
    if measured is not None:
        sections += [_beside(measured), _questions("Where it is most wrong", measured.worst)]
        sections.append(_questions("Where it is right", measured.best))
    return "\n".join(filter(None, sections))


def _so_far(run: Run) -> str:
    """A fit that goes on, or was stopped: what it has measured."""
    names = list(dict.fromkeys(measure for values in run.found.values() for measure in values))
    return section("Measured so far", _figures("Measured so far", names, run.found.items()))


def _figures(
    label: str, measures: Sequence[str], systems: Iterable[tuple[str, Mapping[str, float]]], own: str = ""
) -> str:
    """A row for each system; that of one's own stands out."""
    rows = [
        Row(
            [safe_text(name), *(f"{values[one]:.4f}" if one in values else "" for one in measures)],
            "is-chosen" if name == own else "",
        )
        for name, values in systems
    ]
    return table(label, [Column("system"), *(Column(safe_text(one), "number") for one in measures)], rows)


def _training(run: Run, measured: RunMeasured | None) -> str:
    return "\n".join(filter(None, [_facts(run), _curves(run, measured), _epochs(run)]))


def _facts(run: Run) -> str:
    training, config = run.training, run.training.get("config", {})
    arguments = ", ".join(f"{name}={value}" for name, value in _plain(run.about.get("arguments")).items())
    settings = ", ".join(f"{name} {config[name]}" for name in _TOLD if name in _plain(config))
    entries = [
        ("Model", f"{run.about.get('model', 'not saved yet')}{f' ({arguments})' if arguments else ''}"),
        ("Trained with", settings),
        ("Pairs", f"{training['pairs']:,} to learn from" if isinstance(training.get("pairs"), int) else ""),
        ("Kept", _kept(run)),
        ("Careful", f"it has learnt nothing: {training['nothing_learnt']}" if "nothing_learnt" in training else ""),
    ]
    return facts(((name, safe_text(said)) for name, said in entries if said), "card about")


def _kept(run: Run) -> str:
    best = _plain(run.training.get("best"))
    if "epoch" not in best:
        return ""
    measure = run.measure or ""
    figure = f", {measure} {best[measure]:.4f} on the development pairs" if measure in best else ""
    return f"epoch {best['epoch']}{figure}"


def _plain(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _curves(run: Run, measured: RunMeasured | None) -> str:
    if not run.log:
        return '<p class="note">No epoch is done yet.</p>'
    steps = max(entry["step"] for entry in run.log) or 1
    at = [entry["epoch"] - 1 + entry["step"] / steps for entry in run.log]
    epochs = float(_plain(run.training.get("config")).get("epochs", at[-1])) if run.running else at[-1]
    best = _plain(run.training.get("best"))
    kept = best["epoch"] - 1 + best["step"] / steps if "epoch" in best and "step" in best else None
    end = max(epochs, at[-1])
    losses = _curve("loss", list(zip(at, (e["loss"] for e in run.log), strict=True)), end)
    drawn = [section("Loss", losses, about="Mean of each part of the training; lower is better.")]
    if run.measure is not None:
        values = [(x, entry[run.measure]) for x, entry in zip(at, run.log, strict=True) if run.measure in entry]
        lines = {} if measured is None else measured.lines(run.measure)
        figures = _curve(run.measure, values, end, lines, kept)
        about = "" if kept is None else "The ring is the epoch that was kept."
        if lines:
            about += " Horizontal lines are figures on the given pairs, including the matcher's own: compare these."
        drawn.insert(0, section(f"{safe_text(run.measure)} on the development pairs", figures, about=about))
    return "\n".join(drawn)


def _curve(
    name: str,
    points: Sequence[tuple[float, float]],
    end: float,
    levels: Mapping[str, float] | None = None,
    kept: float | None = None,
) -> str:
    caption = f"{name}: {points[0][1]:.4g} first, {points[-1][1]:.4g} last" if points else ""
    return curve({name: points}, chosen=name, x_name="epochs", end=end, levels=levels, ring=kept, caption=caption)


def _epochs(run: Run) -> str:
    if not run.log:
        return ""
    names = list(run.log[0])
    rows = [Row([f"{entry[name]:.6g}" if name in entry else "" for name in names]) for entry in run.log]
    columns = [Column(safe_text(name.replace("_", " ")), "number") for name in names]
    return f"<details><summary>All figures</summary>\n{table('All figures', columns, rows)}</details>"


def _beside(measured: RunMeasured) -> str:
    report, name = measured.report, "Beside the baselines"
    systems = [(report.name, report.values), *((one.name, one.measured.values) for one in report.baselines)]
    warnings = "".join(f'<p class="warning">{safe_text(line)}</p>' for line in report.warnings)
    shown = _figures(name, list(report.values), systems, own=report.name)
    return section(name, shown + warnings, about=safe_text(report.subset.line()))


def _questions(name: str, questions: Iterable[Question]) -> str:
    shown = "\n".join(_question(one) for one in questions)
    return section(name, shown) if shown else ""


def _question(one: Question) -> str:
    said = "right" if one.rank == 1 else f"right text at rank {one.rank:,}"
    inside = explanation_block(one.first, "Came first" if one.right else "Came first, and is right")
    if one.right is not None:
        inside += explanation_block(one.right, "Right")
    state = badge(said, "good" if one.rank == 1 else "bad")
    return f'<div class="question"><h3><bdi dir="auto">{safe_text(one.query)}</bdi> {state}</h3>\n{inside}</div>'
