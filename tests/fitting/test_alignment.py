"""How two texts align: order, beginnings, ends, and words that are spelt alike."""

from __future__ import annotations

import numpy as np
import pytest

from matchloom.fitting.alignment import ALIGNED, aligned


def named(one: str, other: str, *, characters: bool = False) -> dict[str, float]:
    found = aligned(one.split(), other.split(), lambda _: 1.0, characters=characters)
    return dict(zip(ALIGNED, found.tolist(), strict=True))


def test_the_order_of_words_counts() -> None:
    same, turned = named("a b c d", "a b c d"), named("a b c d", "d c b a")
    assert same["words in the same order"] == same["longest run of words"] == 1
    assert turned["words in the same order"] == turned["longest run of words"] == 0.25
    by_characters = named("花呗 怎么 还款", "花呗 如何 还款", characters=True)
    assert by_characters["words in the same order"] == pytest.approx(4 / 6)


def test_ends_and_words_spelt_alike() -> None:
    found = named("how do I reset my password", "how do I reset the passwords")
    assert found["same first two words"] == found["same first word"] == 1
    assert found["same last word"] == found["same last two words"] == 0
    assert found["words in the same order"] == pytest.approx(8 / 12)
    nearest = 6 / 9 / 2  # the bigrams of one of the two words, and none of the other
    assert found["other words spelt alike"] >= nearest
    assert not named("a", "b")["other words spelt alike"]


@pytest.mark.parametrize("other", ["", "b a c", "é 支付宝 怎么", "a" * 500, " ".join("abcd" * 100)])
def test_either_order_of_the_texts_says_the_same(other: str) -> None:
    one = "how a b is c"
    there, back = named(one, other), named(other, one)
    assert there == back
    assert all(0 <= value <= 1 for value in there.values())
    assert np.isfinite(list(there.values())).all()
