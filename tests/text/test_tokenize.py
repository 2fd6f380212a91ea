"""Tokenizers: words by hand, and what must hold of every text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.text.tokenize import TOKENIZERS, Tokenizer, stem, stems, words_once
from tests.refusing import refused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't part 3.5 litres, please!", ["don't", "part", "3.5", "litres", "please"]),
        ("It’s 1,000.50 dollars - (really)", ["it’s", "1,000.50", "dollars", "really"]),
        ("rock'n'roll 'quoted' dogs'", ["rock'n'roll", "quoted", "dogs"]),
        ("snake_case e-mail a/b x=y", ["snake", "case", "e", "mail", "a", "b", "x", "y"]),
        ("Ends with 3. And 4,", ["ends", "with", "3", "and", "4"]),
        ("utf8 B2B x86", ["utf8", "b2b", "x86"]),
        ("naïve Café ÜBER cafe\u0301", ["naïve", "café", "über", "cafe\u0301"]),
        ("привет, мир", ["привет", "мир"]),
        ("", []),
        (" \t\n…—!?", []),
    ],
)
def test_english(text: str, words: list[str]) -> None:
    assert Tokenizer("english")(text) == words


def test_chinese_is_segmented_and_punctuation_dropped() -> None:
    words = Tokenizer("chinese")("我爱北京天安门，GPT4 很好。")
    assert words == ["我", "爱", "北京", "天安门", "gpt4", "很", "好"]


def test_whitespace_keeps_tokens_as_they_are() -> None:
    assert Tokenizer("whitespace", lower=False)(" The U.S. , `` n't\u00a0-LRB- \n") == [
        "The",
        "U.S.",
        ",",
        "``",
        "n't",
        "-LRB-",
    ]


def test_lower_case_is_a_choice() -> None:
    assert Tokenizer(lower=False)("Loom LOOM") == ["Loom", "LOOM"]
    assert Tokenizer()("Loom LOOM") == ["loom", "loom"]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_texts_are_cut_after_so_many_words(kind: str) -> None:
    text = "one two three four"
    assert Tokenizer(kind, max_words=2)(text) == ["one", "two"]
    assert Tokenizer(kind, max_words=0)(text) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_long_text_is_read_whole(kind: str) -> None:
    assert len(Tokenizer(kind)("word " * 100_000)) == 100_000


def test_an_unknown_kind_is_told() -> None:
    with refused("unknown_name", "'latin'"):
        Tokenizer("latin")("a")


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_words_are_in_the_text_in_order_and_hold_no_space(kind: str, text: str) -> None:
    # Vocabulary and vector files part words by white space.
    at = 0
    for word in Tokenizer(kind, lower=False)(text):
        assert word.split() == [word]
        at = text.index(word, at) + len(word)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_letter_is_lost_in_english(text: str) -> None:
    letters = [c for c in text if c.isalpha()]
    assert [c for word in Tokenizer(lower=False)(text) for c in word if c.isalpha()] == letters


def test_stems() -> None:
    assert stems(["looms", "weaving", "weaves", "happily", "running", "loom"]) == [
        "loom",
        "weav",
        "weav",
        "happili",
        "run",
        "loom",
    ]
    assert stem("北京") == "北京"
    assert stem("3.5") == "3.5"
    assert stem("") == ""


def test_during_a_fit_a_text_is_tokenised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    tokenize = Tokenizer.tokenize
    monkeypatch.setattr(Tokenizer, "tokenize", lambda self, text: asked.append(text) or tokenize(self, text))
    short = "Weave it."
    monkeypatch.setattr("matchloom.text.tokenize._MOST_KEPT", len(short))
    with words_once():
        Tokenizer()(short).append("altered by who asked")
        assert Tokenizer()(short) == ["weave", "it"]
        assert asked == [short]
        assert Tokenizer(lower=False)(short) == ["Weave", "it"]  # another tokenizer's words are its own
        assert [Tokenizer()("no room") for _ in range(2)] == [["no", "room"]] * 2
    assert Tokenizer()(short) == ["weave", "it"]
    assert asked == [short, short, "no room", "no room", short]
