"""The routes: each checks its limits, calls the library in a thread, and answers in JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from matchloom.basics.growing import Announce
from matchloom.explanation.cells import leading_words
from matchloom.explanation.html import render_fragment
from matchloom.service import handlers
from matchloom.service import schemas as s
from matchloom.service.bodies import ReadRoute
from matchloom.service.changing import add_changing, change
from matchloom.service.describing import describe_keys
from matchloom.service.desk.desk import DeskOptions
from matchloom.service.desk.routes import add_desk
from matchloom.service.feedback import judgement_of
from matchloom.service.following import FollowOptions
from matchloom.service.front import add_front
from matchloom.service.guard import ALIVE, HEALTH, Guard
from matchloom.service.keys import Keys
from matchloom.service.limits import Limits
from matchloom.service.look import Look
from matchloom.service.metrics import CONTENT_TYPE
from matchloom.service.models import add_models
from matchloom.service.once import Repeatable
from matchloom.service.origins import Origins
from matchloom.service.problems import Refused, problem, refusal_of, unknown
from matchloom.service.quick import QuickSearch
from matchloom.service.rerank import add_rerank
from matchloom.service.responses import ERRORS, answer, only
from matchloom.service.service import Service
from matchloom.service.steps import Steps, encoded
from matchloom.service.systems import Folder
from matchloom.service.wrong import first_wrong
from matchloom.text.languages import FUNCTION_WORDS
from matchloom.types import MatchloomError, Pair

_ABOUT = (
    "Match texts and see why. Scores are those of the library, to the last digit. Every error has a stable code and "
    "a message for people; 503 with Retry-After means: try again later."
)


def create_app(
    folders: Sequence[Folder],
    *,
    limits: Limits | None = None,
    keys: Keys | None = None,
    writable: bool = False,
    feedback: Path | None = None,
    runs: Path | None = None,
    refit: float | None = None,
    origins: Sequence[str] = (),
    desk: DeskOptions | None = None,
    look: Look | None = None,
    follow: FollowOptions | None = None,
) -> FastAPI:
    """The service as an ASGI app; `app.state.service` is what it is made of.

    Args:
        folders: What to serve.
        limits: What a request may ask for.
        keys: Who may ask; without keys everybody who can reach it, by the name of localhost only.
        writable: Whether collections and archives may be changed.
        feedback: The file in which thumbs up and down are kept; None keeps none.
        runs: A folder of trainings to show.
        refit: How many seconds after the last change a collection is refitted, where it may be; None: never by itself.
        origins: Other sites whose pages may ask, such as https://shop.example.
        desk: What its owner sees and keeps.
        look: How the page for users looks.
        follow: How copies of what is published follow their store.
    """
    limits, keys = limits or Limits(), keys or Keys()
    service = Service(
        folders,
        limits=limits,
        keys=keys,
        writable=writable,
        feedback=feedback,
        runs=runs,
        refit=refit,
        desk=desk,
        follow=follow,
    )

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="matchloom",
        version=version("matchloom"),
        description=_ABOUT,
        lifespan=life,
        openapi_url=None,  # FastAPI would make it where everybody waits
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.router.route_class = ReadRoute
    app.add_middleware(
        Guard,
        limits=limits,
        keys=keys,
        metrics=service.metrics,
        origins=Origins(origins),
        quick=QuickSearch(service),
    )
    _tell_errors(app, service)
    _add_state(app, service)
    _add_reading(app, service)
    add_rerank(app, service)
    add_models(app, service)
    add_changing(app, service)
    add_desk(app, service)
    _add_feedback(app, service)
    _add_runs(app, service)
    add_front(app, service, look or Look())
    describe_keys(app, keys)
    return app


def _request_id(request: Request) -> str:
    return str(request.scope["state"]["request_id"])


def _tell_errors(app: FastAPI, service: Service) -> None:
    async def tell(request: Request, error: Exception) -> Response:
        headers: Any = None
        if isinstance(error, Refused):
            refused = error
        elif isinstance(error, RequestValidationError):
            refused = Refused(422, "invalid", first_wrong(error.errors()))
        elif isinstance(error, MatchloomError):
            refused = refusal_of(error, 422, "refused")
        elif isinstance(error, HTTPException):
            code = {400: "not_json", 404: "unknown", 405: "wrong_method"}.get(error.status_code, "refused")
            refused = Refused(error.status_code, code, str(error.detail))
            headers = {"allow": _allowed(app, request)} if error.status_code == 405 else error.headers
        else:
            raise error
        service.metrics.rejected.labels(refused.code).inc()
        told = problem(refused, _request_id(request))
        told.headers.update(headers or {})
        return told

    for kind in (Refused, RequestValidationError, MatchloomError, HTTPException):
        app.add_exception_handler(kind, tell)


def _allowed(app: FastAPI, request: Request) -> str:
    """The methods of a path, whichever routes have them."""
    routes = [one for one in app.routes if one.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for one in routes for method in getattr(one, "methods", None) or ()}))


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get(HEALTH, tags=["state"], response_model=s.State, responses=only(421))
    async def health() -> Response:  # one with a body; the guard tells all others
        """Whether the process is alive."""
        return answer(ALIVE)

    @app.get("/ready", tags=["state"], response_model=s.State, responses=only(421, 503))
    async def ready() -> Response:
        """Whether everything is loaded, and no copy of what is published is older than it may be."""
        if not service.shelf.ready:
            raise service.not_ready()
        old = service.follower.too_stale()
        if old is not None:
            why = old.problem or "the store does not answer"
            raise Refused(
                503, "stale", f"{old.name} was not confirmed as the newest for {old.stale:.0f} s: {why}", retry=5
            )
        return answer({"status": "ready"})

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        async with service.workers.admitted():
            return answer(await service.workers.call(lambda: msgspec.json.encode(app.openapi())))

    @app.get("/metrics", tags=["state"], response_class=Response, responses=_metrics_responses())
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(service.metrics.page(), media_type=CONTENT_TYPE)

    @app.get("/v1/systems", tags=["state"], response_model=s.SystemsAnswer, responses=only(401, 421, 503))
    async def systems() -> Response:
        """What is served, and within which limits."""
        service.system(None) if service.shelf.folders else None
        async with service.workers.admitted():
            found = list(service.shelf.systems.values())
            about = await service.workers.call(lambda: [service.about(one) for one in found])
        return answer(
            {
                "version": version("matchloom"),
                "systems": about,
                "feedback": service.feedback is not None,
                "runs": service.runs is not None,
                "limits": asdict(service.limits),
            }
        )

    @app.post("/v1/reload", tags=["state"], response_model=s.ReloadAnswer, responses=ERRORS)
    async def reload(asked: s.ReloadRequest | None = None) -> Response:
        """Take up systems that were trained or written anew; a broken one is refused and the old one goes on."""
        async with service.workers.admitted():
            done = await service.reload([] if asked is None else asked.systems)
        service.when_reloaded()
        return answer({"reloaded": done.taken, "refused": done.refused})


def _metrics_responses() -> dict[int | str, dict[str, Any]]:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {200: {"description": "Figures.", "content": text}, **only(401, 421)}


def _add_reading(app: FastAPI, service: Service) -> None:
    limits, workers = service.limits, service.workers

    @app.post("/v1/score", tags=["ask"], response_model=s.ScoreAnswer, responses=ERRORS)
    async def score(asked: s.ScoreRequest) -> Response:
        """The score of each pair. Requests of many clients are scored together."""
        system = service.system(asked.system)
        scorer = handlers.scorer_of(system)
        limits.check_count("pairs", len(asked.pairs))
        pairs = [Pair(pair.query, pair.text) for pair in asked.pairs]
        async with workers.admitted():
            await workers.call(limits.text_steps, [text for pair in pairs for text in pair[:2]], system.tokenizer)
            scores = await service.batcher(system).score(pairs)
        return answer(
            {
                "system": system.name,
                "scorer": scorer.name,
                "scores": scores.tolist(),
                "probabilities": handlers.probabilities(scorer, scores),
            }
        )

    @app.post("/v1/rank", tags=["ask"], response_model=s.RankAnswer, responses=ERRORS)
    async def rank(asked: s.RankRequest) -> Response:
        """Candidates by falling score. A list that comes again need not be encoded again."""
        system = service.system_or_bm25(asked.system)
        limits.check_count("candidates", len(asked.candidates))
        async with workers.admitted():
            await workers.call(limits.text_steps, [asked.query, *asked.candidates], handlers.tokenizer_of(system))
            explained = limits if asked.explain else None
            stated = {name: getattr(asked, name) for name in handlers.NOTHING_STATED}
            steps = handlers.rank(system, asked.query, asked.candidates, asked.top, explained, stated)
            return answer(await workers.call(encoded, steps))

    @app.post("/v1/search", tags=["ask"], response_model=s.SearchAnswer | s.SearchManyAnswer, responses=ERRORS)
    async def search(asked: s.SearchRequest | s.SearchManyRequest) -> Response:
        """The answers that fit a question best, each once; none where nothing of the question is known."""
        system, by = service.system(asked.system), service.by(asked.by)
        many = isinstance(asked, s.SearchManyRequest)
        questions = asked.questions if isinstance(asked, s.SearchManyRequest) else [asked.question]
        options = {**asked.model_dump(), "explain": limits.cells if asked.explain else 0}
        limits.check_count("questions", len(questions))
        async with workers.admitted():
            await workers.call(limits.text_steps, questions, system.tokenizer)
            steps = (
                handlers.search_many(system, questions, by, options, limits.room // 2)
                if many
                else handlers.search(system, questions[0], by, options, service.desk.questions)
            )
            return answer(await workers.call(encoded, steps))

    @app.post("/v1/explain", tags=["ask"], response_model=s.ExplainAnswer, responses=ERRORS)
    async def explain(asked: s.ExplainRequest) -> Response:
        """Why a text, or an answer by its id, got its score: contributions and the residual add up to it."""
        system, by = service.system_or_bm25(asked.system), service.by(asked.by)
        tokenize = handlers.tokenizer_of(system)
        limits.check_count("candidates", len(asked.candidates))
        given = {**asked.model_dump(), "candidates": asked.candidates if system is None else 100}
        told = {"system": asked.system or (system.name if system else ""), "by": asked.by}

        def work() -> Steps[dict[str, Any]]:
            yield from limits.text_steps([asked.query, asked.text, *asked.candidates], tokenize)
            found = handlers.explain_pair(system, by, given, limits)
            yield
            limits.check_map(len(found.query), len(found.text), len(found.trace.channels))
            plain = found.to_dict(grid=True) if asked.form == "json" else None
            yield
            html = render_fragment(found) if asked.form == "html" else None
            because = leading_words(found, FUNCTION_WORDS[tokenize.language])
            return {**told, "explanation": plain, "html": html, "because": because}

        async with workers.admitted():
            return answer(await workers.call(encoded, work()))


def _add_feedback(app: FastAPI, service: Service) -> None:
    limits, workers = service.limits, service.workers

    @app.post("/v1/feedback", tags=["write"], response_model=s.FeedbackAnswer, responses=ERRORS)
    async def keep(asked: s.FeedbackRequest, once: Repeatable = None) -> Response:
        """Keep a thumb up or down, for 'matchloom refit --feedback'. The answer must be one that is served."""
        system, file = service.system(asked.system), service.feedback
        if file is None:
            raise Refused(403, "no_feedback", "this service was started with --no-feedback")
        limits.check_ids([asked.id])

        def work(announce: Announce | None) -> dict[str, Any]:
            file.keep(judgement, announce)
            service.metrics.feedback.labels(str(asked.label)).inc()
            return {"kept": True}

        async with workers.admitted():
            await workers.call(limits.text_steps, [asked.question, asked.text], system.tokenizer)
            judgement = await workers.call(judgement_of, system, asked)
            store = service.onces.beside(file.path)
            kept = {"kept": True}
            return answer(
                await change(service, "feedback", once, store, work, lambda _: kept, tell=lambda work: work())
            )


def _add_runs(app: FastAPI, service: Service) -> None:
    def found() -> dict[str, Any]:
        if service.runs is None:
            raise Refused(404, "unknown", "this service was started without --runs")
        from matchloom.runs import find_runs  # brings what `fit` needs, which others need not wait for

        return {run.name: run for run in find_runs(service.runs)}

    @app.get("/v1/runs", tags=["runs"], response_model=s.RunsAnswer, responses=only(401, 404, 421, 503))
    async def runs() -> Response:
        """The trainings and fits of the folder that is shown; running ones first."""
        async with service.workers.admitted():
            listed = await service.workers.call(found)
        about = [{"name": r.name, "kind": r.kind, "running": r.running, "changed": r.changed} for r in listed.values()]
        return answer({"runs": about})

    @app.get("/v1/run", tags=["runs"], response_model=s.RunAnswer, responses=only(401, 404, 421, 422, 503))
    async def run(name: Annotated[str, Query(description="As /v1/runs gives it.")]) -> Response:
        """One training or fit as a piece of a page, as far as it has come."""

        def work() -> dict[str, Any]:
            from matchloom.runs import render_fragment as render_run

            listed = found()
            if name not in listed:
                raise unknown("run", name, list(listed)[:10])
            return {"name": name, "running": listed[name].running, "html": render_run(listed[name])}

        async with service.workers.admitted():
            return answer(await service.workers.call(work))
