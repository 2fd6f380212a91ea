"""Several networks as one: each learns as it would alone, and the score is the mean of theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from matchloom import Matcher, train
from matchloom.basics.parallel import inline_pool
from matchloom.encoders.transformer import Transformer
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models import MODELS, build_model
from matchloom.models.ensemble import Ensemble
from matchloom.training.config import TrainConfig
from matchloom.training.step import make_optimizer, step
from matchloom.types import Pair
from tests.encoders.making import write_folder
from tests.models.making import PAIRS, embedding, make_model, make_pairs
from tests.refusing import refused
from tests.representatives import each_model
from tests.training.making import colour_pairs
from tests.training.test_examples import make_examples


def alone(name: str, ensemble: Ensemble, member: int, **arguments: int | float | str | bool) -> torch.nn.Module:
    """A model by itself with a member's weights."""
    model = build_model(name, arguments, embedding(), seed=9).double().eval()
    state = ensemble.state_dict()
    prefix = f"members.{member}."
    model.load_state_dict(
        {key.removeprefix(prefix): x for key, x in state.items() if key.startswith((prefix, "encoder."))}
    )
    return model


@pytest.mark.parametrize(
    "name", each_model(name for name in MODELS if name not in ("sentence_bert", "late_interaction"))
)
def test_the_score_is_the_mean_of_networks_that_differ(name: str) -> None:
    ensemble = make_model(name, ensemble_size=3)
    batch = make_pairs(ensemble)
    with torch.no_grad():
        each = torch.stack([alone(name, ensemble, n)(batch) for n in range(3)])
        torch.testing.assert_close(ensemble(batch), each.mean(0), rtol=0, atol=1e-12)
        torch.testing.assert_close(torch.stack(ensemble.outputs(batch)), each, rtol=0, atol=1e-12)
    assert not torch.allclose(each[0], each[1])
    assert not torch.allclose(each[1], each[2])


def test_the_first_member_is_the_model_of_this_seed() -> None:
    one = build_model("mv_lstm", {}, embedding(), seed=4)
    ensemble = build_model("mv_lstm", {"ensemble_size": 2}, embedding(), seed=4)
    for key, x in one.state_dict().items():
        where = key if key.startswith("encoder.") else f"members.0.{key}"
        assert torch.equal(ensemble.state_dict()[where], x)
    assert type(build_model("mv_lstm", {"ensemble_size": 1}, embedding(), seed=4)) is MODELS["mv_lstm"]


def test_word_vectors_are_there_once() -> None:
    ensemble = build_model("mv_lstm", {"ensemble_size": 3}, embedding(), seed=0)
    assert [key for key in ensemble.state_dict() if "encoder" in key] == ["encoder.embedding.weight"]
    one = build_model("mv_lstm", {}, embedding(), seed=0)
    assert ensemble.size() == 3 * one.size()


@pytest.mark.parametrize("workers", [1, 2])
def test_in_a_step_each_member_moves_as_it_would_alone(workers: int) -> None:
    examples = make_examples(colour_pairs(10, 4), batch=12, workers=workers)
    words = 1 + int(max(examples.read.left.words.flat.max(), examples.read.right.words.flat.max()))
    arguments = {"hidden": 4, "slices": 2, "lexical": False}
    config = TrainConfig(workers=workers, clip=0, weight_decay=0.01, freeze_vectors=True)
    vectors = torch.randn(words, 6, generator=torch.Generator().manual_seed(0)).numpy()

    def moved(model: torch.nn.Module) -> float:
        with inline_pool(1) as pool:
            shards = next(iter(examples.steps(0)))
            return step(model, make_optimizer(model, config), examples, shards, config, pool).loss

    ensemble = build_model(
        "mv_lstm", {**arguments, "ensemble_size": 2}, WordEmbedding(words, 6, vectors), seed=3
    ).double()
    before, losses = {key: x.clone() for key, x in ensemble.state_dict().items()}, []
    found = moved(ensemble)
    for n in range(2):
        one = build_model("mv_lstm", arguments, WordEmbedding(words, 6, vectors), seed=3).double()
        prefix = f"members.{n}."
        one.load_state_dict(
            {key.removeprefix(prefix): x for key, x in before.items() if key.startswith((prefix, "encoder."))}
        )
        losses.append(moved(one))
        for key, x in one.state_dict().items():
            where = key if key.startswith("encoder.") else prefix + key
            torch.testing.assert_close(ensemble.state_dict()[where], x, rtol=0, atol=1e-12)
    assert found == pytest.approx(np.mean(losses))


def test_it_trains_is_saved_ranks_and_explains_as_one_matcher(tmp_path: Path) -> None:
    pairs = colour_pairs()
    arguments = {"hidden": 4, "units": 4, "features": "pair", "ensemble_size": 3}
    matcher = train(pairs, arguments=arguments, dimensions=6, epochs=2, folder=tmp_path / "m")
    loaded = Matcher.load(tmp_path / "m")
    assert loaded.arguments["ensemble_size"] == 3
    assert loaded.digest == matcher.digest
    query, texts = pairs[0].query, [pair.text for pair in pairs[:12]]
    scores = matcher.score([Pair(query, text) for text in texts])
    np.testing.assert_array_equal(loaded.score([Pair(query, text) for text in texts]), scores)
    ranked = {one.index: np.float32(one.score) for one in loaded.rank(query, texts)}
    assert [ranked[n] for n in range(len(texts))] == scores.tolist()
    _, _, trace = loaded.trace(query, texts[0])
    assert trace.score == pytest.approx(float(scores[0]))
    parts = [part.contribution for part in (*trace.signals, *trace.components)]
    assert sum(parts) + trace.residual == pytest.approx(trace.score, abs=1e-6)
    assert len({(signal.channel, signal.left, signal.right) for signal in trace.signals}) == len(trace.signals)


def test_a_map_of_the_committee_is_the_mean_of_its_members() -> None:
    ensemble = make_model("mv_lstm", ensemble_size=2)
    batch = make_pairs(ensemble)
    parts = [alone("mv_lstm", ensemble, n).trace(batch) for n in range(2)]
    for n, trace in enumerate(ensemble.trace(batch)):
        np.testing.assert_allclose(trace.grid, (parts[0][n].grid + parts[1][n].grid) / 2, atol=1e-6)
        assert {(s.channel, s.left, s.right) for s in trace.signals} == {
            (s.channel, s.left, s.right) for part in parts for s in part[n].signals
        }
    assert len(PAIRS) == n + 1


def test_what_cannot_be_a_committee_is_refused(tmp_path: Path) -> None:
    with refused("bad_value", "mv_lstm", "1", "0"):
        build_model("mv_lstm", {"ensemble_size": 0}, embedding(), seed=0)
    pytest.importorskip("tokenizers")
    encoder = Transformer.load(write_folder(tmp_path / "small"))
    with refused("conflict", "ensemble_size"):
        build_model("late_interaction", {"ensemble_size": 2}, encoder, seed=0)
