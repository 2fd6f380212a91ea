"""Training over a pretrained encoder: what moves, at which rate, and that a stopped run ends where a whole one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from matchloom import Matcher
from matchloom.encoders import Transformer
from matchloom.models import build_model
from matchloom.training import TrainConfig, train
from matchloom.training import run as training_run
from matchloom.training.run import settings_of
from matchloom.training.step import make_optimizer, rate_factor, set_rates, step
from matchloom.types import MatchloomError
from tests.encoders.making import write_folder
from tests.training.making import colour_pairs

pytest.importorskip("tokenizers")

PAIRS, DEVELOPMENT = colour_pairs(24), colour_pairs(8, seed=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("encoder") / "small")


def run(encoder: Path, **more: Any) -> Matcher:
    return train(PAIRS, DEVELOPMENT, encoder=encoder, **more)


def test_it_is_late_interaction_with_settings_that_suit_the_encoder(folder: Path) -> None:
    matcher = run(folder, epochs=1)
    assert matcher.name == "late_interaction"
    _, config = settings_of("late_interaction", {}, None, {"epochs": 1}, pretrained=True)
    assert matcher.training["config"] == config.as_dict()
    assert (config.loss, config.optimizer, config.encoder_rate, config.warmup) == ("softmax", "adamw", 5e-5, 0.1)
    assert settings_of("late_interaction", {}, None, {})[1].optimizer == "adam"  # over word vectors


def test_the_layers_move_and_the_tables_stay(folder: Path) -> None:
    before, after = Transformer.load(folder), run(folder, epochs=1).model.encoder
    moved = {name for name, x in before.state_dict().items() if not torch.equal(x, after.state_dict()[name])}
    assert moved == {name for name in before.state_dict() if name.startswith("layers.")}


def test_a_step_holds_few_pairs_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[list[int]] = []

    def spied(model: Any, optimizer: Any, examples: Any, shards: Any, *rest: Any) -> Any:
        sizes.append([sum(len(example) for example in shard) for shard in shards])
        return step(model, optimizer, examples, shards, *rest)

    monkeypatch.setattr(training_run, "step", spied)
    run(folder, epochs=1, batch=40)
    assert max(map(len, sizes)) == 3
    assert max(max(some) for some in sizes) < 40
    assert max(map(sum, sizes)) >= 40
    sizes.clear()
    run(folder, epochs=1, batch=40, freeze_vectors=True, workers=1)  # nothing is kept for a gradient of the encoder
    assert {len(some) for some in sizes} == {1}


def test_a_frozen_encoder_stays_as_it_is(folder: Path) -> None:
    after = run(folder, epochs=1, freeze_vectors=True).model
    for name, x in Transformer.load(folder).state_dict().items():
        assert torch.equal(x, after.encoder.state_dict()[name]), name
    assert after.a.any()


def test_any_model_can_stand_above_it(folder: Path) -> None:
    matcher = run(folder, model="mv_lstm", arguments={"hidden": 4, "units": 4}, epochs=1)
    assert matcher.name == "mv_lstm"
    assert np.isfinite(matcher.score(DEVELOPMENT)).all()


def test_the_encoder_has_a_rate_of_its_own_and_rates_rise_and_fall(folder: Path) -> None:
    model = build_model("late_interaction", {}, Transformer.load(folder), seed=0)
    config = TrainConfig(optimizer="adamw", learning_rate=0.01, encoder_rate=0.001, weight_decay=0.1)
    optimizer = make_optimizer(model, config)
    own, encoder = optimizer.param_groups
    assert {id(p) for p in own["params"]} == {id(p) for p in model.own_parameters()}
    assert {id(p) for p in encoder["params"]} == {id(p) for p in model.encoder.layers.parameters()}
    for done, factor in ((0.05, 0.5), (0.1, 1.0), (0.55, 0.5)):
        set_rates(optimizer, rate_factor(done, 0.1))
        assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.01 * factor, 0.001 * factor])
    assert rate_factor(0.7, 0.0) == 1


def test_a_stopped_run_ends_where_a_whole_one_does(folder: Path, tmp_path: Path) -> None:
    whole = run(folder, epochs=3, patience=3, folder=tmp_path / "whole")

    def stop(entry: dict[str, Any]) -> None:
        if entry["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, epochs=3, patience=3, folder=tmp_path / "part", on_epoch=stop)
    again = run(folder, epochs=3, patience=3, folder=tmp_path / "part", resume=True)
    for name, x in whole.model.state_dict().items():
        assert torch.equal(x, again.model.state_dict()[name]), name
    loaded = Matcher.load(tmp_path / "part")
    np.testing.assert_array_equal(loaded.score(DEVELOPMENT), whole.score(DEVELOPMENT))
    with pytest.raises(MatchloomError, match="its epochs was 3, now 5"):  # the rates would have been others
        run(folder, epochs=5, patience=3, folder=tmp_path / "part", resume=True)
    other = write_folder(tmp_path / "other", seed=1)
    with pytest.raises(MatchloomError, match="training data, development data or vectors were others"):
        run(other, epochs=3, patience=3, folder=tmp_path / "part", resume=True)


def test_wrong_settings_are_named(folder: Path) -> None:
    with pytest.raises(MatchloomError, match="warmup is a part of the run, from 0 to 1, found 1"):
        TrainConfig(warmup=1.0)
    with pytest.raises(MatchloomError, match="positives must not be below 0"):
        TrainConfig(positives=-1)
    with pytest.raises(MatchloomError, match="encoder 'nowhere' is not found"):
        train(PAIRS, DEVELOPMENT, encoder="nowhere")
