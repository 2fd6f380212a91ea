"""How answers are written, and how their errors are described."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from matchloom.service.schemas import ErrorAnswer

_TOLD = {
    400: "The body is not JSON in UTF-8.",
    401: "No key, or an invalid one.",
    403: "Not allowed here.",
    404: "There is no such system, answer or column.",
    408: "The body arrived too slowly.",
    409: "The collection is in use by another process, does not support this, or an id and a text do not match.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "The Host of the request is not this machine.",
    422: "Something in the request is not valid.",
    503: "Busy, or not ready yet: try again later.",
    507: "It cannot be written: no space, or no permission. Nothing was changed.",
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
