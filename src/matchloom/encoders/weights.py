"""Everything in a pretrained encoder's folder: settings, weights and tokenizer, each checked, none ever run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import torch
from torch import Tensor

from matchloom.encoders.card import prompt_of
from matchloom.encoders.folder import CONFIG, POOLING, PROMPTS, TOKENIZER, WEIGHTS, read_config, read_json
from matchloom.encoders.pieces import PieceTokenizer
from matchloom.encoders.pooling import MEAN, pooling_of
from matchloom.encoders.shape import Shape
from matchloom.types import MatchloomError

_MODE = "pooling_mode_"
_LIMITS = "sentence_bert_config.json"  # how much of a text a sentence encoder was made for
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # how torch.save and pickle begin
_POINTER = b"version https://git-lfs"
_LONGEST = 256  # pieces, where a folder says nothing
_LAYER = {  # ours, in the order in which they are laid end to end; BERT's; DistilBERT's
    "qkv": (
        ("attention.self.query", "attention.self.key", "attention.self.value"),
        ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    ),
    "out": (("attention.output.dense",), ("attention.out_lin",)),
    "first": (("attention.output.LayerNorm",), ("sa_layer_norm",)),
    "up": (("intermediate.dense",), ("ffn.lin1",)),
    "down": (("output.dense",), ("ffn.lin2",)),
    "second": (("output.LayerNorm",), ("output_layer_norm",)),
}


class EncoderFiles(NamedTuple):
    """What a folder holds, in our own words: sizes, pieces, and weights by the names of `Transformer`'s parameters."""

    shape: Shape
    tokenizer: PieceTokenizer
    weights: dict[str, Tensor]
    pooling: str = MEAN  # what a text's vector is


def read_folder(folder: Path, *, most: int | None = None) -> EncoderFiles:
    """Read and check all of it; `most` is how many pieces of a text to read, where that is not the folder's choice."""
    config = read_config(folder)
    with _of(folder / CONFIG, "expected a BERT-like encoder"):
        shape = Shape.of(config)
    weights = _read_weights(folder / WEIGHTS, shape, distilled=config["model_type"] == "distilbert")
    try:
        text = (folder / TOKENIZER).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MatchloomError(
            f"{folder / TOKENIZER} cannot be read: {error}; copy the folder again", code="damaged"
        ) from None
    prompts, pooled = _told(folder / PROMPTS), _told(folder / POOLING)
    with _of(folder / PROMPTS, "copy the folder again"):
        prompt = prompt_of(folder, prompts)
    with _of(folder / POOLING, "take another encoder"):
        pooling = _pooling(pooled)
    with _of(folder, "copy the files of one encoder again"):
        tokenizer = PieceTokenizer(text, shape, min(most or _longest(folder), shape.most_pieces), prompt=prompt)
        return EncoderFiles(shape, tokenizer, weights, pooling)


def _told(path: Path) -> dict[str, Any]:
    """What a file says that need not be there."""
    return read_json(path) if path.is_file() else {}


def _pooling(found: Mapping[str, Any]) -> str:
    """What a text's vector is, as sentence-transformers tells: the mean where a folder says nothing."""
    flags = [name.removeprefix(_MODE) for name, on in found.items() if on is True and name.startswith(_MODE)]
    modes = [found["pooling_mode"]] if "pooling_mode" in found else [re.sub("_tokens?$", "", one) for one in flags]
    if len(modes) > 1:
        raise MatchloomError(
            f"a text's vector of {' and '.join(modes)} end to end cannot be read", code="not_supported"
        )
    return pooling_of(modes[0] if modes else MEAN)


def _longest(folder: Path) -> int:
    """The pieces that the encoder was made for, if the folder says so."""
    found = _told(folder / _LIMITS).get("max_seq_length")
    return found if type(found) is int and found > 2 else _LONGEST


def _read_weights(path: Path, shape: Shape, *, distilled: bool) -> dict[str, Tensor]:
    with path.open("rb") as file:
        start = file.read(len(_POINTER))
    if start.startswith(_PICKLES):
        raise MatchloomError(
            f"{path} is a pickle by its first bytes, which is never read; get the safetensors", code="wrong_format"
        )
    if start == _POINTER:
        raise MatchloomError(
            f"{path} is a pointer of Git LFS and not the file itself; get that by 'git lfs pull'", code="wrong_format"
        )
    try:
        with safetensors.safe_open(path, "pt") as opened:
            names = list(opened.keys())
            prefix = _prefix(path, names)
            found = {name.removeprefix(prefix): opened.get_tensor(name) for name in names if name.startswith(prefix)}
    except (OSError, safetensors.SafetensorError):
        raise MatchloomError(
            f"{path} is damaged, cut off or no safetensors file; copy the folder again", code="damaged"
        ) from None
    take = _Taken(path, found)
    D, layers = shape.size, "transformer.layer" if distilled else "encoder.layer"
    places = take("embeddings.position_embeddings.weight", shape.positions, D)
    second = torch.zeros(D)
    if not distilled:  # a text alone is of the first type: a vector that all its positions have in common
        types = take("embeddings.token_type_embeddings.weight", None, D)
        if not len(types):
            raise MatchloomError(
                f"{path}: embeddings.token_type_embeddings.weight is empty; {_REMEDY}", code="mismatch"
            )
        places, second = places + types[0], types[-1] - types[0]  # RoBERTa has one type
    words = take("embeddings.word_embeddings.weight", shape.vocabulary, D)
    weights = {"words": words, "places": places, "second": second}
    for kind in ("weight", "bias"):
        weights[f"norm.{kind}"] = take(f"embeddings.LayerNorm.{kind}", D)
    widths = {
        "qkv": (D, D),
        "out": (D, D),
        "first": (D,),
        "up": (shape.inner, D),
        "down": (D, shape.inner),
        "second": (D,),
    }
    for n in range(shape.layers):
        for ours, theirs in _LAYER.items():
            for kind in ("weight", "bias"):
                width = widths[ours] if kind == "weight" else widths[ours][:1]
                parts = [take(f"{layers}.{n}.{name}.{kind}", *width) for name in theirs[distilled]]
                weights[f"layers.{n}.{ours}.{kind}"] = torch.cat(parts)
    more = f"{layers}.{shape.layers}."
    if any(name.startswith(more) for name in found):
        raise MatchloomError(f"{path} has more layers than the {shape.layers} in {CONFIG}; {_REMEDY}", code="mismatch")
    return weights


_REMEDY = "copy the files of one encoder again"


def _prefix(path: Path, names: list[str]) -> str:
    """What stands before every name of the encoder's tensors: nothing, or "bert." and the like."""
    last = "embeddings.word_embeddings.weight"
    found = [name.removesuffix(last) for name in names if name.endswith(last)]
    if len(found) != 1:
        raise MatchloomError(
            f"{path} has no {last}, or several; expected the weights of a BERT-like encoder", code="wrong_format"
        )
    return found[0]


class _Taken:
    """Tensors by name, each of the shape that the config tells of, finite and in single precision."""

    def __init__(self, path: Path, tensors: Mapping[str, Tensor]) -> None:
        self.path, self.tensors = path, tensors

    def __call__(self, name: str, *shape: int | None) -> Tensor:
        # LayerNorm's two had other names in the first BERT files.
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        found = self.tensors.get(name, self.tensors.get(old))
        if found is None:
            raise MatchloomError(f"{self.path} lacks {name}; {_REMEDY}", code="mismatch")
        same = found.dim() == len(shape) and all(b in (None, a) for a, b in zip(found.shape, shape, strict=True))
        if not same or not found.is_floating_point():
            wanted = " x ".join("any" if size is None else str(size) for size in shape)
            has = " x ".join(map(str, found.shape)) + ("" if found.is_floating_point() else f" of {found.dtype}")
            raise MatchloomError(
                f"{self.path}: {name} is {has}, but {CONFIG} says {wanted}; {_REMEDY}", code="mismatch"
            )
        found = found.float()
        if not found.isfinite().all():
            raise MatchloomError(f"{self.path}: {name} holds numbers that are not finite; {_REMEDY}", code="mismatch")
        return found


@contextmanager
def _of(path: Path, remedy: str) -> Iterator[None]:
    """Say where a fault is, and what to do."""
    try:
        yield
    except MatchloomError as error:
        raise MatchloomError(f"{path}: {error}; {remedy}", code=error.code) from None
