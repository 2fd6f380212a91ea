"""KNRM against the slow reference, and the kernels' places."""

from __future__ import annotations

import pytest
import torch

from matchloom.models import build_model
from tests.models.comparing import assert_same_gradients, assert_same_scores
from tests.models.making import embedding, make_model, make_pairs
from tests.reference.knrm import knrm
from tests.refusing import refused

# A width of .001 leaves nothing of the exact kernel's gradient but at equal words; wider kernels see all pairs.
VARIANTS = [{}, {"kernels": 2}, {"kernels": 5, "sigma": 0.4}]


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_the_paper_word_by_word(arguments: dict) -> None:
    assert_same_scores(make_model("knrm", **arguments), knrm)


def test_gradients_equal_the_reference() -> None:
    assert_same_gradients(make_model("knrm", kernels=5, sigma=0.4), knrm)


def test_kernels_stand_where_the_paper_has_them() -> None:
    model = build_model("knrm", {}, embedding(), seed=0)
    expected = [1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9]
    torch.testing.assert_close(model.mu, torch.tensor(expected))
    assert model.sigma.tolist() == pytest.approx([0.001] + [0.1] * 10)


def test_an_exact_match_counts_in_its_kernel_alone() -> None:
    model = make_model("knrm")
    batch = make_pairs(model, [(3, 3)])  # one word against itself
    M = model.cosines(model.encode(batch.left), model.encode(batch.right), batch)
    cells = model.kernels(M, batch)[0, :, 0, 0].detach()
    assert float(cells[0]) == pytest.approx(1.0)
    assert float(cells[5]) < 1e-15


def test_too_few_kernels_are_refused() -> None:
    with refused("bad_value", "kernels", "2"):
        build_model("knrm", {"kernels": 1}, embedding(), seed=0)
