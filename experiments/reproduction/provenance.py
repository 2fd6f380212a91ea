"""Where figures come from: the sources, the machine, the data."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from experiments import places
from experiments.reproduction.tasks import PaperTask

_HERE = Path(__file__).resolve()
_SOURCES = (places.ROOT / "src" / "matchloom", _HERE.parent, _HERE.parents[1] / "corpora")


def commit() -> str:
    """The commit of the sources, marked where they were changed since; outside of a repository their version."""
    if _git("ls-files", "--error-unmatch", str(_HERE)) is None:  # a copy may lie in anyone's repository
        return f"matchloom {version('matchloom')}"
    changed = _git("status", "--porcelain", *map(str, _SOURCES))  # results change while tables run
    return (_git("rev-parse", "--short=10", "HEAD") or "unknown") + ("-dirty" if changed else "")


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(_HERE.parent), *words], capture_output=True, text=True, check=False)
    except OSError:  # no git
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def machine() -> dict[str, Any]:
    """What the last digits and the minutes depend on."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def data_digest(task: PaperTask) -> str:
    """SHA-256 of all pairs of a task, part by part and in their order."""
    digest = hashlib.sha256()
    for part in ("train", "development", "test"):
        digest.update(part.encode())
        for pair in getattr(task, part):
            digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
