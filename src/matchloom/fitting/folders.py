"""Scorers in folders of one another: what kind each is, how it is read back, and that none was exchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matchloom.fitting.word_scorers import REMEDY, WordScorer
from matchloom.matcher import Matcher
from matchloom.types import MatchloomError, Scorer

#: Scorers that others are made of, by what their `kind` says (a matcher has none).
LOADERS: dict[str, Callable[[Path], Scorer]] = {"matcher": Matcher.load, "words": WordScorer.load}


def save_inside(scorer: Any, folder: Path) -> dict[str, str]:
    """Save a scorer in a folder of another's, and say what the other must remember of it."""
    scorer.save(folder)
    return {"folder": folder.name, "kind": getattr(scorer, "kind", "matcher"), "sha256": folder_digest(folder)}


def load_inside(remembered: dict[str, str], folder: Path, loaders: dict[str, Callable[[Path], Scorer]]) -> Scorer:
    """Read a scorer that `save_inside` saved; another in its place is refused."""
    inner, kind = folder / remembered["folder"], remembered["kind"]
    if kind not in loaders:
        raise MatchloomError(f"{inner} is of the unknown kind {kind!r}; {REMEDY}")
    if not inner.is_dir() or folder_digest(inner) != remembered["sha256"]:
        raise MatchloomError(f"{inner} is missing or was altered since it was saved; {REMEDY}")
    return loaders[kind](inner)


def folder_digest(folder: Path) -> str:
    """Of the names and contents of all files inside, in hexadecimals."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()
