from __future__ import annotations

import math

import pytest

from matchloom.lexical import Overlap
from matchloom.types import Pair


def test_rare_words_weigh_more() -> None:
    scorer = Overlap.fit(["loom cloth", "loom thread", "loom corn"])
    loom = math.log(1 + 0.5 / 3.5)
    cloth = math.log(1 + 2.5 / 1.5)
    unseen = math.log(1 + 3.5 / 0.5)
    scores = scorer.score(
        [Pair("loom cloth silk", text) for text in ("loom", "cloth", "silk silk", "loom silk cloth", "x")]
    )
    total = loom + cloth + unseen
    assert scores.tolist() == pytest.approx([loom / total, cloth / total, unseen / total, 1, 0])
    assert loom < cloth < unseen


def test_repeated_query_words_count_each_time() -> None:
    scorer = Overlap.fit(["a b"])
    assert scorer.score([Pair("a a b", "a")])[0] == pytest.approx(2 / 3)


def test_trace() -> None:
    scorer = Overlap.fit(["loom cloth", "loom thread"])
    _, _, trace = scorer.trace("cloth silk", "no cloth without cloth")
    assert [(s.left, s.right) for s in trace.signals] == [(0, 1), (0, 3)]
    assert trace.signals[0].contribution == pytest.approx(trace.score / 2)
