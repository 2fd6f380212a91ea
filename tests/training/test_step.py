"""One step equals plain autograd and a plain optimizer, whatever the shards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from matchloom.basics.parallel import inline_pool
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models import build_model
from matchloom.training.config import TrainConfig
from matchloom.training.step import clip_gradients, make_optimizer, step
from tests.training.making import colour_pairs
from tests.training.test_examples import make_examples


def fresh_model(words: int) -> torch.nn.Module:
    embedding = WordEmbedding(words, 6)
    torch.manual_seed(1)
    torch.nn.init.normal_(embedding.embedding.weight)
    with torch.no_grad():
        embedding.embedding.weight[0] = 0
    return build_model(
        "mv_lstm", {"hidden": 4, "slices": 2, "normalize": False, "lexical": False}, embedding, seed=2
    ).double()


@pytest.mark.parametrize("optimizer", ["adagrad", "adadelta", "adam"])
@pytest.mark.parametrize("loss", ["hinge", "cross_entropy", "squared_error"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_step_is_one_plain_step_on_the_mean_loss(optimizer: str, loss: str, workers: int) -> None:
    examples = make_examples(colour_pairs(10, 4), loss=loss, batch=12, workers=workers)
    words = 1 + int(max(examples.read.left.words.flat.max(), examples.read.right.words.flat.max()))
    config = TrainConfig(
        loss=loss, optimizer=optimizer, learning_rate=0.1, workers=workers, clip=0.005, weight_decay=0.01
    )
    ours, plain = fresh_model(words), fresh_model(words)
    shards = next(iter(examples.steps(0)))
    moving = make_optimizer(ours, config)
    with ThreadPoolExecutor(workers) as pool:
        result = step(ours, moving, examples, shards, config, pool)

    kinds = {"adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}
    extra = {"rho": 0.95, "eps": 5e-7} if optimizer == "adadelta" else {}
    kind = kinds.get(optimizer, torch.optim.Adadelta)
    simple = kind(plain.parameters(), lr=0.1, **extra)
    whole = examples.shard([example for shard in shards for example in shard])
    mean = whole.loss(plain(whole.batch), config) / whole.examples
    mean.backward()
    for parameter in plain.parameters():
        if parameter is not plain.encoder.embedding.weight:
            parameter.grad += 0.01 * parameter.detach()
    length = torch.cat([parameter.grad.flatten() for parameter in plain.parameters()]).norm()
    assert length > 0.005
    for parameter in plain.parameters():
        parameter.grad *= 0.005 / length
    simple.step()
    assert result.examples == whole.examples
    assert result.loss / result.examples == pytest.approx(float(mean.detach()))
    for (name, a), b in zip(ours.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9, msg=name)


@pytest.mark.parametrize("optimizer", ["adagrad", "adadelta", "adam", "adamw"])
def test_word_vectors_have_a_rate_of_their_own(optimizer: str) -> None:
    examples = make_examples(colour_pairs(10, 4), batch=12)
    words = 1 + int(max(examples.read.left.words.flat.max(), examples.read.right.words.flat.max()))
    moved = {}
    for rate in (0.0, 0.03):
        model = fresh_model(words)
        before = {name: x.detach().clone() for name, x in model.named_parameters()}
        config = TrainConfig(optimizer=optimizer, learning_rate=0.1, encoder_rate=rate)
        with ThreadPoolExecutor(2) as pool:
            step(model, make_optimizer(model, config), examples, next(iter(examples.steps(0))), config, pool)
        moved[rate] = {name: x.detach() - before[name] for name, x in model.named_parameters()}
    assert moved[0.0]["encoder.embedding.weight"].any()
    for name, distance in moved[0.0].items():
        share = 0.3 if name == "encoder.embedding.weight" else 1.0
        torch.testing.assert_close(moved[0.03][name], share * distance, rtol=1e-6, atol=1e-9, msg=name)


def test_epsilon_keeps_a_first_step_small_where_the_gradient_is() -> None:
    examples = make_examples(colour_pairs(10, 4), batch=12)
    words = 1 + int(max(examples.read.left.words.flat.max(), examples.read.right.words.flat.max()))
    for optimizer, kind in (("adagrad", torch.optim.Adagrad), ("adam", torch.optim.Adam), ("adamw", torch.optim.Adam)):
        made = make_optimizer(fresh_model(words), TrainConfig(optimizer=optimizer, epsilon=0.1))
        assert isinstance(made, kind)
        assert [group["eps"] for group in made.param_groups] == [0.1] * len(made.param_groups)
    model = fresh_model(words)
    before = model.head.W_s.weight.detach().clone()
    config = TrainConfig(epsilon=0.1, learning_rate=0.5)
    with ThreadPoolExecutor(2) as pool:
        step(model, make_optimizer(model, config), examples, next(iter(examples.steps(0))), config, pool)
    gradient = model.head.W_s.weight.grad
    assert gradient is not None
    expected = before - 0.5 * gradient / (gradient.abs() + 0.1)
    torch.testing.assert_close(model.head.W_s.weight.detach(), expected, rtol=1e-6, atol=1e-9)


def test_frozen_vectors_stay() -> None:
    examples = make_examples(colour_pairs(10, 4), batch=12)
    model = fresh_model(1 + int(max(examples.read.left.words.flat.max(), examples.read.right.words.flat.max())))
    before = model.encoder.embedding.weight.detach().clone()
    config = TrainConfig(freeze_vectors=True)
    with ThreadPoolExecutor(2) as pool:
        step(model, make_optimizer(model, config), examples, next(iter(examples.steps(0))), config, pool)
    assert torch.equal(model.encoder.embedding.weight, before)


def test_clipping_counts_sparse_and_dense_together() -> None:
    dense = torch.nn.Parameter(torch.zeros(2))
    dense.grad = torch.tensor([3.0, 0.0])
    sparse = torch.nn.Parameter(torch.zeros(4, 1))
    sparse.grad = torch.sparse_coo_tensor([[1, 1]], [[1.0], [3.0]], (4, 1)).coalesce()
    clip_gradients([dense, sparse], 1.0)
    assert dense.grad.tolist() == pytest.approx([0.6, 0.0])
    assert sparse.grad.to_dense().flatten().tolist() == pytest.approx([0, 0.8, 0, 0])


def test_a_model_says_what_weight_decay_falls_on() -> None:
    examples = make_examples(colour_pairs(10, 4), loss="cross_entropy", batch=12, workers=1)
    words = 1 + int(max(examples.read.left.words.flat.max(), examples.read.right.words.flat.max()))
    config = TrainConfig(loss="cross_entropy", optimizer="adadelta", learning_rate=1.0, clip=0.0, weight_decay=0.3)

    def fresh() -> torch.nn.Module:
        torch.manual_seed(1)
        arguments = {"blocks": 1, "frame": 8, "dropout": 0.0, "features": ""}
        model = build_model("m2s_net", arguments, WordEmbedding(words, 6), seed=2).double()
        torch.nn.init.uniform_(model.similarity.U, -0.1, 0.1)
        return model

    ours, plain = fresh(), fresh()
    shards = next(iter(examples.steps(0)))
    with inline_pool(1) as pool:
        step(ours, make_optimizer(ours, config), examples, shards, config, pool)
    whole = examples.shard(shards[0])
    penalty = 0.3 / 2 * plain.similarity.U.square().sum()  # lambda / 2 |U|^2
    (whole.loss(plain(whole.batch), config) / whole.examples + penalty).backward()
    torch.optim.Adadelta(plain.parameters(), lr=1.0, rho=0.95, eps=5e-7).step()
    for (name, a), b in zip(ours.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9, msg=name)


def test_work_in_turn_has_its_threads_and_gives_them_back() -> None:
    before = torch.get_num_threads()
    with inline_pool(2) as pool:
        assert list(pool.map(lambda n: (n, torch.get_num_threads()), range(3))) == [(0, 2), (1, 2), (2, 2)]
        with pytest.raises(ZeroDivisionError):
            list(pool.map(lambda n: 1 // n, [0]))
        assert next(pool.map(lambda n: 1 // n, [1, 0])) == 1  # the second has not begun
    assert torch.get_num_threads() == before
