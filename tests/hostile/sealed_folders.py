"""Whatever is saved and sealed: after any harm it is refused, or it is what it was."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from matchloom import Fitted, Matcher, fit
from matchloom.lexical import TransLM
from matchloom.search.ranker import AnswerRanker
from matchloom.training.checkpoint import load_checkpoint, read_checkpoint, save_checkpoint
from matchloom.types import Pair, Scorer
from tests.fitting.test_run import faq
from tests.hostile.damage import damage, files_under, mutated
from tests.hostile.trying import Refused, told
from tests.search.lance.making import made_matcher, made_pairs

PAIRS = made_pairs(6)


class SealedFolder:
    """A folder, how it is loaded, and what it then says."""

    def __init__(self, folder: Path) -> None:
        self._whole, self._other, self._copy = folder / "whole", folder / "other", folder / "copy"
        self.save(self._whole, 0)
        self.save(self._other, 1)
        self._expected, self._others = self.load(self._whole), self.load(self._other)

    def save(self, folder: Path, seed: int) -> None:
        """Write one of two."""
        raise NotImplementedError

    def load(self, folder: Path) -> Any:
        """Something to compare."""
        raise NotImplementedError

    def attempt(self, rng: random.Random) -> None:
        """Harm a copy, or exchange a file with the other's, and load it."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._whole, self._copy)
        if rng.random() < 0.5:
            done = damage(self._copy, rng)
        else:
            files = files_under(self._copy)
            path = rng.choice(files)
            other = self._other / path.relative_to(self._copy)
            exchange = rng.random() < 0.2 and len(files) > 1 and other.exists()  # the only one would be the other's
            path.write_bytes(other.read_bytes() if exchange else mutated(path.read_bytes(), rng))
            done = f"{'exchanged' if exchange else 'mutated'} {path.name}"
        found = told(lambda: self.load(self._copy))
        if not isinstance(found, Refused):
            # Two of the same settings and words differ in one file, which makes one the other.
            assert found == self._expected or (found == self._others and done.startswith("exchanged")), done


class Matchers(SealedFolder):
    """Of a network with vectors and lexical features."""

    def save(self, folder: Path, seed: int) -> None:
        """A matcher."""
        made_matcher("lstm_rnn", seed=seed).save(folder)

    def load(self, folder: Path) -> Any:
        """Its scores."""
        return _scores(Matcher.load(folder))


class Checkpoints(SealedFolder):
    """Of a run."""

    def save(self, folder: Path, seed: int) -> None:
        """The first step's."""
        folder.mkdir()
        model, optimizer = _stepped(seed)
        save_checkpoint(folder / "checkpoint.safetensors", model, optimizer, {"epoch": 1, "history": [{"loss": 0.5}]})

    def load(self, folder: Path) -> Any:
        """State, weights and the optimizer's memory."""
        state, tensors = read_checkpoint(folder / "checkpoint.safetensors")
        model, optimizer = _stepped(5)
        load_checkpoint(tensors, model, optimizer)
        return state, {name: x.tolist() for name, x in tensors.items()}


def _stepped(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = made_matcher(seed=seed).model
    optimizer = torch.optim.Adam(model.parameters())
    sum(x.sum() for x in model.parameters()).backward()  # type: ignore[union-attr]
    optimizer.step()
    return model, optimizer


class TransLMs(SealedFolder):
    """A file of translations."""

    def save(self, folder: Path, seed: int) -> None:
        """Of other pairs."""
        folder.mkdir()
        pairs = made_pairs(20, seed=seed)
        TransLM.fit([pair.text for pair in pairs], pairs).save(folder / "t.safetensors")

    def load(self, folder: Path) -> Any:
        """Its scores."""
        return _scores(TransLM.load(folder / "t.safetensors"))


class Rankers(SealedFolder):
    """A ranker of answers."""

    def save(self, folder: Path, seed: int) -> None:
        """Of a small collection."""
        AnswerRanker.fit(faq(20, seed)).save(folder)

    def load(self, folder: Path) -> Any:
        """Its order and its scores."""
        return [(one.id, one.score) for one in AnswerRanker.load(folder).rank("forgot my password", top=None)]


class FittedFolders(SealedFolder):
    """What `fit` leaves."""

    def save(self, folder: Path, seed: int) -> None:
        """Questions with answers."""
        fit(faq(30, seed), out=folder, seed=seed)

    def load(self, folder: Path) -> Any:
        """Its order and its scores."""
        return [(one.id, one.score) for one in Fitted.load(folder).rank("forgot my password", top=None)]


def _scores(scorer: Scorer) -> list[float]:
    found: list[float] = scorer.score([Pair(pair.query, pair.text) for pair in PAIRS]).tolist()
    return found


SEALED: dict[str, Callable[[Path], SealedFolder]] = {
    "matchers": Matchers,
    "checkpoints": Checkpoints,
    "trans-lm files": TransLMs,
    "rankers": Rankers,
    "fitted folders": FittedFolders,
}
