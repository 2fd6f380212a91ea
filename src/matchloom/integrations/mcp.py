"""For agents: a Model Context Protocol server over a collection. Needs `mcp`.

Tools: `search` and `explain`; `add` only where the collection may be changed. Inputs are bounded as the service's are,
and what is wrong is told in one line.
"""

# The server makes each tool's schema from types: no `from __future__ import annotations` here.
from importlib.metadata import version
from typing import Annotated, Any

from matchloom.basics.extras import missing
from matchloom.basics.screen import printable
from matchloom.integrations.pipes import bounded_input
from matchloom.integrations.sources import searchable
from matchloom.service.handlers import channels_of
from matchloom.service.limits import Limits
from matchloom.service.problems import Refused
from matchloom.types import Hit, Hits, MatchloomError, Pair

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations
except ImportError:
    raise missing("mcp", "matchloom.integrations.mcp") from None
from pydantic import Field

_TOP = 20  # answers at most: an agent reads all of them
_ADDED = 100  # pairs at a time
_WORDS = 12  # of an explanation
_ABOUT = (
    "Answers from a collection of questions and answers. `search` finds them; if `confident` is false, none is certain "
    "enough: say that there is no answer. `known` is the probability that any answer is right. `explain` shows which "
    "words made a score."
)
Question = Annotated[str, Field(description="The user's question, in the user's own words.")]
AnswerId = Annotated[str, Field(description="The id of an answer, as `search` returns it.")]


def make_server(collection: Any, *, writable: bool = False, limits: Limits | None = None) -> Any:
    """A server, to be run by `run_pipes` or `run_http`.

    Args:
        collection: A Collection, what `fit` found, or its folder.
        writable: Whether agents may add questions and answers.
        limits: What a call may ask for; those of the service by default.
    """
    found, limits = searchable(collection), limits or Limits()
    server = MCPServer("matchloom", instructions=_ABOUT, version=version("matchloom"), log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @server.tool(annotations=reads)
    def search(
        question: Question,
        top: Annotated[int, Field(ge=1, le=_TOP, description="The largest number of answers.")] = 5,
    ) -> dict[str, Any]:
        """Find the answers that fit a question best, the best first."""
        with _told():
            _check(limits, found, [question])
            hits: Hits = found.search(question, top=top)
            return {"known": hits.known, "confident": hits.confident, "answers": [_plain(hit) for hit in hits]}

    @server.tool(annotations=reads)
    def explain(question: Question, id: AnswerId) -> dict[str, Any]:  # noqa: A002
        """Say why an answer got its score for a question: the words that counted most, and how much each added."""
        with _told():
            _check(limits, found, [question])
            limits.check_ids([id])
            _check_map(limits, found, question, id)
            made = found.explain(question, id).to_dict()
            words = [{key: one[key] for key in ("query_word", "text_word", "contribution")} for one in made["signals"]]
            others = [{key: one[key] for key in ("name", "contribution")} for one in made["components"]]
            return {"score": made["score"], "words": words[:_WORDS], "other": others[:_WORDS]}

    if writable:

        @server.tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False))
        def add(
            questions: Annotated[
                list[str], Field(min_length=1, max_length=_ADDED, description="Questions with this answer.")
            ],
            answer: Annotated[str, Field(description="The text of the answer.")],
            id: Annotated[str, Field(description="An existing or new id; by default made from the text.")] = "",  # noqa: A002
        ) -> dict[str, Any]:
            """Add questions with their answer. They are found by everybody when this returns."""
            with _told():
                _check(limits, found, [*questions, answer])
                limits.check_ids([id])
                if not answer.strip():
                    raise MatchloomError("the answer is empty; expected a text", code="no_data")
                done = found.add([Pair(question, answer, text_id=id) for question in questions])
                return {"new": done.new, "replaced": done.replaced}

    return server


def run_pipes(server: Any, *, limits: Limits | None = None) -> None:
    """Serve over standard input and output until the former ends.

    Args:
        server: What `make_server` made.
        limits: The size of a line, as the service has it for a request.
    """
    with bounded_input((limits or Limits()).body):
        server.run("stdio")


def run_http(server: Any, host: str, port: int, *, limits: Limits | None = None) -> None:
    """Serve streamable HTTP until Ctrl-C. Only this machine's names are answered to, and pages of no other site.

    Args:
        server: What `make_server` made.
        host: An address of this machine, such as 127.0.0.1.
        port: Where.
        limits: The size of a request, as the service has it.
    """
    import uvicorn

    from matchloom.service.server import config_of

    app = http_app(server, host, limits)
    uvicorn.Server(config_of(app, host=host, port=port)).run()  # with the service's limits on connections


def http_app(server: Any, host: str, limits: Limits | None = None) -> Any:
    """The server as an ASGI app. Each call stands for itself: no sessions are kept that could pile up."""
    return server.streamable_http_app(
        host=host, stateless_http=True, json_response=True, max_request_body_size=(limits or Limits()).body
    )


class _told:  # noqa: N801 (a context)
    """What is refused is told to the agent in one line; what goes wrong here stays here."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, MatchloomError | Refused):
            raise ToolError(printable(" ".join(str(error).split()))) from None


def _check(limits: Limits, collection: Any, texts: list[str]) -> None:
    limits.check_count("questions", len(texts))
    limits.check_texts(texts, collection.tokenizer)


def _check_map(limits: Limits, collection: Any, question: str, name: str) -> None:
    """Refuse an id that no answer has, and an explanation of too many words with too many."""
    if not hasattr(collection, "entries"):  # an archive looks for the answer among those that it finds
        return
    if name not in collection:
        raise MatchloomError(f"no answer has the id {name[:80]!r}", code="unknown_name")
    words = collection.tokenizer
    limits.check_map(len(words(question)), len(words(collection[name].text)), channels_of(collection))


def _plain(hit: Hit) -> dict[str, Any]:
    told = {"id": hit.id, "text": hit.text, "question": hit.question, "score": hit.score}
    return {**told, "probability": hit.probability, "columns": hit.columns or {}}
