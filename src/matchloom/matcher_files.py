"""A matcher's folder: `matcher.json`, `vocab.txt` and `weights.safetensors`, written together and sealed by digests.

An encoder that reads pieces has its `tokenizer.json` beside them: among its settings while a matcher is in use, and a
file of its own on the disk, where others can read it.
"""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from matchloom.basics.files import check_file, make_folder
from matchloom.sealed import read_sealed, write_sealed
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError

FORMAT = 2  # 1 knew word vectors only and named no encoder
_LARGEST = 10_000_000  # bytes of settings, which have a few thousand
SETTINGS, VOCAB, WEIGHTS = "matcher.json", "vocab.txt", "weights.safetensors"
PIECES = "tokenizer.json"


class _Settings(msgspec.Struct):
    """What `matcher.json` has to hold; what is inside, its own part checks."""

    model: str
    arguments: dict[str, bool | int | float | str]
    encoder: dict[str, Any]
    tokenizer: dict[str, Any]
    training: dict[str, Any]


class Saved(NamedTuple):
    """What the files hold."""

    settings: dict[str, Any]
    vocab: Vocab
    weights: dict[str, Tensor]


def write_matcher(folder: Path, saved: Saved) -> None:
    """Write all files or none."""
    make_folder(folder)
    about = {"format": FORMAT, **saved.settings, "versions": {"torch": str(torch.__version__)}}
    beside = {VOCAB: saved.vocab.dumps().encode()}
    if PIECES in about["encoder"]:
        beside[PIECES] = about["encoder"][PIECES].encode()
        about["encoder"] = {**about["encoder"], PIECES: True}
    beside[SETTINGS] = (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()
    write_sealed(folder / WEIGHTS, "matcher", FORMAT, {}, saved.weights, beside)


def read_matcher(folder: Path) -> Saved:
    """Read the files. A folder that is missing, cut off, altered or newer is refused in one line."""
    try:
        there = stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        there = False
    except (OSError, ValueError) as error:
        raise MatchloomError(
            f"{folder} cannot be read: {getattr(error, 'strerror', None) or error}; check its name and permissions"
        ) from None
    if not there:
        raise MatchloomError(f"{folder} is not a folder; expected a matcher saved by 'matchloom train'")
    for name in (SETTINGS, VOCAB, WEIGHTS):
        check_file(folder / name, f"{folder} has no {name}, so it is no whole matcher; train or copy it again")
    about = _about(folder / SETTINGS)
    version = about["format"]
    if version != FORMAT:
        told = "upgrade matchloom" if version > FORMAT else "train the matcher again"
        raise MatchloomError(f"{folder} has format {version}, this matchloom reads format {FORMAT}; {told}")
    remedy = "copy or train the matcher again"
    encoder = about.get("encoder")
    beside = [SETTINGS, VOCAB, *([PIECES] if isinstance(encoder, dict) and PIECES in encoder else [])]
    sealed = read_sealed(folder / WEIGHTS, "matcher", FORMAT, remedy=remedy, beside=beside, framework="pt", finite=True)
    settings = json.loads(sealed.beside[SETTINGS])
    try:
        msgspec.convert(settings, _Settings)
    except msgspec.ValidationError as error:
        raise MatchloomError(f"{folder / SETTINGS}: {error}; {remedy}") from None
    if PIECES in sealed.beside:
        settings["encoder"][PIECES] = sealed.beside[PIECES].decode()
    return Saved(settings, Vocab.load(folder / VOCAB), sealed.tensors)


def _about(path: Path) -> dict[str, Any]:
    """The settings, whose format tells an old or new matcher from a damaged one."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError
        about: dict[str, Any] = json.loads(content)
        return {**about, "format": int(about["format"])}
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}; check its permissions") from None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise MatchloomError(f"{path} is damaged or cut off; copy or train the matcher again") from None


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
