"""A folder that is not whole, not one encoder's or not one that can be read is told in one line."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from matchloom.encoders import pieces
from matchloom.encoders.transformer import Transformer
from matchloom.types import MatchloomError
from tests.encoders.making import PIECES, POSITIONS, tokenizer_json, write_folder
from tests.refusing import refused

pytest.importorskip("tokenizers")


def change_config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = {**json.loads((folder / "config.json").read_text()), **changes}
        (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))

    return change


def change_tensors(change_them: Callable[[dict], Any]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change_them(tensors)
        save_file(tensors, folder / "model.safetensors")

    return change


def change_tokenizer(text: str | dict) -> Callable[[Path], None]:
    return lambda folder: (
        (folder / "tokenizer.json").write_text(text if isinstance(text, str) else json.dumps(text)) and None
    )


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100]) and None


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps({"weights": [1.0]}))


def saved_by_torch(folder: Path) -> None:
    torch.save({"x": torch.zeros(2)}, folder / "model.safetensors")


def in_parts(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")


def pointed_at(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")


def roberta(change: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        write_folder(folder, "roberta")
        change(folder)

    return damage


def bin_alone(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


QUERY = "encoder.layer.0.attention.self.query.weight"
TYPES = "embeddings.token_type_embeddings.weight"
FAR, NO_UNKNOWN = tokenizer_json(), tokenizer_json()
FAR["model"]["vocab"]["how"] = 5000
NO_UNKNOWN["model"]["unk_token"] = "[NONE]"
NO_MARKS = {**tokenizer_json(), "post_processor": None}
CASES = [
    (without("config.json"), r"has no config.json, so it is no whole encoder"),
    (without("tokenizer.json"), r"has no tokenizer.json, so it is no whole encoder"),
    (without("model.safetensors"), r"has no model.safetensors, so it is no whole encoder; copy it again"),
    (bin_alone, r"has no model.safetensors.* its .bin file is a pickle, which is never read"),
    (in_parts, r"has no model.safetensors.* its weights are in several files, which are not read"),
    (pointed_at, r"model.safetensors is a pointer of Git LFS and not the file itself"),
    (cut("config.json"), r"config.json is damaged or cut off"),
    (cut("tokenizer.json"), r"tokenizer.json is damaged, cut off or of another kind"),
    (cut("model.safetensors"), r"model.safetensors is damaged, cut off or no safetensors file"),
    (pickled, r"model.safetensors is a pickle by its first bytes, which is never read"),
    (saved_by_torch, r"model.safetensors is a pickle by its first bytes, which is never read"),
    (change_config(model_type="gpt2"), r"config.json: model_type 'gpt2' is none of those that can be read: bert, rob"),
    (change_config(model_type=["bert"]), r"config.json: model_type \['bert'\] is none"),
    (change_config(position_embedding_type="relative_key"), r"config.json: positions of this kind cannot be read"),
    (change_config(hidden_size=None), r"config.json: hidden_size is missing"),
    (change_config(hidden_size="8"), r"config.json: size of the encoder must be a whole number above 0, found '8'"),
    (change_config(num_attention_heads=3), r"config.json: 8 numbers do not divide among the encoder's 3 heads"),
    (change_config(num_attention_heads=0), r"config.json: heads of the encoder must be a whole number above 0"),
    (change_config(vocab_size=10**10), r"config.json: an encoder of 10,000,000,000 pieces and 8 numbers is too large"),
    (change_config(hidden_act="swish"), r"config.json: activation 'swish' of the encoder is none of those known"),
    (change_config(hidden_act=["gelu"]), r"config.json: activation \['gelu'\] of the encoder is none of those known"),
    (roberta(change_config(pad_token_id="1")), r"config.json: pad_token_id must be a whole number, found '1'"),
    (change_config(layer_norm_eps="tiny"), r"config.json: epsilon of the encoder must be from 0 to 1, found 'tiny'"),
    (change_config(hidden_size=16), r"position_embeddings.weight is 40 x 8, but config.json says 40 x 16"),
    (change_config(num_hidden_layers=3), r"model.safetensors lacks encoder.layer.2.attention.self.query.weight"),
    (change_config(num_hidden_layers=1), r"model.safetensors has more layers than the 1 in config.json"),
    (change_config(intermediate_size=13), r"intermediate.dense.weight is 12 x 8, but config.json says 13 x 8"),
    (change_tensors(lambda t: t.pop(QUERY)), rf"model.safetensors lacks {QUERY}"),
    (change_tensors(lambda t: t.update({QUERY: t[QUERY].long()})), rf"{QUERY} is 8 x 8 of torch.int64, but"),
    (change_tensors(lambda t: t[QUERY][0].fill_(float("nan"))), rf"{QUERY} holds numbers that are not finite"),
    (change_tensors(lambda t: t.clear() or t.update(a=torch.zeros(1))), r"has no embeddings.word_embeddings.weight"),
    (change_tokenizer("[]"), r"tokenizer.json is damaged, cut off or of another kind"),
    (change_tokenizer(tokenizer_json(pieces=PIECES[:50])), None),  # a smaller one may have been rounded up
    (
        change_tokenizer(tokenizer_json(pieces=[*PIECES, "extra"])),
        rf"tokenizer.json knows {len(PIECES) + 1} pieces and the encoder {len(PIECES)}; copy the files of one",
    ),
    (change_tensors(lambda t: t.update({TYPES: t[TYPES][:0]})), r"token_type_embeddings.weight is empty"),
    (change_tokenizer(FAR), r"tokenizer.json has a piece number 5,000, the encoder"),
    (change_tokenizer(NO_UNKNOWN), r"tokenizer.json cannot cut every text into pieces \(WordPiece error: Missing"),
    (change_tokenizer(NO_MARKS), r"tokenizer.json adds no special tokens around a text"),
]


@pytest.mark.parametrize(("damage", "told"), CASES, ids=[str(told)[:60] for _, told in CASES])
def test_what_is_wrong_is_told_in_one_line(damage: Callable[[Path], None], told: str | None, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "small")
    damage(folder)
    if told is None:
        Transformer.load(folder)
        return
    with pytest.raises(MatchloomError, match=told) as caught:
        Transformer.load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_much_smaller_tokenizer_is_of_another_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_ROUNDED", 10)
    folder = write_folder(tmp_path)
    change_tokenizer(tokenizer_json(pieces=PIECES[:50]))(folder)
    with refused("mismatch", "50", len(PIECES)):
        Transformer.load(folder)


def test_no_folder_at_all(tmp_path: Path) -> None:
    with refused("missing", "expected"):
        Transformer.load(tmp_path / "none")


def test_half_precision_and_the_first_names_are_read_too(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x.half()
        for name, x in tensors.items()
    }
    save_file(renamed, folder / "model.safetensors")
    encoder = Transformer.load(folder)
    assert {x.dtype for x in encoder.parameters()} == {torch.float32}
    assert torch.equal(encoder.norm.bias, tensors["embeddings.LayerNorm.bias"].half().float())


def test_how_much_of_a_text_is_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    assert Transformer.load(folder).tokenizer.most == POSITIONS  # 256, if it had so many
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 12}')
    assert Transformer.load(folder).tokenizer.most == 12
    assert Transformer.load(folder, pieces=20).tokenizer.most == 20


def test_without_tokenizers_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with refused("needs_extra", "tokenizers", "[encoder]"):
        Transformer.load(write_folder(tmp_path))
