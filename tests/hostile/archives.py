"""Damaged archives: found by a check or harmless; after a repair whole, with what older writes had confirmed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from matchloom import Pair
from matchloom.search.lance.collection import LanceCollection
from tests.hostile.damage import damage, files_under, mutated
from tests.hostile.trying import Refused, told
from tests.search.lance.making import made_matcher, made_pairs

QUESTIONS = ("baden kelar lomik", "raden pomik", "the counter")


class Archives:
    """With vectors, of several versions: pairs added, replaced and deleted."""

    def __init__(self, folder: Path) -> None:
        self._whole, self._copy = folder / "whole", folder / "copy"
        made_matcher().save(folder / "m")
        index = LanceCollection.create(self._whole, folder / "m")
        for n in range(3):
            index.add([*made_pairs(10, seed=n, prefix=f"p{n}-"), Pair("the counter", f"is {n}", query_id="counter")])
        index.remove(["p0-3"])
        self._expected = self._found(self._whole)
        self._ids = [f"p{n}-{i}" for n in range(3) for i in range(10)]

    def _found(self, folder: Path) -> list[object]:
        index = LanceCollection.open(folder)
        return [index.search(question, top=8) for question in QUESTIONS]

    def attempt(self, rng: random.Random) -> None:
        """Harm a copy; search, check and repair it."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._whole, self._copy)
        if rng.random() < 0.7:
            done = damage(self._copy, rng)
        else:
            path = rng.choice(files_under(self._copy))
            path.write_bytes(mutated(path.read_bytes(), rng))
            done = f"mutated {path.relative_to(self._copy)}"
        found = told(lambda: self._found(self._copy))
        checked = told(lambda: LanceCollection.check(self._copy))
        if isinstance(checked, Refused):
            return
        if checked.whole:
            assert found == self._expected, done
            return
        mended = told(lambda: LanceCollection.repair(self._copy))
        if isinstance(mended, Refused):
            assert "no version of its table with any pairs is whole" in mended.message, (done, mended)
            return
        assert LanceCollection.check(self._copy).whole, done
        if not mended.lost:
            assert self._found(self._copy) == self._expected, done
        there = LanceCollection.open(self._copy).snapshot().store.find("id", self._ids)
        assert len(there) >= 9, (done, len(there))  # the first write is in every version
