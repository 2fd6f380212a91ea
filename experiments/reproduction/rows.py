"""One row of a table with one seed: trained or fitted, measured, and what a manifest says of it."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

from experiments.corpora.subsets import both_labels
from experiments.reproduction.measuring import measure_row, write_scores
from experiments.reproduction.provenance import commit, data_digest, machine
from experiments.reproduction.results import Entry, Place
from experiments.reproduction.tables import PaperTable, Row
from experiments.reproduction.tasks import PaperTask
from matchloom.artifact import holds, remove
from matchloom.basics.files import atomic_write, make_folder
from matchloom.comparison import System, make_scorer, seconds_before
from matchloom.matcher import NOTHING_LEARNT, Matcher
from matchloom.models import MODELS, model_arguments, model_training
from matchloom.text.vectors import WordVectors, train_vectors
from matchloom.training.prepare import settings_of
from matchloom.types import MatchloomError, Scorer

BEGUN = "begun.json"  # in the folder of a run that is not done: what it must have in common with one that goes on


class Prepared(NamedTuple):
    """A task, and what every manifest says of it and of the program that prepared it.

    `vectors` are those that were trained on its texts so far, by length and seed: rows share them.
    """

    task: PaperTask
    data: str
    commit: str
    vectors: dict[tuple[int, int], WordVectors]

    @classmethod
    def of(cls, task: PaperTask) -> Prepared:
        """Of a task and the sources as they are now."""
        return cls(task, data_digest(task), commit(), {})


def run_row(
    row: Row, table: PaperTable, prepared: Prepared, seed: int, place: Place, *, again: bool = False, keep: bool = False
) -> Entry:
    """Run one row with one seed, write its run file, and return its manifest.

    A run that was interrupted goes on from its last epoch, unless `again` or it was begun with other settings or data.

    Args:
        row: Of the table.
        table: It names measures, subsets and what all rows share.
        prepared: The table's task.
        seed: Of the parameters, the order, the draws and the word vectors.
        place: Where everything is written.
        again: Discard what an interrupted run left.
        keep: Leave the matcher in the run's folder.
    """
    clock, cpu = time.perf_counter(), time.process_time()
    folder, settings = place.folder(row.name, seed), resolved(row, table, seed)
    begun_at: str | None = None  # the commit of the run that this one goes on with
    if row.model in MODELS:
        begun = {"settings": settings, "data": prepared.data}
        begun_at = _resumable(folder, begun, again)
        if begun_at is None:
            _begin(folder, {**begun, "commit": prepared.commit})
    before = 0.0 if begun_at is None else seconds_before(folder)
    scorer = _scorer(row, table, prepared, seed, folder)
    measured = measure_row(scorer, row, table, prepared.task)
    run_file = place.run_file(row.name, seed)
    write_scores(run_file, measured, row.name)
    entry: Entry = {
        "seed": seed,
        "commit": begun_at or prepared.commit,
        **({"resumed_at": prepared.commit} if begun_at is not None else {}),
        **({"fast": True} if place.fast else {}),
        "data": prepared.data,
        "settings": settings,
        "machine": machine(),
        **measured.figures,
        "run": run_file.relative_to(place.out).as_posix(),
        "run_of": measured.part,
        **_learnt(scorer),
        "minutes": round((time.perf_counter() - clock + before) / 60, 2),
        "cpu_seconds": round(time.process_time() - cpu, 1),  # of this process: of a resumed run since it went on
    }
    if row.model in MODELS:
        _end(folder, keep)
    return entry


def _learnt(scorer: Scorer) -> dict[str, Any]:
    """The epoch that was chosen, and why it has learnt nothing, if it has not."""
    if not isinstance(scorer, Matcher):
        return {"best_epoch": {}}
    nothing = {key: value for key, value in scorer.training.items() if key == NOTHING_LEARNT}
    return {"best_epoch": dict(scorer.training["best"]), **nothing}


def resolved(row: Row, table: PaperTable, seed: int) -> dict[str, Any]:
    """The full settings of a run: what the table and the row say, on top of what is the paper's."""
    if row.model not in MODELS:
        return {"model": row.model}
    arguments, config = settings_of(row.model, row.arguments, None, {**changes(row, table), "seed": seed}, paper=True)
    return {
        "model": row.model,
        "arguments": {**model_arguments(row.model), **arguments},
        "train": config.as_dict(),
        "dimensions": table.dimensions,
    }


def changes(row: Row, table: PaperTable) -> dict[str, Any]:
    """Settings of the training: the table's, what the model's authors had, and the row's own."""
    return {**table.train, **model_training(row.model), **row.train}


def _scorer(row: Row, table: PaperTable, prepared: Prepared, seed: int, folder: Path) -> Scorer:
    trained, task = row.model in MODELS, prepared.task
    try:
        return make_scorer(
            System(row.name, row.model, row.arguments, changes(row, table) if trained else {}),
            task.train,
            both_labels(task.test) if row.chosen_on_test else task.development,
            tokenizer=task.tokenizer,
            vectors=_vectors(table, prepared, seed) if trained else task.vectors,
            collection=task.collection,
            folder=folder if trained else None,
            resume=trained,
            seed=seed,
            paper=True,
            progress=True,
        )
    except MatchloomError as error:
        if trained and holds(folder, "checkpoint"):
            raise MatchloomError(f"{error} (with --again the row starts anew)") from None
        raise


def _vectors(table: PaperTable, prepared: Prepared, seed: int) -> WordVectors:
    """The task's vectors, or skip-gram on its training texts."""
    task, key = prepared.task, (table.dimensions, seed)
    if task.vectors is not None:
        return task.vectors
    if key not in prepared.vectors:
        texts = sorted({pair.query for pair in task.train} | {pair.text for pair in task.train})
        words = [task.tokenizer(text) for text in texts]
        made = train_vectors(words, dimensions=table.dimensions, epochs=10, seed=seed, progress=True)
        prepared.vectors[key] = made
    return prepared.vectors[key]


def _resumable(folder: Path, begun: dict[str, Any], again: bool) -> str | None:
    """The commit that an interrupted run was begun with, if this one can go on with it."""
    if again or not holds(folder, "checkpoint"):
        return None
    try:
        then = json.loads((folder / BEGUN).read_text(encoding="utf-8"))
        return str(then.pop("commit")) if then == {**begun, "commit": then["commit"]} else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _begin(folder: Path, begun: dict[str, Any]) -> None:
    """An empty folder that says what is begun in it."""
    _remove(folder)
    make_folder(folder)
    with atomic_write(folder / BEGUN) as file:
        json.dump(begun, file, indent=1)


def _end(folder: Path, keep: bool) -> None:
    """Nothing is left of a run but, if it is to be kept, its matcher and its log."""
    if not keep:
        _remove(folder)
        return
    remove(folder, "checkpoint")
    (folder / BEGUN).unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be removed: {error.strerror or error}") from None
