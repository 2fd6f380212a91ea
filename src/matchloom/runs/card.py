"""The card of a folder: what it is and was made from, its figures with intervals, its limits, the encoder's licence.

It is written from manifests alone, so that no folder need open and no torch is loaded; no text of the data is in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matchloom.artifact import kind_of, settings_of
from matchloom.artifact.checks import read_regular
from matchloom.artifact.manifest import manifest_name
from matchloom.basics.files import atomic_write
from matchloom.data.kinds import PAIRS
from matchloom.encoders.card import read_card
from matchloom.encoders.library import found_encoders
from matchloom.evaluation.significance import interval
from matchloom.fitting.report import FitReport
from matchloom.runs.reading import read_run
from matchloom.types import MatchloomError

CARD = "README.md"
_MARK = "<!-- made by matchloom card -->"
_PIECES = "tokenizer.json"
_MOST = 100_000_000  # bytes of a tokenizer that is compared
ABOUT = {
    "collection": "Answers that can be searched: each with its questions, ranked by fused features, and explained.",
    "fit": "What `matchloom fit` chose for a file, with its report.",
    "archive": "Answered questions in a LanceDB table, searched by words and vectors.",
    "matcher": "A network that scores how well two texts match, and shows by which words.",
    "trans_lm": "A translation language model: which words of an answer stand for which words of a question.",
    "list_fusion": "Scorers of candidate lists, fused by weights from held-out questions.",
    "calibrated": "A scorer of pairs with a threshold and probabilities from held-out pairs.",
    "pair_classifier": "A linear classifier of pairs: the same meaning, or not.",
    "words": "A scorer by words, with the word statistics of its data.",
}
_LIMITS = {
    "collection": [
        "It finds answers and does not write them; it cannot answer what is not in it.",
        "Figures hold for questions like those of the file. Questions in other words get lower figures.",
        "A probability is shown only if it was calibrated on held-out questions.",
    ],
    "matcher": ["Scores order the candidates of one question; unless calibrated, they are not probabilities."],
}
_ALWAYS = "It was not made for texts unlike its data, such as texts in another language or field."


def card(folder: Path | str) -> str:
    """The card of a folder that `fit`, `train`, `index` or `trans-lm` made, as Markdown with the Hub's front matter.

    Args:
        folder: Its folder.
    """
    path = Path(folder)
    kind = kind_of(path)
    if kind is None:
        raise MatchloomError(f"{path} is no folder that matchloom made; there is nothing to describe", code="missing")
    settings = settings_of(path, kind)
    if settings is None:
        raise MatchloomError(f"{path} is damaged; 'matchloom doctor {path}' says where", code="damaged")
    report = _report(path)
    encoders = list(_encoders(path))
    parts = [
        _front(kind, settings, report, encoders),
        f"# {path.resolve().name}\n\n{_MARK}\n\n{ABOUT[kind]}\n",
        _section("Made from", _made_from(path, kind, settings, report)),
        *([_figures(report)] if report is not None else []),
        _section("Limits", _limits(kind, settings, report)),
        *([_section("Encoder", [line for _, lines in encoders for line in lines])] if encoders else []),
        _use(path, kind),
    ]
    return "\n".join(parts)


def write_card(folder: Path | str, *, overwrite: bool = False) -> Path:
    """Write the card as README.md into the folder; one that somebody else wrote is kept unless `overwrite`."""
    text, target = card(folder), Path(folder) / CARD
    if target.exists() and not overwrite and _MARK not in target.read_text(encoding="utf-8", errors="replace"):
        raise MatchloomError(f"{target} was not made by 'matchloom card'; overwrite=True replaces it", code="exists")
    with atomic_write(target) as file:
        file.write(text)
    return target


def _front(kind: str, settings: Mapping[str, Any], report: FitReport | None, encoders: list[Any]) -> str:
    language = settings.get("tokenizer", {}).get("language") or (report.language if report else "")
    licences = {licence for licence, _ in encoders if licence}
    lines = ["library_name: matchloom", "tags:", "- matchloom", f"- {kind.replace('_', '-')}", "- text-ranking"]
    if language:
        lines.append(f"- {str(language).lower()}")
    if len(licences) == 1:
        lines.append(f"license: {json.dumps(licences.pop())}  # of the encoder; that of your data is yours to say")
    return "\n".join(["---", *lines, "---", ""])


def _made_from(path: Path, kind: str, settings: Mapping[str, Any], report: FitReport | None) -> list[str]:
    manifest = (path / manifest_name(kind)).read_bytes()
    found = [f"data: {report.about}"] if report else []
    training = settings.get("training", {})
    if digest := training.get("data"):
        found.append(f"digest of the training data: `{digest}`")
    if digest := settings.get("digest"):
        found.append(f"digest of the entries and what was learnt of them: `{digest}`")
    found.append(
        f"digest of this artifact (SHA-256 of {manifest_name(kind)}): `{hashlib.sha256(manifest).hexdigest()}`"
    )
    if kind == "matcher":
        arguments = ", ".join(f"{name} {value}" for name, value in settings.get("arguments", {}).items())
        found.append(f"model: {settings.get('model')}" + (f" ({arguments})" if arguments else ""))
        plain = {name: value for name, value in training.items() if isinstance(value, str | int | float | bool)}
        found += [f"training: {', '.join(f'{name} {value}' for name, value in plain.items())}"] if plain else []
    if features := settings.get("features"):
        found.append(f"features: {', '.join(features)}" + (f"; {settings['why']}" if settings.get("why") else ""))
    if unanswerable := settings.get("unanswerable"):
        found.append(f"{len(unanswerable)} questions without an answer, from which it learnt when to give none")
    return found


def _figures(report: FitReport) -> str:
    """The chosen system and the others on the same test questions."""
    heads = ["system", *report.measures, "p of the difference"]
    rows = []
    for one in report.systems:
        if one.error or not one.test:
            continue
        cells = [f"**{one.name}**, chosen" if one.name == report.chosen else one.name]
        for measure in report.measures:
            value = one.test.get(measure)
            cells.append("" if value is None else f"{value:.3f}{_interval(report, measure, value)}")
        rows.append([*cells, "" if one.p is None else f"{one.p:.3f}"])
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    about = f"{report.tested} held-out for the test, measured once; {report.developed} others chose the system."
    return f"## Figures\n\n{about} In brackets 95% intervals.\n\n" + "\n".join(lines) + "\n"


def _interval(report: FitReport, measure: str, value: float) -> str:
    """The interval of a mean over questions; F1 and the like are none."""
    if not 0 <= value <= 1 or not report.tested or (report.kind == PAIRS and measure.lower() != "accuracy"):
        return ""
    low, high = interval(value, report.tested)
    return f" ({low:.3f} to {high:.3f})"


def _limits(kind: str, settings: Mapping[str, Any], report: FitReport | None) -> list[str]:
    found = [*_LIMITS.get("collection" if report else kind, []), _ALWAYS]
    if report is None:
        found.insert(0, "It was not measured. To measure it, use `matchloom evaluate` with your own questions.")
    elif report.tested < 100:
        found.insert(0, f"Only {report.tested} test questions: with so few, figures vary much by chance.")
    if changed := settings.get("since_report"):
        found.append(f"{changed} answers have changed since it was measured.")
    return found


def _encoders(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The licence of each pretrained encoder inside, and what is known of it."""
    known = {_digest(one.folder / _PIECES): one for one in found_encoders()}
    for pieces in sorted(path.rglob(_PIECES)):
        same = known.get(_digest(pieces))
        if same is None:
            yield "", ["it contains a pretrained encoder whose licence is not known: ask its provider"]
            continue
        own = read_card(same.folder)
        lines = [f"its tokenizer is that of {same.name}; licence of that encoder: {own.licence or 'not named'}"]
        if own.trained_on:
            more = " and others" if len(own.trained_on) > 10 else ""
            lines.append(f"it was trained on {', '.join(own.trained_on[:10])}{more}")
        yield own.licence, lines


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_regular(path, _MOST, "")).hexdigest()
    except MatchloomError:
        return str(path)


def _report(path: Path) -> FitReport | None:
    try:
        return read_run(path).report
    except MatchloomError:
        return None


def _section(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"


def _use(path: Path, kind: str) -> str:
    name = path.resolve().name
    python = f'from matchloom import load\n\nfound = load("{name}")'
    command = (
        f'matchloom search {name} "your question"'
        if kind in ("collection", "archive")
        else f"matchloom rank {name} QUERY FILE"
    )
    return f"## Use\n\n```sh\n{command}\n```\n\n```python\n{python}\n```\n"
