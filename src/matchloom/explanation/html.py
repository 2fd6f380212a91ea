"""Explanations as one page that needs nothing else: no network, no other file.

Texts, sums and tables are plain HTML; `heatmap.js` draws the maps and `page.js` links words, partners and cells.
All text from outside is escaped, and the page's own policy lets no script run but the page's (see `pages`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from matchloom.basics.screen import printable
from matchloom.explanation.cells import (
    Scale,
    channel_contributions,
    choose_channel,
    decimal_places,
    paths,
    word_contributions,
    word_weights,
    worth_showing,
)
from matchloom.explanation.explained import Explanation
from matchloom.explanation.source import pieces
from matchloom.explanation.waterfall import table_of
from matchloom.pages.blocks import section
from matchloom.pages.contributions import highlight
from matchloom.pages.document import asset, document, without_styles
from matchloom.pages.markup import figure, safe_text, signed
from matchloom.pages.numbers import decimals, significant
from matchloom.types import MatchloomError

# What a browser draws at once and a person still reads; every cut is said on the page.
_TEXT_WORDS = 600
_MAP_ROWS, _MAP_COLUMNS = 60, 120

_FOOTER = (
    "A signal is a pair of words in one channel of the map. Its contribution is what it added to the score: the "
    "contributions and the residual add up to the score. Figures are rounded. Made by matchloom."
)


def render_html(explanations: Sequence[Explanation]) -> str:
    """One self-contained HTML page for one explanation or several, e.g. the ranked candidates of a query.

    They keep their order. Explanations by the same scorer share their colours' scale, so that they can be compared.
    """
    if not explanations:
        raise MatchloomError("no explanations were given; a page needs at least one", code="no_data")
    word_scale = _largest_word_contributions(explanations)
    map_scales = _map_scales(explanations)
    single = len(explanations) == 1
    ones = [_one(e, i, single, word_scale[e.scorer], map_scales) for i, e in enumerate(explanations, start=1)]
    return document(
        _title(explanations),
        ones[0] if single else "\n".join([_lead(explanations), *ones]),
        _FOOTER,
        script=script(),
    )


def script() -> str:
    """What brings explanations to life, on a page in one file."""
    return "".join(asset(name, "matchloom.explanation") for name in ("heatmap.js", "page.js"))


def render_fragment(explanation: Explanation) -> str:
    """One explanation as a piece of the service's page, which has the stylesheet and runs `wire` of page.js on it."""
    return without_styles(f'<article class="one">\n{_alone(explanation)}\n</article>')


def explanation_block(explanation: Explanation, name: str) -> str:
    """One explanation under a name that opens it, as a part of a page in one file that has `script`."""
    return _opening(explanation, name, _alone(explanation), 'class="one"')


def _alone(explanation: Explanation) -> str:
    """An explanation that shares its scales with no other."""
    largest = _largest_word_contributions([explanation])[explanation.scorer]
    return _inside(explanation, False, largest, _map_scales([explanation]))


def _opening(explanation: Explanation, name: str, inside: str, attributes: str) -> str:
    return (
        f"<details {attributes}><summary><span>{safe_text(name)}</span> "
        f'<span class="figure">{_score(explanation)}</span> '
        f'<span class="start" dir="auto">{_begin(explanation.text, 30) or "(no words)"}</span></summary>\n'
        f'<div class="inside">\n{inside}\n</div>\n</details>'
    )


def _score(explanation: Explanation) -> str:
    return figure(explanation.trace.score, decimal_places(explanation))


def _begin(words: Sequence[str], limit: int) -> str:
    """The first words of a text, for headings."""
    return safe_text(" ".join(words[:limit])) + (" …" if len(words) > limit else "")


def _title(explanations: Sequence[Explanation]) -> str:
    first = explanations[0]
    if len(explanations) > 1:
        return f"{len(explanations)} scores explained: {_begin(first.query, 8)}"
    return f"Score {_score(first)} by {safe_text(first.scorer)}: {_begin(first.query, 8)}"


def _lead(explanations: Sequence[Explanation]) -> str:
    query = explanations[0].query
    if any(e.query != query for e in explanations):
        return f"<h1>{len(explanations)} scores explained</h1>\n<p class=lead>Open one to see why.</p>"
    return (
        f"<h1>{_begin(query, 40)}</h1>\n"
        f"<p class=lead>{len(explanations)} texts matched with this query. Open one to see why it got its score.</p>"
    )


def _largest_word_contributions(explanations: Iterable[Explanation]) -> dict[str, float]:
    largest: dict[str, float] = {}
    for explanation in explanations:
        for contributions in word_contributions(explanation):
            largest[explanation.scorer] = max(map(abs, [largest.get(explanation.scorer, 0.0), *contributions]))
    return largest


def _map_scales(explanations: Iterable[Explanation]) -> dict[tuple[str, str], Scale]:
    values: dict[tuple[str, str], list[Any]] = {}
    for explanation in explanations:
        for name, grid in zip(explanation.trace.channels, explanation.trace.grid, strict=True):
            values.setdefault((explanation.scorer, name), []).append(grid.ravel())
    return {key: Scale.of(np.concatenate(grids)) for key, grids in values.items()}


def _one(
    explanation: Explanation,
    number: int,
    single: bool,
    word_scale: float,
    map_scales: Mapping[tuple[str, str], Scale],
) -> str:
    inside = _inside(explanation, single, word_scale, map_scales)
    if single:
        return f'<article class="one" id="e{number}">\n{inside}\n</article>'
    attributes = f'class="one" id="e{number}"{" open" if number == 1 else ""}'
    return _opening(explanation, f"{number}.", inside, attributes)


def _inside(
    explanation: Explanation, single: bool, word_scale: float, map_scales: Mapping[tuple[str, str], Scale]
) -> str:
    weights = word_weights(explanation)
    data: dict[str, Any] = {"places": decimal_places(explanation), "pairs": _pairs(explanation)}
    if explanation.trace.grid.size:
        data["map"] = _map(explanation, weights, map_scales)
    # In a script element only "<" can end the data; the others are escaped so that no parser is tempted.
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False)
    safe = plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return "\n".join(
        [
            _head(explanation, single),
            _texts(explanation, weights, word_scale),
            _map_block(explanation, data.get("map")),
            table_of(explanation),
            f'<script type="application/json" class="data">{safe}</script>',
        ]
    )


def _head(explanation: Explanation, single: bool) -> str:
    trace, places = explanation.trace, decimal_places(explanation)
    count = len(trace.signals)
    components = (
        f"{signed(sum(component.contribution for component in trace.components), places)} components "
        if trace.components
        else ""
    )
    by = f"Score by {safe_text(explanation.scorer)}"
    big = f'<h1 class="score"><small>{by}</small> <span class="figure">{_score(explanation)}</span></h1>\n'
    return (
        f'{big if single else ""}<p class="sum">{"" if single else f"{by}: {_score(explanation)} "}'
        f"= {signed(sum(s.contribution for s in trace.signals), places)} from {count} "
        f"signal{'' if count == 1 else 's'} {components}{signed(trace.residual, places)} residual</p>"
    )


def _texts(explanation: Explanation, weights: tuple[dict[int, float], dict[int, float]], largest: float) -> str:
    contributions = word_contributions(explanation)
    places = decimal_places(explanation)
    blocks = []
    for side in explanation.sides():
        words = (explanation.query, explanation.text)[side.which][side.start : side.end]
        kind = ("query", "text")[side.which]
        took_part = {i - side.start: w for i, w in weights[side.which].items() if side.start <= i < side.end}
        shown = worth_showing(len(words), took_part, _TEXT_WORDS)
        parts: list[str] = []
        for text, i in pieces(words, side.source, shown):
            if i is None:
                parts.append(safe_text(text))
                continue
            at = side.start + i
            contribution = contributions[side.which][at] if i in took_part else None
            parts.append(highlight(text, at, contribution, largest=largest, places=places))
        if len(shown) < len(words):
            parts.append(f' <span class="note">({len(words) - len(shown)} of {len(words)} words not shown)</span>')
        blocks.append(
            f'<div class="side"><h2>{safe_text(side.name)}</h2><p class="words" data-side="{kind}" dir="auto">'
            f"{''.join(parts) or '<span class=note>(no words)</span>'}</p></div>"
        )
    hint = "Point at a shaded word, or tab to it, to see its partners." if weights[0] else "No word pair took part."
    return (
        '<section class="block" aria-label="The texts"><div class="texts">\n' + "\n".join(blocks) + "\n"
        '<svg class="threads" aria-hidden="true"></svg></div>\n'
        f'<p class="readout" role="status" data-hint="{hint}">{hint}</p></section>'
    )


def _pairs(explanation: Explanation) -> list[tuple[int, int, float | None]]:
    """What each pair of words added over all channels, the strongest first."""
    contributions: dict[tuple[int, int], float] = {}
    for signal in explanation.trace.signals:
        key = (signal.left, signal.right)
        contributions[key] = contributions.get(key, 0.0) + float(signal.contribution)
    ranked = sorted(contributions.items(), key=lambda item: (-abs(item[1]), item[0]))
    return [(left, right, significant(contribution, 6)) for (left, right), contribution in ranked]


def _map(
    explanation: Explanation,
    weights: tuple[dict[int, float], dict[int, float]],
    scales: Mapping[tuple[str, str], Scale],
) -> dict[str, Any]:
    """The map as heatmap.js takes it."""
    trace, places = explanation.trace, decimal_places(explanation)
    rows = worth_showing(len(explanation.query), weights[0], _MAP_ROWS)
    columns = worth_showing(len(explanation.text), weights[1], _MAP_COLUMNS)
    grids = trace.grid[:, rows][:, :, columns]
    row_of, column_of = {at: i for i, at in enumerate(rows)}, {at: i for i, at in enumerate(columns)}
    channels = []
    for name, grid, contribution in zip(trace.channels, grids, channel_contributions(explanation), strict=True):
        scale = scales[explanation.scorer, name]
        channels.append(
            {
                "name": printable(name),
                "label": f"{printable(name)} (contribution {figure(contribution, places, sign=True)})",
                "low": significant(scale.low, 4),
                "high": significant(scale.high, 4),
                "places": decimals(scale),
                "values": [significant(value, 4) for value in grid.ravel().tolist()],
            }
        )
    return {
        "rowName": "query",
        "colName": "text",
        "rows": [{"word": printable(explanation.query[i]), "at": i} for i in rows],
        "cols": [{"word": printable(explanation.text[i]), "at": i} for i in columns],
        "channels": channels,
        "first": choose_channel(explanation),
        "marks": [
            {
                "row": row_of[s.left],
                "col": column_of[s.right],
                "channel": s.channel,
                "note": f"contribution to the score {figure(s.contribution, places, sign=True)}",
            }
            for s in trace.signals
            if s.left in row_of and s.right in column_of
        ],
        "paths": {
            channel: [(row_of[i], column_of[j]) for i, j in path if i in row_of and j in column_of]
            for channel, path in paths(explanation).items()
        },
    }


def _map_block(explanation: Explanation, data: Mapping[str, Any] | None) -> str:
    if data is None:
        why = "One side has no words." if explanation.trace.channels else "No score was taken apart by words."
        return section("Interaction map", "", about=why)
    cuts = [
        f"{len(words) - len(shown)} of {len(words)} {side} words"
        for side, words, shown in (("query", explanation.query, data["rows"]), ("text", explanation.text, data["cols"]))
        if len(shown) < len(words)
    ]
    note = (
        f'<p class="note">Not in the map: {" and ".join(cuts)}, which contribute least. Dashed lines show where.</p>'
        if cuts
        else ""
    )
    without = "The map is drawn by a script, which is switched off here."
    host = f'<div class="heat"><noscript><p class="note">{without}</p></noscript></div>'
    return section("Interaction map", f"{host}\n{note}")
