"""TransLM against its formula, and its file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from matchloom.lexical import trans_lm
from matchloom.lexical.trans_lm import TransLM
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.refusing import refused

PAIRS = [
    Pair("who weaves cloth", "the loom makes cloth from thread", 1.0),
    Pair("who weaves", "a loom and its weaver"),
    Pair("who grinds", "the mill grinds corn", 1.0),
    Pair("who grinds", "the loom", 0.0),
]
TEXTS = [pair.text for pair in PAIRS]
QUERIES = ["who weaves", "grinds grinds the zyzzyva", "loom zyzzyva", ""]
SPACE = Tokenizer("whitespace")


def make(**arguments: float) -> TransLM:
    return TransLM.fit(TEXTS, PAIRS, tokenizer=SPACE, **arguments)  # type: ignore[arg-type]


def by_formula(scorer: TransLM, query: str, text: str) -> float:
    """ln of the query's likelihood, less that under the smoothing alone."""
    T = {
        (scorer.words[w], scorer.words[t]): p
        for w, t, p in zip(*(x.tolist() for x in scorer.translations), strict=True)
    }
    collection = " ".join(TEXTS).split()
    words = text.split()
    score = 0.0
    for w in query.split():
        P_C = max(1, collection.count(w)) / len(collection)
        P_d = words.count(w) / len(words)
        translated = sum(T.get((w, t), 0.0) / len(words) for t in words)
        P_mx = (1 - scorer.beta) * P_d + scorer.beta * translated
        score += math.log((1 - scorer.smoothing) * P_mx + scorer.smoothing * P_C) - math.log(scorer.smoothing * P_C)
    return score


@pytest.mark.parametrize(("smoothing", "beta"), [(0.2, 0.8), (0.5, 0.0), (0.9, 1.0), (1.0, 0.5)])
def test_equals_the_formula(smoothing: float, beta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trans_lm, "_BLOCK", 7)  # many blocks
    scorer = make(smoothing=smoothing, beta=beta)
    pairs = [Pair(q, t) for q in QUERIES for t in [*TEXTS, "zyzzyva loom loom"]]
    np.testing.assert_allclose(scorer.score(pairs), [by_formula(scorer, p.query, p.text) for p in pairs], rtol=1e-5)


def test_wrong_pairs_teach_nothing_and_order_does_not_matter() -> None:
    pairs = [Pair(q, t) for q in QUERIES for t in TEXTS]
    without = TransLM.fit(TEXTS, [p for p in PAIRS if p.label != 0], tokenizer=SPACE).score(pairs)
    turned = TransLM.fit(TEXTS[::-1], PAIRS[::-1], tokenizer=SPACE).score(pairs)
    assert without.tolist() == turned.tolist() == make().score(pairs).tolist()
    with refused("no_data", "translations"):
        TransLM.fit(TEXTS, PAIRS[3:])


def test_a_translation_wins_where_no_word_is_shared() -> None:
    scores = make().score([Pair("weaves", "a loom"), Pair("weaves", "a mill")])
    assert scores[0] > scores[1]


@pytest.mark.parametrize("block", [7, trans_lm._BLOCK])
def test_all_queries_with_all_texts_score_as_pairs_do(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trans_lm, "_BLOCK", block)
    model, texts = make(), [*TEXTS, ""]
    pairs = [Pair(query, text) for query in QUERIES for text in texts]
    found = model.score_all(QUERIES, model.bags(texts))
    assert found.any()
    assert found.ravel().tolist() == model.score(pairs).astype(np.float64).tolist()


def test_settings_out_of_range_are_told() -> None:
    for wrong in ({"smoothing": 0.0}, {"smoothing": 1.1}, {"beta": -0.1}, {"beta": float("nan")}):
        with refused("bad_value", "trans_lm", "0"):
            make(**wrong)


def test_a_trace_shows_the_translation() -> None:
    left, right, trace = make().trace("weaves", "the loom")
    assert (left, right) == (["weaves"], ["the", "loom"])
    assert trace.grid[0, 0, 1] > trace.grid[0, 0, 0]
    best = max(trace.signals, key=lambda signal: signal.contribution)
    assert right[best.right] == "loom"


class TestFolder:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        make(smoothing=0.3, beta=0.6).save(tmp_path / "m")
        return tmp_path / "m"

    def test_save_and_load_give_identical_scores(self, path: Path) -> None:
        pairs = [Pair(q, t) for q in QUERIES for t in TEXTS]
        loaded = TransLM.load(path)
        assert loaded.score(pairs).tolist() == make(smoothing=0.3, beta=0.6).score(pairs).tolist()
        assert loaded.tokenizer == SPACE
        assert sorted(p.name for p in path.iterdir()) == ["tables.safetensors", "trans_lm.json", "words.txt"]

    def test_a_file_or_nothing(self, path: Path) -> None:
        for other in (path.parent / "none", path / "words.txt"):
            with refused("missing", other, "matchloom trans-lm"):
                TransLM.load(other)

    def test_a_function_in_place_of_a_tokenizer_cannot_be_saved(self, path: Path) -> None:
        with refused("not_supported", "Tokenizer"):
            TransLM.fit(TEXTS, PAIRS, tokenizer=str.split).save(path)
