"""A service of `matchloom serve` from Python, with the library's own types: what ranks there ranks as it would here.

    from matchloom.client import Client

    with Client("http://127.0.0.1:8000") as service:
        for answer in service.search("I forgot my password", top=3):
            print(f"{answer.score:.2f}  {answer.text}")

`AsyncClient` has the same methods, to be awaited. What is asked is `calls.py`, how it is sent and read `sending.py`.
"""

from __future__ import annotations

from matchloom.client.asynchronous import AsyncClient
from matchloom.client.client import Client
from matchloom.client.desk import Desk
from matchloom.client.sending import ServiceError

__all__ = ["AsyncClient", "Client", "Desk", "ServiceError"]
