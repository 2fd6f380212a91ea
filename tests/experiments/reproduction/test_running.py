"""Runs of a table: manifests, run files, resuming, sharing, failing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction import rows, running
from experiments.reproduction.results import Place, read_results
from experiments.reproduction.running import plan, reproduce
from experiments.reproduction.tables import read_table
from matchloom.artifact import try_lock
from matchloom.data.formats import read_run
from matchloom.evaluation import evaluate_pairs
from matchloom.fitting.calibrated import Calibrated
from matchloom.lexical import fit_scorer
from matchloom.matcher import Matcher
from matchloom.text.vectors import train_vectors
from matchloom.training.epochs import Training
from matchloom.types import MatchloomError
from tests.experiments.reproduction.conftest import cloth, colours


def run(out: Path, name: str = "colours", data: Path | None = None, **options: Any) -> list[str]:
    """Run what is left of a table, and return what was said; nothing may fail."""
    said: list[str] = []
    doing = {key: options.pop(key) for key in ("keep",) if key in options}
    planned = plan(read_table(name), out, **options)
    assert reproduce(planned, data, again=options.get("again", False), tell=said.append, **doing) == 0, said
    return said


def entries(out: Path, name: str = "colours") -> dict[str, list[dict[str, Any]]]:
    return dict(read_results(out / f"{name}.json")["systems"])


def test_a_run_leaves_its_manifest_and_its_scores(tmp_path: Path) -> None:
    said = run(tmp_path, only="Net")
    assert len(said) == 1
    assert said[0].startswith("Net, seed 0: development P@1 0.")
    assert "test" not in said[0]
    entry = entries(tmp_path)["Net"][0]
    assert entry["seed"] == 0
    assert len(entry["data"]) == 64
    assert entry["commit"] == entry["commit"].strip() != ""
    assert entry["settings"]["model"] == "mv_lstm"
    assert entry["settings"]["arguments"]["hidden"] == 4
    assert entry["settings"]["arguments"]["lexical"] is False  # the whole of them, as resolved
    assert entry["settings"]["train"]["learning_rate"] == 0.01
    assert entry["settings"]["train"]["clip"] == 5.0
    assert entry["machine"]["torch"]
    assert entry["minutes"] >= 0
    assert entry["cpu_seconds"] > 0
    assert entry["best_epoch"]["epoch"] in (1, 2, 3)
    assert entry["lowest"]["P@1"] <= entry["test"]["P@1"] <= entry["highest"]["P@1"]
    assert set(entry["per_query"]) == {f"q{n}" for n in range(10)}
    assert {probe["name"] for probe in entry["probes"]} >= {"queries shuffled"}
    assert entry["run"] == "colours/Net, seed 0.run.gz"
    lines = list(read_run(tmp_path / entry["run"]))
    assert len(lines) == 40
    best = {line.query_id: line.text_id for line in lines if line.rank == 1}
    assert sum(text == f"{query}t0" for query, text in best.items()) / 10 == entry["test"]["P@1"]
    assert sorted(path.name for path in (tmp_path / "colours").iterdir()) == ["Net, seed 0.run.gz"]
    done = read_results(tmp_path / "colours.json")
    assert done["protocol"] == "lists of four"
    assert done["sizes"] == {"train": 96, "development": 40, "test": 40}


def test_a_row_without_test_figures_has_its_development_scores(tmp_path: Path) -> None:
    run(tmp_path, only="Net, half")
    entry = entries(tmp_path)["Net, half"][0]
    assert "test" not in entry
    assert entry["run_of"] == "development"
    assert len(list(read_run(tmp_path / entry["run"]))) == 40


def test_a_row_whose_epoch_was_chosen_on_test_has_its_best_look_there(tmp_path: Path, paper: Path) -> None:
    row = 'name = "Net, half"\nmodel = "mv_lstm"'
    content = (paper / "colours.toml").read_text(encoding="utf-8")
    (paper / "colours.toml").write_text(
        content.replace(row, f"{row}\nchosen_on_test = true").replace("test = false", "")
    )
    run(tmp_path, only="Net, half")
    entry = entries(tmp_path)["Net, half"][0]
    assert entry["best_epoch"]["RR"] == pytest.approx(entry["test"]["RR"])
    assert entry["best_epoch"]["RR"] != pytest.approx(entry["development"]["RR"])


def test_rows_share_the_vectors_of_a_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(rows, "train_vectors", lambda *a, **k: made.append(k["seed"]) or train_vectors(*a, **k))
    run(tmp_path, only="Ne")
    assert made == [0]
    assert set(entries(tmp_path)) == {"Net", "Net, half"}


def test_two_runs_of_one_row_and_seed_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    for name in ("first", "second"):
        run(tmp_path / name, only="Net")
    first, second = ((tmp_path / name / "colours" / "Net, seed 0.run.gz").read_bytes() for name in ("first", "second"))
    assert first == second
    run(tmp_path / "first", only="Net", seeds=[7])
    assert gzip.decompress((tmp_path / "first" / "colours" / "Net, seed 7.run.gz").read_bytes()) != gzip.decompress(
        first
    )


def test_what_is_done_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, only="Random")
    assert [entry["seed"] for entry in entries(tmp_path)["Random"]] == [0, 1]
    assert run(tmp_path, only="Random") == []
    assert run(tmp_path, only="Random", seeds=[1, 5, 5]) != []
    assert [entry["seed"] for entry in entries(tmp_path)["Random"]] == [0, 1, 5]
    assert len(run(tmp_path, only="Random", again=True)) == 2
    assert [entry["seed"] for entry in entries(tmp_path)["Random"]] == [0, 1, 5]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, at a place of the test's choice."""


def interrupt(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    """Ctrl-C before the next epoch, after so many."""
    whole, count = Training._round, iter(range(100))

    def some(self: Training, *given: Any) -> None:
        if next(count) == rounds:
            raise Interrupted
        whole(self, *given)

    monkeypatch.setattr(Training, "_round", some)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [0, 2])
def test_an_interrupted_run_goes_on_to_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    run(tmp_path / "whole", only="Net")
    with monkeypatch.context() as patch:
        interrupt(patch, rounds)
        with pytest.raises(Interrupted):
            run(tmp_path / "parts", only="Net")
    assert not (tmp_path / "parts" / "colours.json").exists()
    epochs = []
    whole = Training._round
    monkeypatch.setattr(
        Training, "_round", lambda self, place, *rest: (epochs.append(place.epoch), whole(self, place, *rest))
    )
    run(tmp_path / "parts", only="Net")
    assert epochs == list(range(rounds, 3))
    scores = ((tmp_path / name / "colours" / "Net, seed 0.run.gz").read_bytes() for name in ("whole", "parts"))
    assert len(set(scores)) == 1
    entry = entries(tmp_path / "parts")["Net"][0]
    assert ("resumed_at" in entry) == (rounds > 0)
    assert not (tmp_path / "parts" / "colours" / "Net, seed 0").exists()


@pytest.mark.parametrize("how", ["settings", "data", "again", "damaged"])
def test_a_run_that_was_begun_otherwise_starts_anew(
    tmp_path: Path, paper: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, 1)
        with pytest.raises(Interrupted):
            run(tmp_path, only="Net, half")
    toml = paper / "colours.toml"
    if how == "settings":
        toml.write_text(toml.read_text().replace("learning_rate = 0.01", "learning_rate = 0.02"))
    elif how == "data":
        monkeypatch.setitem(running.TASKS, "colours", lambda data, seed: colours(data, seed + 1))
    elif how == "damaged":
        (tmp_path / "colours" / "Net, half, seed 0" / rows.BEGUN).write_text("{")
    run(tmp_path, only="Net, half", again=how == "again")
    assert "resumed_at" not in entries(tmp_path)["Net, half"][0]


def test_a_matcher_is_kept_on_request(tmp_path: Path) -> None:
    run(tmp_path, only="Net, half", keep=True)
    folder = tmp_path / "colours" / "Net, half, seed 0"
    task = colours(tmp_path, 0)
    scores = {(line.query_id, line.text_id): line.score for line in read_run(folder.with_name(f"{folder.name}.run.gz"))}
    kept = Matcher.load(folder).score(task.development)
    assert [float(str(score)) for score in kept] == [scores[p.query_id, p.text_id] for p in task.development]
    assert not {"checkpoint.safetensors", rows.BEGUN} & {path.name for path in folder.iterdir()}


def test_processes_share_the_work(tmp_path: Path) -> None:
    place = Place(tmp_path, "colours")
    planned = plan(read_table("colours"), tmp_path, only="Random")
    (tmp_path / "colours").mkdir()
    said: list[str] = []
    with try_lock(place.lock("Random", 0)) as ours:
        assert ours
        reproduce(planned, None, tell=said.append)
    assert said[0] == "Random, seed 0: another process is at it."
    assert [entry["seed"] for entry in entries(tmp_path)["Random"]] == [1]
    reproduce(planned, None, tell=said.append)  # an old plan: seed 1 was done meanwhile
    assert len(said) == 3
    assert not list((tmp_path / "colours").glob("*.lock"))


def test_a_row_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(row: Any, *given: Any, **named: Any) -> Any:
        if row.name == "BM25":
            raise MatchloomError("no loom")
        return whole(row, *given, **named)

    whole = rows.run_row
    monkeypatch.setattr(running, "run_row", fails)
    said: list[str] = []
    table = read_table("colours")
    assert reproduce(plan(table, tmp_path, only="M"), None, tell=said.append) == 1
    assert said == ["BM25, seed 0 failed: no loom"]
    assert reproduce(plan(table, tmp_path, only="Random"), None, tell=said.append) == 0


def test_independent_pairs_have_a_threshold_from_development_pairs(tmp_path: Path, data: Path) -> None:
    run(tmp_path, "cloth", data)
    found = entries(tmp_path, "cloth")
    task = cloth(data, 0)
    bm25 = fit_scorer("bm25", task.collection, tokenizer=task.tokenizer)
    expected = evaluate_pairs(Calibrated.fit(bm25, task.development, task.tokenizer), task.test, baselines=False)
    assert found["BM25"][0]["test"] == {name: expected.values[name] for name in ("accuracy", "F1", "AP")}
    assert found["BM25"][0]["threshold"] == expected.threshold
    assert set(found["Net"][0]["development"]) == {"accuracy", "F1", "AP"}
    assert len(found["Net"][0]["per_query"]) == 40
    assert len(list(read_run(tmp_path / found["Net"][0]["run"]))) == 40


def test_a_smoke_run_is_short_and_apart(tmp_path: Path) -> None:
    run(tmp_path, only="N", fast=True, seeds=[3, 4])
    assert not (tmp_path / "colours.json").exists()
    done = json.loads((tmp_path / "colours.fast.json").read_text())
    assert done["fast"] is True
    (entry,) = done["systems"]["Net"]
    assert entry["fast"] is True
    assert entry["seed"] == 3
    assert entry["settings"]["train"]["epochs"] == 1
    assert entry["run"] == "colours.fast/Net, seed 3.run.gz"


def test_what_will_be_done_is_said_with_the_time_it_took(tmp_path: Path) -> None:
    lines = plan(read_table("colours"), tmp_path).lines()
    assert lines == [
        "colours: 5 runs, about 3 min on the project's machine, and 2 rows of unknown length.",
        "  Random: seeds 0, 1, about 1 s each",
        "  BM25: seed 0, nobody knows how long",
        "  Net: seed 0, about 2 min each",
        "  Net, half: seed 0, nobody knows how long",
    ]
    run(tmp_path, only="Random")
    assert plan(read_table("colours"), tmp_path).lines()[0].startswith("colours: 2 of 5 runs done, about 2 min on")
    assert plan(read_table("colours"), tmp_path, only="Random").lines() == [
        f"colours: 2 runs, done already, in {tmp_path / 'colours.json'}."
    ]
    assert "mean nothing" in plan(read_table("colours"), tmp_path, fast=True).lines()[0]
    assert plan(read_table("cloth"), tmp_path).lines()[0] == "cloth: 2 runs, time unknown."


def test_a_row_of_no_time_to_speak_of_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_all_minutes", lambda: {"colours": {"Random": 0.0}})
    assert plan(read_table("colours"), tmp_path, only="Random").lines()[0].startswith("colours: 2 runs, about 1 s on")
