"""An S3 server of loopback, by moto in an environment of its own: MATCHLOOM_MOTO=.../bin/moto_server."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest

MOTO = os.environ.get("MATCHLOOM_MOTO")  # a server that is on the path may be too old to end an upload of parts
needs_moto = pytest.mark.skipif(MOTO is None, reason="moto's server is not installed")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Its port; there is one bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    assert MOTO is not None
    command = [MOTO, "-H", "127.0.0.1", "-p", str(number)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                assert httpx.put(f"http://127.0.0.1:{number}/bucket").status_code == 200
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield number
    finally:
        server.kill()
        server.wait()


def uri_of(port: int, name: str) -> str:
    """Of something in the bucket."""
    return f"s3://name:secret@bucket/{name}?region=us-east-1&scheme=http&endpoint_override=127.0.0.1%3A{port}"
