from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.identity import normalize_text
from matchloom.data.repeats import once_each
from matchloom.types import Pair

TEXTS = st.sampled_from(["a", "A ", "b", "c", "d", "e"])


def test_what_is_kept() -> None:
    pairs = [
        Pair("how long", "ten yards"),
        Pair("How  long", "TEN yards "),  # the same pair
        Pair("how long", "it varies"),  # the same question
        Pair("which loom", "ten yards"),  # the same answer
        Pair("ten yards", "is that so"),  # an answer as a question
        Pair("echo", "Echo"),
    ]
    assert once_each(pairs) == [Pair("how long", "it varies"), Pair("ten yards", "is that so")]


@given(st.lists(st.tuples(TEXTS, TEXTS).map(lambda both: Pair(*both))), st.integers())
def test_no_text_twice_whatever_the_order(pairs: list[Pair], seed: int) -> None:
    kept = once_each(sorted(pairs))
    texts = [normalize_text(text) for pair in kept for text in pair[:2]]
    assert len(texts) == len(set(texts))
    assert kept == once_each(sorted(random.Random(seed).sample(pairs, len(pairs))))
    # And none is left out without need.
    for pair in pairs:
        query, text = normalize_text(pair.query), normalize_text(pair.text)
        assert query == text or {query, text} & set(texts)
