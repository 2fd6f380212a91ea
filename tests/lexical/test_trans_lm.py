"""TransLM against its formula, and its file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from matchloom.lexical import trans_lm
from matchloom.lexical.trans_lm import TransLM
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair
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


class TestFile:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        make(smoothing=0.3, beta=0.6).save(tmp_path / "m.safetensors")
        return tmp_path / "m.safetensors"

    def test_save_and_load_give_identical_scores(self, path: Path) -> None:
        pairs = [Pair(q, t) for q in QUERIES for t in TEXTS]
        loaded = TransLM.load(path)
        assert loaded.score(pairs).tolist() == make(smoothing=0.3, beta=0.6).score(pairs).tolist()
        assert loaded.tokenizer == SPACE
        assert [p.name for p in path.parent.iterdir()] == [path.name]

    @pytest.mark.parametrize("keep", [0, 10, 200, -3])
    def test_cut_off(self, path: Path, keep: int) -> None:
        path.write_bytes(path.read_bytes()[:keep])
        self.refused(path, "is damaged, cut off or no trans_lm file")

    def test_altered(self, path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
        self.refused(path, "was altered since it was saved")

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"smoothing": 0.9}, "was altered since it was saved"),
            ({"format": 1}, "has format 1, this matchloom reads 2; make it from a pairs file"),
            ({"format": None}, "is damaged, cut off or no trans_lm file"),
        ],
    )
    def test_altered_settings(self, path: Path, changes: dict[str, object], told: str) -> None:
        with safetensors.safe_open(path, "np") as opened:
            about = json.loads(opened.metadata()["trans_lm"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (no mapping)
        safetensors.numpy.save_file(tensors, path, {"trans_lm": json.dumps({**about, **changes})})
        self.refused(path, told)

    def test_newer(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trans_lm, "FORMAT", 9)
        make().save(path)
        monkeypatch.undo()
        self.refused(path, "has format 9, this matchloom reads 2; upgrade")

    def test_something_else_or_nothing(self, path: Path) -> None:
        self.refused(path.parent / "none.safetensors", "cannot be read")
        path.write_text("1 Q0 2 3 4 x\n")
        self.refused(path, "is damaged, cut off or no trans_lm file")

    def test_a_function_in_place_of_a_tokenizer_cannot_be_saved(self, path: Path) -> None:
        with refused("not_supported", "Tokenizer"):
            TransLM.fit(TEXTS, PAIRS, tokenizer=str.split).save(path)

    def refused(self, path: Path, match: str) -> None:
        with pytest.raises(MatchloomError, match=match) as caught:
            TransLM.load(path)
        assert "\n" not in str(caught.value)
