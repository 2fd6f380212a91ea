"""A pretrained encoder's folder: which files it has, and its config.json. Its weights are read by `weights.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matchloom.types import MatchloomError

CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.json", "README.md"
POOLING, PROMPTS = "1_Pooling/config.json", "config_sentence_transformers.json"  # of sentence-transformers


def is_encoder(folder: Path) -> bool:
    """Whether the three files are there."""
    return all((folder / name).is_file() for name in (CONFIG, WEIGHTS, TOKENIZER))


def read_config(folder: Path) -> dict[str, Any]:
    """config.json; a folder that lacks one of the three files is refused."""
    if not folder.is_dir():
        raise MatchloomError(
            f"{folder} is no folder; expected one with {CONFIG}, {WEIGHTS} and {TOKENIZER}", code="missing"
        )
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not (folder / name).is_file():
            hint = _instead(folder) if name == WEIGHTS else "copy it again"
            raise MatchloomError(f"{folder} has no {name}, so it is no whole encoder; {hint}", code="missing")
    return read_json(folder / CONFIG)


def _instead(folder: Path) -> str:
    """What to do where there are other weights than expected, or none."""
    if any(folder.glob("model-*-of-*.safetensors")):
        return "its weights are in several files, which are not read: save them as one"
    if any(folder.glob("*.bin")):
        return "its .bin file is a pickle, which is never read; get the safetensors"
    return "copy it again"


def read_json(path: Path) -> dict[str, Any]:
    """One object of JSON; anything else is refused."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise MatchloomError(f"{path} is damaged or cut off; copy the folder again", code="damaged")
    return found
