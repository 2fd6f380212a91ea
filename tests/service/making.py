"""Small folders to serve, apps over them, and ways to ask: in this process, or over a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
import torch
import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.routing import Match

from matchloom.data.kinds import ANSWERS
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.fitting import Fitted
from matchloom.matcher import Matcher
from matchloom.models import build_model
from matchloom.search.collection import Collection
from matchloom.search.lance.collection import LanceCollection
from matchloom.service import Limits, create_app
from matchloom.service.keys import Keys
from matchloom.service.server import Punctual, bind
from matchloom.service.service import Service
from matchloom.service.systems import Folder
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.types import Pair
from tests.fitting.samples import bare_report

T = TypeVar("T")

PASSWORD = "Open Settings, choose Security, then Reset password. A link is sent to your address."
PAIRS = [
    Pair("How do I reset my password?", PASSWORD, text_id="password"),
    Pair("I forgot my password", PASSWORD, text_id="password"),
    Pair("Can I pay by invoice?", "Companies can. Ask sales for an account with monthly invoices.", text_id="invoice"),
    Pair("Do you send bills?", "Companies can. Ask sales for an account with monthly invoices.", text_id="invoice"),
    Pair("How do I delete my account?", "Write to us; your data is gone within a week.", text_id="delete"),
    Pair("Where is my parcel?", "The link in your mail leads to its place.", text_id="parcel"),
    Pair("Is <b>HTML</b> shown?", "It is: <img src=x onerror=alert(1)> and <script>alert(2)</script>.", text_id="html"),
    Pair("هل يمكنني الدفع", "نعم، يمكنك الدفع بالفاتورة", text_id="arabic"),
]
TEXTS = [pair.text for pair in PAIRS]


def make_matcher(name: str = "mv_lstm", seed: int = 0) -> Matcher:
    """A matcher with drawn weights over the words of the pairs: nothing need be learnt to be served."""
    tokenizer = Tokenizer(max_words=200)
    vocab = Vocab.build([tokenizer(side) for pair in PAIRS for side in pair[:2]])
    weight = torch.randn(len(vocab), 8, generator=torch.Generator().manual_seed(seed))
    embedding = WordEmbedding(len(vocab), 8, weight.numpy())
    arguments: dict[str, Any] = {"hidden": 6, **({"lexical": True} if name == "mv_lstm" else {})}
    model = build_model(name, arguments, embedding, seed=seed).eval()
    with torch.no_grad():
        for parameter in model.own_parameters():
            parameter.mul_(5)
    return Matcher(name, arguments, model, embedding.reader(tokenizer, vocab))


def make_fitted() -> Fitted:
    """What `fit` would make of the pairs."""
    report = replace(bare_report(), kind=ANSWERS, chosen="answer_ranker")
    return Fitted(Collection.fit(PAIRS), report, ANSWERS)


def write_all(folder: Path) -> Path:
    """A fitted folder `faq`, a matcher `mv`, a matcher with sentence vectors `lstm`, an archive of it `tickets`."""
    make_fitted_folder(folder / "faq")
    make_matcher().save(folder / "mv")
    make_matcher("lstm_rnn").save(folder / "lstm")
    LanceCollection.create(folder / "tickets", folder / "lstm").add(PAIRS)
    return folder


def make_fitted_folder(folder: Path) -> None:
    """The folder of `make_fitted`."""
    folder.mkdir()
    make_fitted().save(folder)


def make_app(
    folder: Path, *names: str, key: str | None = None, limits: Limits | None = None, **options: Any
) -> FastAPI:
    """An app over some of the folders of `write_all`."""
    return create_app(
        [Folder(name, folder / name) for name in names],
        limits=limits,
        keys=Keys([] if key is None else [key]),
        **options,
    )


def within(app: FastAPI, work: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
    """Run some requests against an app that is loaded, with no socket between."""

    async def run() -> T:
        service: Service = app.state.service
        if not service.shelf.ready:
            service.shelf.load()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        hooks: Any = {"response": [_described(app)]}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", event_hooks=hooks) as client:
            return await work(client)

    return asyncio.run(run())


def _described(app: FastAPI) -> Callable[[httpx.Response], Awaitable[None]]:
    """What looks whether an answer is what its route describes: whoever asks in a test asks that, too."""

    async def check(response: httpx.Response) -> None:
        scope = {"type": "http", "method": response.request.method, "path": response.request.url.path}
        found = [one for one in app.routes if isinstance(one, APIRoute) and one.matches(scope)[0] is Match.FULL]
        if found and found[0].response_model is not None and response.is_success:
            TypeAdapter(found[0].response_model).validate_json(await response.aread())

    return check


def ask(app: FastAPI, path: str, body: Any = None, **headers: str) -> httpx.Response:
    """One request: POST with a body, GET without."""

    async def work(client: httpx.AsyncClient) -> httpx.Response:
        if body is None:
            return await client.get(path, headers=headers)
        return await client.post(path, json=body, headers=headers)

    return within(app, work)


def code_of(response: httpx.Response) -> tuple[int, str]:
    """The status and the code of a refusal, which has the shape that all have."""
    error = response.json()["error"]
    assert error.keys() == {"code", "message", "request_id"}
    assert error["message"]
    assert response.headers["x-request-id"] == error["request_id"]
    return response.status_code, error["code"]


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """The app on a free port of loopback, served as `matchloom serve` does; its address."""
    listening: socket.socket = bind("127.0.0.1", 0)
    config = uvicorn.Config(app, http=Punctual, ws="none", log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    app.state.service.shelf.load()
    ready = threading.Event()
    app.state.service.when_ready = ready.set
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
