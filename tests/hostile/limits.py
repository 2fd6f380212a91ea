"""Commands that the system denies something: one line, and what was there before is there."""

from __future__ import annotations

import random
import resource
import shutil
from pathlib import Path

from matchloom import Matcher
from matchloom.data.formats import write_pairs
from matchloom.search.collection import Collection
from matchloom.search.lance.collection import LanceCollection
from tests.cli.conftest import SMALL, rows, write_tsv
from tests.hostile.children import run
from tests.hostile.damage import files_under
from tests.hostile.trying import Refused, told
from tests.search.lance.making import made_matcher, made_pairs


class _Denied:
    """A folder of everything, and the commands that read and write it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.whole, self.work = folder, folder / "whole", folder / "work"
        self.whole.mkdir()
        for seed in (0, 1):
            made_matcher(seed=seed).save(self.whole / f"m{seed}")
        write_pairs(self.whole / "p.tsv", made_pairs(60))
        write_pairs(self.whole / "more.tsv", made_pairs(60, seed=1, prefix="more"))
        write_tsv(self.whole / "train.tsv", rows(["how is {} made"]))
        (self.whole / "out.tsv").write_text("old")
        LanceCollection.create(self.whole / "a", self.whole / "m0").add(made_pairs(60))
        Collection.fit(made_pairs(60)).save(self.whole / "c")
        self._entries = set(Collection.open(self.whole / "c").entries.ids)
        run(["score", "bm25", self.whole / "p.tsv"])  # brings the server up

    def commands(self) -> dict[str, list[object]]:
        """Each reads or writes the work folder."""
        at = self.work
        return {
            "score": ["score", at / "m0", at / "p.tsv", "--out", at / "out.tsv"],
            "mine": ["mine", at / "p.tsv", "--out", at / "out.tsv", "--count", "1", "--top", "9"],
            "vectors": ["vectors", at / "p.tsv", "--out", at / "out.tsv", "--min-count", "1", "--dimensions", "4"],
            "trans-lm": ["trans-lm", at / "p.tsv", "--out", at / "out.safetensors"],
            "train": ["train", at / "train.tsv", "--out", at / "run", *SMALL, "--epochs", "1"],
            "index": ["index", at / "a", at / "more.tsv", "--matcher", at / "m0"],
            "new": ["index", at / "b", at / "p.tsv", "--store", "lance"],
            "new collection": ["index", at / "b", at / "p.tsv"],
            "fit": ["fit", at / "p.tsv", "--out", at / "c", "--overwrite", "--minutes", "0.1"],
            "add": ["add", at / "c", at / "more.tsv"],
            "remove": ["remove", at / "c", sorted(self._entries)[0]],
            "refit": ["refit", at / "c"],
            "ask": ["search", at / "c", "baden"],
            "compact": ["index", at / "a", "--compact"],
            "reencode": ["index", at / "a", "--reencode", at / "m1"],
            "search": ["search", at / "a", "baden", "--matcher", at / "m0"],
            "evaluate": ["evaluate", at / "m0", at / "train.tsv", "--per-query", at / "out.tsv"],
        }

    def begin(self) -> None:
        """Everything anew."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.whole, self.work)

    def check(self, name: str, code: int, said: str) -> None:
        """What was there is whole."""
        if name in ("index", "compact", "reencode", "search"):
            checked = LanceCollection.check(self.work / "a", self.work / "m0")
            assert checked.whole, (name, checked)
            assert len(LanceCollection.open(self.work / "a")) in (60, 120)
        if name in ("add", "remove", "refit", "ask"):
            assert Collection.check(self.work / "c"), name
            found = Collection.open(self.work / "c")
            assert len(set(found.entries.ids) & self._entries) >= len(self._entries) - 1, name
            assert code == 0 or name == "refit" or set(found.entries.ids) == self._entries, (
                "refused, and changed all the same"
            )
            found.search("baden kelar", top=3)
        if name == "fit":
            found = told(lambda: Collection.open(self.work / "c"))
            assert not isinstance(found, Refused), found
        if code == 2 and name in ("score", "mine", "vectors", "evaluate"):
            assert (self.work / "out.tsv").read_text() == "old", name
        if name == "train" and (self.work / "run" / "matcher.json").exists():
            found = told(lambda: Matcher.load(self.work / "run"))
            assert not isinstance(found, Refused), found
        assert code == 0 or "index the pairs again" not in said, said


class Limits(_Denied):
    """Files may not grow beyond some bytes, as on a full disk; or few may be open."""

    def attempt(self, rng: random.Random) -> None:
        """One command under one limit."""
        self.begin()
        name = rng.choice(sorted(self.commands()))
        if rng.random() < 0.8:
            limits = {resource.RLIMIT_FSIZE: int(10 ** rng.uniform(0, 5))}
        else:
            limits = {resource.RLIMIT_NOFILE: rng.randrange(24, 60)}
        self.check(name, *run(self.commands()[name], limits=limits))


class Permissions(_Denied):
    """Some file or folder may not be read, or not be written."""

    def attempt(self, rng: random.Random) -> None:
        """One command that lacks one permission."""
        self.begin()
        name = rng.choice(sorted(self.commands()))
        given = [path for path in self.commands()[name] if isinstance(path, Path) and path.exists()]
        inside = [one for path in given for one in ([*files_under(path), path] if path.is_dir() else [path])]
        chosen = rng.choice([self.work, *inside, *(path.parent for path in inside)])
        before = chosen.stat().st_mode
        taken = rng.choice((0o444, 0o222, 0o111, 0o777))
        chosen.chmod(before & ~taken)
        try:
            code, said = run(self.commands()[name], without_rights=True)
        finally:
            if chosen.exists():
                chosen.chmod(before)
        try:
            self.check(name, code, said)
        except AssertionError as error:
            raise AssertionError(f"without {taken:o} of {chosen}, ended with {code}: {said}") from error
