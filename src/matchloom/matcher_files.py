"""A matcher's folder: `matcher.json` with its settings, `vocab.txt` and `weights.safetensors`, saved as one artifact.

An encoder that reads pieces has its `tokenizer.json` beside them: among its settings while a matcher is in use, and a
file of its own on the disk, where others can read it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from matchloom.artifact import packed, read, write
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError

FORMAT = 3  # 1 knew word vectors only and named no encoder; 2 had its checksums in the weights
VOCAB, WEIGHTS = "vocab.txt", "weights.safetensors"
PIECES = "tokenizer.json"
REMEDY = "copy or train the matcher again"


class _Settings(msgspec.Struct):
    """What `matcher.json` has to hold; what is inside, its own part checks."""

    model: str
    arguments: dict[str, bool | int | float | str]
    encoder: dict[str, Any]
    tokenizer: dict[str, Any]
    training: dict[str, Any]


class SavedMatcher(NamedTuple):
    """What the files hold."""

    settings: dict[str, Any]
    vocab: Vocab
    weights: dict[str, Tensor]


def write_matcher(folder: Path, saved: SavedMatcher) -> None:
    """Write all files or none."""
    settings = {**saved.settings, "versions": {"torch": str(torch.__version__)}}
    files = {VOCAB: saved.vocab.dumps().encode(), WEIGHTS: packed(saved.weights)}
    if PIECES in settings["encoder"]:
        files[PIECES] = settings["encoder"][PIECES].encode()
        settings["encoder"] = {**settings["encoder"], PIECES: True}
    write(folder, "matcher", FORMAT, settings, files)


def read_matcher(folder: Path) -> SavedMatcher:
    """Read the files. A folder that is missing, cut off, altered or newer is refused in one line."""
    saved = read(folder, "matcher", FORMAT, remedy=REMEDY)
    settings = saved.settings
    try:
        msgspec.convert(settings, _Settings)
    except msgspec.ValidationError as error:
        raise MatchloomError(f"{folder}, matcher.json: {error}; {REMEDY}", code="damaged") from None
    if PIECES in settings["encoder"]:
        settings["encoder"][PIECES] = saved.content(PIECES).decode(errors="replace")
    vocab = Vocab.loads(saved.content(VOCAB), folder / VOCAB)
    return SavedMatcher(settings, vocab, saved.tensors(WEIGHTS, "pt", finite=True))


def digest(content: bytes) -> str:
    """Of bytes, in hexadecimals."""
    return hashlib.sha256(content).hexdigest()


def digest_of(tensors: dict[str, Tensor]) -> str:
    """Of tensors with their names, kinds and shapes, in hexadecimals."""
    made = hashlib.sha256()
    for name in sorted(tensors):
        x = tensors[name]
        made.update(f"{name} {x.dtype} {tuple(x.shape)}\n".encode())
        made.update(x.contiguous().flatten().view(torch.uint8).numpy().tobytes() if x.numel() else b"")
    return made.hexdigest()
