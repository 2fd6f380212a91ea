"""Lines over a pipe: those that are too long are refused in one answer each, whatever comes in whatever pieces."""

from __future__ import annotations

import io
import json
import os
import threading

import pytest

from matchloom.integrations.pipes import BoundedLines


def read(sent: bytes, most: int, piece: int = 1 << 16) -> list[bytes]:
    """What becomes of bytes that come in pieces."""
    reading, writing = os.pipe()

    def write() -> None:
        for start in range(0, len(sent), piece):
            os.write(writing, sent[start : start + piece])
        os.close(writing)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        return io.BufferedReader(BoundedLines(reading, most)).readlines()
    finally:
        thread.join()
        os.close(reading)


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_lines_within_the_bound_are_as_they_were(piece: int) -> None:
    lines = [b'{"id":1}\n', b"\n", b"\r\n", b"a\rb\x85\xff\n", b"x" * 99 + b"\n", b"no end"]
    assert read(b"".join(lines), 100, piece) == lines
    assert read(b"", 100, piece) == []


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_a_line_beyond_it_is_refused_by_its_id_and_the_next_is_read(
    piece: int, capfd: pytest.CaptureFixture[str]
) -> None:
    long = b'"params":{"id":"inner","a":"' + b"x" * 3000 + b'"}'
    sent = [
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call",' + long + b"}",
        b'{"method":"tools/call",' + long + b',"jsonrpc":"2.0","id":"q-8"}\r',
        b'{"method":"tools/call",' + long + b"}",  # without an id: nobody waits
        b'{"a":{' + long + b',"id":"inner"}}',
        b"x" * 5000,
        b'{"id":9}',
    ]
    found = read(b"\n".join(sent), 1000, piece)
    told = [json.loads(line) for line in found if line.strip()]
    assert [one["id"] for one in told] == [7, "q-8", 9]
    assert found[-1] == b'{"id":9}'
    assert all("1,000 bytes" in one["method"] for one in told[:2])
    assert capfd.readouterr().err.count("1,000 bytes") == 5


def test_no_more_is_held_than_a_line_may_have() -> None:
    reading, writing = os.pipe()
    lines = BoundedLines(reading, 1000)
    held = []
    for _ in range(200):
        os.write(writing, b"x" * 50_000)
        lines._take(os.read(reading, 1 << 16))
        held.append(len(lines._line) + len(lines._last) + len(lines._ready))
    os.close(writing)
    os.close(reading)
    assert max(held) < 2000
