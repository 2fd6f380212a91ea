"""Small collections for the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import pytest

from matchloom.types import Pair

ENGLISH = [
    ("How do I strike through text?", "Use two tildes around the words: ~~like this~~."),
    ("strikethrough in GitHub markdown", "Use two tildes around the words: ~~like this~~."),
    ("crossed out letters in a comment", "Use two tildes around the words: ~~like this~~."),
    ("How do I make text bold?", "Put two stars on either side of the words."),
    ("bold letters in markdown", "Put two stars on either side of the words."),
    ("How do I close an issue?", "Press the close button, or name the issue in a commit message."),
    ("closing issues by commit", "Press the close button, or name the issue in a commit message."),
    ("shut a ticket automatically", "Press the close button, or name the issue in a commit message."),
    ("How can I fork a repository?", "Press fork at the top right; the copy is yours."),
    ("copy someone else's repository", "Press fork at the top right; the copy is yours."),
    ("Where do I change my password?", "Open the settings and choose security."),
    ("", "Two keys are better than one: turn on the second factor."),
]
CHINESE = [
    ("人寿保险可以退保吗", "可以，退保时按现金价值退款。"),
    ("怎么退保人寿保险", "可以，退保时按现金价值退款。"),
    ("汽车保险多少钱", "汽车保险的价格取决于车型和驾龄。"),
    ("车险价格怎么算", "汽车保险的价格取决于车型和驾龄。"),
    ("房屋保险赔地震吗", "地震需要另外购买附加险。"),
    ("地震损坏房子谁赔", "地震需要另外购买附加险。"),
]


def pairs_of(rows: list[tuple[str, str]]) -> list[Pair]:
    return [Pair(question, text, 1.0) for question, text in rows]


def many(answers: int, questions: int = 1) -> list[Pair]:
    """Made-up answers whose questions use other words than they do, the same other words each time."""
    say = ("price", "cover", "cancel", "claim", "renew", "child")
    mean = ("premium", "protection", "surrender", "payout", "extension", "minor")
    things = [f"thing{n}" for n in range(answers)]
    pairs = []
    for n, thing in enumerate(things):
        verb, noun = say[n % 6], mean[n % 6]
        text = f"the {noun} of {thing} is part {n % 7} of the policy"
        for q in range(questions):
            pairs.append(Pair(f"{verb} of my {thing}" if q == 0 else f"about {thing} {verb} number {q}", text, 1.0))
    return pairs


SPARE = [Pair("", f"spare text {n}") for n in range(20)]
_PLACES = ("matchloom.search.view", "matchloom.search.segment", "matchloom.search.learning")


@contextmanager
def as_large(whole: int = 100, candidates: int = 20) -> Iterator[None]:
    """Have small collections be searched as those of many thousand entries are: by candidates."""
    with pytest.MonkeyPatch.context() as patch:
        for place in _PLACES:
            for name, value in (("WHOLE", whole), ("CANDIDATES", candidates)):
                if hasattr(import_module(place), name):
                    patch.setattr(f"{place}.{name}", value)
        yield
