"""Measures of knowing that there is no answer, each beside a slow formula; a collection and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom import fit
from matchloom.cli import main
from matchloom.data.formats import write_pairs
from matchloom.evaluation.answerability import (
    auroc,
    calibration_error,
    evaluate_answers,
    recall_at_kept,
    selective,
)
from matchloom.types import MatchloomError, Pair
from tests.fitting.test_run import TOPICS, faq

LIKELY = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=1, max_size=30)


@given(LIKELY, LIKELY)
def test_auroc_counts_all_pairs(ours: list[float], theirs: list[float]) -> None:
    slow = np.mean([(a > b) + 0.5 * (a == b) for a in ours for b in theirs])
    assert auroc(np.array(ours), np.array(theirs)) == pytest.approx(slow)


@given(LIKELY, LIKELY, st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_recall_is_that_of_the_best_threshold_that_keeps_enough(a: list[float], b: list[float], kept: float) -> None:
    fair = [t for t in (*a, *b, 0.0) if np.mean([one >= t for one in a]) >= kept - 1e-12]
    slow = max(np.mean([one < t for one in b]) for t in fair)
    assert recall_at_kept(np.array(a), np.array(b), kept) == pytest.approx(slow)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_calibration_error_is_the_sum_over_bins(rows: list[tuple[float, bool]]) -> None:
    slow = 0.0
    for n in range(10):
        own = [(p, r) for p, r in rows if n <= p * 10 < n + 1 or (n == 9 and p == 1)]
        if own:
            slow += len(own) / len(rows) * abs(np.mean([p for p, _ in own]) - np.mean([r for _, r in own]))
    likely, right = np.array([p for p, _ in rows]), np.array([r for _, r in rows])
    assert calibration_error(likely, right) == pytest.approx(slow, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=30))
def test_the_surest_are_shown_first_and_equals_together(rows: list[tuple[int, bool]]) -> None:
    likely, right = np.array([n / 10 for n, _ in rows]), np.array([r for _, r in rows])
    found = selective(likely, right)
    assert found[-1].coverage == 1.0
    assert found[-1].precision == pytest.approx(right.mean())
    for one in found:
        shown = [r for p, r in zip(likely, right, strict=True) if p >= one.threshold]
        assert (one.coverage, one.precision) == pytest.approx((len(shown) / len(rows), np.mean(shown)))
    assert [one.coverage for one in found] == sorted(one.coverage for one in found)


def asked() -> Sequence[Pair]:
    none = ["who won the cup", "zebra stripes why", "sing me a song", "capital of peru"]
    return [*faq(25, seed=5), *(Pair(q, "no_answer") for q in none[:2]), *(Pair(q, "") for q in none[2:])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("answerable")
    fit(faq(60), out=where / "faq", encoder=None)
    write_pairs(where / "asked.tsv", asked())
    return where


def test_a_collection_is_asked_all_questions(folder: Path) -> None:
    from matchloom import load

    collection = load(folder / "faq")
    found = evaluate_answers(collection, asked())
    hits = collection.search([pair.query for pair in asked()], top=1)
    assert (found.answerable, found.unanswerable) == (25, 4)
    names = {text: name for name, (text, _) in TOPICS.items()}
    slow = np.mean([one[0].id == names[pair.text] for one, pair in zip(hits[:25], asked(), strict=False)])
    assert found.first_right == pytest.approx(slow)
    known = np.array([one.known for one in hits])
    assert found.auroc == pytest.approx(np.mean(known[:25, None] > known[25:]), abs=0.05)
    assert found.auroc is not None
    assert found.auroc > 0.8
    assert found.calibration_error is not None
    assert found.selective[-1].precision == pytest.approx(slow * 25 / 29)
    without = evaluate_answers(collection, asked()[:25])
    assert (without.unanswerable, without.auroc, without.recall) == (0, None, None)
    with pytest.raises(MatchloomError, match="no question has an answer"):
        evaluate_answers(collection, asked()[25:])


def test_the_command_tells_it_on_screen_and_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / "faq"), str(folder / "asked.tsv")]
    assert main(["evaluate", *files, "--no-baselines"]) == 0
    told = capsys.readouterr().out
    assert "AUROC" in told
    assert "25 questions with an answer, 4 without" in told
    assert main(["evaluate", *files, "--no-baselines", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["answerability"]
    assert found["unanswerable"] == 4
    assert 0 <= found["recall"] <= 1
    assert found["selective"][-1]["coverage"] == 1.0
