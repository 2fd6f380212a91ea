"""M2S-Net against the slow reference, in scoring and in training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from matchloom.data.batching import make_batch
from matchloom.data.reader import Reader
from matchloom.models import build_model
from matchloom.training.losses import cross_entropy
from matchloom.types import MatchloomError
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, embedding, make_model, make_pairs
from tests.reference import m2s_net as reference

FREQUENCIES = dict(zip(VOCAB.words, VOCAB.document_frequencies, strict=True))
FEW = [(0, 1), (3, 4), (5, 1), (4, 0)]
# Small frames, for the reference is slow; of two blocks it is the smallest frame.
CASES = [
    {"similarity": "metric", "modalities": 2, "blocks": 1, "frame": 12},
    {"similarity": "metric", "modalities": 1, "blocks": 2, "frame": 24, "position_bias": False},
    {"similarity": "cosine", "blocks": 1, "frame": 12, "pooling": "max"},
    {"similarity": "euclidean", "blocks": 1, "frame": 16, "features": ""},
    {"similarity": "metric", "modalities": 2, "blocks": 3, "frame": 32, "pooling": "max", "features": ""},
]


def word_ids(n: int) -> list[int]:
    return VOCAB.ids(TOKENIZER(TEXTS[n])) or [1]


def thinned(model):
    """Fewer filters, which the reference takes one by one, and statistics and slopes of either sign."""
    generator = torch.Generator().manual_seed(5)
    keep = None
    for block in model.blocks:
        kept = torch.arange(3)
        block.F = nn.Parameter(block.F.detach()[kept] if keep is None else block.F.detach()[kept][:, keep])
        for name in ("gamma", "beta"):
            start = torch.empty(3, dtype=torch.double).uniform_(-1.5, 1.5, generator=generator)
            setattr(block, name, nn.Parameter(start))
        block.mean = torch.empty(3, dtype=torch.double).uniform_(-1, 1, generator=generator)
        block.variance = torch.empty(3, dtype=torch.double).uniform_(0.5, 2, generator=generator)
        keep = kept
    flat = 3 * model.blocks[-1].pooled ** 2 + len(model.features.names)
    model.hidden = nn.Linear(flat, 32).double()
    nn.init.uniform_(model.hidden.weight, -0.5, 0.5, generator=generator)
    nn.init.uniform_(model.hidden.bias, -0.5, 0.5, generator=generator)
    return model


def slow_scores(model, pairs, training=False):
    found = []
    for i, j in pairs:
        values = reference.overlap(TOKENIZER(TEXTS[i]), TOKENIZER(TEXTS[j]), FREQUENCIES, VOCAB.documents)
        values = np.float32(values)  # as a batch carries them
        found.append([float(x) for x in values] if model.needs_features else [])
    return reference.m2s_net(model, [(word_ids(i), word_ids(j)) for i, j in pairs], found, training)


@pytest.mark.parametrize("arguments", CASES)
@pytest.mark.parametrize("training", [False, True])
def test_equals_the_paper_cell_by_cell_gradients_too(arguments: dict, training: bool) -> None:
    model = thinned(make_model("m2s_net", dropout=0.0, **arguments)).train(training)
    weights = torch.linspace(-1, 2, len(FEW), dtype=torch.double)
    names, parameters = zip(*model.named_parameters(), strict=True)
    slow = slow_scores(model, FEW, training)
    theirs = torch.autograd.grad((slow * weights).sum(), parameters)
    fast = model(make_pairs(model, FEW))
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-10)
    ours = torch.autograd.grad((fast * weights).sum(), parameters)
    for name, a, b in zip(names, ours, theirs, strict=True):
        if name == "encoder.embedding.weight":
            a, b = a[1:], b[1:]  # the padding row is never trained
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10, msg=name)


def plain(model, x, top, left, layers):
    """The blocks as anyone would write them: the whole frame, normalised before it is pooled."""
    side = model.frame
    around = (left, side - left - x.shape[3], top, side - top - x.shape[2])
    x = nn.functional.pad(x, around)
    for block, norm in zip(model.blocks, layers, strict=True):
        pool = nn.functional.avg_pool2d if block.average else nn.functional.max_pool2d
        x = torch.tanh(pool(norm(nn.functional.conv2d(x, block.F)), block.pool))
    return x


@pytest.mark.parametrize("arguments", [{}, {"blocks": 3}, {"blocks": 1}, {"pooling": "max"}])
@pytest.mark.parametrize("training", [False, True])
def test_the_quick_blocks_equal_plain_ones_and_remember_the_same(arguments: dict, training: bool) -> None:
    model = make_model("m2s_net", dropout=0.0, **arguments).train(training)
    generator = torch.Generator().manual_seed(1)
    layers = []
    for block in model.blocks:
        with torch.no_grad():
            block.gamma.uniform_(-1, 1, generator=generator)
        norm = nn.BatchNorm2d(len(block.beta)).double().train(training)
        norm.weight, norm.bias = block.gamma, block.beta
        layers.append(norm)
    batch = make_pairs(model, PAIRS)
    grid = model.interact(model.encode(batch.left), model.encode(batch.right), batch).detach().requires_grad_()
    top, left = model.window(batch.left)[0], model.window(batch.right)[0]
    quick = model.blocks[0](grid, top, left)
    for block in model.blocks[1:]:
        quick = block(quick)
    slow = plain(model, grid, top, left, layers)
    torch.testing.assert_close(quick, slow, rtol=0, atol=1e-10)
    weights = torch.linspace(-1, 2, slow.numel(), dtype=torch.double).view_as(slow)
    inputs = [grid, *(p for block in model.blocks for p in block.parameters())]
    ours, theirs = (list(torch.autograd.grad((y * weights).sum(), inputs)) for y in (quick, slow))
    ours[0], theirs[0] = (gradient * (grid != 0) for gradient in (ours[0], theirs[0]))  # outside the texts nobody asks
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    for block, norm in zip(model.blocks, layers, strict=True):
        torch.testing.assert_close(block.mean, norm.running_mean, rtol=0, atol=1e-10)
        torch.testing.assert_close(block.variance, norm.running_var, rtol=0, atol=1e-10)


def test_defaults_are_the_authors() -> None:
    model = build_model("m2s_net", {}, embedding(6), seed=0)
    assert model.similarity.U.shape == (4, 6, 6)
    assert model.similarity.B.shape == (4, 40, 40)
    assert not model.similarity.U.any()
    assert [tuple(b.F.shape) for b in model.blocks] == [(32, 4, 5, 5), (64, 32, 5, 5)]
    assert [(b.pool, b.pooled) for b in model.blocks] == [(4, 9), (5, 1)]
    assert model.hidden.in_features == 64 + 2
    assert [p is model.similarity.U for p in model.decayed()] == [True]
    assert build_model("m2s_net", {"similarity": "cosine"}, embedding(6), seed=0).decayed() == []


def test_xavier_draws_convolutions_and_layers_by_their_sizes() -> None:
    model = build_model("m2s_net", {"init": "xavier", "units": 64}, embedding(6), seed=0)
    for weights, inputs, outputs in (
        (model.blocks[0].F, 4 * 25, 32 * 25),
        (model.blocks[1].F, 32 * 25, 64 * 25),
        (model.hidden.weight, 66, 64),
    ):
        bound = (6 / (inputs + outputs)) ** 0.5
        assert 0.9 * bound < float(weights.detach().abs().max()) <= bound
    assert not model.similarity.U.any()
    assert not model.hidden.bias.any()


def test_similarities_are_left_out_in_training_alone_and_as_told() -> None:
    for part, same in ((0.0, True), (0.5, False)):
        model = make_model("m2s_net", dropout=1e-9, similarity_dropout=part).train()
        batch = make_pairs(model)
        assert torch.equal(model(batch), model(batch)) is same
        model.eval()
        assert torch.equal(model(batch), model(batch))


def test_cross_entropy_of_the_score_is_the_softmax_over_two_classes() -> None:
    model = make_model("m2s_net")
    kept = []
    model.classes.register_forward_hook(lambda *given: kept.append(given[2]))
    labels = torch.tensor([1.0, 0, 0, 1, 0, 1, 0, 0, 1], dtype=torch.double)
    loss = cross_entropy(model(make_pairs(model)), labels)
    expected = nn.functional.cross_entropy(kept[0], labels.long(), reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)


def long_batch(model, left: str, right: str):
    table = Reader(TOKENIZER, VOCAB).read([left, right], features=model.needs_features)
    return make_batch(table, table, np.array([0]), np.array([1]))


def test_words_behind_the_frame_take_no_part() -> None:
    model = make_model("m2s_net", blocks=1, frame=12, features="")
    words = " ".join(TEXTS[:5]).split()
    assert len(words) > 30
    whole = long_batch(model, " ".join(words[:20]), " ".join(words[5:]))
    cut = long_batch(model, " ".join(words[:12]), " ".join(words[5:17]))
    torch.testing.assert_close(model(whole), model(cut), rtol=0, atol=1e-12)
    trace = model.trace(whole)[0]
    assert trace.grid.shape == (4, 20, len(words) - 5)
    assert not trace.grid[:, 12:].any()
    assert max(s.left for s in trace.signals) == 11
    np.testing.assert_array_equal(trace.grid[:, :12, :12], model.trace(cut)[0].grid)


def test_traced_cells_are_the_words_similarities_and_shares_follow_the_slopes() -> None:
    model = make_model("m2s_net")
    batch = make_pairs(model, [(0, 1)])
    trace = model.trace(batch)[0]
    left, right = (model.encoder.embedding.weight[word_ids(n)].detach() for n in (0, 1))
    top, start = (40 - len(left)) // 2, (40 - len(right)) // 2
    B = model.similarity.B.detach()[:, top : top + len(left), start : start + len(right)]
    expected = torch.einsum("ld,cde,re->clr", left, model.similarity.U.detach(), right) + B
    np.testing.assert_allclose(trace.grid, expected.numpy(), atol=1e-12)
    # Move one bias a little: the score moves by contribution / value times as much.
    signal = max(trace.signals, key=lambda s: abs(s.contribution))
    with torch.no_grad():
        model.similarity.B[signal.channel, top + signal.left, start + signal.right] += 1e-6
        moved = float(model(batch)) - trace.score
    assert moved / 1e-6 == pytest.approx(signal.contribution / signal.value, rel=1e-4)


def test_features_are_parts_with_the_share_they_have_by_their_distance_from_the_mean() -> None:
    model = make_model("m2s_net", features="overlap")
    model.features.fit(torch.tensor([[0.1, 0.0], [0.3, 0.2]]))
    components = model.trace(make_pairs(model, [(0, 1)]))[0].components
    assert [component.name for component in components] == ["shared words", "shared words by rarity"]
    values = reference.overlap(TOKENIZER(TEXTS[0]), TOKENIZER(TEXTS[1]), FREQUENCIES, VOCAB.documents)
    assert [component.value for component in components] == pytest.approx(values)
    model.features.mean.copy_(torch.tensor(values))
    assert [
        component.contribution for component in model.trace(make_pairs(model, [(0, 1)]))[0].components
    ] == pytest.approx([0, 0], abs=1e-6)


def test_wrong_arguments() -> None:
    for arguments, message in (
        ({"similarity": "dot"}, "similarity 'dot' of m2s_net is unknown; choose one of metric, cosine, euclidean"),
        ({"pooling": "min"}, "choose one of average, max"),
        ({"blocks": 4}, "blocks 4 of m2s_net is unknown; choose one of 1, 2, 3"),
        ({"frame": 41}, "frame 41 of m2s_net does not fit 2 blocks; up to 96 these do: 24, 28, 32, 36, 40"),
        ({"dropout": 1.0}, "below 1; found 1.0"),
        ({"similarity_dropout": -0.1}, "similarity_dropout of m2s_net is a part of 1"),
        ({"init": "zero"}, "init 'zero' of m2s_net is unknown; choose one of uniform, xavier"),
        ({"features": "more"}, "features 'more' are unknown; choose one of overlap, paraphrase, pair, or none"),
    ):
        with pytest.raises(MatchloomError) as raised:
            build_model("m2s_net", arguments, embedding(), seed=0)
        assert message in str(raised.value)
