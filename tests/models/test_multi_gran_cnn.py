"""MultiGranCNN against the slow reference, and its contributions."""

from __future__ import annotations

import pytest
import torch

from matchloom.models import build_model
from matchloom.models.multi_gran_cnn import LEVELS
from tests.models.comparing import assert_same_gradients, assert_same_scores, read
from tests.models.making import PAIRS, TEXTS, embedding, make_model, make_pairs
from tests.reference import multi_gran_cnn as reference
from tests.refusing import refused

SMALL = {"grid": 5, "maps": 2, "units": 5}
VARIANTS = [
    {},
    {"match": "direct"},
    {"match": "concat"},
    {"width": 2, "alpha": 2, "kernel": 2},
    {"width": 1, "grid": 4},
]


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_the_paper_unit_by_unit(arguments: dict) -> None:
    assert_same_scores(make_model("multi_gran_cnn", **{**SMALL, **arguments}), reference.multi_gran_cnn)


@pytest.mark.parametrize("match", ["direct", "indirect", "concat"])
def test_gradients_equal_the_reference(match: str) -> None:
    assert_same_gradients(make_model("multi_gran_cnn", **SMALL, match=match), reference.multi_gran_cnn)


def test_units_are_counted_and_stand_without_gaps() -> None:
    model = make_model("multi_gran_cnn")
    batch = make_pairs(model, [(n, n) for n in range(len(TEXTS))])
    encoded, counts = model.encode(batch.left), model.counts(batch.left.lengths)
    for n in range(len(TEXTS)):
        levels = reference.units(model, read(model, n))
        assert counts[n].tolist() == [len(level) for level in levels]
        expected = torch.stack([unit for level in levels for unit in level])
        torch.testing.assert_close(encoded[n, : len(expected)], expected, rtol=1e-10, atol=1e-10)


def test_shares_are_value_times_slope_of_the_features() -> None:
    model = make_model("multi_gran_cnn", **SMALL)
    plain = [(0, 2), (2, 0), (3, 2), (3, 0), (0, 7)]  # no word stands twice
    pairs = plain + PAIRS
    for (i, j), trace in zip(pairs, model.trace(make_pairs(model, pairs)), strict=True):
        left, right = read(model, i), read(model, j)
        F = reference.features(model, left, right).detach().requires_grad_()
        contributions = (F * torch.autograd.grad(reference.recognise(model, F), F)[0])[0].detach()
        L, R = len(left), len(right)
        torch.testing.assert_close(torch.from_numpy(trace.grid[0]), F[0, :L, :R].detach())
        found = torch.zeros(L, R, dtype=torch.double)
        for signal in trace.signals:
            found[signal.left, signal.right] = signal.contribution
        if (i, j) in plain:
            torch.testing.assert_close(found, contributions[:L, :R], rtol=1e-9, atol=1e-10)
        # Where a word stands twice its equal features split what the reference gives to the first of them.
        assert float(found.sum()) == pytest.approx(float(contributions[:L, :R].sum()), abs=1e-9)
        components = {component.name: component.contribution for component in trace.components}
        assert len(components) == len(LEVELS) ** 2 - 1
        assert components["sentence x sentence"] == pytest.approx(float(contributions[-1, -1]), abs=1e-10)
        assert components["words x sentence"] == pytest.approx(float(contributions[:L, -1].sum()), abs=1e-10)
        assert sum(components.values()) == pytest.approx(
            float(contributions.sum() - contributions[:L, :R].sum()), abs=1e-9
        )


def test_wrong_match_is_named() -> None:
    with refused("unknown_name", "match", "'cosine'"):
        build_model("multi_gran_cnn", {"match": "cosine"}, embedding(), seed=0)
