"""The whole run: vocabulary, model, epochs, development set, checkpoints, log."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from matchloom.data.batching import features_of, make_batch
from matchloom.evaluation.measures import measure
from matchloom.files import atomic_write
from matchloom.matcher import Matcher
from matchloom.models import Argument, build_model, model_training
from matchloom.parallel import inline_pool, thread_pool
from matchloom.progress import bar
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, initial_matrix
from matchloom.text.vocab import Vocab
from matchloom.training.checkpoint import load_checkpoint, read_state, save_checkpoint
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Step, TrainingExamples
from matchloom.training.step import StepResult, make_optimizer, step
from matchloom.types import MatchloomError, Pair

CHECKPOINT, LOG = "checkpoint.safetensors", "log.jsonl"
LOOKED_AT = 256  # pairs that tell whether a model still tells texts apart
MAX_WORDS = 200


def train(
    pairs: Iterable[Pair],
    development: Iterable[Pair] | None = None,
    *,
    model: str = "mv_lstm",
    arguments: Mapping[str, Argument] | None = None,
    config: TrainConfig | None = None,
    tokenizer: Tokenizer | None = None,
    vectors: WordVectors | None = None,
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
    """
    run = _Run(
        list(pairs),
        None if development is None else list(development),
        model,
        dict(arguments or {}),
        config or TrainConfig(**model_training(model)),  # type: ignore[arg-type]
        tokenizer or Tokenizer(max_words=MAX_WORDS),
        vectors,
        dimensions,
        min_count,
        None if folder is None else Path(folder),
        device,
        on_epoch,
    )
    return run.go(resume, progress)


class _Run:
    def __init__(
        self,
        pairs: list[Pair],
        development: list[Pair] | None,
        model: str,
        arguments: dict[str, Argument],
        config: TrainConfig,
        tokenizer: Tokenizer,
        vectors: WordVectors | None,
        dimensions: int,
        min_count: int,
        folder: Path | None,
        device: str,
        on_epoch: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self.config, self.folder, self.development, self.on_epoch = config, folder, development, on_epoch
        self.examples = TrainingExamples(pairs, config)
        words = [tokenizer(text) for text in (*self.examples.left_texts, *self.examples.right_texts)]
        vocab = Vocab.build(words, min_count)
        if not vocab.words:
            raise MatchloomError(f"the training texts hold no word for the {tokenizer.kind} tokenizer; try another one")
        if vectors is not None:
            dimensions = vectors.dimensions
            matrix = initial_matrix(vocab, vectors, dimensions=dimensions, seed=config.seed)
            extended = vocab.extended(vectors.words)
            if len(extended) > len(vocab):
                more = [vectors.index[word] for word in extended.words[len(vocab.words) :]]
                matrix = np.concatenate([matrix, vectors.matrix[more]])
            vocab = extended
        else:
            matrix = initial_matrix(vocab, None, dimensions=dimensions, seed=config.seed)
        embedding = nn.Embedding(len(vocab), dimensions, padding_idx=0, _weight=torch.from_numpy(matrix))
        network = build_model(model, arguments, embedding, seed=config.seed).to(device)
        settings = {
            "model": model,
            "arguments": arguments,
            "tokenizer": tokenizer._asdict(),
            "min_count": min_count,
            "config": config.as_dict(),
            "data": _digest(pairs, development, matrix),
        }
        about = {
            "config": config.as_dict(),
            "pairs": len(pairs),
            "development_pairs": None if development is None else len(development),
            "queries_left_out": self.examples.left_out,
        }
        self.settings: dict[str, Any] = settings
        self.matcher = Matcher(model, arguments, network, vocab, tokenizer, about)
        self.optimizer = make_optimizer(network, config)
        self.examples.fill(self.matcher.table(self.examples.left_texts), self.matcher.table(self.examples.right_texts))
        self._warn_of_long_texts()
        if self.examples.features is not None:
            network.fit_features(torch.from_numpy(self.examples.features))
        if network.whole_batches:
            # Statistics of batches with texts of one length would not be those that scores are later taken with.
            self.examples.workers, self.examples.by_length = 1, False
        self.steps = 0  # in an epoch
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] | None = None

    def go(self, resume: bool, progress: bool) -> Matcher:
        """Run the epochs that are left."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            if resume:
                self._resume(self.folder / CHECKPOINT)
        elif resume:
            raise MatchloomError("resume needs the folder of the run to go on with")
        try:
            if not resume:  # a checkpoint holds what was fitted
                self._pretrain(progress)
            whole = self.matcher.model.whole_batches
            with inline_pool(self.config.workers) if whole else thread_pool(self.config.workers) as pool:
                for epoch, first, steps in self._rounds():
                    self._round(epoch, first, steps, pool, progress)
        except KeyboardInterrupt:
            if self.folder is not None and not (self.folder / "matcher.json").exists():
                self.matcher.save(self.folder)  # usable, though no epoch was finished
            raise
        if self.best is not None:
            self.matcher.model.load_state_dict(self.best)
        self.matcher.model.eval()
        lowest = min((entry["loss"] for entry in self.history), default=0.0)
        if self.config.loss == "hinge" and lowest > 0.99 * self.config.margin:
            _log.warning(
                "nothing is learnt yet: the loss never fell below the margin (%.3f of %g); try more epochs with more "
                "patience, another seed or another learning_rate",
                lowest,
                self.config.margin,
            )
        return self.matcher

    def _warn_of_long_texts(self) -> None:
        max_words = self.matcher.model.max_words
        assert self.examples.left is not None
        assert self.examples.right is not None
        share = np.mean(np.concatenate([self.examples.left.lengths, self.examples.right.lengths]) > (max_words or np.inf))
        if share > 0.05:
            _log.warning(
                "%s reads the first %d words of a text, and %.0f%% of the training texts are longer; set max_words to "
                "read more of them",
                self.matcher.name,
                max_words,
                100 * share,
            )

    def _pretrain(self, progress: bool) -> None:
        examples = self.examples
        assert examples.left is not None
        assert examples.right is not None
        pairs = np.stack([examples.left_rows, examples.right_rows, examples.labels > 0], axis=1).astype(np.int64)
        with inline_pool(self.config.workers):
            self.matcher.model.pretrain(examples.left, examples.right, pairs, self.config.seed, progress)

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
        # Within a step: a bias that still moves makes dead scores differ between steps. These scores are older than the
        # steps' updates, and a model may start with equal ones, so that what it says now has the last word.
        if all(_equal(r.lowest, r.highest) for r in results) and self._scores_are_equal():
            raise MatchloomError(
                f"training collapsed in epoch {epoch + 1}: all scores are equal, nothing is learnt (loss {loss:.4f}); "
                "try another seed or a lower learning_rate, and check that the labels differ within each query"
            )
        entry: dict[str, Any] = {
            "epoch": epoch + 1,
            "step": first + len(steps),
            "loss": loss,
            "pairs_per_second": round(speed, 1),
            "seconds": round(time.perf_counter() - start, 2),
        }
        model.eval()
        if self.development is not None:
            scores = self.matcher.score(self.development)
            entry[self.config.measure] = measure(self.development, scores, (self.config.measure,)).values[
                self.config.measure
            ]
        better = not self.history or not self._has_measure() or entry[self.config.measure] > self._best_value()
        self.history.append(entry)
        if better:
            self.best = {name: x.detach().clone() for name, x in model.state_dict().items()}
            self.matcher.training = {**self.matcher.training, "best": entry}
        self._write(better)
        if self.on_epoch is not None:
            self.on_epoch(entry)

    def _scores_are_equal(self) -> bool:
        """Whether the model gives the first training pairs one score, as it is now."""
        examples = self.examples
        assert examples.left is not None
        assert examples.right is not None
        left, right = examples.left_rows[:LOOKED_AT], examples.right_rows[:LOOKED_AT]
        batch = make_batch(
            examples.left, examples.right, left, right, features_of(examples.left, examples.right, left, right)
        )
        model = self.matcher.model.eval()
        with torch.inference_mode():
            scores = model(batch.to(model.embedding.weight.device))
        return _equal(float(scores.min()), float(scores.max()))

    def _write(self, better: bool) -> None:
        if self.folder is None:
            return
        if better:
            self.matcher.save(self.folder)
        state = {"settings": self.settings, "history": self.history}
        save_checkpoint(self.folder / CHECKPOINT, self.matcher.model, self.optimizer, state)
        with atomic_write(self.folder / LOG) as file:
            file.writelines(json.dumps(entry) + "\n" for entry in self.history)

    def _resume(self, path: Path) -> None:
        state = read_state(path)
        # A longer run may follow a shorter one; everything else must be as it was.
        then, now = (
            {**s, "config": {**s["config"], "epochs": 0, "patience": 0}} for s in (state["settings"], self.settings)
        )
        for key in now:
            if then.get(key) != now[key]:
                raise MatchloomError(f"cannot resume {path.parent}: its {_difference(key, then.get(key), now[key])}")
        load_checkpoint(path, self.matcher.model, self.optimizer)
        self.history = state["history"]
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


def _equal(lowest: float, highest: float) -> bool:
    return highest - lowest <= 1e-6 * max(1.0, abs(highest))


@contextmanager
def _random_state(*place: int) -> Iterator[None]:
    """What a step draws (dropout) depends on the seed, the epoch and the step alone: a resumed run draws the same.

    Only models with `whole_batches` draw: one state cannot be shared by shards that run side by side.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0] >> 1))
        yield


def _digest(pairs: Sequence[Pair], development: Sequence[Pair] | None, matrix: np.ndarray[Any, Any]) -> str:
    digest = hashlib.sha256(matrix.tobytes())
    for pair in (*pairs, *(development or ())):
        digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _difference(key: str, then: Any, now: Any) -> str:
    if isinstance(then, dict) and isinstance(now, dict):
        for inner in now:
            if then.get(inner) != now[inner]:
                return f"{inner} was {then.get(inner)!r}, now {now[inner]!r}"
    if key == "data":
        return "training data, development data or vectors were others"
    return f"{key} was {then!r}, now {now!r}"


_log = logging.getLogger("matchloom")
