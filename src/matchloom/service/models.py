"""What OpenAI's clients ask for: which models there are, and sentence vectors of those that have them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.responses import Response

from matchloom.service import rerank_schemas as s
from matchloom.service.problems import Refused
from matchloom.service.rerank import usage_of
from matchloom.service.responses import ERRORS, answer, only
from matchloom.service.service import Service
from matchloom.service.steps import Steps, blocks_of, encoded
from matchloom.service.systems import BM25, ServedSystem

if TYPE_CHECKING:  # torch comes with it
    from matchloom.matcher import Matcher


def add_models(app: FastAPI, service: Service) -> None:
    """Add the routes."""
    limits, workers = service.limits, service.workers

    @app.get("/v1/models", tags=["state"], response_model=s.ModelsAnswer, responses=only(401, 421, 503))
    async def models() -> Response:
        """The systems that are served, as models; bm25 counts words in the documents that it ranks."""
        if not service.shelf.ready:
            raise service.not_ready()
        listed = [(one.name, int(one.loaded)) for one in service.shelf.systems.values()]
        rows = [
            {"id": name, "object": "model", "created": created, "owned_by": "matchloom"}
            for name, created in [*listed, (BM25, 0)]
        ]
        return answer({"object": "list", "data": rows})

    @app.post("/v1/embeddings", tags=["ask"], response_model=s.EmbeddingsAnswer, responses=ERRORS)
    async def embeddings(asked: s.EmbeddingsRequest) -> Response:
        """The sentence vectors of texts, by a system that has them."""
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        system, matcher = _with_vectors(service, asked.model)
        limits.check_count("input", len(texts))
        told = {"object": "list", "model": system.name}
        async with workers.admitted():
            await workers.call(limits.text_steps, texts, system.tokenizer)
            steps = _embedded(matcher, texts, asked.encoding_format == "base64", told)
            return answer(await workers.call(encoded, steps))


def sentence_matcher(system: ServedSystem) -> Matcher | None:
    """What makes sentence vectors of a system, if anything does."""
    if system.collection is not None:
        return system.collection.encoder
    found: Any = system.scorer if system.fitted is None else system.fitted.scorer
    model = getattr(found, "model", None)
    has = getattr(model, "sentence_vectors", False) and not getattr(model, "needs_features", None)
    return found if has else None


def _with_vectors(service: Service, model: str | None) -> tuple[ServedSystem, Matcher]:
    """The system of this name, or else the first one that has sentence vectors."""
    if not service.shelf.ready:
        raise service.not_ready()
    named = None if model is None else service.shelf.find(model)
    for system in service.shelf.systems.values() if named is None else [named]:
        matcher = sentence_matcher(system)
        if matcher is not None:
            return system, matcher
    which = "none of the served systems has" if named is None else f"{named.name} does not have"
    raise Refused(409, "no_vectors", f"{which} sentence vectors; serve what was fitted with --encoder")


def _embedded(matcher: Matcher, texts: Sequence[str], packed: bool, told: dict[str, Any]) -> Steps[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for block in blocks_of([(1, len(text)) for text in texts]):
        for vector in matcher.vectors(texts[block]):
            plain = base64.b64encode(vector.astype("<f4").tobytes()).decode() if packed else vector.tolist()
            rows.append({"object": "embedding", "index": len(rows), "embedding": plain})
        yield
    return {**told, "data": rows, "usage": usage_of(texts)}
