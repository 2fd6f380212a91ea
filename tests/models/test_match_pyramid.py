"""MatchPyramid against the slow reference, and its contributions."""

from __future__ import annotations

import pytest
import torch

from matchloom.models import build_model
from tests.models.comparing import assert_same_gradients, assert_same_scores, read
from tests.models.making import PAIRS, embedding, make_model, make_pairs
from tests.reference import match_pyramid as reference
from tests.refusing import refused

SMALL = {"slices": 2, "maps_1": 2, "maps_2": 3, "grid": 5, "units": 5}
VARIANTS = [
    {},
    {"interaction": "indicator"},
    {"interaction": "cosine"},
    {"interaction": "tensor"},
    {"kernel_1": 2, "kernel_2": 4},
    {"grid": 2, "kernel_1": 3},
]


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_the_paper_pixel_by_pixel(arguments: dict) -> None:
    assert_same_scores(make_model("match_pyramid", **{**SMALL, **arguments}), reference.match_pyramid)


@pytest.mark.parametrize("interaction", ["dot", "cosine", "tensor"])
def test_gradients_equal_the_reference(interaction: str) -> None:
    model = make_model("match_pyramid", **SMALL, interaction=interaction)
    assert_same_gradients(model, reference.match_pyramid)


@pytest.mark.parametrize("interaction", ["dot", "tensor"])
def test_shares_are_value_times_slope_of_the_image(interaction: str) -> None:
    model = make_model("match_pyramid", **SMALL, interaction=interaction)
    for (i, j), trace in zip(PAIRS, model.trace(make_pairs(model)), strict=True):
        image = reference.image(model, read(model, i), read(model, j)).detach().requires_grad_()
        slopes = torch.autograd.grad(reference.recognise(model, image), image)[0]
        torch.testing.assert_close(torch.from_numpy(trace.grid), image.detach())
        found = torch.zeros_like(slopes)
        for signal in trace.signals:
            found[signal.channel, signal.left, signal.right] = signal.contribution
        torch.testing.assert_close(found, image.detach() * slopes, rtol=1e-9, atol=1e-10)


def test_wrong_interaction_is_named() -> None:
    with refused("unknown_name", "interaction", "'bilinear'"):
        build_model("match_pyramid", {"interaction": "bilinear"}, embedding(), seed=0)
