"""How the service describes itself beyond its routes: by which keys it may be asked."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from matchloom.service.guard import is_guarded
from matchloom.service.keys import Keys

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def describe_keys(app: FastAPI, keys: Keys) -> None:
    """Say in the description which keys there are, and which routes need one: none where the service has none."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        made = plain()
        made.setdefault("components", {})["securitySchemes"] = SCHEMES
        for path, methods in made["paths"].items() if keys else ():
            if is_guarded(path):
                for operation in methods.values():
                    operation["security"] = [{name: []} for name in SCHEMES]
        return made

    app.openapi = described  # type: ignore[method-assign]
