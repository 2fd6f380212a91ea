"""Figures of independent labelled pairs, against counts by hand and scikit-learn."""

from __future__ import annotations

from html import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

from matchloom.evaluation import evaluate, evaluate_pairs
from matchloom.evaluation.labelled import measure_labelled
from matchloom.types import Pair
from tests.drawing import examples
from tests.refusing import refused

PAIRS = [Pair(f"n{n} red loom", "a red loom" if n % 3 else "a blue mill", float(bool(n % 3))) for n in range(12)]


@examples(60)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30))
def test_the_figures_are_scikit_learns_and_the_means_of_what_pairs_add(drawn: list[tuple[int, bool]]) -> None:
    scores, right = np.array([score for score, _ in drawn], float), np.array([label for _, label in drawn])
    if right.all() or not right.any():
        with refused("bad_labels", "label"):
            measure_labelled(scores, right, 0.0)
        return
    found = measure_labelled(scores, right, 0.0)
    assert found.values == pytest.approx(
        {
            "AP": average_precision_score(right, scores),
            "AUC": roc_auc_score(right, scores),
            "accuracy": accuracy_score(right, scores >= 0),
            "F1": f1_score(right, scores >= 0),
        }
    )
    for name, value in found.values.items():
        assert found.each[name].mean() == pytest.approx(value)


def test_a_report_of_pairs_shows_itself() -> None:
    report = evaluate_pairs("overlap", PAIRS)
    assert repr(report) == f"LabelledReport(overlap: AP {report.values['AP']:.4f}, AUC 1.0000; 12 pairs)"
    assert report.threshold is None
    assert "accuracy" not in report.values
    assert report.to_dict()["positives"] == 8
    assert escape(report.to_html()) in report._repr_html_()
    assert 'aria-label="Figures"' in report.to_html()
    assert report.to_html().startswith("<!doctype html>")
    with refused("bad_labels", "13"):
        evaluate_pairs("bm25", [*PAIRS, Pair("a", "b")])


def test_independent_pairs_that_are_measured_as_lists_are_told() -> None:
    lists = [Pair("n1 red loom", "a mill", 0.0), *PAIRS]
    (warning,) = [one for one in evaluate("bm25", lists).warnings if "independent" in one]
    assert warning.startswith("1 of 12 questions have positives and negatives")
