"""One step: the gradients of a batch's shards side by side, summed in a fixed order, clipped, applied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from matchloom.data.tokenized import Rows
from matchloom.models.base import PairModel
from matchloom.training.adadelta import AdaDelta
from matchloom.training.adagrad import AdaGrad
from matchloom.training.adam import Adam
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Examples
from matchloom.training.team import Team


class StepResult(NamedTuple):
    """What a step did: the summed loss, how many examples and pairs it saw, the lowest and highest score."""

    loss: float
    examples: int
    pairs: int
    lowest: float
    highest: float


def draws_at_random(model: PairModel, config: TrainConfig) -> bool:
    """Whether a step of this run draws at random, in the model or in an encoder that learns."""
    return model.draws_at_random or (model.encoder.draws_at_random and _encoder_learns(model, config))


def _encoder_learns(model: PairModel, config: TrainConfig) -> bool:
    return model.trains_embedding and not config.freeze_vectors


def make_optimizer(model: PairModel, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimizer, and an encoder that learns as the optimizer wants it."""
    model.encoder.learn(_encoder_learns(model, config), layers=config.layers)
    parameters: list[Any] = trained(model)
    if config.encoder_rate or config.optimizer == "adamw" or config.layer_decay < 1:
        own = [parameter for parameter in model.own_parameters() if parameter.requires_grad]
        parameters = [{"params": own}] if own else []
        lr = config.encoder_rate or config.learning_rate
        parameters += [{"params": p, "lr": lr * part} for p, part in model.encoder.parts(config.layer_decay)]
    if config.optimizer == "adadelta":
        return AdaDelta(parameters, lr=config.learning_rate)
    given: dict[str, Any] = {"lr": config.learning_rate, **({"eps": config.epsilon} if config.epsilon else {})}
    if config.optimizer == "adamw":
        return Adam(parameters, weight_decay=config.weight_decay, decoupled_weight_decay=True, **given)
    if config.optimizer == "adagrad":
        return AdaGrad(parameters, **given)
    return Adam(parameters, **given)


def rate_factor(done: float, warmup: float) -> float:
    """The factor of the learning rates when this part of a run is done: a rise over `warmup`, then linear decay.

    >>> [round(rate_factor(done, 0.2), 2) for done in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if not warmup:
        return 1.0
    return min(done / warmup, (1 - done) / (1 - warmup))


def set_rates(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Multiply the rates that the optimizer was made with."""
    for group in optimizer.param_groups:
        group["lr"] = group.setdefault("first_lr", group["lr"]) * factor


def trained(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that learn."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def step(
    model: PairModel,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    shards: Sequence[list[Rows]],
    config: TrainConfig,
    pool: Executor,
    team: Team = Team(),  # noqa: B008 (a NamedTuple: nobody can change it)
) -> StepResult:
    """Move the model once; of several processes each works on its part of the shards."""
    parameters = trained(model)
    penalty = config.weight_decay if config.optimizer != "adamw" else 0.0  # AdamW decays by itself
    decayed = {id(parameter) for parameter in model.decayed()} if penalty else set()
    device = model.encoder.device

    drawn = torch.initial_seed() if team.size > 1 and draws_at_random(model, config) else None

    def work(number: int) -> tuple[StepResult, tuple[Tensor, ...]]:
        if drawn is not None:  # whichever process works on a shard draws the same
            torch.manual_seed((drawn + 1_000_003 * (number + 1)) % 2**63)
        shard = examples.shard(shards[number])
        outputs = model.outputs(shard.batch.to(device))
        losses = torch.stack([shard.loss(scores, config) for scores in outputs])
        # A word that stands many times in a shard has many rows of gradient: summed here, where cores work in parallel.
        gradients = tuple(g.coalesce() if g.is_sparse else g for g in torch.autograd.grad(losses.sum(), parameters))
        low, high = torch.aminmax(torch.stack(outputs).detach())
        return StepResult(
            float(losses.detach().mean()), shard.examples, len(shard.batch), float(low), float(high)
        ), gradients

    results: list[StepResult] = []
    totals: tuple[Tensor, ...] = ()
    for result, gradients in pool.map(work, range(team.rank, len(shards), team.size)):
        results.append(result)
        totals = tuple(map(torch.add, totals, gradients)) if totals else gradients
    if team.size > 1:
        own = _together(results)
        totals = tuple(g.coalesce() if g.is_sparse else g for g in totals)
        summed, figures = team.summed(parameters, totals, own)
        totals = tuple(summed)
        results = [StepResult(one[0], int(one[1]), int(one[2]), one[3], one[4]) for one in figures]
    seen = sum(result.examples for result in results)
    for parameter, total in zip(parameters, totals, strict=True):
        parameter.grad = (total.coalesce() if total.is_sparse else total) / seen
        if id(parameter) in decayed:
            parameter.grad = parameter.grad + penalty * parameter.detach()
    if config.clip:
        clip_gradients(parameters, config.clip)
    # Said explicitly, or torch warns that it does not check.
    with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
        optimizer.step()
    return _together(results)


def _together(results: Sequence[StepResult]) -> StepResult:
    return StepResult(
        sum(result.loss for result in results),
        sum(result.examples for result in results),
        sum(result.pairs for result in results),
        min((result.lowest for result in results), default=math.inf),
        max((result.highest for result in results), default=-math.inf),
    )


def clip_gradients(parameters: Sequence[nn.Parameter], longest: float) -> None:
    """Shorten the gradient of all parameters together to the length `longest`, sparse ones included."""
    values = []
    for parameter in parameters:
        assert parameter.grad is not None
        # coalesce() of a coalesced tensor is the tensor itself, and its values share memory
        values.append(parameter.grad.coalesce().values() if parameter.grad.is_sparse else parameter.grad)
    length = torch.stack([value.norm() for value in values]).norm()
    if length > longest:
        for value in values:
            value.mul_(longest / length)


@contextmanager
def random_state(*place: int) -> Iterator[None]:
    """What a step draws (dropout) depends on the seed, the epoch and the step alone: a resumed run draws the same.

    Only models that say `draws_at_random` do: one state cannot be shared by shards that run side by side.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0] >> 1))
        yield
