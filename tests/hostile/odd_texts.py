"""Odd texts for every scorer: a finite score each, and an explanation that adds up."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from matchloom.lexical import LEXICAL
from matchloom.models import MODELS
from matchloom.search.collection import Collection
from matchloom.types import Explains, Pair, Scorer
from tests.fitting.test_run import faq
from tests.lexical.test_contract import make
from tests.search.lance.making import WORDS, made_matcher

ODD = [
    "", " ", "\0", "\n\t\r", "\x1b[2J", "\ud800", "\udfff\ud800", "\ufeff", "\u202e", "é" * 50, "e\u0301",
    "👩‍👩‍👧‍👦" * 9, "护照", "ﷺ", "İ", "ß", "1.2.3,4", "1e308", "NaN", "-0", "'", "''s", "’", "a" * 3000, "a " * 600,
    "\u0301" * 40, "x\u200dy", "\U000e0001", "�", "<script>", "{}[]", "\\u0000", "../../etc/passwd", "; rm -rf",
    "%s%n", "ㄅ", "カ", "١٢٣", "𝟙𝟚", "ǅ",
]  # fmt: skip


def odd_text(rng: random.Random) -> str:
    """Odd pieces, ordinary words and letters from anywhere."""
    pieces = []
    for _ in range(rng.choice((0, 1, 1, 2, 5, 12))):
        what = rng.random()
        if what < 0.4:
            pieces.append(rng.choice(ODD))
        elif what < 0.7:
            pieces.append(rng.choice(WORDS))
        else:
            pieces.append("".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(6))))
    return rng.choice(("", " ", " ", "\u3000")).join(pieces)


class OddTexts:
    """Every entry of MODELS, with drawn weights, every lexical scorer and the ranker of answers."""

    def __init__(self, folder: Path) -> None:
        self._scorers: list[Scorer] = [made_matcher(name) for name in sorted(MODELS)]
        self._scorers += [make(name) for name in sorted(LEXICAL)]
        self._scorers.append(Collection.fit(faq(20)))

    def attempt(self, rng: random.Random) -> None:
        """Score some pairs, and explain one now and then."""
        scorer = rng.choice(self._scorers)
        pairs = [Pair(odd_text(rng), odd_text(rng)) for _ in range(rng.choice((1, 3)))]
        scores = scorer.score(pairs)
        assert scores.shape == (len(pairs),), scorer.name
        assert np.isfinite(scores).all(), (scorer.name, pairs)
        if isinstance(scorer, Explains) and rng.random() < 0.3:
            trace = scorer.trace(*pairs[0][:2])[2]
            added = sum(one.contribution for one in [*trace.signals, *trace.components]) + trace.residual
            assert abs(added - trace.score) <= 1e-3 * max(1.0, abs(trace.score)), (scorer.name, pairs[0])
