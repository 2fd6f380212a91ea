"""Texts that are nearly the same, found as comparing all with all would find them."""

from __future__ import annotations

import random

import pytest

from matchloom.data.checkup import near
from matchloom.data.checkup.near import near_pairs

WORDS = ("how", "do", "I", "pay", "by", "card", "invoice", "where", "is", "my", "the", "order", "account", "open")


def texts_of(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    drawn = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 8))) for _ in range(count)]
    return [*drawn, "", "?", "7", "x", "x", *(text.upper() + "?" for text in drawn[:9])]


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.9])
def test_nothing_is_missed_and_nothing_added(threshold: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "_BLOCK", 37)
    monkeypatch.setattr(near, "_VERIFIED", 11)
    texts = [text for text in texts_of(300, 1) if "7" not in text and len(text.strip("? ")) != 1]
    words = [f" {' '.join(near._NO_LETTER.split(text.casefold())).strip()} " for text in texts]
    sets = [set(near._sketch(text).tolist()) for text in words]
    expected = {
        (i, j)
        for i, own in enumerate(sets)
        for j in range(i + 1, len(sets))
        if own and sets[j] and len(own & sets[j]) >= threshold * len(own | sets[j])
    }
    found = near_pairs(texts, threshold)
    assert {(one.first, one.second) for one in found} == expected
    assert [one.similarity for one in found] == sorted((one.similarity for one in found), reverse=True)


def test_other_numbers_are_other_texts() -> None:
    texts = ["how do I update to version 7 of the program", "how do I update to version 8 of the program"]
    assert near_pairs(texts) == []
    assert near_pairs([texts[0], texts[0] + "?"])[0][:2] == (0, 1)


def test_nothing_to_compare() -> None:
    assert near_pairs([]) == []
    assert near_pairs(["", "?"]) == []


def test_long_texts_are_compared_by_a_part() -> None:
    text = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600))
    assert near_pairs([text, text + " more", text[: len(text) // 3]], 0.9)[0][:2] == (0, 1)
