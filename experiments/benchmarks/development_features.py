"""What the features of a collection say of the development tasks, made once and kept in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks.development_tasks import Task, far_questions, tasks
from experiments.benchmarks.quality import encoder_vectors, keep_vectors
from matchloom.basics.progress import track
from matchloom.fitting.run import tokenizer_for
from matchloom.lexical.columns import Floats
from matchloom.search.entries import Entries
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.features.linear import FOLDS
from matchloom.search.features.tuned import FOLDS as TUNED_FOLDS
from matchloom.search.features.tuned import tuning_pays
from matchloom.search.fusion import Cases
from matchloom.search.learning import Learner, Settings

TUNED_AT_MOST = 1100  # questions of a task that an encoder is tuned on


class Measured(NamedTuple):
    """What the features say of a task: raw scores of questions, (N, E, A), and which entries are right."""

    corpus: str
    size: int
    names: tuple[str, ...]
    worth: float
    left: Cases
    asked: Floats
    right: NDArray[np.bool_]
    gone: Floats
    far: Floats
    coverage: Sequence[Floats]  # of asked, gone and far questions
    questions: float = 1.0  # an answer, on the mean

    @property
    def family(self) -> str:
        """Tasks of one family are left out together."""
        return self.corpus.split("_")[0]


def measured(task: Task, sentences: SentenceVectors | None, far: Sequence[str], tuned: bool = False) -> Measured:
    """Fit a task's collection as `Collection.fit` does, and ask it; tuned, whether that pays or not."""
    entries = Entries.of(task.pairs)
    folds = TUNED_FOLDS if tuned else FOLDS
    learner = Learner(entries, Settings(tokenizer_for(task.pairs)), sentences, False, folds)
    if tuned:
        learner.tune()
    segment = learner.segment()
    cases = learner.cases()
    weights = np.ones(len(segment.names))
    cases = cases._replace(signals=learner.signals(segment.names, cases, weights))
    read = [segment.reader.read(side) for side in ([one for one, _ in task.asked], task.gone, list(far))]
    asked, gone, outside = (segment.scores(queries) for queries in read)
    right = np.array([[name in own for name in entries.ids] for _, own in task.asked])
    for n, others in enumerate(entries.other_ids or ()):
        right[:, n] |= [bool(own & set(others)) for _, own in task.asked]
    coverage = [queries.coverage for queries in read]
    return Measured(
        task.corpus,
        task.size,
        segment.names,
        learner.worth,
        cases,
        asked,
        right,
        gone,
        outside,
        coverage,
        learner.questions_per_answer,
    )


def load(cache: Path, way: str) -> list[Measured]:
    """All tasks by words, with an encoder, or with one that is tuned, from the cache where they are there."""
    cache.mkdir(parents=True, exist_ok=True)
    every = [task for task in tasks() if way != "tuned" or _tunable(task)]
    far = {corpus: far_questions(corpus) for corpus in {task.corpus for task in every}}
    paths = [cache / f"{task.name}-{way}.npz" for task in every]
    sentences = None
    if way != "words" and not all(path.exists() for path in paths):
        sentences = encoder_vectors(cache)
        texts = [text for own in far.values() for text in own]
        keep_vectors(sentences, [*texts, *(text for task in every for text in task.texts())], cache)
    for path, task in track(zip(paths, every, strict=True), "tasks", total=len(every), show=True):
        if not path.exists():
            _save(path, measured(task, sentences, far[task.corpus], way == "tuned"))
    return [_loaded(path, task) for path, task in zip(paths, every, strict=True)]


def _tunable(task: Task) -> bool:
    """Whether an encoder would be tuned on it, in a minute or two."""
    entries = Entries.of(task.pairs)
    questions, member = entries.known
    return len(questions) <= TUNED_AT_MOST and tuning_pays(len(questions), float(member.nnz) / len(entries))


def _save(path: Path, one: Measured) -> None:
    left: dict[str, Any] = {f"left_{name}": value for name, value in one.left._asdict().items()}
    left["left_features"] = left["left_features"].astype(np.float32)
    raw: dict[str, Any] = {name: getattr(one, name).astype(np.float32) for name in ("asked", "gone", "far")}
    coverage: dict[str, Any] = {f"coverage_{n}": value for n, value in enumerate(one.coverage)}
    arrays: dict[str, Any] = {"names": np.array(one.names), "worth": one.worth, "right": one.right}
    arrays["questions"] = one.questions
    np.savez(path, **arrays, **left, **raw, **coverage)


def _loaded(path: Path, task: Task) -> Measured:
    with np.load(path) as file:
        known = dict(file)
    left = Cases(**{name: known[f"left_{name}"] for name in Cases._fields})
    left = left._replace(features=left.features.astype(np.float64), share=float(left.share))
    return Measured(
        task.corpus,
        task.size,
        tuple(known["names"].tolist()),
        float(known["worth"]),
        left,
        known["asked"].astype(np.float64),
        known["right"],
        known["gone"].astype(np.float64),
        known["far"].astype(np.float64),
        [known[f"coverage_{n}"] for n in range(3)],
        float(known["questions"]),
    )


def mean_of_corpora(
    one: Mapping[int, float], every: Sequence[Measured], families: Iterable[str] | None = None
) -> float:
    """The mean over corpora of the mean over sizes of the mean over draws."""
    sizes: dict[tuple[str, int], list[float]] = {}
    for n, value in one.items():
        if families is None or every[n].family in families:
            sizes.setdefault((every[n].corpus, every[n].size), []).append(value)
    corpora: dict[str, list[float]] = {}
    for (corpus, _), values in sizes.items():
        corpora.setdefault(corpus, []).append(float(np.mean(values)))
    return float(np.mean([np.mean(values) for values in corpora.values()]))


def by_task(one: Mapping[int, float], every: Sequence[Measured]) -> dict[str, float]:
    """The mean over draws, by corpus and size."""
    found: dict[str, list[float]] = {}
    for n, value in one.items():
        found.setdefault(f"{every[n].corpus}, {every[n].size or 'all'}", []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}
