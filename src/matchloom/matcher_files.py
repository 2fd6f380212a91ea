"""A matcher's folder: `matcher.json`, `vocab.txt` and `weights.safetensors`, written together and sealed by digests."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from matchloom.files import atomic_write
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError

FORMAT = 2  # 1 knew word vectors only and named no encoder
SETTINGS, VOCAB, WEIGHTS = "matcher.json", "vocab.txt", "weights.safetensors"


class Saved(NamedTuple):
    """What the three files hold."""

    settings: dict[str, Any]
    vocab: Vocab
    weights: dict[str, Tensor]


def write_matcher(folder: Path, saved: Saved) -> None:
    """Write all three files or none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be made a matcher's folder: {error.strerror}") from None
    about = {"format": FORMAT, **saved.settings, "versions": {"torch": str(torch.__version__)}}
    settings = (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()
    vocab = saved.vocab.dumps().encode()
    tensors = {name: x.detach().cpu().contiguous() for name, x in saved.weights.items()}
    seals = {SETTINGS: digest(settings), VOCAB: digest(vocab), WEIGHTS: digest_of(tensors)}
    contents = {VOCAB: vocab, SETTINGS: settings, WEIGHTS: safetensors.torch.save(tensors, metadata=seals)}
    with ExitStack() as stack:
        for name, content in contents.items():
            file = stack.enter_context(atomic_write(folder / name, "wb"))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # all three are on the disk before the first takes its name


def read_matcher(folder: Path) -> Saved:
    """Read the files. A folder that is missing, cut off, altered or newer is refused in one line."""
    if not folder.is_dir():
        raise MatchloomError(f"{folder} is not a folder; expected a matcher saved by 'matchloom train'")
    for name in (SETTINGS, VOCAB, WEIGHTS):
        if not (folder / name).is_file():
            raise MatchloomError(f"{folder} has no {name}, so it is no whole matcher; train or copy it again")
    settings = (folder / SETTINGS).read_bytes()
    try:
        about = json.loads(settings)
        version = int(about["format"])
    except (ValueError, TypeError, KeyError):
        raise MatchloomError(f"{folder / SETTINGS} is damaged or cut off; train or copy the matcher again") from None
    if version != FORMAT:
        remedy = "upgrade matchloom" if version > FORMAT else "train the matcher again"
        raise MatchloomError(f"{folder} has format {version}, this matchloom reads format {FORMAT}; {remedy}")
    try:
        with safetensors.safe_open(folder / WEIGHTS, "pt") as opened:
            seals = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (no mapping)
    except safetensors.SafetensorError as error:
        raise MatchloomError(f"{folder / WEIGHTS} is damaged or cut off ({error}); copy it again") from None
    found = {
        SETTINGS: digest(settings),
        VOCAB: digest((folder / VOCAB).read_bytes()),
        WEIGHTS: digest_of(tensors),
    }
    for name in (SETTINGS, VOCAB, WEIGHTS):
        if seals.get(name) != found[name]:
            raise MatchloomError(f"{folder / name} was altered since the matcher was saved; copy or train it again")
    return Saved(about, Vocab.load(folder / VOCAB), tensors)


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
