"""How answers are written, and how their errors are described."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from matchloom.service.schemas import ErrorAnswer

_TOLD = {
    400: "The body is no JSON in UTF-8.",
    401: "No key, or a wrong one.",
    403: "Not allowed here.",
    404: "There is no such system, answer or column.",
    408: "The body came too slowly.",
    409: "The collection is being written by another, cannot do that, or an id and a text do not belong together.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "Reached by a name that is not this machine's.",
    422: "Something in the request cannot be taken.",
    503: "Too much to do, or not ready yet: come again.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": told} for status, told in _TOLD.items()
}


def only(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route may have, where these are few."""
    return {status: ERRORS[status] for status in statuses}


def answer(value: Any, status: int = 200) -> Response:
    """JSON as it stands: that it is what the route describes is tested, and not checked again for every answer."""
    return Response(
        value if isinstance(value, bytes) else msgspec.json.encode(value), status, media_type="application/json"
    )
