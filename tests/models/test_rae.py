"""RAE against the slow reference, its contributions, and how it learns from texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from matchloom.data.batching import pad_texts
from matchloom.data.reader import Reader
from matchloom.data.tokenized import TokenizedTexts
from matchloom.evaluation.measures import measure
from matchloom.models import build_model
from matchloom.models.rae import RAE
from matchloom.training.config import TrainConfig
from tests.models.comparing import assert_same_gradients, assert_same_scores, read
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, embedding, make_model, make_pairs
from tests.reference import rae as reference
from tests.refusing import refused
from tests.training.making import colour_pairs, train


def make(**arguments: int | float | str | bool) -> RAE:
    model = make_model("rae", **arguments)
    assert isinstance(model, RAE)
    model.autoencoder.W_e.weight.data /= 5  # phrases that differ: tanh is not yet at its ends
    model.mean.fill_(1.5)
    model.deviation.fill_(0.7)
    return model


@pytest.mark.parametrize("grid", [1, 4, 15, 40])
def test_equals_the_paper_node_by_node(grid: int) -> None:
    assert_same_scores(make(grid=grid, features=""), reference.rae)


def test_gradients_equal_the_reference() -> None:
    assert_same_gradients(make(grid=6, features=""), reference.rae)


def test_features_are_scaled_and_classified() -> None:
    model = make(grid=3)
    batch = make_pairs(model)
    model.fit_features(batch.features)
    plain = np.array([reference.paraphrase(TOKENIZER(TEXTS[i]), TOKENIZER(TEXTS[j])) for i, j in PAIRS])
    np.testing.assert_allclose(batch.features, plain, rtol=1e-6)
    deviation = plain.std(0)
    scaled = (plain - plain.mean(0)) / np.where(deviation > 0, deviation, 1)
    slow = [reference.rae(model, read(model, i), read(model, j), scaled[n]) for n, (i, j) in enumerate(PAIRS)]
    torch.testing.assert_close(model(batch), torch.stack(slow), rtol=1e-6, atol=1e-6)


def test_shares_follow_the_smallest_distances() -> None:
    model = make(grid=4)
    pairs = [(0, 2), (2, 0), (3, 0), (0, 7), (2, 6)]  # no word stands twice in a pair
    batch = make_pairs(model, pairs)
    for n, ((i, j), trace) in enumerate(zip(pairs, model.trace(batch), strict=True)):
        left, right = reference.nodes(model, read(model, i)), reference.nodes(model, read(model, j))
        S = reference.distances(left, right).detach().requires_grad_()
        slopes = torch.autograd.grad(reference.classify(model, S, []), S)[0]
        expected = torch.zeros(trace.grid.shape, dtype=torch.double)
        for x, u in enumerate(left):
            for y, v in enumerate(right):
                contribution = slopes[x, y] * (S.detach()[x, y] - model.mean)
                for a in u.words:
                    for b in v.words:
                        channel = 0 if len(u.words) == len(v.words) == 1 else 1
                        expected[channel, a, b] += contribution / (len(u.words) * len(v.words))
        found = torch.zeros_like(expected)
        for signal in trace.signals:
            found[signal.channel, signal.left, signal.right] = signal.contribution
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
        L, R = trace.grid.shape[1:]
        words = (S.detach()[:L, :R] - model.mean) / model.deviation
        torch.testing.assert_close(torch.from_numpy(trace.grid[0]), words, rtol=1e-9, atol=1e-10)
        weights = model.classifier.weight[0, 16:].tolist()
        values = batch.features[n].tolist()
        assert [component.value for component in trace.components] == values
        assert [component.contribution for component in trace.components] == pytest.approx(
            [w * v for w, v in zip(weights, values, strict=True)]
        )
        assert trace.residual == pytest.approx(float(model.classifier.bias[0].detach()), abs=1e-9)


def tables() -> tuple[TokenizedTexts, TokenizedTexts, np.ndarray]:
    left, right = Reader(TOKENIZER, VOCAB).read(TEXTS[:5]), Reader(TOKENIZER, VOCAB).read(TEXTS)
    pairs = np.array([(i, j, int(i == j)) for i in range(5) for j in range(8)])
    return left, right, pairs


def fitted(seed: int = 0, **arguments: int | float) -> RAE:
    model = build_model("rae", {"grid": 4, "features": "", **arguments}, embedding(), seed=0)
    assert isinstance(model, RAE)
    model.pretrain(*tables(), seed, False)
    return model


def test_the_autoencoder_learns_from_texts_alone() -> None:
    left, right, _ = tables()

    def error(model: RAE) -> float:
        texts = [pad_texts(table, np.arange(len(table))) for table in (left, right)]
        with torch.no_grad():
            errors = [model.autoencoder.unfolding_error(model.encoder(t), t.lengths) for t in texts]
        return float(sum(errors))

    before = error(build_model("rae", {}, embedding(), seed=0))  # type: ignore[arg-type]
    assert error(fitted(autoencoder_epochs=25, autoencoder_learning_rate=0.05)) < 0.5 * before
    model = fitted()
    assert error(model) < before
    assert torch.equal(model.encoder.embedding.weight, embedding().embedding.weight)
    assert not any(parameter.requires_grad for parameter in model.autoencoder.parameters())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_pooled_distances_of_the_training_pairs_have_mean_0_and_deviation_1() -> None:
    model = fitted()
    _, _, pairs = tables()
    batch = make_pairs(model, [(int(i), int(j)) for i, j, _ in pairs])
    with torch.no_grad():
        pooled = model.pooled(model.distances(model.encode(batch.left), model.encode(batch.right), batch), batch)
    z = (pooled - model.mean) / model.deviation
    assert float(z.mean()) == pytest.approx(0, abs=1e-5)
    assert float(z.std(correction=0)) == pytest.approx(1, abs=1e-5)


def test_the_seed_decides_and_nothing_else() -> None:
    before = torch.random.get_rng_state()
    first, again, other = (fitted(seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["autoencoder.W_e.weight"], other["autoencoder.W_e.weight"])


def test_weight_decay_makes_the_weights_smaller() -> None:
    plain, decayed = (
        fitted(autoencoder_epochs=12, autoencoder_learning_rate=0.02),
        fitted(autoencoder_epochs=12, autoencoder_learning_rate=0.02, decay=10.0),
    )
    assert decayed.autoencoder.W_e.weight.norm() < 0.9 * plain.autoencoder.W_e.weight.norm()


def test_training_moves_the_classifier_alone_and_learns() -> None:
    pairs, unseen = colour_pairs(60, seed=1), colour_pairs(40, seed=2)
    runs = [
        train(pairs, model="rae", config=TrainConfig(loss="cross_entropy", epochs=epochs, batch=32), dimensions=12)
        for epochs in (1, 8)
    ]
    short, long = (run.model.state_dict() for run in runs)
    same = {name for name in short if torch.equal(short[name], long[name])}
    assert set(short) - same == {"classifier.weight", "classifier.bias"}
    assert float(long["deviation"]) != 1
    # Its words are at random places and its features count all words alike: a hint of the colour is all there is.
    assert measure(unseen, runs[1].score(unseen), ("P@1",)).values["P@1"] > 0.5


@pytest.mark.parametrize("arguments", [{"autoencoder_learning_rate": 0.0}, {"decay": -1.0}])
def test_wrong_rates_are_named(arguments: dict) -> None:
    with refused("bad_value", "learning_rate", "0"):
        build_model("rae", arguments, embedding(), seed=0)
