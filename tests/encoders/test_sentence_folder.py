"""What a folder of sentence-transformers says beside its weights: a text's vector, and what stands before the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from matchloom import Matcher
from matchloom.encoders.library import add_encoder
from matchloom.encoders.transformer import Transformer
from matchloom.text.tokenize import Tokenizer
from tests.encoders.making import write_folder
from tests.refusing import refused

pytest.importorskip("tokenizers")

TEXTS = ["how do i open the file", "sort a list", "read"]
QUERY = "read: "  # of which the small tokenizer knows a word


def _folder(tmp_path: Path, name: str = "small", *, pooling: Any = None, prompts: Any = None, card: str = "") -> Path:
    folder = write_folder(tmp_path / name)
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    if card:
        (folder / "README.md").write_text(card)
    return folder


@pytest.mark.parametrize(
    "pooling",
    [{"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}],
)
def test_a_texts_vector_can_be_that_of_its_first_mark(pooling: Any, tmp_path: Path) -> None:
    matcher = Matcher.untrained(_folder(tmp_path, pooling=pooling), model="sentence_bert")
    encoder = matcher.model.encoder
    assert isinstance(encoder, Transformer)
    positions = encoder.positions(matcher_pieces(matcher, TEXTS))[:, 0]
    expected = torch.nn.functional.normalize(positions, dim=1).detach().numpy()
    np.testing.assert_allclose(matcher.vectors(TEXTS), expected, atol=1e-6)
    _, _, trace = matcher.trace(TEXTS[0], TEXTS[1])
    assert trace.score == pytest.approx(matcher.score(TEXTS[0], TEXTS[1]), abs=1e-6)
    assert not np.any(trace.grid)

    matcher.save(tmp_path / "saved")
    np.testing.assert_array_equal(Matcher.load(tmp_path / "saved").vectors(TEXTS), matcher.vectors(TEXTS))
    plain = Matcher.untrained(_folder(tmp_path, "plain"), model="sentence_bert")
    mean = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    told = Matcher.untrained(_folder(tmp_path, "mean", pooling=mean), model="sentence_bert")
    np.testing.assert_array_equal(plain.vectors(TEXTS), told.vectors(TEXTS))
    assert not np.allclose(plain.vectors(TEXTS), matcher.vectors(TEXTS))


def matcher_pieces(matcher: Matcher, texts: list[str]) -> Any:
    from matchloom.data.batching import pad_texts

    return pad_texts(matcher.read(texts), np.arange(len(texts))).pieces


@pytest.mark.parametrize(
    "pooling",
    [
        {"pooling_mode_max_tokens": True},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": "lasttoken"},
        {"pooling_mode": ["mean"]},
    ],
)
def test_other_ways_are_refused(pooling: Any, tmp_path: Path) -> None:
    folder = _folder(tmp_path, pooling=pooling)
    with refused("not_supported", folder / "1_Pooling" / "config.json"):
        Transformer.load(folder)


@pytest.mark.parametrize(
    ("prompts", "card"),
    [
        ({"prompts": {"query": QUERY, "passage": "list: "}}, ""),
        ({"prompts": {"one": QUERY}, "default_prompt_name": "one"}, ""),
    ],
)
def test_what_stands_before_every_text_is_no_word_of_it(prompts: Any, card: str, tmp_path: Path) -> None:
    matcher = Matcher.untrained(_folder(tmp_path, prompts=prompts, card=card), model="sentence_bert")
    plain = Matcher.untrained(_folder(tmp_path, "plain"), model="sentence_bert")
    np.testing.assert_array_equal(matcher.vectors(TEXTS), plain.vectors([QUERY + text for text in TEXTS]))
    found = matcher.reader.text_pieces(TEXTS[0])
    own = plain.reader.text_pieces(TEXTS[0])
    marks = len(found.ids) - len(own.ids)
    assert found.words == [-1] * (marks + 1) + own.words[1:]
    assert found.ids[marks + 1 :] == own.ids[1:]
    assert matcher.trace(TEXTS[0], TEXTS[1])[0] == Tokenizer()(TEXTS[0])
    matcher.save(tmp_path / "saved")
    np.testing.assert_array_equal(Matcher.load(tmp_path / "saved").vectors(TEXTS), matcher.vectors(TEXTS))


@pytest.mark.parametrize(
    ("prompts", "card", "expected"),
    [
        (None, 'Each text starts with "query: " or "passage: ".', "query: "),
        ({"prompts": {"query": "", "document": ""}}, 'Texts start with "query: " or "passage: ".', "query: "),
        (None, 'A "query: " is what you ask.', ""),
        ({"prompts": {"query": "Represent this: "}, "default_prompt_name": None}, "", ""),
        ({}, "", ""),
    ],
)
def test_the_card_and_the_settings_tell_it(prompts: Any, card: str, expected: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path, prompts=prompts, card=card)
    assert Transformer.load(folder).tokenizer.prompt == expected


@pytest.mark.parametrize("prompts", [{"prompts": {"query": 3}}, {"prompts": {}, "default_prompt_name": "query"}])
def test_prompts_that_cannot_be_read_are_refused(prompts: Any, tmp_path: Path) -> None:
    folder = _folder(tmp_path, prompts=prompts)
    with refused("wrong_format", folder / "config_sentence_transformers.json"):
        Transformer.load(folder)


def test_an_added_encoder_keeps_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    prompts = {"prompts": {"query": QUERY, "passage": "list: "}}
    found = add_encoder(str(_folder(tmp_path, pooling={"pooling_mode": "cls"}, prompts=prompts)))
    loaded = Transformer.load(found.folder)
    assert (loaded.pooling, loaded.tokenizer.prompt) == ("cls", QUERY)
