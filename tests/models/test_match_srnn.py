"""Match-SRNN and Bi-Match-SRNN against the slow reference, and their paths."""

from __future__ import annotations

import pytest
import torch

from matchloom.kernels import native
from matchloom.kernels import spatial_gru as kernel
from matchloom.models import build_model
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, embedding, make_model, make_pairs
from tests.reference import match_srnn as reference
from tests.reference import spatial_gru
from tests.refusing import refused

NAMES = ["match_srnn", "bi_match_srnn"]
VARIANTS = [
    {},
    {"interaction": "cosine"},
    {"interaction": "indicator"},
    {"tied": True, "slices": 2},
    {"normalize": True},
    {"interaction": "indicator", "reset": False, "dimensions": 1},
]


def text(model, n: int) -> list:
    """What the model looks at: words for the indicator, else their ids. A text without words matches nothing."""
    words = TOKENIZER(TEXTS[n])
    return (words or [object()]) if model.needs_lexical else (VOCAB.ids(words) or [1])


def loop(model) -> torch.Tensor:
    return torch.stack([reference.match_srnn(model, text(model, i), text(model, j)) for i, j in PAIRS])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_the_paper_cell_by_cell(name: str, arguments: dict) -> None:
    model = make_model(name, **{"dimensions": 4, "slices": 3, **arguments})
    torch.testing.assert_close(model(make_pairs(model)), loop(model), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_the_reference(name: str) -> None:
    model = make_model(name, dimensions=3, slices=2)
    weights = torch.linspace(-1, 1, len(PAIRS), dtype=torch.double)
    ours = torch.autograd.grad((model(make_pairs(model)) * weights).sum(), list(model.parameters()))
    theirs = torch.autograd.grad((loop(model) * weights).sum(), list(model.parameters()))
    for (parameter, _), a, b in zip(model.named_parameters(), ours, theirs, strict=True):
        if parameter == "encoder.embedding.weight":
            a, b = a[1:], b[1:]  # the padding row is never trained
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10, msg=parameter)


@pytest.mark.skipif(native.library() is None, reason="the native kernel is absent or switched off")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_the_kernel_serves_and_agrees(name: str, arguments: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    double = make_model(name, **arguments)
    single = make_model(name, **arguments).float()
    calls = []
    scan = kernel._scan
    monkeypatch.setattr(kernel, "_scan", lambda *inputs: calls.append(1) or scan(*inputs))
    with torch.no_grad():
        scores = single(make_pairs(single))
    assert len(calls) == len(single.channels)
    torch.testing.assert_close(scores.double(), double(make_pairs(double)), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        scores, torch.tensor([trace.score for trace in single.trace(make_pairs(single))]), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
@torch.no_grad()
def test_trace_is_the_path_with_what_the_score_gains(name: str, arguments: dict) -> None:
    model = make_model(name, **{"dimensions": 4, "slices": 3, **arguments})
    for (left, right), trace in zip(PAIRS, model.trace(make_pairs(model)), strict=True):
        s = reference.interactions(model, text(model, left), text(model, right))
        m, n = s.shape[1:]
        for c, (gru, w) in enumerate(zip(model.scans, model.head.weight[0].chunk(len(model.scans)), strict=True)):
            h, z = spatial_gru.scan(gru, s)
            path = reference.path([row[::-1] for row in z[::-1]] if gru.reverse else z)
            path = [(m - 1 - i, n - 1 - j) for i, j in path] if gru.reverse else path
            signals = [signal for signal in trace.signals if signal.channel == c]
            assert [(x.left, x.right) for x in signals] == path
            k = int(w.argmax())
            assert trace.grid[c].tolist() == [[pytest.approx(float(x[k]), abs=1e-7) for x in row] for row in h]
            gained = torch.tensor([signal.contribution for signal in signals]).cumsum(0).tolist()
            assert gained == pytest.approx([float(w @ h[i][j]) for i, j in path], abs=1e-6)
        assert trace.residual == pytest.approx(float(model.head.bias))
        assert trace.paths


def test_tied_gates_lead_where_each_dimension_leads() -> None:
    model = make_model("match_srnn", tied=True)
    batch = make_pairs(model, [(0, 1)])
    grid = model.interact(model.encode(batch.left), model.encode(batch.right), batch)
    _, z = model.scans[0].scan(grid, batch.left.lengths, batch.right.lengths)
    assert (z.amax(2) - z.amin(2)).max() < 1e-12


def test_the_indicator_sees_words_that_the_vocabulary_does_not_know() -> None:
    model = make_model("match_srnn", interaction="indicator")
    assert not model.trains_embedding
    batch = make_pairs(model, [(6, 6)])  # two unknown words
    grid = model.interact(model.encode(batch.left), model.encode(batch.right), batch)
    assert grid[0, 0].tolist() == [[1, 0], [0, 1]]


def test_wrong_interaction_is_named() -> None:
    with refused("unknown_name", "interaction", "'bilinear'"):
        build_model("match_srnn", {"interaction": "bilinear"}, embedding(), seed=0)
