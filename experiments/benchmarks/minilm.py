"""A pretrained encoder beside onnxruntime: texts in, L2-normalised means out, in batches of 32. Part of networks.py.

Needs `matchloom encoders` to know all-MiniLM-L6-v2, and data/insuranceqa (MATCHLOOM_DATA) for running text; without
either the part is left out. The rival is the same network as one would export it from transformers, one product for
each of queries, keys and values, in float32; onnxruntime with all its optimisations, on as many threads, padded to the
longest of a batch. Both have their texts cut into pieces within the time that is measured.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, normalize

from experiments.benchmarks.cpu_turns import Wanted, Work, gemm, line, take_turns
from matchloom.encoders.library import find_encoder
from matchloom.encoders.transformer import Layer, Transformer
from matchloom.matcher import Matcher
from matchloom.types import MatchloomError

NAME = "all-MiniLM-L6-v2"
BATCH = 32
BATCHES = 4  # of which one after the other is read


def encoder(threads: int, rounds: int, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Texts of 10 and of 100 words."""
    rows = {length: f"MiniLM, {BATCH} texts of {length} words: texts/s" for length in (10, 100)}
    rows = {length: what for length, what in rows.items() if wanted(what)}
    data = Path(os.environ.get("MATCHLOOM_DATA", "data")) / "insuranceqa" / "answers.en.tsv.gz"
    try:
        folder = find_encoder(NAME)
    except MatchloomError:
        rows = {}
    if not rows or not data.exists():
        return
    torch.set_num_threads(threads)
    matcher, rival = Matcher.untrained(folder, model="sentence_bert"), Rival(folder, threads)
    rng = random.Random(0)
    with gzip.open(data, "rt", encoding="utf-8") as lines:
        words = " ".join(text.partition("\t")[2] for text, _ in zip(lines, range(600), strict=False)).split()
    for length, what in rows.items():
        starts = [rng.randrange(len(words) - length) for _ in range(BATCHES * BATCH)]
        texts = [" ".join(words[start : start + length]) for start in starts]
        apart = float(np.abs(rival(texts[:BATCH]) - matcher.vectors(texts[:BATCH])).max())
        assert apart < 1e-5, apart
        contenders = {"GEMM": gemm, "onnxruntime": batches(rival, texts), "ours": batches(matcher.vectors, texts)}
        speeds, wall = take_turns(contenders, rounds)
        ratios = {
            "ours / onnxruntime": speeds["ours"] / speeds["onnxruntime"],
            "by the clock": wall["ours"] / wall["onnxruntime"],
        }
        yield line(what, speeds, wall, ratios)


def batches(read: Any, texts: list[str]) -> Work:
    """A batch a call."""
    turn = iter(range(1 << 60))

    def work() -> float:
        start = next(turn) % BATCHES * BATCH
        read(texts[start : start + BATCH])
        return BATCH

    return work


class Rival:
    """Texts to vectors by the tokenizers package and onnxruntime."""

    def __init__(self, folder: Path, threads: int) -> None:
        import onnxruntime
        import tokenizers

        self.tokenizer: Any = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_padding()
        self.tokenizer.no_truncation()
        graph, one = io.BytesIO(), torch.ones(2, 5, dtype=torch.int64)
        axes = {name: {0: "texts", 1: "pieces"} for name in ("ids", "mask")}
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                Plain(Transformer.load(folder)).eval(),
                (one, one),
                graph,  # type: ignore[arg-type]  # a file works, too
                dynamo=False,
                opset_version=17,
                input_names=["ids", "mask"],
                output_names=["vectors"],
                dynamic_axes=axes,
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session: Any = onnxruntime.InferenceSession(graph.getvalue(), options, providers=["CPUExecutionProvider"])

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        """(N, D)"""
        pieces = self.tokenizer.encode_batch(texts)
        ids, mask = np.array([one.ids for one in pieces]), np.array([one.attention_mask for one in pieces])
        found: NDArray[np.float32] = self.session.run(None, {"ids": ids, "mask": mask})[0]
        return found


class Plain(nn.Module):
    """The network with the words of its papers."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        self.words, self.places, self.norm = ours.words, ours.places, ours.norm
        self.layers = nn.ModuleList(PlainLayer(layer) for layer in ours.layers)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Pieces (N, P) to vectors (N, D)."""
        x = self.norm(embedding(ids, self.words) + self.places[: ids.shape[1]])
        hidden = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for layer in self.layers:
            x = layer(x, hidden)
        shown = mask[:, :, None].float()
        return normalize((x * shown).sum(1) / shown.sum(1), dim=1)


class PlainLayer(nn.Module):
    """One product each for queries, keys and values."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        assert isinstance(layer, Layer)
        D = layer.out.in_features
        self.heads, self.size = layer.heads, D // layer.heads
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        for n, own in enumerate((self.q, self.k, self.v)):
            own.load_state_dict({name: x[n * D : (n + 1) * D] for name, x in layer.qkv.state_dict().items()})
        self.out, self.up, self.down = layer.out, layer.up, layer.down
        self.first, self.second = layer.first, layer.second

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """(N, P, D) -> (N, P, D)"""

        def turned(y: Tensor) -> Tensor:
            return y.view(y.shape[0], y.shape[1], self.heads, self.size).permute(0, 2, 1, 3)

        q, k, v = turned(self.q(x)), turned(self.k(x)), turned(self.v(x))
        weights = torch.softmax(q @ k.transpose(-1, -2) / self.size**0.5 + hidden, dim=-1)
        seen = (weights @ v).permute(0, 2, 1, 3).contiguous()
        x = self.first(self.out(seen.view(seen.shape[0], seen.shape[1], self.heads * self.size)) + x)
        y: Tensor = self.second(self.down(gelu(self.up(x))) + x)
        return y
