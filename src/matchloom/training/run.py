"""The whole run: epochs, development set, checkpoints, log."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from matchloom.data.formats import PairsLike, as_pairs
from matchloom.evaluation.measures import measure
from matchloom.files import atomic_write, read_lines
from matchloom.folders import folder_lock
from matchloom.matcher import Matcher
from matchloom.models import Argument, model_training
from matchloom.parallel import inline_pool, thread_pool
from matchloom.progress import bar
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.training.checkpoint import load_checkpoint, read_checkpoint, save_checkpoint
from matchloom.training.checks import refuse_collapse, warn_of_long_texts, warn_of_nothing_learnt
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Step
from matchloom.training.setup import Ready, set_up
from matchloom.training.step import StepResult, make_optimizer, step
from matchloom.types import MatchloomError

CHECKPOINT, LOG = "checkpoint.safetensors", "log.jsonl"
MAX_WORDS = 200


def train(
    pairs: PairsLike,
    development: PairsLike | None = None,
    *,
    model: str = "mv_lstm",
    arguments: Mapping[str, Argument] | None = None,
    config: TrainConfig | None = None,
    tokenizer: Tokenizer | None = None,
    vectors: WordVectors | Path | str | None = None,
    dimensions: int = 50,
    min_count: int = 1,
    folder: Path | str | None = None,
    resume: bool = False,
    device: str = "cpu",
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = False,
) -> Matcher:
    """Train a model on labelled pairs and return the matcher of its best epoch.

    With a development set the best epoch is the one with the highest `config.measure`, and training stops after
    `config.patience` epochs without a better one; without, every epoch is run and the last one kept.
    `config.check_every` looks at the development set more often; what is said here of epochs then holds for its rounds.
    With a folder the best matcher, a checkpoint after each epoch and a log are written there, and `resume` goes on
    from the checkpoint to exactly the weights of an uninterrupted run.
    `on_epoch` is called with each new line of the log.
    Without a config the model is trained with what suits it (`TrainConfig` with the model's `trained_with`).
    Word vectors come from `vectors` (every one of its words is then known to the matcher), or start at random.

    Args:
        pairs: Labelled pairs; for the hinge loss each query needs a positive and a negative text.
        development: Labelled pairs that choose the best epoch; without them every epoch is run and the last one kept.
        model: A name of `MODELS`.
        arguments: Arguments of the model that differ from its defaults.
        config: Settings of the training; by default those that suit the model.
        tokenizer: How a text becomes words; English, at most 200 of a text, by default.
        vectors: First word vectors, every word of which is then known: given, a file of them, or "skip-gram" to train
            them on the training texts; random ones by default.
        dimensions: Length of random word vectors; given ones have their own.
        min_count: Words seen less often in the training texts are unknown.
        folder: Where the best matcher, a checkpoint of each epoch and a log are written.
        resume: Go on from the checkpoint in `folder`, to exactly the weights of an uninterrupted run.
        device: Where torch computes, such as cpu or cuda.
        on_epoch: Called with each new line of the log.
        progress: Whether to show a bar.
    """
    config = config or TrainConfig(**model_training(model))  # type: ignore[arg-type]
    ready = set_up(
        list(as_pairs(pairs, graded=True)),
        None if development is None else list(as_pairs(development, graded=True)),
        model=model,
        arguments=dict(arguments or {}),
        config=config,
        tokenizer=tokenizer or Tokenizer(max_words=MAX_WORDS),
        vectors=vectors,
        dimensions=dimensions,
        min_count=min_count,
        device=device,
        progress=progress,
    )
    return _Run(ready, config, None if folder is None else Path(folder), on_epoch).go(resume, progress)


class _Run:
    """The epochs of a run, and what is kept of them."""

    def __init__(
        self, ready: Ready, config: TrainConfig, folder: Path | None, on_epoch: Callable[[dict[str, Any]], None] | None
    ) -> None:
        self.matcher, self.examples, self.development, self.settings = ready
        self.config, self.folder, self.on_epoch = config, folder, on_epoch
        self.optimizer = make_optimizer(self.matcher.model, config)
        self.steps = 0  # in an epoch
        self.history: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []  # the same with what a clock said
        self.best: dict[str, Tensor] | None = None

    def go(self, resume: bool, progress: bool) -> Matcher:
        """Run the epochs that are left."""
        if self.folder is None and resume:
            raise MatchloomError("resume needs the folder of the run to go on with")
        with nullcontext() if self.folder is None else folder_lock(self.folder):
            return self._go(resume, progress)

    def _go(self, resume: bool, progress: bool) -> Matcher:
        if self.folder is not None and resume:
            self._resume(self.folder / CHECKPOINT)
        warn_of_long_texts(self.matcher, self.examples)
        model, config = self.matcher.model, self.config
        whole = model.batch_coupled or model.draws_at_random
        try:
            if not resume:  # a checkpoint holds what was learnt before the first epoch
                self._pretrain(progress)
            with inline_pool(config.workers) if whole else thread_pool(config.workers) as pool:
                for epoch, first, steps in self._rounds():
                    self._round(epoch, first, steps, pool, progress)
        except KeyboardInterrupt:
            if self.folder is not None and not (self.folder / "matcher.json").exists():
                self.matcher.save(self.folder)  # usable, though no epoch was finished
            raise
        if self.best is not None:
            model.load_state_dict(self.best)
        model.eval()
        warn_of_nothing_learnt(self.history, config)
        return self.matcher

    def _pretrain(self, progress: bool) -> None:
        left, right, left_rows, right_rows, _ = self.examples.read
        pairs = np.stack([left_rows, right_rows, self.examples.groups.labels > 0], axis=1).astype(np.int64)
        with inline_pool(self.config.workers):
            self.matcher.model.pretrain(left, right, pairs, self.config.seed, progress)

    def _rounds(self) -> Iterator[tuple[int, int, list[Step]]]:
        """What is left to do, in the parts of epochs between two looks at the development set."""
        last = self.history[-1] if self.history else {"epoch": 1, "step": 0}
        first = last["step"]
        for epoch in range(last["epoch"] - 1, self.config.epochs):
            steps = list(self.examples.steps(epoch))
            self.steps = len(steps)
            while first < self.steps:
                if self._out_of_patience():
                    return
                end = min(first + (self.config.check_every or self.steps), self.steps)
                yield epoch, first, steps[first:end]
                first = end
            first = 0

    def _round(self, epoch: int, first: int, steps: list[Step], pool: Executor, progress: bool) -> None:
        model = self.matcher.model.train()
        results: list[StepResult] = []
        start = time.perf_counter()
        with bar() as live:
            live.disable = live.disable or not progress
            name = f"epoch {epoch + 1}" + (f", step {first + len(steps)}" if self.config.check_every else "")
            task = live.add_task(name, total=sum(len(shard) for shards in steps for shard in shards), note="")
            for number, shards in enumerate(steps, first):
                with _random_state(self.config.seed, epoch, number):
                    result = step(model, self.optimizer, self.examples, shards, self.config, pool)
                if not math.isfinite(result.loss):
                    raise MatchloomError(
                        f"the loss became {result.loss} in epoch {epoch + 1}, step {number + 1}; "
                        f"lower learning_rate (now {self.config.learning_rate}) or set clip"
                    )
                results.append(result)
                loss = sum(r.loss for r in results) / sum(r.examples for r in results)
                speed = sum(r.pairs for r in results) / (time.perf_counter() - start)
                best = f", {self.config.measure} {self._best_value():.4f}" if self._has_measure() else ""
                live.update(
                    task, advance=sum(len(s) for s in shards), note=f"loss {loss:.4f}, {speed:,.0f} pairs/s{best}"
                )
        refuse_collapse(self.matcher, self.examples, results, epoch)
        entry: dict[str, Any] = {
            "epoch": epoch + 1,
            "step": first + len(steps),
            "loss": loss,
        }
        clock = {"pairs_per_second": round(speed, 1), "seconds": round(time.perf_counter() - start, 2)}
        model.eval()
        if self.development is not None:
            pairs, read = self.development
            found = measure(pairs, self.matcher.score_read(read), (self.config.measure,))
            entry[self.config.measure] = found.values[self.config.measure]
        better = not self.history or not self._has_measure() or entry[self.config.measure] > self._best_value()
        self.history.append(entry)
        self.log.append({**entry, **clock})  # what is sealed holds no time: equal runs give equal bytes
        if better:
            self.best = {name: x.detach().clone() for name, x in model.state_dict().items()}
            self.matcher.training = {**self.matcher.training, "best": entry}
        self._write(better)
        if self.on_epoch is not None:
            self.on_epoch(self.log[-1])

    def _write(self, better: bool) -> None:
        if self.folder is None:
            return
        if better:
            self.matcher.save(self.folder)
        state = {"settings": self.settings, "history": self.history}
        save_checkpoint(self.folder / CHECKPOINT, self.matcher.model, self.optimizer, state)
        with atomic_write(self.folder / LOG) as file:
            file.writelines(json.dumps(entry) + "\n" for entry in self.log)

    def _resume(self, path: Path) -> None:
        state, tensors = read_checkpoint(path)
        # A longer run may follow a shorter one; everything else must be as it was.
        then, now = (
            {**s, "config": {**s["config"], "epochs": 0, "patience": 0}} for s in (state["settings"], self.settings)
        )
        for key in now:
            if then.get(key) != now[key]:
                raise MatchloomError(f"cannot resume {path.parent}: its {_difference(key, then.get(key), now[key])}")
        load_checkpoint(tensors, self.matcher.model, self.optimizer)
        self.history = state["history"]
        self.log = _logged(path.with_name(LOG), self.history)
        saved = Matcher.load(path.parent)
        self.best = saved.model.state_dict()
        self.matcher.training = saved.training

    def _has_measure(self) -> bool:
        return bool(self.history) and self.config.measure in self.history[0]

    def _best_value(self) -> float:
        return max(float(entry[self.config.measure]) for entry in self.history)

    def _out_of_patience(self) -> bool:
        if not self._has_measure():
            return False
        last, best = self.history[-1], max(self.history, key=lambda entry: entry[self.config.measure])  # the first best
        behind = (last["epoch"] - best["epoch"]) * self.steps + last["step"] - best["step"]
        return bool(behind >= self.config.patience * self.steps)


@contextmanager
def _random_state(*place: int) -> Iterator[None]:
    """What a step draws (dropout) depends on the seed, the epoch and the step alone: a resumed run draws the same.

    Only models that say `draws_at_random` do: one state cannot be shared by shards that run side by side.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0] >> 1))
        yield


def _logged(path: Path, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The log of these epochs: its own lines where they are there, and else what is known without a clock."""
    try:
        lines = [json.loads(line) for _, line in read_lines(path)]
    except (MatchloomError, ValueError, RecursionError):
        lines = []
    log = [{**entry, "pairs_per_second": 0.0, "seconds": 0.0} for entry in history]
    for n, (entry, line) in enumerate(zip(history, lines, strict=False)):
        if isinstance(line, dict) and line.keys() == log[n].keys() and entry.items() <= line.items():
            log[n] = line
    return log


def _difference(key: str, then: Any, now: Any) -> str:
    if isinstance(then, dict) and isinstance(now, dict):
        for inner in now:
            if then.get(inner) != now[inner]:
                return f"{inner} was {then.get(inner)!r}, now {now[inner]!r}"
    if key == "data":
        return "training data, development data or vectors were others"
    return f"{key} was {then!r}, now {now!r}"
