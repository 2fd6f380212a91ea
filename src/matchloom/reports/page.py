"""The page of a run: its curves as far as they go, what it was trained with, figures, and explained questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchloom.explanation.html import explanation_block
from matchloom.explanation.markup import asset, document, safe_text
from matchloom.fitting.page import body as fit_body
from matchloom.reports.curves import draw_run
from matchloom.reports.measured import Question, RunMeasured
from matchloom.reports.reading import FIT, Run

_FOOTER = (
    "Development figures chose the epoch that was kept, and are no test of it. Figures are rounded. Made by matchloom."
)
_TOLD = ("loss", "optimizer", "learning_rate", "batch", "negatives", "epochs", "patience", "seed")


def render_page(run: Run, measured: RunMeasured | None = None) -> str:
    """One file that needs nothing else."""
    style = asset("page.css", "matchloom.fitting") + asset("page.css") + asset("page.css", "matchloom.reports")
    script = asset("heatmap.js") + asset("page.js") if measured is not None else ""
    return document(f"matchloom run: {safe_text(run.name)}", _body(run, measured), _FOOTER, style=style, script=script)


def render_fragment(run: Run) -> str:
    """The same as a piece of another page, whose policy allows no styles in HTML (see explanation/html.py)."""
    return f'<div class="run-page">{_body(run, None)}</div>'.replace(' style="', ' data-style="')


def _body(run: Run, measured: RunMeasured | None) -> str:
    state = "running" if run.running else "finished"
    head = (
        f'<header class="run-head"><p class="kicker">{run.kind} <span class="badge {"good" if run.running else ""}">'
        f"{state}</span></p>\n<h1>{safe_text(run.name)}</h1></header>"
    )
    if run.report is not None:
        return f"{head}\n{fit_body(run.report)}"
    sections = [head, _so_far(run) if run.kind == FIT else _training(run, measured)]
    if measured is not None:
        sections += [_figures(measured), _questions("Where it is most wrong", measured.worst)]
        sections.append(_questions("Where it is right", measured.best))
    return "\n".join(filter(None, sections))


def _section(name: str, inside: str, about: str = "") -> str:
    note = f'<p class="note">{about}</p>\n' if about else ""
    return f'<section class="block"><h2>{name}</h2>\n{note}{inside}\n</section>'


def _so_far(run: Run) -> str:
    """A fit that goes on, or was stopped: what it has measured."""
    names = list(dict.fromkeys(measure for values in run.found.values() for measure in values))
    rows = [
        f'<tr><th scope="row">{safe_text(name)}</th>'
        + "".join(f'<td class="number">{values[one]:.4f}</td>' if one in values else "<td></td>" for one in names)
        + "</tr>"
        for name, values in run.found.items()
    ]
    return _section("Measured so far", _table(["system", *names], rows))


def _table(heads: list[str], rows: list[str]) -> str:
    head = "".join(
        f'<th scope="col"{" class=number" if n else ""}>{safe_text(one)}</th>' for n, one in enumerate(heads)
    )
    return (
        f'<div class="scroll-x"><table><thead><tr>{head}</tr></thead>\n<tbody>\n' + "\n".join(rows) + "\n</tbody>"
        "</table></div>"
    )


def _training(run: Run, measured: RunMeasured | None) -> str:
    return "\n".join(filter(None, [_facts(run), _curves(run, measured), _epochs(run)]))


def _facts(run: Run) -> str:
    training, config = run.training, run.training.get("config", {})
    arguments = ", ".join(f"{name}={value}" for name, value in _plain(run.about.get("arguments")).items())
    settings = ", ".join(f"{name} {config[name]}" for name in _TOLD if name in _plain(config))
    facts = [
        ("Model", f"{run.about.get('model', 'not saved yet')}{f' ({arguments})' if arguments else ''}"),
        ("Trained with", settings),
        ("Pairs", f"{training['pairs']:,} to learn from" if isinstance(training.get("pairs"), int) else ""),
        ("Kept", _kept(run)),
        ("Careful", f"it has learnt nothing: {training['nothing_learnt']}" if "nothing_learnt" in training else ""),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{safe_text(told)}</dd>" for name, told in facts if told)
    return f'<div class="card about"><dl>{rows}</dl></div>'


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
    losses = draw_run("loss", list(zip(at, (e["loss"] for e in run.log), strict=True)), epochs=max(epochs, at[-1]))
    drawn = [_section("Loss", losses, "Mean of each stretch of training; lower is better.")]
    if run.measure is not None:
        values = [(x, entry[run.measure]) for x, entry in zip(at, run.log, strict=True) if run.measure in entry]
        lines = {} if measured is None else measured.lines(run.measure)
        curve = draw_run(run.measure, values, epochs=max(epochs, at[-1]), baselines=lines, best=kept)
        about = "" if kept is None else "The ring is the epoch that was kept."
        if lines:
            about += (
                " Lines across are figures on the pairs that were given, the matcher's own among them: compare those."
            )
        drawn.insert(0, _section(f"{safe_text(run.measure)} on the development pairs", curve, about))
    return "\n".join(drawn)


def _epochs(run: Run) -> str:
    if not run.log:
        return ""
    names = list(run.log[0])
    rows = [
        "<tr>"
        + "".join(f'<td class="number">{entry[name]:.6g}</td>' if name in entry else "<td></td>" for name in names)
        + "</tr>"
        for entry in run.log
    ]
    return (
        f"<details><summary>All figures</summary>\n{_table([name.replace('_', ' ') for name in names], rows)}</details>"
    )


def _figures(measured: RunMeasured) -> str:
    report = measured.report
    names = list(report.values)
    systems = [(report.name, report.values), *((one.name, one.measured.values) for one in report.baselines)]
    rows = [
        f'<tr{" class=is-chosen" if n == 0 else ""}><th scope="row">{safe_text(name)}</th>'
        + "".join(f'<td class="number">{values[one]:.4f}</td>' for one in names)
        + "</tr>"
        for n, (name, values) in enumerate(systems)
    ]
    warnings = "".join(f'<p class="note">{safe_text(line)}</p>' for line in report.warnings)
    return _section(
        "Beside the baselines", _table(["system", *names], rows) + warnings, safe_text(report.subset.line())
    )


def _questions(name: str, questions: Any) -> str:
    shown = "\n".join(_question(one) for one in questions)
    return _section(name, shown) if shown else ""


def _question(one: Question) -> str:
    said = "right" if one.rank == 1 else f"right text at rank {one.rank:,}"
    inside = explanation_block(one.first, "Came first" if one.right else "Came first, and is right")
    if one.right is not None:
        inside += explanation_block(one.right, "Right")
    kind = "good" if one.rank == 1 else "bad"
    return (
        f'<div class="question"><h3><bdi dir="auto">{safe_text(one.query)}</bdi> '
        f'<span class="badge {kind}">{said}</span></h3>\n{inside}</div>'
    )
