"""Small random encoders in folders, as BERT, RoBERTa and DistilBERT lay them out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

SIZE, LAYERS, HEADS, INNER, POSITIONS = 8, 2, 2, 12, 40
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789'"
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WHOLE = ["how", "do", "open", "file", "the", "read", "sort", "list", "\u4fdd\u9669"]
PIECES = [*MARKS, *LETTERS, *(f"##{letter}" for letter in LETTERS), "##ing", "##ed", *WHOLE]
CHARACTERS = "保险公司怎么退款密码忘记了重置在设里账户订单"
FAMILIES = ("bert", "roberta", "distilbert")


def tokenizer_json(family: str = "bert", pieces: list[str] | None = None) -> dict[str, Any]:
    """A WordPiece tokenizer that pads and cuts, as some files ask for; for RoBERTa one of bytes."""
    pieces = pieces or PIECES
    made: dict[str, Any] = {
        "version": "1.0",
        "truncation": {"max_length": 9, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {
            "strategy": {"Fixed": 9},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": False,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _around("[CLS]", 2, "[SEP]", 3),
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 30,
            "vocab": {piece: n for n, piece in enumerate(pieces)},
        },
    }
    if family == "roberta":
        letters = ["<s>", "<pad>", "</s>", "<unk>", *(chr(n) for n in range(33, 127)), "\u0120", "\u0120o", "\u0120op"]
        made["normalizer"] = None
        made["pre_tokenizer"] = {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        }
        made["post_processor"] = _around("<s>", 0, "</s>", 2, pairs_typed=False)
        made["model"] = {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "vocab": {letter: n for n, letter in enumerate(letters)},
            "merges": ["\u0120 o", "\u0120o p"],
        }
    return made


def _around(start: str, start_id: int, end: str, end_id: int, *, pairs_typed: bool = True) -> dict[str, Any]:
    """Marks around a text, and between two: RoBERTa has two there and no types."""
    marks = {start: start_id, end: end_id}
    single = [
        {"SpecialToken": {"id": start, "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": end, "type_id": 0}},
    ]
    of_second = int(pairs_typed)
    second = [
        {"Sequence": {"id": "B", "type_id": of_second}},
        {"SpecialToken": {"id": end, "type_id": of_second}},
    ]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, *([] if pairs_typed else single[2:]), *second],
        "special_tokens": {mark: {"id": mark, "ids": [n], "tokens": [mark]} for mark, n in marks.items()},
    }


def config_json(family: str = "bert", vocabulary: int | None = None) -> dict[str, Any]:
    rows = vocabulary or len(tokenizer_json(family)["model"]["vocab"])
    common = {"model_type": family, "vocab_size": rows, "max_position_embeddings": POSITIONS}
    if family == "distilbert":
        return {**common, "dim": SIZE, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": INNER, "activation": "gelu"}
    return {
        **common,
        "hidden_size": SIZE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5 if family == "roberta" else 1e-12,
        "pad_token_id": 1 if family == "roberta" else 0,
    }


def tensors_of(config: dict[str, Any], seed: int = 0) -> dict[str, Tensor]:
    """Random weights by the names of a family, a pooler that is not needed among them."""
    generator = torch.Generator().manual_seed(seed)
    rows = config["vocab_size"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (rows, SIZE),
        "embeddings.position_embeddings.weight": (POSITIONS, SIZE),
        "embeddings.LayerNorm.weight": (SIZE,),
        "embeddings.LayerNorm.bias": (SIZE,),
    }
    if config["model_type"] == "distilbert":
        names = [("attention.q_lin", SIZE, SIZE), ("attention.k_lin", SIZE, SIZE), ("attention.v_lin", SIZE, SIZE)]
        names += [("attention.out_lin", SIZE, SIZE), ("ffn.lin1", INNER, SIZE), ("ffn.lin2", SIZE, INNER)]
        norms, before = ["sa_layer_norm", "output_layer_norm"], "transformer.layer"
    else:
        shapes["embeddings.token_type_embeddings.weight"] = (2, SIZE)
        shapes["pooler.dense.weight"] = (SIZE, SIZE)
        names = [(f"attention.self.{name}", SIZE, SIZE) for name in ("query", "key", "value")]
        names += [("attention.output.dense", SIZE, SIZE), ("intermediate.dense", INNER, SIZE)]
        names += [("output.dense", SIZE, INNER)]
        norms, before = ["attention.output.LayerNorm", "output.LayerNorm"], "encoder.layer"
    for n in range(LAYERS):
        for name, outputs, inputs in names:
            shapes[f"{before}.{n}.{name}.weight"] = (outputs, inputs)
            shapes[f"{before}.{n}.{name}.bias"] = (outputs,)
        for name in norms:
            shapes[f"{before}.{n}.{name}.weight"] = shapes[f"{before}.{n}.{name}.bias"] = (SIZE,)
    return {name: torch.randn(*shape, generator=generator) * 0.6 for name, shape in shapes.items()}


def chinese_json() -> dict[str, Any]:
    """A WordPiece tokenizer as Chinese BERTs have it: every character is a piece of its own."""
    made = tokenizer_json(pieces=[*MARKS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *CHARACTERS])
    made["normalizer"]["handle_chinese_chars"] = True
    return made


def write_folder(
    folder: Path, family: str = "bert", *, prefix: str = "", seed: int = 0, tokenizer: dict[str, Any] | None = None
) -> Path:
    """A whole encoder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer or tokenizer_json(family)
    config = config_json(family, len(tokenizer["model"]["vocab"]))
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    save_file({prefix + name: x for name, x in tensors_of(config, seed).items()}, folder / "model.safetensors")
    return folder
