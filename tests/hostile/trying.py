"""One try: what a user can put right is told in one line, and nothing else goes wrong."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from matchloom.cli import main
from matchloom.types import MatchloomError

T = TypeVar("T")
_LONGEST = 3000  # letters of a message; paths are in it


class Kind(Protocol):
    """A kind of hostility. It is made once in a folder of its own, and tried with many seeds."""

    def __init__(self, folder: Path) -> None: ...

    def attempt(self, rng: random.Random) -> None:
        """One try; any exception is a failure."""


class Refused(NamedTuple):
    """The one line with which something was refused."""

    message: str


def told(call: Callable[[], T]) -> T | Refused:
    """What a call gives, or how it was refused; any other exception goes on."""
    try:
        return call()
    except MatchloomError as error:
        message = str(error)
    assert "\n" not in message, message
    assert 0 < len(message) < _LONGEST, message
    return Refused(message)


def run_command(arguments: list[str]) -> tuple[int, str]:
    """Run a command in this process; its exit code and what it said. More than one line of an error is a failure."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    said = err.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    check_said(code, said, arguments)
    return code, said


def check_said(code: int | None, said: str, what: object) -> None:
    """A command ends with 0, or with 2 and one line."""
    assert "Traceback" not in said, (what, said[-2000:])
    assert "panicked at" not in said, (what, said[-2000:])
    assert code in (0, 2), (what, code, said[-2000:])
    if code == 2:
        assert said.count("matchloom: error: ") == 1, (what, said)
        assert said.endswith("\n"), (what, said)
        assert len(said.splitlines()[-1]) < _LONGEST, (what, said)
