from __future__ import annotations

import math
import random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from matchloom.evaluation import measure
from matchloom.evaluation.measures import CandidateLists
from matchloom.types import Pair
from tests.drawing import examples
from tests.refusing import refused

TREC_NAMES = {
    "AP": "map",
    "RR": "recip_rank",
    "P@1": "P_1",
    "R@3": "recall_3",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
    "Success@2": "success_2",
}

# A few ids, scores and labels only, so that ties, and ties beyond float32, are everywhere.
lists_of_pairs = st.lists(
    st.tuples(
        st.sampled_from(["q1", "q2", "q10"]),
        st.text("abAé9", min_size=1, max_size=3),
        st.integers(0, 3),
        st.sampled_from([0.0, -0.0, 0.5, 0.5 + 1e-12, -3.0, 1e9, 1e9 + 1]),
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda row: row[:2],
)


@examples(150)
@given(rows=lists_of_pairs, shuffle=st.randoms())
def test_equals_pytrec_eval_ties_included(rows: list[tuple[str, str, int, float]], shuffle: random.Random) -> None:
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query, text, label, score in rows:
        qrels.setdefault(query, {})[text] = label
        run.setdefault(query, {})[text] = score
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(TREC_NAMES.values())).evaluate(run)

    shuffle.shuffle(rows)
    pairs = [Pair("?", "!", label, query_id=query, text_id=text) for query, text, label, _ in rows]
    ours = measure(pairs, [score for *_, score in rows], TREC_NAMES)
    assert ours.queries == sorted(theirs)
    for name, trec_name in TREC_NAMES.items():
        expected = [theirs[query][trec_name] for query in ours.queries]
        assert ours.per_query[name].tolist() == pytest.approx(expected, abs=1e-9)
        assert ours.values[name] == pytest.approx(np.mean(expected), abs=1e-9)


def test_values_by_hand() -> None:
    # Ranking: 0, 2, 0, 1
    pairs = [Pair("q", text, label) for text, label in [("a", 1), ("b", 0), ("c", 2), ("d", 0)]]
    values = measure(pairs, [0.1, 0.9, 0.8, 0.5], ["AP", "RR", "P@1", "nDCG@10", "RR@1", "MAP", "AP(rel=2)"]).values
    assert values["AP"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert values["RR"] == 0.5
    assert values["P@1"] == 0
    dcg = 2 / math.log2(3) + 1 / math.log2(5)
    assert values["nDCG@10"] == pytest.approx(dcg / (2 + 1 / math.log2(3)))
    assert values["RR@1"] == 0
    assert values["AP(rel=2)"] == 0.5
    assert "MAP" not in values  # another name for AP, which is there


def test_measures_of_other_providers_do_not_see_the_input_order_either() -> None:
    pairs = [Pair("q", f"t{i}", float(i % 3 == 0)) for i in range(9)]
    forward = measure(pairs, np.zeros(9), ["RR@5", "Accuracy", "AP"]).values
    backward = measure(pairs[::-1], np.zeros(9), ["RR@5", "Accuracy", "AP"]).values
    assert forward == backward


def test_a_query_without_positives_counts_zero() -> None:
    pairs = [Pair("a", "x", 1), Pair("a", "y", 0), Pair("b", "x", 0)]
    assert measure(pairs, [1, 0, 0], ["AP", "nDCG@10"]).values == {"AP": 0.5, "nDCG@10": 0.5}


def test_negative_labels_are_not_relevant() -> None:
    values = measure([Pair("a", "x", -2), Pair("a", "y", 1)], [1, 0], ["AP", "nDCG"]).values
    assert values["AP"] == 0.5
    assert values["nDCG"] == pytest.approx(1 / math.log2(3))


def test_undefined_values_stay_out_of_the_mean() -> None:
    pairs = [Pair("a", "x", 1), Pair("a", "y", 0), Pair("b", "x", 0)]  # accuracy needs a positive
    for names in (["Accuracy"], ["AP", "Accuracy"]):
        measured = measure(pairs, [1, 0, 0], names)
        assert measured.values["Accuracy"] == 1
        assert np.isnan(measured.per_query["Accuracy"]).sum() == 1


def test_unretrieved_positives_count_against_recall() -> None:
    lists = CandidateLists(["q", "q"], ["a", "b"], [1, None], ["AP", "R@2"], [("q", 1), ("lost", 1)])
    assert lists.measure([1, 0]).values == {"AP": 0.25, "R@2": 0.25}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e39])
def test_scores_that_are_not_finite(bad: float) -> None:
    with refused("bad_value", "1", "pair 2"):
        measure([Pair("q", "a", 1), Pair("q", "b", 0)], [0.0, bad])


@pytest.mark.parametrize("label", [None, 0.5, math.nan])
def test_labels_that_are_no_whole_numbers(label: float | None) -> None:
    with refused("bad_row", "query_id", "'q'", "text_id", "'t'"):
        measure([Pair("?", "!", label, query_id="q", text_id="t")], [0.0])


def test_labels_trec_eval_would_hang_on() -> None:
    with refused("bad_value", "2000000"):
        measure([Pair("q", "a", 2_000_000)], [0.0])


@pytest.mark.parametrize("name", ["AAP", "P", "P@x", "AP@@", "", "P@1.5", "nDCG@10@10", "import os"])
def test_unknown_measures(name: str) -> None:
    with refused("unknown_name", "incomplete", "1"):
        measure([Pair("q", "a", 1)], [0.0], [name])


@pytest.mark.parametrize("name", ["P@0", "AP@0", "nDCG@2000000"])
def test_cutoffs_trec_eval_would_die_of(name: str) -> None:
    with refused("bad_value", "1,000,000"):
        measure([Pair("q", "a", 1)], [0.0], [name])


def test_measures_without_a_provider() -> None:
    with refused("not_supported", "alpha_nDCG", "5") as error:
        measure([Pair("q", "a", 1)], [0.0], ["alpha_nDCG@5"])
    assert "\n" not in str(error.value)


def test_other_bad_input() -> None:
    pair = Pair("?", "!", 1, query_id="q", text_id="t")
    with refused("bad_row", "query_id", "'q'", "text_id", "'t'"):
        measure([pair, pair], [0.0, 1.0])
    with refused("mismatch", "pairs", "1", "2"):
        measure([pair], [0.0, 1.0])
    with refused("no_data", "measure"):
        measure([pair], [0.0], [])
