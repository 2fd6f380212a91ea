"""Adam by the kernel moves as torch's own does, for whole and for sparse gradients, and loads no compiler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from matchloom.kernels import native
from matchloom.training.adam import Adam


@pytest.fixture(params=[*native.suitable(), "none"])
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each build of the kernels, and none."""
    monkeypatch.setenv(native.SWITCH, request.param)
    native.library.cache_clear()
    yield request.param
    native.library.cache_clear()


def moved(make: Callable[..., torch.optim.Optimizer], *, sparse: bool, **given: float) -> tuple[list[Tensor], object]:
    """A table, a matrix, a turned matrix, a number and an idle one after eight steps."""
    draw = torch.Generator().manual_seed(0)
    table, weight, turned, bias, idle = (
        nn.Parameter(torch.randn(size, generator=draw)) for size in ((90, 21), (5, 3), (3, 5), (1,), (2,))
    )
    turned.data = turned.data.T
    optimizer = make([{"params": [table, weight]}, {"params": [turned, bias, idle], "lr": 0.5}], lr=0.1, **given)
    for step in range(8):
        rows = torch.randperm(90, generator=draw)[: 5 * step].sort().values
        values = torch.randn(len(rows), 21, generator=draw) * 1e-3**step
        found = torch.sparse_coo_tensor(rows[None], values, table.shape, is_coalesced=True, check_invariants=True)
        table.grad = found if sparse else found.to_dense()
        weight.grad, turned.grad = (torch.randn(3, 5, generator=draw).T for _ in range(2))
        bias.grad = torch.randn(1, generator=draw)
        with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
            optimizer.step()
    return [x.detach() for x in (table, weight, turned, bias, idle)], optimizer.state_dict()


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("given", [{}, {"eps": 0.1}, {"weight_decay": 0.1}])
def test_moves_as_torchs_own(given: dict[str, float]) -> None:
    decoupled = {"decoupled_weight_decay": True} if "weight_decay" in given else {}
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    theirs, their_state = moved(kind, sparse=False, **given)
    for sparse in (False, True):
        ours, state = moved(Adam, sparse=sparse, **given, **decoupled)
        for own, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(own, other, rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(state["state"], their_state["state"], rtol=1e-5, atol=1e-37)  # type: ignore[index]


def test_a_number_moves_the_same_wherever_it_stands() -> None:
    draw = torch.Generator().manual_seed(1)
    values, gradients = torch.randn(101, generator=draw), torch.randn(6, 101, generator=draw)
    found = []
    for pieces in ([101], [40, 61], [1] * 101):
        parameters = [nn.Parameter(one.clone()) for one in values.split(pieces)]
        optimizer = Adam(parameters, weight_decay=0.01, decoupled_weight_decay=True)
        for gradient in gradients:
            for x, own in zip(parameters, gradient.split(pieces), strict=True):
                x.grad = own.clone()
            optimizer.step()
        found.append(torch.cat([x.detach() for x in parameters]))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_what_would_be_a_denormal_number_is_zero() -> None:
    x = nn.Parameter(torch.ones(40))
    optimizer = Adam([x])
    for gradient in (1e-20, *[0.0] * 900):
        x.grad = torch.full((40,), gradient)
        optimizer.step()
    m, v = (optimizer.state[x][name] for name in ("exp_avg", "exp_avg_sq"))
    assert not v.any()
    if native.library() is not None:
        assert not m.any()


def test_what_is_kept_of_a_weight_is_known_to_be_out_of_date() -> None:
    x = nn.Parameter(torch.ones(3))
    optimizer, before = Adam([x]), x._version
    x.grad = torch.ones(3)
    optimizer.step()
    assert x._version > before


def test_a_step_loads_no_compiler_and_leaves_no_graph() -> None:
    told = (
        "import sys, torch; from matchloom.training.adam import Adam\n"
        "x = torch.nn.Parameter(torch.ones(3)); x.grad = torch.ones(3); Adam([x]).step()\n"
        "assert x.is_leaf and x.grad_fn is None; print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
