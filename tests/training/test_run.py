"""Whole runs: they learn, stop, resume to the same weights, and say what went wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from matchloom.calibration import Calibration
from matchloom.data.batching import pad_texts
from matchloom.data.identity import in_order
from matchloom.evaluation import evaluate_pairs
from matchloom.evaluation.measures import measure
from matchloom.layers.heads import init_uniform_
from matchloom.matcher import Matcher
from matchloom.models import model_training, mv_lstm
from matchloom.models.m2s_net import M2SNet
from matchloom.models.nbow_mlp import NBOWMLP
from matchloom.text.tokenize import Span, Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.training.config import TrainConfig
from matchloom.types import MatchloomError, Pair
from tests.refusing import refused
from tests.representatives import each_model
from tests.training.making import colour_pairs, train

SMALL = {"hidden": 6, "interaction": "cosine", "units": 40, "lexical": False}
QUICK = TrainConfig(epochs=3, batch=32, learning_rate=0.02, patience=9)


def quick(**settings: object) -> TrainConfig:
    return TrainConfig(**{**QUICK.as_dict(), **settings})  # type: ignore[arg-type]


def state(matcher: Matcher) -> dict[str, torch.Tensor]:
    return matcher.model.state_dict()


def same(a: Matcher, b: Matcher) -> bool:
    return all(torch.equal(x, state(b)[name]) for name, x in state(a).items())


@pytest.mark.parametrize("loss", ["hinge", "cross_entropy", "squared_error"])
def test_learns_a_task_that_can_be_learnt(loss: str) -> None:
    pairs, unseen = colour_pairs(150, seed=1), colour_pairs(40, seed=2)
    config = TrainConfig(loss=loss, optimizer="adam", learning_rate=0.05, epochs=8, batch=64)
    matcher = train(pairs, arguments={**SMALL, "lexical": True}, config=config, dimensions=12)
    before = measure(unseen, np.zeros(len(unseen)), ("P@1",)).values["P@1"]
    after = measure(unseen, matcher.score(unseen), ("P@1",)).values["P@1"]
    assert before < 0.5
    assert after > 0.9


@pytest.mark.parametrize("loss", ["hinge", "cross_entropy", "squared_error"])
def test_a_model_without_vectors_learns_and_leaves_them_alone(loss: str) -> None:
    pairs, unseen = colour_pairs(150, seed=1), colour_pairs(40, seed=2)
    config = TrainConfig(loss=loss, optimizer="adam", learning_rate=0.05, epochs=8, batch=64)
    arguments = {"interaction": "indicator", "dimensions": 4}
    matcher = train(pairs, model="match_srnn", arguments=arguments, config=config, dimensions=12)
    assert measure(unseen, matcher.score(unseen), ("P@1",)).values["P@1"] > 0.9
    untrained = train(pairs, model="match_srnn", arguments=arguments, config=quick(epochs=1), dimensions=12)
    assert torch.equal(state(matcher)["encoder.embedding.weight"], state(untrained)["encoder.embedding.weight"])


def test_same_seed_same_run_and_other_seed_another() -> None:
    runs = [train(colour_pairs(), arguments=SMALL, config=quick(seed=seed), dimensions=6) for seed in (1, 1, 2)]
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def test_best_epoch_is_kept_and_patience_ends_the_run(tmp_path: Path) -> None:
    # A development set with the labels turned round gets worse as training goes on.
    turned = [pair._replace(label=1 - pair.label) for pair in colour_pairs(30, seed=5)]
    config = TrainConfig(optimizer="adam", learning_rate=0.02, epochs=30, patience=2, batch=64)
    matcher = train(colour_pairs(150, seed=1), turned, arguments=SMALL, config=config, dimensions=12, folder=tmp_path)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    values = [entry["RR"] for entry in log]
    best = values.index(max(values))
    assert len(log) == best + 3 < 30
    assert matcher.training["best"]["epoch"] == best + 1
    assert measure(turned, matcher.score(turned), ("RR",)).values["RR"] == pytest.approx(max(values))
    assert same(Matcher.load(tmp_path), matcher)
    assert all(entry["pairs_per_second"] > 0 and entry["seconds"] >= 0 for entry in log)


def test_looks_between_epochs_choose_and_end_the_run_but_change_no_step() -> None:
    turned = [pair._replace(label=1 - pair.label) for pair in colour_pairs(30, seed=5)]
    logs: list[list[dict[str, float]]] = []
    for every in (0, 3):
        config = TrainConfig(optimizer="adam", learning_rate=0.02, epochs=30, patience=2, batch=64, check_every=every)
        logs.append([])
        pairs = colour_pairs(150, seed=1)
        matcher = train(pairs, turned, arguments=SMALL, config=config, dimensions=12, on_epoch=logs[-1].append)
    epochs, looks = logs
    steps = int(epochs[0]["step"])
    assert steps % 3
    expected = [(e, min(s, steps)) for e in range(1, 31) for s in range(3, steps + 3, 3)]
    assert [(look["epoch"], look["step"]) for look in looks] == expected[: len(looks)]
    ends = {look["epoch"]: look["RR"] for look in looks if look["step"] == steps}
    assert all(ends[entry["epoch"]] == entry["RR"] for entry in epochs if entry["epoch"] in ends)
    best = max(looks, key=lambda look: look["RR"])
    assert matcher.training["best"] == {k: best[k] for k in best if k not in ("seconds", "pairs_per_second")}
    assert measure(turned, matcher.score(turned), ("RR",)).values["RR"] == best["RR"]
    # Two whole epochs after the best evaluation, and not a look more.
    done = [(look["epoch"] - best["epoch"]) * steps + look["step"] - best["step"] for look in looks]
    assert done[-1] >= 2 * steps > done[-2]


@pytest.mark.parametrize("optimizer", ["adagrad", "adadelta", "adam"])
def test_resume_gives_the_weights_of_an_uninterrupted_run(optimizer: str, tmp_path: Path) -> None:
    pairs, development = colour_pairs(), colour_pairs(20, seed=3)

    def run(folder: str, epochs: int, resume: bool = False) -> Matcher:
        config = quick(epochs=epochs, optimizer=optimizer)
        return train(
            pairs, development, arguments=SMALL, config=config, dimensions=6, folder=tmp_path / folder, resume=resume
        )

    whole = run("whole", 4)
    run("parts", 2)
    resumed = run("parts", 4, resume=True)
    assert same(whole, resumed)
    # The file's heading names its matcher.json, which has the seconds in it: the tensors are compared, bit for bit.
    one, other = (load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "parts"))
    assert one.keys() == other.keys()
    assert all(one[name].numpy().tobytes() == other[name].numpy().tobytes() for name in one)
    assert (tmp_path / "whole" / "vocab.txt").read_bytes() == (tmp_path / "parts" / "vocab.txt").read_bytes()
    assert same(Matcher.load(tmp_path / "parts"), Matcher.load(tmp_path / "whole"))
    logs = [
        [json.loads(line)["loss"] for line in (tmp_path / name / "log.jsonl").read_text().splitlines()]
        for name in ("whole", "parts")
    ]
    assert logs[0] == logs[1]
    assert len(logs[0]) == 4


def test_resume_refuses_other_settings_or_data(tmp_path: Path) -> None:
    pairs = colour_pairs()
    train(pairs, arguments=SMALL, config=QUICK, dimensions=6, folder=tmp_path)

    def again(match: str, pairs: list[Pair] = pairs, config: TrainConfig = QUICK, hidden: int = 6) -> None:
        arguments = {**SMALL, "hidden": hidden}
        with pytest.raises(MatchloomError, match=match):
            train(pairs, arguments=arguments, config=config, dimensions=6, folder=tmp_path, resume=True)

    again("its learning_rate was 0.02, now 0.1", config=quick(learning_rate=0.1))
    again("its hidden was 6, now 7", hidden=7)
    again("training data, development data or vectors were others", pairs=pairs[:-4])
    with refused("missing", tmp_path / "new"):
        train(pairs, arguments=SMALL, config=QUICK, folder=tmp_path / "new", resume=True)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"cut")
    again("was altered")


def test_interrupted_before_the_first_epoch_ends_leaves_a_usable_matcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("matchloom.training.epochs.step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(colour_pairs(), arguments=SMALL, config=QUICK, dimensions=6, folder=tmp_path)
    assert Matcher.load(tmp_path).score([Pair("red", "green")]).shape == (1,)


def test_collapsed_training_stops_with_one_line() -> None:
    alike = [Pair("same query", "same text", float(n == 0), "q", str(n)) for n in range(3)]
    with refused("failed", "epoch 1"):
        train(alike, arguments=SMALL, config=QUICK, dimensions=6)


@pytest.mark.parametrize(("longest", "told"), [(2, True), (50, False)])
def test_texts_that_are_not_read_to_their_end_are_told(
    longest: int, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", "matchloom"):
        train(colour_pairs(), model="arc_i", arguments={"max_words": longest}, config=quick(epochs=1), dimensions=6)
    assert ("arc_i reads the first 2 words of a text, and" in caplog.text) == told


@pytest.mark.parametrize("name", each_model())
def test_every_model_learns_from_a_few_lists(name: str) -> None:
    # One step in an epoch, and a look after it: a model that starts with equal scores must not seem dead.
    settings = {**model_training(name), "epochs": 2, "check_every": 1, "workers": 1}
    config = TrainConfig(**settings)  # type: ignore[arg-type]
    matcher = train(colour_pairs(40), model=name, config=config, dimensions=6)
    assert len(set(matcher.score(colour_pairs(10)).tolist())) > 1


def test_dead_units_are_noticed_though_the_bias_still_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    biases = []

    def dead(model: torch.nn.Module) -> None:
        init_uniform_(model)
        torch.nn.init.constant_(
            model.head.W_r.bias, -100.0
        )  # every score is the last bias, and no other gradient is left
        model.head.W_s.bias.register_hook(lambda slope: biases.append(float(model.head.W_s.bias)))

    monkeypatch.setattr(mv_lstm, "init_uniform_", dead)
    config = quick(loss="cross_entropy", learning_rate=0.02, epochs=2)
    with refused("failed", "epoch 1"):
        train(colour_pairs(), arguments={**SMALL, "lexical": False}, config=config, dimensions=6)
    assert len(set(biases)) > 1


def test_a_loss_that_stays_at_the_margin_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "matchloom"):
        train(colour_pairs(), arguments=SMALL, config=quick(learning_rate=1e-9, epochs=1), dimensions=6)
        assert "nothing is learnt yet: the loss never fell below the margin (1.0" in caplog.text
        caplog.clear()
        train(colour_pairs(), arguments=SMALL, config=quick(learning_rate=0.02, epochs=8), dimensions=6)
        assert "nothing is learnt" not in caplog.text


def test_a_loss_that_is_not_finite_stops_with_one_line() -> None:
    with refused("failed"):
        train(
            colour_pairs(),
            arguments=SMALL,
            config=quick(loss="squared_error", learning_rate=1e30, clip=0.0, epochs=9),
            dimensions=6,
        )


def test_vectors_start_the_words_and_teach_words_that_training_never_saw() -> None:
    words = ["red", "violet"]
    vectors = WordVectors(words, np.eye(2, 6, dtype=np.float32))
    matcher = train(colour_pairs(), arguments=SMALL, config=quick(freeze_vectors=True, epochs=1), vectors=vectors)
    for n, word in enumerate(words):
        row = matcher.model.encoder.embedding.weight[matcher.vocab.ids([word])[0]]
        assert row.tolist() == np.eye(2, 6)[n].tolist()
    assert (matcher.model.encoder.embedding.weight[0] == 0).all()


def test_nothing_to_read() -> None:
    pairs = [Pair("?!", "...", 1.0, "q", "1"), Pair("?!", "--", 0.0, "q", "2")]
    with refused("no_data", "tokenizer"):
        train(pairs, arguments=SMALL, config=QUICK)


def test_dropout_and_batch_statistics_are_the_same_every_time() -> None:
    arguments = {"blocks": 1, "frame": 12, "features": "pair"}

    def run(seed: int) -> dict[str, bytes]:
        torch.rand(3)  # what was drawn before must not show
        config = TrainConfig(**M2SNet.trained_with, epochs=2, seed=seed)
        matcher = train(colour_pairs(), model="m2s_net", arguments=arguments, config=config, dimensions=6)
        return {name: x.numpy().tobytes() for name, x in matcher.model.state_dict().items()}

    first = run(0)
    assert run(0) == first
    assert run(1) != first
    assert len(first["blocks.0.variance"]) == 32 * 4
    assert first["features.mean"] != bytes(len(first["features.mean"]))


def test_without_a_config_a_model_is_trained_as_its_authors_did() -> None:
    short = colour_pairs(4)
    matcher = train(short, short, model="m2s_net", arguments={"blocks": 1, "frame": 8}, dimensions=4)
    assert matcher.training["config"] == TrainConfig(**M2SNet.trained_with).as_dict()


def test_a_model_sees_the_texts_of_all_pairs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, seen = colour_pairs(6), []
    monkeypatch.setattr(NBOWMLP, "pretrain", lambda self, *given: seen.append(given))
    matcher = train(pairs, model="nbow_mlp", config=quick(epochs=2, seed=5), dimensions=6, folder=tmp_path)
    [(left, right, rows, seed, progress)] = seen
    assert (seed, progress) == (5, False)
    for pair, (i, j, label) in zip(in_order(pairs), rows.tolist(), strict=True):
        for text, table, row in ((pair.query, left, i), (pair.text, right, j)):
            assert pad_texts(table, np.array([int(row)])).words[0].tolist() == matcher.vocab.ids(
                matcher.tokenizer(text)
            )
        assert label == pair.label
    train(pairs, model="nbow_mlp", config=quick(epochs=3, seed=5), dimensions=6, folder=tmp_path, resume=True)
    assert len(seen) == 1


def test_a_text_is_cut_into_words_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    words, spans = Tokenizer.tokenize, Tokenizer._spans

    def counted(self: Tokenizer, text: str) -> list[str]:
        seen[text] += self.kind == "english"  # the others come by their spans
        return words(self, text)

    def counted_spans(self: Tokenizer, text: str) -> list[Span]:
        seen[text] += 1
        return spans(self, text)

    monkeypatch.setattr(Tokenizer, "tokenize", counted)
    monkeypatch.setattr(Tokenizer, "_spans", counted_spans)
    pairs, development = colour_pairs(20), colour_pairs(8, seed=1)
    features = {**SMALL, "lexical": True, "features": "pair"}
    train(pairs, development, arguments=features, config=quick(epochs=3), vectors="skip-gram", dimensions=6)
    assert set(seen) == {text for pair in pairs + development for text in (pair.query, pair.text)}
    assert set(seen.values()) == {1}


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        config = TrainConfig(epochs=2, patience=2, batch=64)
        train(colour_pairs(20), colour_pairs(8, seed=1), arguments=SMALL, config=config, folder=tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == [
        "checkpoint.json",
        "checkpoint.safetensors",
        "log.jsonl",
        "matcher.json",
        "vocab.txt",
        "weights.safetensors",
    ]
    for file in files:
        if file != "log.jsonl":  # in which the clock is
            assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file
    log = [json.loads(line) for line in (tmp_path / "one" / "log.jsonl").read_text().splitlines()]
    assert all(entry["pairs_per_second"] > 0 and entry["seconds"] >= 0 for entry in log)


def test_a_resumed_run_keeps_the_clock_of_the_first(tmp_path: Path) -> None:
    def run(epochs: int, *, resume: bool = False) -> list[dict[str, float]]:
        config = TrainConfig(epochs=epochs, patience=9, batch=64)
        train(colour_pairs(20), colour_pairs(8, seed=1), arguments=SMALL, config=config, folder=tmp_path, resume=resume)
        return [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]

    first = run(2)
    assert run(3, resume=True)[:2] == first
    (tmp_path / "log.jsonl").write_text("[[")
    assert [entry["epoch"] for entry in run(4, resume=True)] == [1, 2, 3, 4]


def test_a_folder_takes_one_run_at_a_time(tmp_path: Path) -> None:
    def second(_: dict[str, float]) -> None:
        with pytest.raises(MatchloomError, match="is being written by another run; wait"):
            train(colour_pairs(20), arguments=SMALL, config=TrainConfig(epochs=1), folder=tmp_path, overwrite=True)

    left = tmp_path / ".weights.safetensors.999999999-1.tmp"  # no process has such a number
    left.write_text("half")
    train(colour_pairs(20), arguments=SMALL, config=TrainConfig(epochs=1), folder=tmp_path, on_epoch=second)
    assert not left.exists()
    assert not (tmp_path / ".lock").exists()


def paraphrases(count: int) -> list[Pair]:
    """Independent pairs of coloured things, a third of which match."""
    colours = ["red", "green", "blue", "white", "black"]
    found = []
    for n in range(count):
        colour = colours[n % 5]
        other = colour if n % 3 == 0 else colours[(n + 1 + n % 4) % 5]
        found.append(
            Pair(f"thing {n} is {colour}", f"item {n} looks {other}", float(other == colour), f"q{n}", f"t{n}")
        )
    return found


def test_independent_pairs_are_told_apart_by_a_threshold_that_is_kept(tmp_path: Path) -> None:
    config = quick(loss="cross_entropy", optimizer="adam", learning_rate=0.05, epochs=6)
    pairs, development = paraphrases(90), [p._replace(query=f"so {p.query}") for p in paraphrases(60)]
    matcher = train(pairs, development, arguments=SMALL, config=config, dimensions=6, folder=tmp_path / "run")
    assert set(matcher.training["best"]) == {"epoch", "step", "loss", "AP"}  # no measure of lists
    scores = matcher.score(development)
    right = np.array([pair.label == 1 for pair in development])
    expected = Calibration.fit(scores, right)
    assert matcher.threshold == pytest.approx(expected.threshold)
    np.testing.assert_allclose(matcher.probabilities(scores), expected.probabilities(scores), rtol=1e-5)
    report = evaluate_pairs(matcher, development)
    assert report.values["accuracy"] == pytest.approx(((scores >= expected.threshold) == right).mean())
    loaded = Matcher.load(tmp_path / "run")
    assert loaded.threshold == matcher.threshold
    np.testing.assert_array_equal(loaded.probabilities(scores), matcher.probabilities(scores))


def test_the_loss_is_one_that_can_learn_from_the_pairs() -> None:
    settings = {"arguments": SMALL, "dimensions": 6, "epochs": 1, "hold_out": 0}
    assert train(paraphrases(60), **settings).training["config"]["loss"] == "cross_entropy"
    assert train(colour_pairs(), **settings).training["config"]["loss"] == "hinge"
    with refused("bad_labels", "cross_entropy"):
        train(paraphrases(60), loss="hinge", **settings)
    some = [*paraphrases(60), Pair("thing 0 is red", "item 0 looks blue", 0.0, "q0", "t")]  # one list to learn from
    assert train(some, **settings).training["config"]["loss"] == "hinge"


def test_lists_leave_the_threshold_where_a_match_is_as_likely_as_none() -> None:
    config = quick(loss="cross_entropy", optimizer="adam", learning_rate=0.05, epochs=2)
    matcher = train(colour_pairs(), colour_pairs(), arguments=SMALL, config=config, dimensions=6)
    assert "RR" in matcher.training["best"]
    assert matcher.threshold == 0


def test_no_pairs_at_all_are_refused() -> None:
    pairs = iter(colour_pairs())
    list(pairs)
    with refused("no_data", "there"):
        train(pairs)
