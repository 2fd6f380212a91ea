"""BERT, RoBERTa and DistilBERT number by number, straight from the tensors of their files."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def transformer(
    config: dict[str, Any], tensors: dict[str, Tensor], ids: list[int], types: list[int] | None = None
) -> list[Tensor]:
    """The vector of each piece of one text behind the last layer; `types` as a tokenizer gives them for two texts."""
    T = {name: x.double() for name, x in tensors.items()}
    distilled, shifted = config["model_type"] == "distilbert", "roberta" in config["model_type"]
    layers = config["n_layers" if distilled else "num_hidden_layers"]
    heads = config["n_heads" if distilled else "num_attention_heads"]
    epsilon = config.get("layer_norm_eps", 1e-12)

    def linear(name: str, x: Tensor) -> Tensor:
        return T[f"{name}.weight"] @ x + T[f"{name}.bias"]

    def norm(name: str, x: Tensor) -> Tensor:
        mean = sum(x.tolist()) / len(x)
        spread = math.sqrt(sum((value - mean) ** 2 for value in x.tolist()) / len(x) + epsilon)
        return (x - mean) / spread * T[f"{name}.weight"] + T[f"{name}.bias"]

    def gelu(x: Tensor) -> Tensor:
        return torch.stack([v * (1 + torch.erf(v / math.sqrt(2))) / 2 for v in x])

    xs = []
    for n, piece in enumerate(ids):
        x = T["embeddings.word_embeddings.weight"][piece]
        x = x + T["embeddings.position_embeddings.weight"][n + (config["pad_token_id"] + 1 if shifted else 0)]
        if not distilled:
            x = x + T["embeddings.token_type_embeddings.weight"][types[n] if types else 0]
        xs.append(norm("embeddings.LayerNorm", x))
    for n in range(layers):
        if distilled:
            at = f"transformer.layer.{n}."
            q, k, v, out = (at + f"attention.{name}_lin" for name in ("q", "k", "v", "out"))
            first, second = at + "sa_layer_norm", at + "output_layer_norm"
            up, down = at + "ffn.lin1", at + "ffn.lin2"
        else:
            at = f"encoder.layer.{n}."
            q, k, v = (at + f"attention.self.{name}" for name in ("query", "key", "value"))
            out, first = at + "attention.output.dense", at + "attention.output.LayerNorm"
            up, down, second = at + "intermediate.dense", at + "output.dense", at + "output.LayerNorm"
        new = []
        for x in xs:
            seen = []
            for h in range(heads):
                width = len(x) // heads
                own = slice(h * width, (h + 1) * width)
                raised = [torch.exp(linear(q, x)[own] @ linear(k, y)[own] / math.sqrt(width)) for y in xs]
                values = [linear(v, y)[own] for y in xs]
                seen.append(sum(r * value for r, value in zip(raised, values, strict=True)) / sum(raised))
            a = norm(first, x + linear(out, torch.cat(seen)))
            new.append(norm(second, a + linear(down, gelu(linear(up, a)))))
        xs = new
    return xs
