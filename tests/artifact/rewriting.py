"""An artifact with another inside is written anew, and the writer killed in the middle, as kill -9 does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matchloom import artifact


class Inner:
    """A scorer that is kept inside others."""

    def __init__(self, text: str) -> None:
        self.text = text

    def save(self, folder: Path) -> None:
        artifact.write(folder, "inner", 1, {"text": self.text}, {"more.txt": self.text.encode()})

    @classmethod
    def load(cls, folder: Path) -> Inner:
        return cls(artifact.read(folder, "inner", 1, remedy="make it again").content("more.txt").decode())


def counted(work: Callable[..., Any], steps: list[int]) -> Callable[..., Any]:
    """The same, until so many steps were made."""

    def call(*given: Any, **named: Any) -> Any:
        if not steps:
            os.kill(os.getpid(), signal.SIGKILL)
        steps.pop()
        return work(*given, **named)

    return call


if __name__ == "__main__":
    artifact.KINDS["inner"] = "tests.artifact.rewriting:Inner.load"
    left = [0] * int(sys.argv[2])
    for name in ("fsync", "rename", "replace", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name), left))
    artifact.write(
        Path(sys.argv[1]),
        "thing",
        2,
        {"number": 2},
        {"same.txt": b"new", "new.txt": b"new"},
        inside={"part": Inner("weft")},
    )
    print("done")
