"""Negatives that the matcher mines itself: the highest it ranks, no positives, and none that nobody wrote down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from matchloom.matcher import Matcher
from matchloom.text.tokenize import Tokenizer
from matchloom.training import mining
from matchloom.training.collection import collect, collection_pairs
from matchloom.training.mining import development_margin, mined
from matchloom.types import MatchloomError, Pair
from tests.training.making import colour_pairs, train
from tests.training.test_collection import COLLECTION, SMALL


def found_by(matcher: Matcher, pairs: list[Pair], margin: float = float("inf")) -> list[set[str]]:
    """The texts that a matcher mines for each question."""
    collected = collect(pairs, Tokenizer(), questions=False, candidates=mining.CANDIDATES)
    left, right = matcher.read(collected.questions), matcher.read(collected.texts)
    read = collection_pairs(collected.collection, left, right)
    near = mined(matcher, collected.collection, read, margin, progress=False)
    return [{collected.texts[row] for row in rows} for rows in near]


@pytest.fixture(scope="module", params=["sentence_bert", "mv_lstm"])
def matcher(request: pytest.FixtureRequest) -> Matcher:
    """One that compares vectors of the whole collection, and one that is shown candidates by BM25."""
    arguments = SMALL if request.param == "mv_lstm" else {}
    return train(COLLECTION, model=request.param, arguments=arguments, dimensions=8, epochs=1)


def test_the_highest_are_mined_and_no_positive(matcher: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "MINED", 3)
    texts = sorted({pair.text for pair in COLLECTION})
    questions = [pair.query for pair in COLLECTION]
    for question, pair, mined_texts in zip(questions, COLLECTION, found_by(matcher, COLLECTION), strict=True):
        others = [text for text in texts if text != pair.text]
        scores = matcher.score([Pair(question, text) for text in others])
        lowest = min(float(scores[others.index(text)]) for text in mined_texts)
        assert len(mined_texts) == 3
        assert sum(float(score) > lowest + 1e-5 for score in scores) <= 2


def test_what_stands_above_the_positive_by_the_margin_is_left_out(matcher: Matcher) -> None:
    for pair, mined_texts in zip(COLLECTION, found_by(matcher, COLLECTION, margin=0.0), strict=True):
        best = matcher.score(pair.query, pair.text)
        assert all(matcher.score(pair.query, text) <= best + 1e-5 for text in mined_texts)


def test_what_nearly_repeats_a_positive_is_left_out(matcher: Matcher) -> None:
    twin = "Call the loom smith and wait, wait."
    pairs = [*COLLECTION, Pair("what of looms", twin)]
    for pair, mined_texts in zip(pairs, found_by(matcher, pairs), strict=True):
        assert (twin in mined_texts) == ("loom" not in pair.text)


def test_the_first_ranks_are_passed_over(matcher: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "MINED", 2)
    first = found_by(matcher, COLLECTION)
    monkeypatch.setattr(mining, "LEAST_RANK", 2)
    assert all(not one & other for one, other in zip(first, found_by(matcher, COLLECTION), strict=True))


def test_the_margin_is_that_of_development_questions() -> None:
    pairs = [Pair("q", "t", float(n == 0), f"q{q}") for q in range(3) for n in range(3)]
    scores = np.array([1, 2, 0, 5, 1, 2, 0, 0, 1], dtype=np.float32)  # above the positive by 1, -3 and 1
    assert development_margin(pairs, scores) == pytest.approx(1.0)
    assert development_margin([], np.array([], dtype=np.float32)) == float("inf")


def test_a_stopped_run_mines_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "MINED", 2)

    def run(folder: Path, epochs: int, resume: bool = False) -> Matcher:
        return train(
            COLLECTION, model="sentence_bert", dimensions=8, mine_every=2, epochs=epochs, folder=folder, resume=resume
        )

    run(tmp_path / "parts", 3)
    parts, whole = run(tmp_path / "parts", 5, resume=True), run(tmp_path / "whole", 5)
    plain = train(COLLECTION, model="sentence_bert", dimensions=8, epochs=5)
    for name, weights in whole.model.state_dict().items():
        assert weights.equal(parts.model.state_dict()[name])
    assert any(not x.equal(plain.model.state_dict()[name]) for name, x in whole.model.state_dict().items())


def test_lists_have_their_own_negatives() -> None:
    with pytest.raises(MatchloomError, match="mine_every is for positives alone"):
        train(colour_pairs(), mine_every=1)
