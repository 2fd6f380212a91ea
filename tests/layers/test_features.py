from __future__ import annotations

import numpy as np
import pytest
import torch

from matchloom.data.batching import make_batch
from matchloom.data.reader import Reader
from matchloom.layers.features import FeatureScore, PairFeatures, soft_coverage
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, embedding


def pairs(name: str = "pair"):
    table = Reader(TOKENIZER, VOCAB).read(TEXTS, lexical=True, features=name)
    left, right = (np.array(side) for side in zip(*PAIRS, strict=True))
    return make_batch(table, table, left, right)


def test_soft_coverage_word_by_word() -> None:
    vectors = embedding()
    found = soft_coverage(vectors, pairs())
    for (i, j), (plain, weighted) in zip(PAIRS, found.tolist(), strict=True):
        left, right = TOKENIZER(TEXTS[i]), TOKENIZER(TEXTS[j])
        if not left or not right:
            continue  # an unknown word meets others by its vector
        best, weights = [], []
        for word in left:
            u = vectors.embedding.weight[VOCAB.ids([word])[0]]
            cosines = [
                float(torch.cosine_similarity(u, vectors.embedding.weight[VOCAB.ids([v])[0]], dim=0)) for v in right
            ]
            best.append(1.0 if word in right else max(0.0, *cosines, 0.0))
            weights.append(VOCAB.idf(word))
        assert plain == pytest.approx(sum(best) / len(best), abs=1e-5)
        expected = sum(b * w for b, w in zip(best, weights, strict=True)) / max(sum(weights), 1e-12)
        assert weighted == pytest.approx(expected, abs=1e-5)


def test_features_are_brought_to_one_scale() -> None:
    layer = PairFeatures("pair", embedding())
    batch = pairs()
    layer.fit(batch.features)
    scaled = layer(batch)
    known = scaled[:, : batch.features.shape[1]]
    torch.testing.assert_close(known.mean(0), torch.zeros_like(known[0]), rtol=0, atol=1e-5)
    spread = batch.features.std(0, correction=0) > 0
    torch.testing.assert_close(known.std(0, correction=0)[spread], torch.ones(int(spread.sum())), rtol=0, atol=1e-4)
    assert not known[:, ~spread].any()
    assert len(layer.names) == scaled.shape[1] == 21


def test_shares_and_what_the_perceptron_adds() -> None:
    torch.manual_seed(0)
    layer = FeatureScore("overlap", embedding())
    batch = pairs("overlap")
    score = layer(batch)
    for b, components in enumerate(layer.trace(batch)):
        assert [component.value for component in components] == pytest.approx(batch.features[b].tolist())
        scaled = layer.features(batch)[b].detach().requires_grad_()
        slopes = torch.autograd.grad(layer.head(scaled[None]).sum(), scaled)[0]
        assert [component.contribution for component in components] == pytest.approx((scaled * slopes).tolist())
    assert score.shape == (len(PAIRS),)
    nothing = FeatureScore("", embedding())
    assert nothing(batch) == 0.0
    assert nothing.trace(batch) == [[]] * len(PAIRS)
    assert not list(nothing.parameters())
