"""Late interaction against the slow reference, and MaxSim as its start."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from matchloom.models import build_model
from tests.encoders.random_transformer import RandomTransformer
from tests.models.comparing import assert_same_gradients, assert_same_scores
from tests.models.making import TEXTS, TOKENIZER, VOCAB, embedding, make_model, make_pairs
from tests.reference.late_interaction import late_interaction, late_interaction_int8
from tests.refusing import refused

VARIANTS = [{}, {"k": 1}, {"k": 2, "size": 4}, {"k": 300}]


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_its_sums_word_by_word(arguments: dict) -> None:
    assert_same_scores(make_model("late_interaction", **arguments), late_interaction)


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_scores_equal_the_sums_of_rounded_positions(arguments: dict) -> None:
    with torch.no_grad():
        assert_same_scores(make_model("late_interaction", **arguments), late_interaction_int8)
        assert_same_scores(make_model("late_interaction", bits=32, **arguments), late_interaction)


def test_gradients_equal_the_reference() -> None:
    assert_same_gradients(make_model("late_interaction", k=2, size=4), late_interaction)


@pytest.mark.parametrize("arguments", [{"k": 1}, {}, {"k": 9, "lexical": True}], ids=str)
def test_it_starts_at_twenty_times_maxsim(arguments: dict) -> None:
    model = build_model("late_interaction", arguments, embedding(), seed=0).double()
    batch = make_pairs(model)
    left, right = model.encode(batch.left), model.encode(batch.right)
    for score, i, j in zip(model(batch), batch.left_rows, batch.right_rows, strict=True):
        ours, theirs = left[i, : batch.left.lengths[i]], right[j, : batch.right.lengths[j]]
        torch.testing.assert_close(score, 20 * (ours @ theirs.T).amax(1).mean(), rtol=0, atol=1e-12)


def test_exact_matches_count_by_their_gate() -> None:
    model = make_model("late_interaction", lexical=True)
    batch = make_pairs(model, [(0, 1)])
    with torch.no_grad():
        before = float(model(batch))
        model.u.add_(torch.tensor([1.0, 0.0, 0.0], dtype=torch.double))
        trace = model.trace(batch)[0]
        gates = model.gates(model.encode(batch.left), batch)[0]
    same = [signal for signal in trace.signals if signal.channel == 1]
    assert len(same) == 2  # open and file
    gained = sum(float(gates[signal.left]) * signal.value for signal in same)
    assert trace.score - before == pytest.approx(gained)
    assert trace.residual == pytest.approx(0, abs=1e-6)


def test_unrounded_it_has_the_same_weights_and_positions_as_they_are() -> None:
    model = make_model("late_interaction", size=4)
    other = model.unrounded()
    assert other.projection.weight is model.projection.weight
    with torch.no_grad():
        assert_same_scores(other, late_interaction)
        assert_same_scores(model, late_interaction_int8)
    assert (model.stored_positions, other.stored_positions) == (True, False)


def test_other_bits_are_refused() -> None:
    with refused("bad_value", "bits", "late_interaction", "8", "32"):
        build_model("late_interaction", {"bits": 16}, embedding(), seed=0)


def test_the_projection_starts_at_the_principal_directions() -> None:
    model = build_model("late_interaction", {"size": 3, "bits": 32}, embedding(), seed=0)
    reader = model.encoder.reader(TOKENIZER, VOCAB)
    table = reader.read(TEXTS)
    positions = torch.nn.functional.normalize(model.encoder.embedding.weight.detach()[table.words.flat].double(), dim=1)

    def lost() -> float:
        kept = positions @ model.projection.weight.detach().double().T
        return float(1 - kept.square().sum() / len(positions))

    model.pretrain(table, table, np.zeros((0, 3), dtype=np.int64), 0, False)
    weight = model.projection.weight.detach()
    torch.testing.assert_close(weight @ weight.T, torch.eye(3), rtol=0, atol=1e-6)
    values = torch.linalg.eigvalsh(positions.T @ positions / len(positions))
    assert lost() == pytest.approx(float(values[:-3].sum()), abs=1e-6)  # no other three directions lose less


def test_a_text_without_words_is_worth_nothing() -> None:
    model = make_model("late_interaction", encoder=RandomTransformer())
    model.encoder.seen = lambda texts: (texts.words != 1) & texts.mask  # of an empty text it reads no word
    batch = make_pairs(model, [(5, 1), (0, 5), (5, 5)])
    assert model(batch).tolist() == [0, 0, 0]
    assert torch.isfinite(torch.stack(torch.autograd.grad(model(batch).sum(), [model.a]))).all()
