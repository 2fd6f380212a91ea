from __future__ import annotations

import inspect
import json
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchloom.training.epochs
import matchloom.training.run
from matchloom import Matcher, Pair, TrainConfig, train
from matchloom.cli.arguments import parse_arguments
from matchloom.cli.train import command
from matchloom.models import model_arguments
from matchloom.models.m2s_net import M2SNet
from matchloom.text.vectors import WordVectors, write_vectors
from tests.cli.conftest import NAMES, SMALL, Run, error_of
from tests.encoders.making import write_folder
from tests.refusing import refused


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The epochs of a run without what depends on the clock."""
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    clock = ("seconds", "pairs_per_second")
    return [{key: value for key, value in json.loads(line).items() if key not in clock} for line in lines]


def weights(folder: Path) -> dict[str, Any]:
    return {name: x.numpy().tobytes() for name, x in Matcher.load(folder).model.state_dict().items()}


def test_every_setting_of_a_run_is_an_option_with_the_same_default() -> None:
    options = inspect.signature(command).parameters
    for field in fields(TrainConfig):
        assert options[field.name].default == field.default, field.name
    library = inspect.signature(matchloom.training.run.train).parameters
    for name in ("model", "dimensions", "min_count", "resume", "device"):
        assert options[name].default == library[name].default, name
    assert options["max_words"].default == matchloom.training.run.MAX_WORDS


def test_epochs_and_what_to_type_next_are_printed(run: Run, corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my runs" / "one"
    given = (corpus / "train.tsv", "--dev", corpus / "dev.tsv", "--out", folder, *SMALL)
    result = run("train", *given, "--set", "slices=2", "--measure", "P@1")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    log = log_of(folder)
    assert len(log) == 3
    for line, entry in zip(lines, log, strict=False):
        assert line.split()[:6] == [
            "epoch",
            str(entry["epoch"]),
            "loss",
            f"{entry['loss']:.4f}",
            "P@1",
            f"{entry['P@1']:.4f}",
        ]
        assert "pairs/s" in line
    best = max(log, key=lambda entry: entry["P@1"])
    assert (
        f"The matcher is in {folder}: epoch {best['epoch']}, P@1 {best['P@1']:.4f} on the development pairs." in lines
    )
    assert "held out" not in result.err
    following = [shlex.split(line) for line in lines[lines.index("Next:") + 1 :]]
    assert [words[1] for words in following] == ["evaluate", "rank", "explain"]
    assert following[0][3] == str(corpus / "test.tsv"), "the test file beside the training file"
    for words in following:
        assert words[0] == "matchloom"
        assert run(*words[1:]).code == 0, "what is said can be typed"
    kept = {"hidden": 8, "units": 8, "lexical": True, "slices": 2}
    assert Matcher.load(folder).arguments == {**model_arguments("mv_lstm"), **kept}, "defaults may change"


def test_without_dev_a_tenth_is_set_aside_by_the_seed(run: Run, corpus: Path, tmp_path: Path) -> None:
    def aside(name: str, seed: int) -> tuple[str, dict[str, Any]]:
        result = run("train", corpus / "train.tsv", "--out", tmp_path / name, *SMALL, "--seed", seed)
        assert result.code == 0, result.err
        return result.err, weights(tmp_path / name)

    said, first = aside("a", 5)
    assert "2 of 24 questions" in said
    assert "seed 5" in said
    assert aside("b", 5)[1] == first
    assert aside("c", 6)[1] != first
    about = Matcher.load(tmp_path / "a").training
    assert (about["pairs"], about["development_pairs"]) == (66, 6)


def test_an_existing_matcher_is_kept_unless_told_otherwise(
    run: Run, corpus: Path, copy_of_trained: Path, tmp_path: Path
) -> None:
    before = weights(copy_of_trained)
    given = (corpus / "train.tsv", "--dev", corpus / "dev.tsv", "--out", copy_of_trained, *SMALL)
    message = error_of(run("train", *given))
    assert "--resume" in message
    assert "--overwrite" in message
    assert weights(copy_of_trained) == before
    assert "give one of them" in error_of(run("train", *given, "--resume", "--overwrite"))
    result = run("train", *given, "--overwrite", "--seed", "1")
    assert result.code == 0, result.err
    assert sum(line.startswith("epoch") for line in result.out.splitlines()) == 3
    assert weights(copy_of_trained) != before


def test_resume_goes_on_where_a_shorter_run_ended(run: Run, corpus: Path, tmp_path: Path) -> None:
    given = [corpus / "train.tsv", "--dev", corpus / "dev.tsv", *SMALL]
    assert run("train", *given, "--out", tmp_path / "whole").code == 0
    assert run("train", *given, "--out", tmp_path / "parts", "--epochs", 1).code == 0
    result = run("train", *given, "--out", tmp_path / "parts", "--resume")
    assert result.code == 0, result.err
    assert [line.split()[1] for line in result.out.splitlines() if line.startswith("epoch")] == ["2", "3"]
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert log_of(tmp_path / "parts") == log_of(tmp_path / "whole")
    changed = run("train", *given, "--out", tmp_path / "parts", "--resume", "--margin", 2)
    assert "margin was 1.0, now 2.0" in error_of(changed)
    assert "no checkpoint to resume from" in error_of(run("train", *given, "--out", tmp_path / "new", "--resume"))


@pytest.mark.parametrize(("epochs", "steps"), [(0, 1), (2, 14)])  # an epoch has six steps
def test_ctrl_c_says_what_is_there(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: int, steps: int
) -> None:
    step, done = matchloom.training.epochs.step, []

    def interrupted(*given: Any) -> Any:
        done.append(1)
        if len(done) > steps:
            raise KeyboardInterrupt
        return step(*given)

    given = (corpus / "train.tsv", "--dev", corpus / "dev.tsv", "--out", tmp_path / "run", *SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(matchloom.training.epochs, "step", interrupted)
        result = run("train", *given)
    assert result.code == 130
    assert len(result.err.splitlines()) == 1
    if epochs:
        log = log_of(tmp_path / "run")
        assert len(log) == epochs
        best = max(log, key=lambda entry: (entry["RR"], -entry["epoch"]))
        assert f"holds the matcher of epoch {best['epoch']}; the same command with --resume continues" in result.err
    else:
        assert "is untrained; start again with --overwrite" in result.err
    assert run("score", tmp_path / "run", corpus / "test.tsv").code == 0, "the matcher is usable"
    assert run("train", *given, "--resume" if epochs else "--overwrite").code == 0
    assert run("train", *given[:-1], "3", "--out", tmp_path / "whole").code == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_first_vectors(run: Run, corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    write_vectors(path, WordVectors(["bread", "elsewhere"], np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)))
    given = (corpus / "train.tsv", "--dev", corpus / "dev.tsv", *SMALL, "--freeze-vectors")
    assert run("train", *given, "--out", tmp_path / "file", "--vectors", path).code == 0
    matcher = Matcher.load(tmp_path / "file")
    rows = matcher.model.encoder.embedding.weight[matcher.vocab.ids(["bread", "elsewhere"])].tolist()
    assert rows == [[1, 2, 3], [4, 5, 6]]
    assert run("train", *given, "--out", tmp_path / "random", "--vectors", "random").code == 0
    assert run("train", *given, "--out", tmp_path / "own").code == 0
    assert weights(tmp_path / "random") != weights(tmp_path / "own")
    assert "nowhere.txt cannot be read" in error_of(
        run("train", *given, "--out", tmp_path / "n", "--vectors", "nowhere.txt")
    )
    path.write_text("zzz 1 2\n")
    assert "has a vector" in error_of(run("train", *given, "--out", tmp_path / "n", "--vectors", path))


def test_the_tokenizer_is_kept(run: Run, corpus: Path, tmp_path: Path) -> None:
    given = (corpus / "train.tsv", "--out", tmp_path / "run", *SMALL, "--tokenizer", "whitespace", "--max-words", 4)
    assert run("train", *given).code == 0
    tokenizer = Matcher.load(tmp_path / "run").tokenizer
    assert tokenizer("For bread, flour and water") == ["for", "bread,", "flour", "and"]


def test_arguments_are_read_by_the_type_of_their_default() -> None:
    settings = ["hidden=7", "interaction=cosine", "lexical=TRUE"]
    assert parse_arguments("mv_lstm", settings) == {"hidden": 7, "interaction": "cosine", "lexical": True}
    assert parse_arguments("mv_lstm", ["lexical=0"]) == {"lexical": False}
    for wrong in ("hidden=2.5", "hidden", "colour=red", "lexical=maybe", "=3"):
        with refused("bad_value", "mv_lstm", "50"):
            parse_arguments("mv_lstm", [wrong])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--set", "k=many"], "k is a whole number; mv_lstm takes hidden=50"),
        (["--set", "interaction=telepathy"], "choose one of cosine, bilinear, tensor"),
        (["--set", "k=0"], "at least 1"),
        (["--model", "magic"], "choose one of mv_lstm"),
        (["--measure", "Warp@9"], "measure 'Warp@9' is unknown"),
        (["--loss", "sad"], "choose one of hinge"),
        (["--learning-rate", "-1"], "learning_rate must be above 0"),
        (["--tokenizer", "klingon"], "a language: english"),
        (["--device", "warp"], "cpu always can"),
        (["--dev", "none.tsv"], "none.tsv cannot be read"),
    ],
)
def test_wrong_options(run: Run, corpus: Path, tmp_path: Path, options: list[str], expected: str) -> None:
    assert expected in error_of(run("train", corpus / "train.tsv", "--out", tmp_path / "run", *SMALL, *options))
    assert not (tmp_path / "run" / "matcher.json").exists()


def test_a_folder_that_cannot_be_made(run: Run, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    message = error_of(run("train", corpus / "train.tsv", "--out", tmp_path / "file" / "run", *SMALL))
    assert "cannot be made" in message


def test_texts_of_one_word_and_of_none(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "odd.tsv"
    lines = [f"{name}\t{other}\t{int(name == other)}" for name in NAMES for other in [*NAMES[:3], name]]
    lines += ["bread\t\t0", "\tword\t1", "\tother\t0", "?\t!\t1", "?\t...\t0"]
    pairs.write_text("\n".join(["query\ttext\tlabel", *lines]) + "\n")
    result = run("train", pairs, "--out", tmp_path / "run", *SMALL)
    assert result.code == 0, result.err
    scores = Matcher.load(tmp_path / "run").score([Pair("ink", "ink"), Pair("ink", "salt"), Pair("", "?")])
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


TINY = ["--set", "modalities=2", "--set", "blocks=1", "--set", "frame=8", "--dimensions", "8"]


def test_a_model_is_trained_as_its_authors_did_unless_told_otherwise(run: Run, corpus: Path, tmp_path: Path) -> None:
    given = (corpus / "train.tsv", "--dev", corpus / "dev.tsv", "--model", "m2s_net", *TINY, "--epochs", 1)
    result = run("train", *given, "--out", tmp_path / "theirs")
    assert result.code == 0, result.err
    assert "m2s_net is trained with settings of its own: loss cross_entropy, optimizer adadelta" in result.err
    theirs = Matcher.load(tmp_path / "theirs").training["config"]
    assert theirs == TrainConfig(**M2SNet.trained_with, epochs=1).as_dict()
    assert "AP" in result.out
    assert run("train", *given, "--out", tmp_path / "ours", "--batch", 128, "--measure", "P@1").code == 0
    ours = Matcher.load(tmp_path / "ours").training["config"]
    assert ours == {**theirs, "batch": 128, "measure": "P@1"}


def test_several_seeds_and_their_spread(run: Run, corpus: Path, tmp_path: Path) -> None:
    given = [corpus / "train.tsv", "--dev", corpus / "dev.tsv", *SMALL, "--vectors", "random"]
    out = tmp_path / "runs"
    result = run("train", *given, "--out", out, "--seed", 3, "--seeds", 3)
    assert result.code == 0, result.err
    best = {seed: Matcher.load(out / f"seed-{seed}").training["best"] for seed in (3, 4, 5)}
    values = [entry["RR"] for entry in best.values()]
    lines = [line.split() for line in result.out.splitlines()]
    for seed, entry in best.items():
        assert [str(seed), str(entry["epoch"]), f"{entry['RR']:.4f}"] in lines
    assert ["mean", f"{np.mean(values):.4f}"] in lines
    assert ["deviation", f"{np.std(values, ddof=1):.4f}"] in lines
    chosen = max(best, key=lambda seed: (best[seed]["RR"], -seed))
    assert f"The matcher is in {out / f'seed-{chosen}'}: epoch" in result.out
    assert run("train", *given, "--out", tmp_path / "four", "--seed", 4).code == 0
    assert weights(tmp_path / "four") == weights(out / "seed-4"), "a seed's run is the run of that seed"
    assert len({str(weights(out / f"seed-{seed}")) for seed in (3, 4, 5)}) == 3


@pytest.mark.slow
def test_several_seeds_go_on_where_they_were_stopped(run: Run, corpus: Path, tmp_path: Path) -> None:
    given = [corpus / "train.tsv", "--dev", corpus / "dev.tsv", *SMALL, "--vectors", "random", "--seeds", 2]
    assert run("train", *given, "--out", tmp_path / "whole").code == 0
    short = [*given[:-1], 1, "--epochs", 1, "--out", tmp_path / "parts" / "seed-0"]
    assert run("train", *short).code == 0
    assert "seed-0 already holds a matcher" in error_of(run("train", *given, "--out", tmp_path / "parts"))
    result = run("train", *given, "--out", tmp_path / "parts", "--resume")
    assert result.code == 0, result.err
    for name in ("seed-0", "seed-1"):
        assert weights(tmp_path / "parts" / name) == weights(tmp_path / "whole" / name)


def test_python_and_the_command_train_the_same_matcher(run: Run, tmp_path: Path) -> None:
    things = ["loom", "mill", "kiln", "forge", "anvil", "lathe"]
    pairs = [(f"{asked} the {thing}", f"Call the {thing} smith.") for thing in things for asked in ("mend", "repair")]
    file = tmp_path / "faq.tsv"
    file.write_text("question\tanswer\n" + "".join(f"{q}\t{a}\n" for q, a in pairs), encoding="utf-8")
    options = ("--model", "lstm_rnn", "--epochs", "2", "--dimensions", "5", "--set", "hidden=3")
    result = run("train", file, "--out", tmp_path / "command", *options)
    assert result.code == 0, result.err
    assert "ranked against the whole collection" in result.err
    train(
        reversed(pairs),
        model="lstm_rnn",
        epochs=2,
        dimensions=5,
        arguments={"hidden": 3},
        folder=tmp_path / "python",
    )
    assert weights(tmp_path / "command") == weights(tmp_path / "python")


def test_a_pretrained_encoder_takes_the_place_of_vectors(run: Run, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    encoder = write_folder(tmp_path / "small")
    given = ("train", corpus / "train.tsv", "--dev", corpus / "dev.tsv", "--encoder", encoder)
    result = run(*given, "--out", tmp_path / "run", "--epochs", "1")
    assert result.code == 0, result.err
    assert "late_interaction is trained with settings of its own: loss softmax, optimizer adamw" in result.err
    assert Matcher.load(tmp_path / "run").name == "late_interaction"
    for wrong in (("--vectors", "random"), ("--dimensions", "9")):
        told = error_of(run(*given, "--out", tmp_path / "other", *wrong))
        assert f"{wrong[0]} is for word vectors, which --encoder replaces" in told
    told = error_of(run(*given[:-1], "nowhere", "--out", tmp_path / "other"))
    assert "encoder 'nowhere' is not found" in told


def test_independent_pairs_give_a_threshold_that_evaluate_uses(run: Run, tmp_path: Path) -> None:
    lines = ["query\ttext\tlabel"]
    lines += [f"the {w} {n}\tthis {w if n % 2 else 'car'} {n}\t{n % 2}" for n in range(30) for w in ("cat", "dog")]
    path = tmp_path / "same.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    error = error_of(run("train", path, "--out", tmp_path / "m", *SMALL, "--loss", "hinge"))
    assert "train independent pairs with the loss cross_entropy" in error
    result = run("train", path, "--out", tmp_path / "m", *SMALL)
    assert result.code == 0, result.err
    assert "trained as independent pairs, with the loss cross_entropy" in result.err
    run("train", path, "--out", tmp_path / "same", *SMALL, "--loss", "cross_entropy")
    assert weights(tmp_path / "m") == weights(tmp_path / "same")
    assert "Independent labelled pairs: the AP over all that are held out chooses the epoch" in result.err
    assert "on the development pairs" in result.out
    result = run("evaluate", tmp_path / "m", path)
    assert result.code == 0, result.err
    assert "accuracy" in result.out
    assert f"a match from {Matcher.load(tmp_path / 'm').threshold:.4g} on" in result.out
