"""Kills at random moments: what was there before or is there whole, and the same command again gets to the end."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from matchloom import Matcher
from matchloom.artifact import holds
from matchloom.data.formats import write_pairs
from matchloom.search.collection import Collection
from matchloom.search.lance.collection import LanceCollection
from matchloom.types import Pair
from tests.cli.conftest import SMALL, rows, write_tsv
from tests.hostile.children import run, run_and_kill
from tests.hostile.trying import Refused, told
from tests.search.lance.making import made_matcher, made_pairs


class Killed:
    """A command, how long it takes, and what must hold after a kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.landed = 0  # kills that did not come too late
        self.prepare()
        took = []
        for _ in range(4):  # the first brings the server up
            self.begin()
            start = time.monotonic()
            self.finish()
            took.append(time.monotonic() - start)
        self.takes = min(took)
        self.remember()

    def attempt(self, rng: random.Random) -> None:
        """Kill it somewhere; look; let it get to the end; look again."""
        self.begin()
        self.landed += run_and_kill(self.command(), rng.uniform(0.02, 1.05) * self.takes)
        self.check()

    def finish(self, *more: object) -> None:
        """The command, left alone."""
        code, said = run([*self.command(), *more])
        assert code == 0, said

    def prepare(self) -> None:
        """What the command needs."""

    def begin(self) -> None:
        """What is there before it."""

    def command(self) -> list[object]:
        """What is killed."""
        raise NotImplementedError

    def remember(self) -> None:
        """What it leaves when it gets to the end."""

    def check(self) -> None:
        """What must hold after a kill."""
        raise NotImplementedError


class Training(Killed):
    """A run goes on, or starts anew, to the weights of one that was left alone."""

    def prepare(self) -> None:
        """A small corpus."""
        self.pairs = write_tsv(self.folder / "train.tsv", rows(["how is {} made"]))

    def begin(self) -> None:
        """Nothing."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)

    def command(self) -> list[object]:
        """Three epochs."""
        return ["train", self.pairs, "--out", self.folder / "run", *SMALL]

    def remember(self) -> None:
        """The weights."""
        self.digest = Matcher.load(self.folder / "run").digest

    def check(self) -> None:
        """A matcher that is there is whole; the rest follows."""
        if (self.folder / "run" / "matcher.json").exists():
            found = told(lambda: Matcher.load(self.folder / "run"))
            if isinstance(found, Refused):  # killed among the renames: told, and mended by going on
                assert "does not belong" in found.message or "has no" in found.message, found
        # Between the first matcher and the first checkpoint there is nothing to go on from.
        resume = holds(self.folder / "run", "checkpoint")
        self.finish("--resume" if resume else "--overwrite")
        assert Matcher.load(self.folder / "run").digest == self.digest


class Indexing(Killed):
    """An archive has whole writes, and takes the rest."""

    def prepare(self) -> None:
        """Pairs."""
        write_pairs(self.folder / "p.tsv", made_pairs(300))

    def begin(self) -> None:
        """Nothing."""
        shutil.rmtree(self.folder / "a", ignore_errors=True)

    def command(self) -> list[object]:
        """All pairs at once."""
        return ["index", self.folder / "a", self.folder / "p.tsv", "--store", "lance"]

    def check(self) -> None:
        """Nothing, or an archive that is whole; then all pairs once."""
        if (self.folder / "a" / "archive.json").exists():
            assert LanceCollection.check(self.folder / "a").whole, LanceCollection.check(self.folder / "a")
            assert len(LanceCollection.open(self.folder / "a")) in (0, 300)
        self.finish()
        assert len(LanceCollection.open(self.folder / "a")) == 300
        assert LanceCollection.check(self.folder / "a").whole


class _Copying(Killed):
    """An archive is written anew: readers see the old one or the new one."""

    def prepare(self) -> None:
        """An archive, and two matchers."""
        for seed in (0, 1):
            made_matcher(seed=seed).save(self.folder / f"m{seed}")
        index = LanceCollection.create(self.folder / "whole", self.folder / "m0")
        index.add([*made_pairs(200), Pair("the counter", "one", query_id="counter")])
        index.remove(["q7"])
        self.before = self.found(self.folder / "whole")

    def begin(self) -> None:
        """A copy."""
        shutil.rmtree(self.folder / "a", ignore_errors=True)
        shutil.copytree(self.folder / "whole", self.folder / "a")

    def remember(self) -> None:
        """What is found afterwards."""
        self.after = self.found(self.folder / "a")

    def found(self, folder: Path) -> list[object]:
        """Some answers."""
        index = LanceCollection.open(folder)
        return [index.search(question, top=5) for question in ("baden kelar", "the counter")]

    def check(self) -> None:
        """Old or new, and whole; then new."""
        assert self.found(self.folder / "a") in (self.before, self.after)
        assert LanceCollection.check(self.folder / "a").whole
        self.finish()
        assert self.found(self.folder / "a") == self.after
        assert len(list((self.folder / "a").glob("pairs-*.lance"))) == 1


class Reencoding(_Copying):
    """With another matcher."""

    def command(self) -> list[object]:
        """The other one."""
        return ["index", self.folder / "a", "--reencode", self.folder / "m1"]


class Compacting(_Copying):
    """Without what was deleted."""

    def command(self) -> list[object]:
        """The same rows."""
        return ["index", self.folder / "a", "--compact"]


class _Living(Killed):
    """A collection that is changed: what was there is there, or the change is, and the same command ends it."""

    def prepare(self) -> None:
        """A collection, and more pairs."""
        write_pairs(
            self.folder / "more.tsv", [Pair(f"where is {n}", f"it is here {n}", text_id=f"new{n}") for n in range(40)]
        )
        Collection.fit(made_pairs(60)).save(self.folder / "whole")
        self.before = self.found(self.folder / "whole")

    def begin(self) -> None:
        """A copy."""
        shutil.rmtree(self.folder / "a", ignore_errors=True)
        shutil.copytree(self.folder / "whole", self.folder / "a")

    def remember(self) -> None:
        """What is found afterwards."""
        self.after = self.found(self.folder / "a")

    def found(self, folder: Path) -> list[object]:
        """Ids, and some answers."""
        opened = Collection.open(folder)
        hits = opened.search(["baden kelar", "where is 7"], top=5)
        # What is added once more, after a kill that came when all was written, stands in other rows.
        told = [[one._replace(index=0) for one in found] for found in hits]
        return [sorted(opened.entries.ids), *told, [(one.known, one.confident) for one in hits]]

    def check(self) -> None:
        """Old or new, and whole; then new."""
        assert Collection.check(self.folder / "a")
        assert self.found(self.folder / "a") in (self.before, self.after)
        self.finish()
        assert self.found(self.folder / "a") == self.after


class Adding(_Living):
    """Entries."""

    def command(self) -> list[object]:
        """All of them as one change."""
        return ["add", self.folder / "a", self.folder / "more.tsv"]


class Removing(_Living):
    """One of them."""

    def command(self) -> list[object]:
        """The first; a second time there is none, which is told."""
        return ["remove", self.folder / "a", self.before[0][0]]  # type: ignore[index]

    def finish(self, *more: object) -> None:
        """It is gone, or was already."""
        assert run([*self.command(), *more])[0] in (0, 2)


class Refitting(_Living):
    """Another fit is written beside the old one."""

    def prepare(self) -> None:
        """With changes that it has not learnt."""
        super().prepare()
        Collection.open(self.folder / "whole").add([("where is the loom", "in the shed")])
        self.before = self.found(self.folder / "whole")

    def command(self) -> list[object]:
        """In place."""
        return ["refit", self.folder / "a"]


class _Writing(Killed):
    """A file is the old one or the new one, and nothing is left beside it."""

    name = "out.tsv"

    def prepare(self) -> None:
        """Right pairs."""
        write_pairs(self.folder / "p.tsv", made_pairs(80))

    def begin(self) -> None:
        """An old file."""
        (self.folder / self.name).write_bytes(b"old")

    def remember(self) -> None:
        """The new one."""
        self.new = (self.folder / self.name).read_bytes()

    def check(self) -> None:
        """Old or new; then new."""
        assert (self.folder / self.name).read_bytes() in (b"old", self.new)
        self.finish()
        assert (self.folder / self.name).read_bytes() == self.new


class Mining(_Writing):
    """Negatives."""

    def command(self) -> list[object]:
        """A few."""
        return ["mine", self.folder / "p.tsv", "--out", self.folder / self.name, "--count", "2", "--top", "20"]


class Vectors(_Writing):
    """Word vectors."""

    name = "v.txt"

    def command(self) -> list[object]:
        """Small ones."""
        return [
            "vectors",
            self.folder / "p.tsv",
            "--out",
            self.folder / self.name,
            "--dimensions",
            "5",
            "--min-count",
            "1",
        ]


KILLS: dict[str, Callable[[Path], Killed]] = {
    "train": Training,
    "add": Adding,
    "remove": Removing,
    "refit": Refitting,
    "index": Indexing,
    "reencode": Reencoding,
    "compact": Compacting,
    "mine": Mining,
    "vectors": Vectors,
}
