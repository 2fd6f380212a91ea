"""Chinese over a WordPiece folder: a random one, as no Chinese weights with a usable licence are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom import Matcher, Pair, explain, train
from matchloom.encoders.transformer import Transformer
from matchloom.text.tokenize import Tokenizer
from tests.encoders.making import chinese_json, write_folder

pytest.importorskip("tokenizers")

# Forgot a password, a refund of an order, insurance companies; and what is said of each.
QUESTIONS = ["忘记了密码怎么重置?", "订单怎么退款?", "保险公司在哪里?"]
ANSWERS = ["在账户设置里重置密码。", "退款在订单里。", "保险公司。"]
PAIRS = [Pair(q, a, float(i == j), f"q{i}", f"a{j}") for i, q in enumerate(QUESTIONS) for j, a in enumerate(ANSWERS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("encoder") / "chinese", tokenizer=chinese_json())


def test_words_of_several_characters_find_their_pieces(folder: Path) -> None:
    encoder, tokenizer = Transformer.load(folder), Tokenizer("chinese")
    text = "保险公司 OK?"
    ids, words = encoder.word_pieces(text, tokenizer.spans(text))
    assert tokenizer(text) == ["保险公司", "ok"]
    assert words == [-1, 0, 0, 0, 0, 1, 1, -1, -1]
    assert len(set(ids[1:5])) == 4  # a piece each, none unknown


def test_untrained_trained_ranked_and_explained(folder: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer("chinese")
    untrained = Matcher.untrained(folder, tokenizer=tokenizer)
    assert untrained.rank(ANSWERS[2], ANSWERS)[0].text == ANSWERS[2]  # every word meets itself
    for model in ("late_interaction", "cross_encoder"):
        matcher = train(PAIRS, PAIRS, encoder=folder, tokenizer=tokenizer, model=model, epochs=1)
        matcher.save(tmp_path / model)
        ranked = Matcher.load(tmp_path / model).rank(QUESTIONS[0], ANSWERS)
        assert sorted(one.text for one in ranked) == sorted(ANSWERS)
        why = explain(matcher, QUESTIONS[0], ANSWERS[0])
        assert why.query == tokenizer(QUESTIONS[0])
        assert "密码" in why.query
        assert "密码" in why.text
