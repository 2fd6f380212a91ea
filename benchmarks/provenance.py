"""Where figures come from."""

from __future__ import annotations

import subprocess


def commit() -> str:
    """The commit of the sources, marked where they were changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True).stdout.strip()

    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (
        "-dirty" if git("status", "--porcelain", "src") else ""
    )
