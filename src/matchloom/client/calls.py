"""The requests that both clients make, apart from how they are sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from matchloom.basics.validation import many_texts, one_text
from matchloom.client.sending import Call
from matchloom.data.entries import Entry
from matchloom.data.formats import PairsLike, as_pairs, scorable
from matchloom.explanation import Explanation
from matchloom.types import Added, Hit, Hits, Ranked, Ranking, Scores, Sureness


def systems() -> Call[list[dict[str, Any]]]:
    """What is served."""
    return Call("/v1/systems", None, lambda found: list(found["systems"]))


def score(pairs: PairsLike, text: str | None, system: str | None) -> Call[Any]:
    """The score of each pair, or of one query and text."""
    alone = text is not None
    asked = [(one_text("query", pairs), one_text("text", text))] if alone else scorable(pairs)
    plain = [{"query": pair[0], "text": pair[1]} for pair in asked]

    def read(found: Any) -> Scores | float:
        scores = np.array(found["scores"], dtype=np.float32)
        return float(scores[0]) if alone else scores

    return Call("/v1/score", {"system": system, "pairs": plain}, read)


def rank(
    query: str,
    candidates: Iterable[str],
    top: int | None,
    system: str | None,
    precision: float | None,
    coverage: float | None,
) -> Call[Ranking]:
    """Candidates by falling score."""
    body = {
        "system": system,
        "query": one_text("query", query),
        "candidates": many_texts("candidates", candidates),
        "top": top,
        "precision": precision,
        "coverage": coverage,
    }
    return Call("/v1/rank", body, _ranking)


def _ranking(found: Any) -> Ranking:
    """What was ranked, and how sure a collection is of it."""
    rows, known = found["ranking"], found.get("known")
    sureness = None
    if known is not None:
        likely = tuple(one["probability"] for one in rows)
        sureness = Sureness(likely, known, found["answered"], found["confident"])
    return Ranking((Ranked(one["index"], one["score"], one["text"]) for one in rows), sureness)


def search(question: str | Iterable[str], options: dict[str, Any]) -> Call[Any]:
    """The best answers to a question, or to many."""
    if isinstance(question, str) or not isinstance(question, Iterable):
        return Call("/v1/search", {"question": one_text("question", question), **options}, _hits)
    many = many_texts("question", question)
    return Call("/v1/search", {"questions": many, **options}, lambda found: [_hits(one) for one in found["results"]])


def explain(query: str, text: str, options: dict[str, Any]) -> Call[Explanation]:
    """Why a text got its score."""
    body = {"query": one_text("query", query), "text": one_text("text", text), **options}
    return Call("/v1/explain", body, lambda found: Explanation.from_dict(found["explanation"]))


def add(collection: str, pairs: PairsLike) -> Call[Added]:
    """More questions and answers."""
    right = list(as_pairs(pairs))
    wrong = [pair for pair in right if not pair.is_positive]
    plain = [
        {"query": pair.query, "text": pair.text, "query_id": pair.query_id, "text_id": pair.text_id}
        for pair in right
        if pair.is_positive
    ]
    path = path_of(collection, "/pairs", "archives")
    return Call(path, {"pairs": plain}, lambda done: Added(done["new"], done["replaced"], len(wrong)), writes=True)


def replace(collection: str, entries: Iterable[Entry]) -> Call[int]:
    """Entries as they are given."""
    plain = [
        {"id": one.id, "text": one.text, "questions": list(one.questions), "columns": dict(one.columns)}
        for one in entries
    ]
    path = path_of(collection, "/entries")
    return Call(path, {"entries": plain}, lambda done: int(done["put"]), put=True, writes=True)


def remove(collection: str, ids: Iterable[str]) -> Call[int]:
    """Entries to remove."""
    body = {"ids": many_texts("ids", ids)}
    return Call(path_of(collection, "/remove"), body, lambda done: int(done["removed"]), writes=True)


def refit(collection: str) -> Call[dict[str, Any]]:
    """A refit in the background."""
    return Call(path_of(collection, "/refit"), {}, dict, writes=True)


def status(collection: str) -> Call[dict[str, Any]]:
    """What a collection is, and the state of its refit."""
    return Call(path_of(collection), None, dict)


def feedback(question: str, text: str, right: bool, answer_id: str, who: str, system: str | None) -> Call[None]:
    """A thumb up or down."""
    body = {"question": question, "text": text, "label": int(right), "id": answer_id, "who": who, "system": system}
    return Call("/v1/feedback", body, lambda _: None, writes=True)


def reload(systems: Sequence[str]) -> Call[dict[str, str]]:
    """Systems to read anew."""
    return Call("/v1/reload", {"systems": list(systems)}, lambda done: dict(done["refused"]))


def path_of(name: str, what: str = "", kind: str = "collections") -> str:
    """The path of a collection, or of what is below it."""
    return f"/v1/{kind}/{quote(name, safe='')}{what}"


def _hits(found: Any) -> Hits:
    """What a search found, as the library gives it."""
    reasons = ((one, one.pop("explanation", None)) for one in ({**one} for one in found["answers"]))
    hits = (Hit(**one, explanation=None if why is None else Explanation.from_dict(why)) for one, why in reasons)
    return Hits(hits, found["known"], found.get("answered"), found.get("confident"))
