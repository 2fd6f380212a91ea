"""Damaged folders of matchers, runs, rankers and fitted systems: refused in one line, or as good as they were."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom import Fitted, Matcher, TrainConfig, fit, train
from matchloom.basics.files import atomic_write, make_folder
from matchloom.fitting.pair_classifier import PairClassifier
from matchloom.lexical.trans_lm import TransLM
from matchloom.search.ranker import AnswerRanker
from matchloom.text.tokenize import Tokenizer
from matchloom.training.checkpoint import read_checkpoint
from matchloom.types import MatchloomError, Pair
from tests.drawing import examples
from tests.fitting.samples import small_report
from tests.fitting.test_pairs_task import labelled
from tests.fitting.test_run import faq
from tests.models.making import TEXTS
from tests.mutating import damage
from tests.test_matcher import make_matcher
from tests.training.making import colour_pairs

PAIRS = [Pair(query, text) for query in TEXTS[:3] for text in TEXTS[:5]]


def make_run(folder: Path) -> None:
    train(
        colour_pairs(20),
        arguments={"hidden": 6},
        config=TrainConfig(epochs=1),
        hold_out=0,
        vectors="random",
        dimensions=8,
        folder=folder,
        overwrite=True,
    )


def read_run(folder: Path) -> str:
    read_checkpoint(folder / "checkpoint.safetensors")
    return Matcher.load(folder).digest


# What is saved, and how it is read and used.
KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "matcher": (
        lambda folder: make_matcher("mv_lstm", hidden=3, slices=1, lexical=True).save(folder),
        lambda folder: Matcher.load(folder).score(PAIRS).tolist(),
    ),
    "run": (make_run, lambda folder: read_run(folder)),
    "ranker": (
        lambda folder: AnswerRanker.fit(faq(20)).save(folder),
        lambda folder: AnswerRanker.load(folder).score(PAIRS).tolist(),
    ),
    "fitted": (
        lambda folder: fit(faq(20)).save(folder),
        lambda folder: Fitted.load(folder).score(PAIRS).tolist(),
    ),
    "classifier": (
        lambda folder: Fitted(
            PairClassifier.fit(labelled(60), labelled(20, 1), Tokenizer()), small_report(), "pairs"
        ).save(folder),
        lambda folder: Fitted.load(folder).score(PAIRS).tolist(),
    ),
    "trans_lm": (
        lambda folder: (
            make_folder(folder),
            TransLM.fit(TEXTS, PAIRS[:6]).save(folder / "a.trans_lm"),
        ),
        lambda folder: TransLM.load(folder / "a.trans_lm").score(PAIRS).tolist(),
    ),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind) / "saved"
            KINDS[kind][0](made[kind])
        return made[kind]

    return folder


def try_damaged(original: Path, copy: Path, kind: str, seed: int) -> str:
    """Damage a copy and read it; what was done, and whether it was refused."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    what = damage(copy, random.Random(seed))
    found, refused = None, ""
    try:
        found = KINDS[kind][1](copy)
    except MatchloomError as error:
        refused = str(error)
    if refused:
        assert str(copy) in refused, f"{what}: names no file: {refused}"
        assert len(refused) < 1000, f"{what}: {refused}"
        return f"{what}: refused"
    if "resealed" not in what and "report.html" not in what and "log.jsonl" not in what and "fit.json" not in what:
        assert found == KINDS[kind][1](original), f"{what}: read, and other than it was"
    assert np.isfinite(found).all() if isinstance(found, list) else found
    return f"{what}: read"


@pytest.mark.parametrize("kind", KINDS)
@examples(30)
@given(seed=st.integers(0, 10**9))
def test_a_damaged_folder_is_refused_in_one_line(saved, tmp_path_factory, kind: str, seed: int) -> None:
    try_damaged(saved(kind), tmp_path_factory.getbasetemp() / f"damaged-{kind}", kind, seed)


def refuse(error: OSError, wanted: str, monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
    """Have the system refuse what touches a path that ends so. Tests may run as root, whom nothing is refused."""
    for method in methods:
        work = getattr(Path, method)

        def call(self: Path, *given: Any, _work: Any = work, **named: Any) -> Any:
            if str(self).endswith(wanted):
                raise error.__class__(error.errno, error.strerror, str(self))
            return _work(self, *given, **named)

        monkeypatch.setattr(Path, method, call)


DENIED = PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize("name", ["", "matcher.json", "vocab.txt", "weights.safetensors"])
def test_a_matcher_that_may_not_be_looked_at_is_not_missing(
    saved: Callable[[str], Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved("matcher")
    refuse(DENIED, f"saved/{name}".rstrip("/"), monkeypatch, "stat")
    with pytest.raises(MatchloomError, match=f"{name or 'saved'} cannot be read: Permission denied; check"):
        Matcher.load(folder)


@pytest.mark.parametrize("name", ["matcher.json", "vocab.txt"])
def test_a_file_that_may_not_be_read_is_told(
    saved: Callable[[str], Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved("matcher")
    refuse(DENIED, name, monkeypatch, "open", "read_bytes", "read_text")
    with pytest.raises(MatchloomError, match=f"{name} cannot be read: Permission denied"):
        Matcher.load(folder)


@pytest.mark.parametrize("kind", ["ranker", "fitted"])
def test_a_folder_that_may_not_be_read_is_told(
    saved: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(kind)
    refuse(DENIED, ".json", monkeypatch, "stat", "read_bytes")
    with pytest.raises(MatchloomError, match=r"cannot be read.*: Permission denied"):
        KINDS[kind][1](folder)


def test_a_place_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop", tmp_path / ("n" * 300), tmp_path / "a\0b"):
        with pytest.raises(MatchloomError, match="was not written"), atomic_write(path):
            pass
    refuse(DENIED, "out.tsv", monkeypatch, "stat")
    out = tmp_path / "out.tsv"
    with pytest.raises(MatchloomError, match=r"out\.tsv was not written: Permission denied"), atomic_write(out):
        pass


def test_a_full_disk_is_told_and_leaves_the_matcher_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path)
    names = ("matcher.json", "vocab.txt", "weights.safetensors")
    before = [(tmp_path / name).read_bytes() for name in names]

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MatchloomError, match=r"was not written \(No space left on device\); what was there before"):
        make_run(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == before, "the old matcher stays"


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"format": 1e999}', '{"format": []}', "null", "7", '"format"', "{"]
)
def test_strange_settings_are_told_in_one_line(saved: Callable[[str], Path], tmp_path: Path, content: str) -> None:
    shutil.copytree(saved("matcher"), tmp_path / "m")
    (tmp_path / "m" / "matcher.json").write_text(content)
    with pytest.raises(MatchloomError, match=r"matcher\.json is damaged or cut off; copy or train"):
        Matcher.load(tmp_path / "m")
