"""What every entry of MODELS owes, whatever it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from matchloom.batches import Lexical, PairBatch, Texts
from matchloom.models import MODELS, build_model, model_arguments
from matchloom.models.base import PairModel
from tests.models.making import PAIRS, embedding, make_model, make_pairs
from tests.refusing import refused
from tests.representatives import cases

SRNN: dict[str, list[int | float | str | bool]] = {
    "interaction": ["cosine", "indicator"],
    "slices": [1, 7],
    "dimensions": [1, 3],
    "reset": [False],
    "tied": [True],
    "init": ["random"],
    "normalize": [True],
    "features": ["pair"],
}
LSTM: dict[str, list[int | float | str | bool]] = {
    "hidden": [3],
    "head": ["mlp"],
    "units": [3],
    "forget": [1.0],
    "features": ["overlap", "pair"],
}
# For each model the arguments to vary, one or more values other than the default. Every argument must be here.
VARIED: dict[str, dict[str, list[int | float | str | bool]]] = {
    "mv_lstm": {
        "hidden": [3],
        "interaction": ["cosine", "bilinear"],
        "slices": [1, 7],
        "k": [1, 10, 300],
        "units": [3],
        "init": ["random"],
        "factored": [True],
        "words": [True],
        "normalize": [False],
        "lexical": [False],
        "features": ["overlap", "pair"],
    },
    "lstm_rnn": LSTM,
    "bi_lstm_rnn": LSTM,
    "match_srnn": SRNN,
    "bi_match_srnn": SRNN,
    "m2s_net": {
        "similarity": ["cosine", "euclidean"],
        "modalities": [1, 2],
        "position_bias": [False],
        "blocks": [1, 3],
        "pooling": ["max"],
        "features": ["", "pair"],
        "frame": [24],
        "units": [3],
        "dropout": [0.0, 0.2],
        "similarity_dropout": [0.0],
        "init": ["xavier"],
    },
    "knrm": {"kernels": [2, 5], "sigma": [0.3], "features": ["overlap", "pair"]},
    "arc_i": {"maps": [3], "window": [1, 2], "layers": [1, 3], "max_words": [1, 4, 64], "units": [3], "dropout": [0.5]},
    "arc_ii": {"maps": [3], "window": [1, 2], "layers": [1, 2], "max_words": [1, 4, 64], "units": [3]},
    "match_pyramid": {
        "interaction": ["indicator", "cosine", "tensor"],
        "slices": [1, 7],
        "maps_1": [1, 3],
        "kernel_1": [1, 2, 7],
        "maps_2": [3],
        "kernel_2": [1, 4],
        "grid": [1, 3, 40],
        "units": [3],
    },
    "multi_gran_cnn": {
        "match": ["direct", "concat"],
        "width": [1, 2, 5],
        "alpha": [1, 9],
        "grid": [1, 7],
        "maps": [3],
        "kernel": [1, 2],
        "units": [3],
    },
    "deep_match": {
        "topics": [1, 7],
        "levels": [1, 2, 5],
        "coarser": [1, 2],
        "words": [3, 7],
        "rank": [1],
        "units": [2, 3],
        "links": [1, 9],
        "iterations": [1],
    },
    "cntn": {
        "variant": ["I", "II", "III", "IV"],
        "filters": [3],
        "depth": [1, 4],
        "width": [1, 2, 5],
        "k_top": [1, 3, 60],
        "sentence": [3],
        "normalize": [False],
    },
    "nbow_mlp": {"units": [3]},
    "cnn_mlp": {
        "filters": [3],
        "depth": [1, 4],
        "width": [1, 2, 5],
        "k_top": [1, 3, 60],
        "sentence": [3],
        "units": [3],
    },
    "rae": {
        "grid": [1, 3, 40],
        "features": ["", "overlap", "pair"],
        "autoencoder_epochs": [1],
        "autoencoder_learning_rate": [0.1],
        "decay": [0.0],
    },
    "late_interaction": {"k": [1, 2, 300], "size": [2, 3], "lexical": [True], "bits": [32]},
    "sentence_bert": {},
    "cross_encoder": {"layers": [2, 3]},
}
DEFAULTS = [(name, {}) for name in MODELS]
VARIANTS = [
    *(
        (name, {argument: value})
        for name, varied in VARIED.items()
        for argument, values in varied.items()
        for value in values
    ),
    *((name, {"ensemble_size": 2}) for name in MODELS),
]
each_case = pytest.mark.parametrize(("name", "arguments"), cases(DEFAULTS + VARIANTS))
LARGE = [("cntn", {"normalize": False})]  # whose scores are in the hundreds


def more_padding(texts: Texts, extra: int) -> Texts:
    lexical = texts.lexical
    if lexical is not None:
        # Padding that would match if it were ever looked at.
        lexical = Lexical(pad(lexical.keys, (0, extra), value=1), pad(lexical.idf, (0, extra), value=1.0))
    return Texts(pad(texts.words, (0, extra), value=3), texts.lengths, lexical)


@pytest.mark.parametrize("name", MODELS)
def test_every_argument_is_varied(name: str) -> None:
    assert VARIED[name].keys() == model_arguments(name).keys(), "ensemble_size is varied for all"
    for argument, default in model_arguments(name).items():
        assert default not in VARIED[name][argument]


@pytest.mark.parametrize(("name", "arguments"), cases(DEFAULTS) + cases(VARIANTS, pytest.mark.slow))
def test_a_score_depends_on_its_pair_and_on_nothing_else(name: str, arguments: dict) -> None:
    model = make_model(name, **arguments)
    limit = 1e-10 if (name, arguments) in LARGE else 1e-12
    one_query = [(0, n) for n in (1, 4, 5, 6)]  # two long texts, none, and one of unknown words
    with torch.no_grad():
        alone = {pair: model(make_pairs(model, [pair])) for pair in {*PAIRS, *one_query}}

        def check(batch: PairBatch, pairs: list[tuple[int, int]], what: str) -> None:
            expected = torch.cat([alone[pair] for pair in pairs])
            # Double precision: a sum in another order may move the last digits of scores near 1, and no more.
            torch.testing.assert_close(model(batch), expected, rtol=0, atol=limit, msg=lambda m: f"{what}: {m}")

        batch = make_pairs(model)
        check(batch, PAIRS, "batch mates")
        check(make_pairs(model, PAIRS[::-1]), PAIRS[::-1], "order")
        padded = replace(batch, left=more_padding(batch.left, 9), right=more_padding(batch.right, 4))
        check(padded, PAIRS, "padding")
        against_many = make_pairs(model, one_query)
        assert len(against_many.left.words) == 1
        check(against_many, one_query, "one query against many texts")
        check(make_pairs(model, [PAIRS[0]] * 3), [PAIRS[0]] * 3, "the same pair three times")

    assert all(score.shape == (1,) and torch.isfinite(score).all() for score in alone.values())
    # What never looks at its texts would pass all of the above.
    assert len({round(float(alone[pair]), 9) for pair in PAIRS}) > len(PAIRS) / 2


@each_case
def test_every_parameter_gets_a_gradient_and_the_trace_adds_up(name: str, arguments: dict) -> None:
    model = make_model(name, **arguments)
    batch = make_pairs(model)
    check_gradients(model, batch)
    check_traces(model, batch)


def check_gradients(model: PairModel, batch: PairBatch) -> None:
    scores = model(batch)
    # Different weights, so that what adds to all scores alike cannot cancel.
    (scores * torch.linspace(-1, 2, len(scores), dtype=scores.dtype)).sum().backward()
    for parameter_name, parameter in model.named_parameters():
        if not parameter.requires_grad or (parameter is model.encoder.embedding.weight and not model.trains_embedding):
            continue  # fixed: an autoencoder learns from texts, before there are scores
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name
        assert torch.isfinite(parameter.grad).all(), parameter_name


def check_traces(model: PairModel, batch: PairBatch) -> None:
    with torch.no_grad():  # as scores are computed; for gradients a model may be less coarse
        scores = model(batch)
    for n, trace in enumerate(model.trace(batch)):
        L = int(batch.left.lengths[batch.left_rows[n]])
        R = int(batch.right.lengths[batch.right_rows[n]])
        assert trace.score == pytest.approx(float(scores[n]), abs=1e-6)
        contributions = [contribution.contribution for contribution in (*trace.signals, *trace.components)]
        assert trace.residual + sum(contributions) == pytest.approx(trace.score, abs=1e-6)
        assert trace.grid.shape == (len(trace.channels), L, R)
        cells = np.array([(signal.channel, signal.left, signal.right) for signal in trace.signals], dtype=int)
        values = [signal.value for signal in trace.signals]
        np.testing.assert_allclose(trace.grid[tuple(cells.reshape(-1, 3).T)], values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_sentence_vectors_are_one_vector_a_text(name: str) -> None:
    model = make_model(name)
    batch = make_pairs(model)
    for side in (model.encode(batch.left), model.encode_right(batch.left)):
        assert (side.dim() == 2) == model.sentence_vectors


@pytest.mark.parametrize("name", MODELS)
def test_overfits_eight_pairs(name: str) -> None:
    model = build_model(name, {}, embedding(16), seed=0)
    batch = make_pairs(model, [(0, 1), (0, 4), (2, 6), (2, 1), (4, 7), (4, 6), (3, 4), (3, 2)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    torch.manual_seed(0)  # of dropout
    for _ in range(150):
        scores = model(batch)
        loss = torch.relu(0.8 - scores[0::2] + scores[1::2]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss == 0:
            break  # with nothing left to learn, more steps change nothing
    model.eval()
    assert (model(batch)[0::2] > model(batch)[1::2] + 0.4).all()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "sentence_bert"])  # which draws nothing
def test_same_seed_same_model(name: str) -> None:
    arguments = {"late_interaction": {"size": 3}}.get(name, {})  # it draws nothing but a projection
    first, again, other = (build_model(name, arguments, embedding(), seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", MODELS)
def test_building_leaves_the_random_state_alone(name: str) -> None:
    before = torch.random.get_rng_state()
    build_model(name, {}, embedding(), seed=3)
    assert torch.equal(before, torch.random.get_rng_state())


def test_wrong_arguments_are_named() -> None:
    with refused("unknown_name", "'hiden'"):
        build_model("mv_lstm", {"hiden": 3}, embedding(), seed=0)
    with refused("wrong_type", "mv_lstm"):
        build_model("mv_lstm", {"k": "five"}, embedding(), seed=0)
    with refused("bad_value", "least", "1", "0"):
        build_model("mv_lstm", {"k": 0}, embedding(), seed=0)
    with refused("unknown_name", "model", "'bert'", "mv_lstm"):
        build_model("bert", {}, embedding(), seed=0)
    with refused("unknown_name", "interaction", "'dot'"):
        build_model("mv_lstm", {"interaction": "dot"}, embedding(), seed=0)


def test_a_text_in_several_pairs_is_encoded_once() -> None:
    batch = make_pairs(make_model("mv_lstm"), [(0, 1), (0, 4), (0, 1)])
    assert batch.left.words.shape[0] == 1
    assert batch.right.words.shape[0] == 2
    np.testing.assert_array_equal(batch.right_rows, [0, 1, 0])
