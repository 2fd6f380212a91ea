"""How tests ask for an error: by its code and what it names, never by its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from matchloom.types import ErrorCode, MatchloomError


@contextmanager
def refused(code: ErrorCode, *parts: object) -> Iterator[pytest.ExceptionInfo[MatchloomError]]:
    """What is done inside is refused: one line with this code that names these parts (file, line, argument, value)."""
    with pytest.raises(MatchloomError) as error:
        yield error
    message = str(error.value)
    assert error.value.code == code, message
    assert "\n" not in message
    missing = [str(part) for part in parts if str(part) not in message]
    assert not missing, f"{message!r} does not name {missing}"
