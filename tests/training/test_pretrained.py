"""Training over a pretrained encoder: what moves, at which rate, and that a stopped run ends where a whole one does."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from matchloom import Matcher
from matchloom.data.batching import pad_texts
from matchloom.encoders.transformer import Transformer
from matchloom.kernels.transformer import PackedLayers
from matchloom.models import build_model
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training import epochs as training_epochs
from matchloom.training.config import TrainConfig
from matchloom.training.prepare import settings_of
from matchloom.training.run import train
from matchloom.training.step import make_optimizer, rate_factor, set_rates, step
from tests.encoders.making import LAYERS, write_folder
from tests.refusing import refused
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

    monkeypatch.setattr(training_epochs, "step", spied)
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


def test_the_last_layers_alone_can_move(folder: Path) -> None:
    before, after = Transformer.load(folder), run(folder, epochs=1, layers=1).model.encoder
    moved = {name for name, x in before.state_dict().items() if not torch.equal(x, after.state_dict()[name])}
    assert moved == {name for name in before.state_dict() if name.startswith(f"layers.{LAYERS - 1}.")}


def test_what_lies_below_the_layers_that_learn_drops_nothing_out(folder: Path) -> None:
    encoder = Transformer.load(folder).train()
    texts = pad_texts(
        encoder.reader(Tokenizer(), Vocab.build([["how"]])).read(["how do the list sort read"]), np.array([0])
    )
    seen: list[torch.Tensor] = []
    encoder.layers[-1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    for layers, equal in ((1, True), (0, False)):
        encoder.learn(True, layers=layers)
        outputs = [encoder(texts), encoder(texts)]
        assert torch.equal(*seen) == equal
        assert not torch.equal(*outputs)
        seen.clear()


def test_lower_layers_learn_more_slowly_by_the_decay(folder: Path) -> None:
    model = build_model("late_interaction", {}, Transformer.load(folder), seed=0)
    config = TrainConfig(optimizer="adamw", learning_rate=0.01, encoder_rate=0.001, layer_decay=0.5)
    own, *layers = make_optimizer(model, config).param_groups
    assert own["lr"] == 0.01
    assert [group["lr"] for group in layers] == pytest.approx([0.001 * 0.5 ** (LAYERS - 1 - n) for n in range(LAYERS)])
    for group, layer in zip(layers, model.encoder.layers, strict=True):
        assert {id(p) for p in group["params"]} == {id(p) for p in layer.parameters()}
    fewer = make_optimizer(model, replace(config, layers=1)).param_groups
    assert [group["lr"] for group in fewer] == [0.01, 0.001]


def test_a_stopped_run_with_layers_of_different_rates_ends_where_a_whole_one_does(folder: Path, tmp_path: Path) -> None:
    given = {"layer_decay": 0.5, "epochs": 2}
    whole = run(folder, **given)

    def stop(entry: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, **given, folder=tmp_path / "part", on_epoch=stop)
    again = run(folder, **given, folder=tmp_path / "part", resume=True)
    for name, x in whole.model.state_dict().items():
        assert torch.equal(x, again.model.state_dict()[name]), name


def test_texts_of_a_frozen_encoder_are_read_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    passes: list[int] = []
    alone, packed = Transformer._layers, PackedLayers.__call__

    def spied(self: Transformer, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        passes.append(len(x))
        return alone(self, x, *rest)

    def spied_kernel(self: PackedLayers, x: torch.Tensor, lengths: NDArray[np.int64]) -> torch.Tensor:
        passes.append(len(lengths))
        return packed(self, x, lengths)

    monkeypatch.setattr(Transformer, "_layers", spied)
    monkeypatch.setattr(PackedLayers, "__call__", spied_kernel)
    texts = {text for pair in (*PAIRS, *DEVELOPMENT) for text in pair[:2]}
    first = run(folder, epochs=3, freeze_vectors=True)
    assert 0 < sum(passes) <= len(texts)
    assert first.model.encoder.kept is None
    passes.clear()
    again = run(folder, epochs=3, freeze_vectors=True)
    run(folder, model="mv_lstm", arguments={"hidden": 4, "units": 4}, epochs=1, freeze_vectors=True, seed=1)
    assert not passes  # another run, another model and another seed find them on the disk
    np.testing.assert_array_equal(first.score(DEVELOPMENT), again.score(DEVELOPMENT))
    for name, x in first.model.state_dict().items():
        assert torch.equal(x, again.model.state_dict()[name]), name
    run(folder, model="cross_encoder", epochs=1, freeze_vectors=True)  # it has no use for them
    assert len(list((tmp_path / "matchloom" / "positions").iterdir())) == 1


def test_without_a_place_for_them_texts_are_read_as_ever(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    with caplog.at_level(logging.WARNING, "matchloom"):
        run(folder, epochs=1, freeze_vectors=True)
    assert caplog.text.count("texts are read anew in every epoch: ") == 1


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


@pytest.mark.slow
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
    with refused("mismatch", "epochs", "3", "5"):  # the rates would have been others
        run(folder, epochs=5, patience=3, folder=tmp_path / "part", resume=True)
    other = write_folder(tmp_path / "other", seed=1)
    with refused("mismatch", "development"):
        run(other, epochs=3, patience=3, folder=tmp_path / "part", resume=True)


def test_wrong_settings_are_named(folder: Path) -> None:
    with refused("bad_value", "layers", "9", "2"):
        run(folder, layers=9)
    with refused("conflict", "layer_decay"):
        train(PAIRS, DEVELOPMENT, layers=1)
    for decay in (0.0, 1.1, float("nan")):
        with refused("bad_value", "layer_decay", "0", "1"):
            TrainConfig(layer_decay=decay)
    with refused("conflict", "in_batch"):
        run(folder, in_batch=True)
    with refused("bad_value", "warmup", "0", "1"):
        TrainConfig(warmup=1.0)
    with refused("bad_value", "positives", "0"):
        TrainConfig(positives=-1)
    with refused("missing", "encoder", "'nowhere'"):
        train(PAIRS, DEVELOPMENT, encoder="nowhere")
