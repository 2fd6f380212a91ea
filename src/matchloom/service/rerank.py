"""The rerank API that other programs speak: of Cohere (v1, v2), Jina and vLLM, and of Text Embeddings Inference.

What is asked for with `documents` is answered as the first four do, with `texts` as the last does, on every route.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI
from starlette.responses import Response

from matchloom.calibration import relevance
from matchloom.explanation import explain
from matchloom.explanation.budget import CellBudget
from matchloom.explanation.spans import relevant_spans
from matchloom.search.reranking import ranks_any_text
from matchloom.service import handlers
from matchloom.service import rerank_schemas as s
from matchloom.service.limits import Limits
from matchloom.service.problems import unknown
from matchloom.service.responses import ERRORS, answer
from matchloom.service.service import Service
from matchloom.service.steps import Steps, encoded
from matchloom.service.systems import BM25, ServedSystem
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Explains, Ranked, Scorer

ROUTES = ("/rerank", "/v1/rerank", "/v2/rerank")
_EXPLAINED = 100  # documents of which one request is told why
Plain = dict[str, Any]


def add_rerank(app: FastAPI, service: Service) -> None:
    """Add the routes."""
    for path in ROUTES:
        _add_route(app, service, path)


def _add_route(app: FastAPI, service: Service, path: str) -> None:
    limits, workers = service.limits, service.workers
    options: Any = {"response_model": s.RerankAnswer | list[s.RerankedText], "response_model_exclude_unset": True}

    @app.post(path, tags=["ask"], responses=ERRORS, **options)
    async def rerank(asked: s.RerankRequest | s.RerankTextsRequest) -> Response:
        """Documents by falling relevance; every document comes back unless `top_n` says otherwise."""
        given = asked.documents if isinstance(asked, s.RerankRequest) else asked.texts
        fields = asked.rank_fields if isinstance(asked, s.RerankRequest) else None
        system = _system(service, asked.model)
        tokenize = handlers.tokenizer_of(system)
        limits.check_count("documents", len(given))
        version = "2" if path.startswith("/v2") else "1"
        async with workers.admitted():
            texts = await workers.call(lambda: [text_of(one, fields) for one in given])
            await workers.call(limits.text_steps, [asked.query, *texts], tokenize)
            steps = _reranked(system, asked, given, texts, limits, version)
            return answer(await workers.call(encoded, steps))


def text_of(document: str | Plain, fields: Sequence[str] | None = None) -> str:
    """What is read of a document: a text; of an object the named fields, its `text`, or all its texts."""
    if isinstance(document, str):
        return document
    if not fields and isinstance(document.get("text"), str):
        return str(document["text"])
    values = [document.get(name) for name in fields] if fields else list(document.values())
    return " ".join(value for value in values if isinstance(value, str))


def _system(service: Service, model: str | None) -> ServedSystem | None:
    """The system of this name, or the first one that can rank any text; None for BM25 over the documents."""
    if not service.shelf.ready:
        raise service.not_ready()
    named = None if model is None else service.shelf.find(model)
    if named is not None:
        handlers.scorer_of(named)
        return named
    if model == BM25:
        return None
    if not service.shelf.systems:
        raise unknown("system", model or "", [])
    first = service.system(None)
    return first if first.scorer is not None and ranks_any_text(first.scorer) else None


def _reranked(
    system: ServedSystem | None,
    asked: s.RerankRequest | s.RerankTextsRequest,
    given: Sequence[str | Plain],
    texts: Sequence[str],
    limits: Limits,
    version: str,
) -> Steps[Any]:
    top = asked.top_n or None if isinstance(asked, s.RerankRequest) else None
    scorer, found = yield from handlers.ranked(system, asked.query, texts, top)
    spans = (yield from _spans(scorer, asked.query, found[:_EXPLAINED], limits)) if asked.explain else []
    if isinstance(asked, s.RerankTextsRequest):
        scores = [one.score for one in found] if asked.raw_scores else _relevance(scorer, found)
        rows: list[Plain] = [{"index": one.index, "score": score} for one, score in zip(found, scores, strict=True)]
        for row in rows if asked.return_text else ():
            row["text"] = texts[row["index"]]
        return _with_spans(rows, spans)
    rows = [
        {"index": one.index, "relevance_score": score}
        for one, score in zip(found, _relevance(scorer, found), strict=True)
    ]
    for row in rows if asked.return_documents else ():
        document = given[row["index"]]
        row["document"] = {"text": document} if isinstance(document, str) else document
    return {
        "id": secrets.token_hex(16),
        "object": "list",
        "model": BM25 if system is None else system.name,
        "results": _with_spans(rows, spans),
        "usage": usage_of([asked.query, *texts]),
        "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 0}},
    }


def usage_of(texts: Sequence[str]) -> dict[str, int]:
    """Words that were read, parted at spaces."""
    words = sum(len(text.split()) for text in texts)
    return {"prompt_tokens": words, "total_tokens": words}


def _relevance(scorer: Scorer, found: Sequence[Ranked]) -> list[float]:
    made: list[float] = relevance(scorer, np.array([one.score for one in found], np.float32)).tolist()
    return made


def _spans(scorer: Scorer, query: str, found: Sequence[Ranked], limits: Limits) -> Steps[list[list[Plain]]]:
    inner = getattr(scorer, "scorer", scorer)  # of a fitted system
    if not isinstance(inner, Explains):
        return []
    tokenizer = getattr(inner, "tokenizer", None)
    told: list[list[Plain]] = []
    words = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer()
    rows, budget = len(words(query)), CellBudget(limits.cells)
    for one in found:
        if not budget.allows(rows, len(words(one.text))):
            break
        yield
        spans = relevant_spans(budget.spend(explain(inner, query, one.text)), tokenizer, one.text)
        told.append([span._asdict() for span in spans])
    return told


def _with_spans(rows: list[Plain], spans: Sequence[list[Plain]]) -> list[Plain]:
    for row, own in zip(rows, spans, strict=False):
        row["relevant_spans"] = own
    return rows
