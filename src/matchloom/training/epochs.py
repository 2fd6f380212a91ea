"""The epochs of a run: steps, development set, checkpoints, log."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from matchloom.artifact import holds, remove, writing
from matchloom.basics.memory import Piles
from matchloom.basics.parallel import inline_pool, thread_pool
from matchloom.basics.progress import bar
from matchloom.calibration import Calibration, labels
from matchloom.encoders.embedding_cache import kept_positions
from matchloom.encoders.transformer import Transformer
from matchloom.evaluation.measures import measure
from matchloom.matcher import CALIBRATION, NOTHING_LEARNT, Matcher, ReadPairs
from matchloom.training.checkpoint import (
    MINED_BY,
    load_checkpoint,
    read_checkpoint,
    refuse_other_settings,
    save_checkpoint,
)
from matchloom.training.checks import nothing_learnt, refuse_collapse, warn_of_long_texts, warn_of_nothing_learnt
from matchloom.training.collection import CollectionExamples
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Examples, Step
from matchloom.training.log import LOG, read_log, write_log
from matchloom.training.mining import development_margin, mined
from matchloom.training.setup import Ready
from matchloom.training.step import (
    StepResult,
    draws_at_random,
    make_optimizer,
    random_state,
    rate_factor,
    set_rates,
    step,
)
from matchloom.training.team import Team
from matchloom.types import MatchloomError, Scores

_PILE = 64 << 20  # bytes of freed memory that may stay from one window to the next


class Place(NamedTuple):
    """Where a run is: its epoch and the window of that, both from 0."""

    epoch: int
    window: int


class Training:
    """The epochs of a run, and what is kept of them."""

    def __init__(
        self,
        ready: Ready,
        config: TrainConfig,
        folder: Path | None,
        on_epoch: Callable[[dict[str, Any]], None] | None,
        *,
        calibrate: bool,
        team: Team,
    ) -> None:
        self.matcher, self.windows, self.development, self.settings = ready
        self.examples: Examples
        start = time.perf_counter()
        number, self.examples = ready.first_window()
        self.held = Place(0, number)  # which window the examples are
        self.reading = time.perf_counter() - start  # seconds that it took
        self.piles = Piles(_PILE)
        self.config, self.on_epoch, self.calibrate, self.team = config, on_epoch, calibrate, team
        self.place = folder
        self.folder = folder if team.rank == 0 else None  # one process writes
        self.optimizer = make_optimizer(self.matcher.model, config)
        self.steps = 0  # in a window
        self.history: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []  # the same with what a clock said
        self.best: dict[str, Tensor] | None = None
        self.told: str | None = None  # by the saved matcher, why it has learnt nothing
        self.mined_by: dict[str, Tensor] | None = None  # the weights that mined the negatives
        self.mined_in = 0  # the epoch before which they did

    def go(self, resume: bool, progress: bool) -> Matcher:
        """Run the epochs that are left."""
        with nullcontext() if self.folder is None else writing(self.folder):
            return self._go(resume, progress)

    def _go(self, resume: bool, progress: bool) -> Matcher:
        if self.place is not None and resume:
            self.team.agree(lambda: self._resume(Path(self.place or "")))  # before anything is written
        elif self.folder is not None:  # what an earlier run left; its matcher stays until an epoch is done
            remove(self.folder, "checkpoint")
            (self.folder / LOG).unlink(missing_ok=True)
        warn_of_long_texts(self.matcher, self.examples)
        model, config = self.matcher.model, self.config
        whole = model.batch_coupled or config.in_batch or draws_at_random(model, config)
        try:
            with self._texts_read_once(progress):
                if not resume:  # a checkpoint holds what was learnt before the first epoch
                    self._pretrain(progress)
                self.team.share(model)
                threads = -(-config.workers // self.team.size)
                with inline_pool(threads) if whole else thread_pool(threads) as pool:
                    for place, first, steps in self._rounds(progress):
                        self._round(place, first, steps, pool, progress)
        except KeyboardInterrupt:
            if self.folder is not None and not holds(self.folder, "matcher"):
                self.matcher.save(self.folder)  # usable, though no epoch was finished
            raise
        if self.best is not None:
            model.load_state_dict(self.best)
        model.eval()
        reason = nothing_learnt(self.history, config, None if self.development is None else self.development[0])
        if reason is not None:
            warn_of_nothing_learnt(reason)
            self.matcher.training = {**self.matcher.training, NOTHING_LEARNT: reason}
        if self.folder is not None and reason != self.told:
            self.matcher.save(self.folder)  # who would use it is told
        return self.matcher

    def _texts_read_once(self, progress: bool) -> AbstractContextManager[None]:
        """What a pretrained encoder that stays as it is makes of the texts need not be computed in each epoch."""
        model = self.matcher.model
        alone = self.windows.count == 1  # of others each text is read about once in an epoch
        if not isinstance(model.encoder, Transformer) or model.encoder.learns or model.reads_together or not alone:
            return nullcontext()
        reads = [self.examples.read, *(() if self.development is None else (self.development[1],))]
        tables = [table for read in reads for table in (read.left, read.right)]
        return kept_positions(model.encoder, tables, workers=self.config.workers, progress=progress)

    def _pretrain(self, progress: bool) -> None:
        left, right, left_rows, right_rows, _ = self.examples.read
        pairs = np.stack([left_rows, right_rows, self.examples.labels > 0], axis=1).astype(np.int64)
        with inline_pool(self.config.workers):
            self.matcher.model.pretrain(left, right, pairs, self.config.seed, progress)

    def _mine(self, epoch: int, progress: bool) -> None:
        """Negatives of this window, by the weights of the start of the epoch in which they were to be mined last.

        The weights are kept with the checkpoint, not what they found: a resumed run mines the same again.
        """
        start = self.config.mine_every and epoch - epoch % self.config.mine_every
        if not start or not isinstance(self.examples, CollectionExamples) or self.examples.mined_in == start:
            return
        model = self.matcher.model
        now = {name: x.detach().clone() for name, x in model.state_dict().items()}
        if self.mined_by is None or self.mined_in != start:
            self.mined_by, self.mined_in = now, start
        model.load_state_dict(self.mined_by)
        margin = math.inf
        if self.development is not None:
            margin = development_margin(self.development[0], self._scores(self.development[1]))
        self.examples.collection = self.examples.collection._replace(
            near=mined(self.matcher, self.examples.collection, self.examples.read, margin, progress)
        )
        self.examples.mined_in = start
        model.load_state_dict(now)

    def _rounds(self, progress: bool) -> Iterator[tuple[Place, int, list[Step]]]:
        """What is left to do, in the parts of windows between two evaluations on the development set."""
        last = self.history[-1] if self.history else {"epoch": 1, "step": 0}
        count, first = self.windows.count, last["step"]
        steps: list[Step] = []
        for number in range((last["epoch"] - 1) * count + last.get("window", 1) - 1, self.config.epochs * count):
            place = Place(*divmod(number, count))
            if place < self.held:
                continue  # it was looked into, and teaches nothing
            if place != self.held:
                if count > 1:  # two windows in memory would be twice as much
                    steps = []
                    vars(self).pop("examples", None)
                    self.piles.look()
                start = time.perf_counter()
                examples = self.windows.window(*place)
                self.reading = time.perf_counter() - start
                if examples is None:
                    continue
                self.examples, self.held = examples, place
            self._mine(place.epoch, progress)
            steps = list(self.examples.steps(number))
            self.steps = len(steps)
            while first < self.steps:
                if self._out_of_patience():
                    return
                end = min(first + (self.config.check_every or self.steps), self.steps)
                yield place, first, steps[first:end]
                first = end
            first = 0

    def _round(self, place: Place, first: int, steps: list[Step], pool: Executor, progress: bool) -> None:
        epoch, window = place
        count, several = self.windows.count, self.windows.count > 1
        model = self.matcher.model.train()
        results: list[StepResult] = []
        start = time.perf_counter()
        with bar() as live:
            live.disable = live.disable or not progress
            name = f"epoch {epoch + 1}" + (f", window {window + 1} of {count}" if several else "")
            name += f", step {first + len(steps)}" if self.config.check_every else ""
            task = live.add_task(name, total=sum(len(shard) for shards in steps for shard in shards), note="")
            for number, shards in enumerate(steps, first):
                done = (epoch + (window + (number + 0.5) / self.steps) / count) / self.config.epochs
                set_rates(self.optimizer, rate_factor(done, self.config.warmup))
                with random_state(self.config.seed, epoch * count + window, number):
                    result = step(model, self.optimizer, self.examples, shards, self.config, pool, self.team)
                if not math.isfinite(result.loss):
                    raise MatchloomError(
                        f"the loss became {result.loss} in epoch {epoch + 1}, step {number + 1}; "
                        f"lower learning_rate (now {self.config.learning_rate}) or set clip",
                        code="failed",
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
            **({"window": window + 1} if several else {}),
            "step": first + len(steps),
            "loss": loss,
        }
        clock = {"pairs_per_second": round(speed, 1), "seconds": round(time.perf_counter() - start, 2)}
        if several:
            clock["seconds_of_reading"] = round(self.reading, 2)
        model.eval()
        if self.development is not None:
            pairs, read = self.development
            scores = self._scores(read)
            entry[self.config.measure] = measure(pairs, scores, (self.config.measure,)).values[self.config.measure]
        # Linear decay is made for the last epoch; an earlier evaluation on few questions tells less than that.
        better = not self._has_measure() or self.config.warmup > 0 or entry[self.config.measure] > self._best_value()
        self.history.append(entry)
        self.log.append({**entry, **clock})  # what is saved holds no time: equal runs give equal bytes
        if better:
            self.best = {name: x.detach().clone() for name, x in model.state_dict().items()}
            self.matcher.training = {**self.matcher.training, "best": entry}
            if self.development is not None and self.calibrate:
                self.matcher.training[CALIBRATION] = Calibration.fit(scores, labels(pairs))._asdict()
        self._write(better)
        if self.on_epoch is not None:
            self.on_epoch(self.log[-1])

    def _scores(self, read: ReadPairs) -> Scores:
        """The scores of pairs, each process those of its part."""
        own = self.team.part(len(read.left_rows))
        rows = read._replace(
            left_rows=read.left_rows[own],
            right_rows=read.right_rows[own],
            features=None if read.features is None else read.features[own],
        )
        return self.team.joined_scores(self.matcher.score_read(rows), len(read.left_rows))

    def _write(self, better: bool) -> None:
        if self.folder is None:
            return
        if better:
            self.matcher.save(self.folder)
            self.told = None
        state: dict[str, Any] = {"settings": self.settings, "history": self.history}
        if self.mined_by is not None:
            state["mined_in"] = self.mined_in
        save_checkpoint(self.folder, self.matcher.model, self.optimizer, state, self.mined_by)
        write_log(self.folder, self.log)

    def _resume(self, folder: Path) -> None:
        state, tensors = read_checkpoint(folder)
        refuse_other_settings(folder, state["settings"], self.settings, self.config)
        load_checkpoint(folder, tensors, self.matcher.model, self.optimizer)
        self.mined_in = int(state.get("mined_in", 0))
        if self.mined_in:
            names = [name for name in tensors if name.startswith(MINED_BY)]
            self.mined_by = {name.removeprefix(MINED_BY): tensors[name] for name in names}
        self.history = state["history"]
        self.log = read_log(folder, self.history)
        saved = Matcher.load(folder, model=self.matcher.kind)
        self.best, self.told = saved.model.state_dict(), saved.training.get(NOTHING_LEARNT)
        self.matcher.training = {key: value for key, value in saved.training.items() if key != NOTHING_LEARNT}

    def _has_measure(self) -> bool:
        return bool(self.history) and self.config.measure in self.history[0]

    def _best_value(self) -> float:
        return max(float(entry[self.config.measure]) for entry in self.history)

    def _out_of_patience(self) -> bool:
        if not self._has_measure() or self.config.warmup > 0:
            return False
        last, best = self.history[-1], max(self.history, key=lambda entry: entry[self.config.measure])  # the first best
        windows = (last["epoch"] - best["epoch"]) * self.windows.count + last.get("window", 1) - best.get("window", 1)
        behind = windows * self.steps + last["step"] - best["step"]
        return bool(behind >= self.config.patience * self.windows.count * self.steps)
