"""CNTN, NBOW+MLP and CNN+MLP against the slow reference, and what their traces say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from matchloom.data.batching import pad_texts
from matchloom.data.reader import Reader
from matchloom.explanation import Explanation
from matchloom.explanation.cells import channel_contributions
from matchloom.models import build_model
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, embedding, make_model, make_pairs
from tests.models.test_mv_lstm import word_ids
from tests.reference import cntn as reference
from tests.refusing import refused

SMALL = {"filters": 4, "sentence": 6}


def check_scores_and_gradients(name: str, **arguments: int | str) -> None:
    model = make_model(name, **arguments)
    slow = torch.stack([getattr(reference, name)(model, word_ids(i), word_ids(j)) for i, j in PAIRS])
    fast = model(make_pairs(model))
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-10)
    weights = torch.linspace(-1, 2, len(PAIRS), dtype=torch.double)
    parameters = dict(model.named_parameters())
    ours = torch.autograd.grad((fast * weights).sum(), list(parameters.values()))
    theirs = torch.autograd.grad((slow * weights).sum(), list(parameters.values()))
    for key, a, b in zip(parameters, ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10, msg=key)


@pytest.mark.parametrize("variant", ["I", "II", "III", "IV", "V"])
def test_every_variant_equals_the_paper_value_by_value(variant: str) -> None:
    check_scores_and_gradients("cntn", variant=variant, **SMALL)


@pytest.mark.parametrize(("depth", "width", "k_top"), [(1, 3, 4), (2, 2, 1), (4, 5, 3), (3, 3, 30)])
def test_every_shape_of_the_cnn_equals_the_paper(depth: int, width: int, k_top: int) -> None:
    check_scores_and_gradients("cntn", depth=depth, width=width, k_top=k_top, **SMALL)


def test_sentence_vectors_may_keep_their_lengths() -> None:
    check_scores_and_gradients("cntn", normalize=False, **SMALL)


def test_the_baselines_equal_the_reference() -> None:
    check_scores_and_gradients("cnn_mlp", units=5, **SMALL)
    check_scores_and_gradients("nbow_mlp", units=5)


def test_the_variants_learn_what_the_paper_says() -> None:
    n_s = 50
    sizes = {"I": 0, "II": n_s**2, "III": 2 * n_s + 1, "IV": n_s**2 + 2 * n_s + 1, "V": 5 * (n_s**2 + 2 * n_s + 1)}
    for variant, size in sizes.items():
        model = build_model("cntn", {"variant": variant}, embedding(), seed=0)
        tensor_layer = sum(p.numel() for name, p in model.named_parameters() if name in ("M", "V_q", "V_a", "b"))
        assert tensor_layer == size
        assert model.u.numel() == (5 if variant == "V" else 1)
    with refused("unknown_name", "variant", "'VI'"):
        build_model("cntn", {"variant": "VI"}, embedding(), seed=0)


def test_variant_iii_ranks_texts_alike_for_every_question() -> None:
    model = make_model("cntn", variant="III", **SMALL)
    orders = {tuple(model(make_pairs(model, [(q, n) for n in range(8)])).argsort().tolist()) for q in range(8)}
    assert len(orders) == 1


def test_the_two_sides_have_cnns_of_their_own() -> None:
    model = make_model("cntn", **SMALL)
    texts = make_pairs(model).left
    assert not torch.allclose(model.encode(texts), model.encode_right(texts))


@pytest.mark.parametrize("variant", ["I", "II", "III", "IV", "V"])
def test_each_slice_has_its_whole_share_and_nothing_is_left(variant: str) -> None:
    model = make_model("cntn", variant=variant, **SMALL)
    batch = make_pairs(model)
    x = model.slices(model.encode(batch.left), model.encode_right(batch.right), batch)
    expected = (model.u * model.f(x)).detach()
    for n, trace in enumerate(model.trace(batch)):
        words = [[f"{side}{i}" for i in range(size)] for side, size in zip("qt", trace.grid.shape[1:], strict=True)]
        contributions = channel_contributions(Explanation("cntn", *words, trace))
        assert contributions == pytest.approx(expected[n].tolist(), abs=1e-9)
        assert sum(contributions) == pytest.approx(trace.score, abs=1e-9)
        assert trace.residual == pytest.approx(0, abs=1e-9)


def test_biases_alone_are_a_part_of_each_slice() -> None:
    model = make_model("cntn", variant="II", **SMALL)
    batch = make_pairs(model)
    with torch.no_grad():
        left, c_q = model.query_cnn.components(model.encoder(batch.left), batch.left)
        right, c_a = model.text_cnn.components(model.encoder(batch.right), batch.right)
    for n, trace in enumerate(model.trace(batch)):
        i, j = batch.left_rows[n], batch.right_rows[n]
        biases = (left - c_q.sum(1))[i] @ model.M[0] @ (right - c_a.sum(1))[j] * model.u[0]
        found = [component.contribution for component in trace.components if component.name == "slice 1, biases"]
        assert found == [pytest.approx(float(biases.detach()), abs=1e-9)]


def test_a_word_of_which_nothing_survives_has_no_share() -> None:
    model = make_model("cntn", depth=1, k_top=1, filters=1, width=1, sentence=3)
    trace = model.trace(make_pairs(model, [(1, 4)]))[0]
    assert (np.abs(trace.grid).sum((0, 2)) > 0).sum() == 1  # one filter keeps one value, of one word
    assert (np.abs(trace.grid).sum((0, 1)) > 0).sum() == 1
    cnn, words = model.text_cnn, model.encoder.embedding.weight[word_ids(4)]
    strongest = int((words @ cnn.layers[0].w[0])[:, 0].argmax())
    assert {s.right for s in trace.signals} == {strongest}


@pytest.mark.parametrize("name", ["nbow_mlp", "cnn_mlp"])
def test_without_biases_a_cell_holds_what_its_two_words_add(name: str) -> None:
    model = make_model(name)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if key.endswith(("b", "bias")):
                parameter.zero_()
    for trace in model.trace(make_pairs(model)):
        assert trace.residual == pytest.approx(0, abs=1e-9)
        grid = trace.grid[0]
        np.testing.assert_allclose(grid - grid[:1], np.broadcast_to((grid - grid[:1])[:, :1], grid.shape), atol=1e-12)


def test_a_words_share_in_nbow_is_its_slope_times_its_vector() -> None:
    model = make_model("nbow_mlp", units=4)
    batch = make_pairs(model, [(0, 1)])
    trace = model.trace(batch)[0]
    x = model.encoder.embedding.weight[word_ids(0)].detach().requires_grad_()
    y = model.encoder.embedding.weight[word_ids(1)].detach()
    score = reference.mlp(model.head, torch.cat([x.sum(0), y.sum(0)]))
    expected = (torch.autograd.grad(score, x)[0] * x).sum(1).detach().numpy()
    found = trace.grid[0].sum(
        1
    )  # a row has its word's contribution, and an equal part of all text words' contributions
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-12)


def test_the_texts_of_either_side_spread_the_sentence_vectors_of_cnn_mlp() -> None:
    model = build_model("cnn_mlp", SMALL, embedding(), seed=0)
    left, right = Reader(TOKENIZER, VOCAB).read(TEXTS[:5]), Reader(TOKENIZER, VOCAB).read(TEXTS)
    pairs = np.array([(i, j, int(i == j)) for i in range(3) for j in range(2, 8)])
    model.pretrain(left, right, pairs, seed=0, progress=False)
    for cnn, table, rows in ((model.query_cnn, left, np.arange(3)), (model.text_cnn, right, np.arange(2, 8))):
        texts = pad_texts(table, rows)
        deviation, mean = torch.std_mean(cnn.z(model.encoder(texts), texts), dim=0, correction=0)
        torch.testing.assert_close(mean, torch.zeros(6), atol=1e-5, rtol=0)
        torch.testing.assert_close(deviation, torch.ones(6), atol=1e-4, rtol=0)
    assert torch.equal(model.encoder.embedding.weight, embedding().embedding.weight)
