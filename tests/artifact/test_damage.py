"""Damaged artifacts of every kind: refused in one line, or as good as they were. One generator for all of them."""

from __future__ import annotations

import errno
import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom import Matcher, load
from matchloom.artifact import KINDS
from matchloom.artifact.manifest import sha256
from matchloom.basics.files import atomic_write
from matchloom.search.arrays import map_arrays, write_arrays
from matchloom.search.collection import Collection
from matchloom.types import MatchloomError
from tests.artifact.damaging import Damaged, rewrite
from tests.artifact.samples import SAMPLES, make_collection
from tests.drawing import examples
from tests.refusing import refused
from tests.search.lance.making import made_matcher

DENIED = PermissionError(errno.EACCES, "Permission denied")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Damaged]:
    made: dict[str, Damaged] = {}

    def of(kind: str) -> Damaged:
        if kind == "export":
            pytest.importorskip("onnxruntime")
            pytest.importorskip("onnx")
        if kind not in made:
            made[kind] = Damaged(tmp_path_factory.mktemp(kind), kind)
        return made[kind]

    return of


@pytest.mark.parametrize("kind", SAMPLES)
@examples(30)
@given(seed=st.integers(0, 10**9))
def test_a_damaged_folder_is_refused_in_one_line(saved: Callable[[str], Damaged], kind: str, seed: int) -> None:
    saved(kind).attempt(random.Random(seed))


def test_every_kind_has_a_sample() -> None:
    assert KINDS.keys() - SAMPLES.keys() == {"archive"}, "of which tests/search/lance has more"


def refuse(error: OSError, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the system refuse what touches a path that ends so. Tests may run as root, whom nothing is refused."""

    def refusing(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *given: Any, **named: Any) -> Any:
            if str(path).endswith(wanted):
                raise error.__class__(error.errno, error.strerror, str(path))
            return work(path, *given, **named)

        return call

    monkeypatch.setattr("os.open", refusing(__import__("os").open))
    monkeypatch.setattr(Path, "stat", refusing(Path.stat))
    monkeypatch.setattr(Path, "lstat", refusing(Path.lstat))


@pytest.mark.parametrize("name", ["", "/matcher.json", "/vocab.txt", "/weights.safetensors"])
def test_what_may_not_be_read_is_told(
    saved: Callable[[str], Damaged], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved("matcher").first
    refuse(DENIED, f"first{name}", monkeypatch)
    with pytest.raises(MatchloomError, match="cannot be read: Permission denied") as caught:
        Matcher.load(folder)
    assert caught.value.code == "unreadable"


@pytest.mark.parametrize("kind", ["collection", "fit"])
def test_a_folder_that_may_not_be_looked_at_is_told(
    saved: Callable[[str], Damaged], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(kind).first
    refuse(DENIED, ".json", monkeypatch)
    with pytest.raises(MatchloomError, match=r"cannot be read: Permission denied"):
        load(folder)


def test_a_place_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop", tmp_path / ("n" * 300), tmp_path / "a\0b"):
        with pytest.raises(MatchloomError, match="was not written"), atomic_write(path):
            pass
    refuse(DENIED, "out.tsv", monkeypatch)
    out = tmp_path / "out.tsv"
    with pytest.raises(MatchloomError, match=r"out\.tsv was not written: Permission denied"), atomic_write(out):
        pass


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_full_disk_leaves_what_was_there(
    saved: Callable[[str], Damaged], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(kind)
    if kind == "export":
        return  # which replaces nothing
    SAMPLES[kind].make(tmp_path, 0)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MatchloomError, match="No space left on device") as caught:
        SAMPLES[kind].make(tmp_path, 1)
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"format": 1e999}', '{"format": []}', "null", "7", '"format"', "{"]
)
def test_strange_settings_are_told_in_one_line(tmp_path: Path, content: str) -> None:
    made_matcher().save(tmp_path)
    (tmp_path / "matcher.json").write_text(content)
    with pytest.raises(MatchloomError, match=r"matcher\.json is damaged or cut off; copy or train"):
        Matcher.load(tmp_path)


def test_forged_numbers_of_a_collection_are_refused_or_harmless(tmp_path: Path) -> None:
    """Somebody wrote them who writes checksums, too: an average of 0 words, and fewer answers than probabilities."""
    make_collection(tmp_path / "first", 0)
    for way in ("mean_length", "calibration"):
        folder = tmp_path / way
        shutil.copytree(tmp_path / "first", folder)
        path = folder / "collection.json"
        manifest = json.loads(path.read_bytes())
        if way == "calibration":
            manifest["settings"]["calibration"]["right"].pop()
        else:
            name = next(one for one in manifest["checksums"] if one.startswith("index-"))
            arrays = {key: np.array(value) for key, value in map_arrays(folder / name, "").items()}
            arrays["feature.bm25_ans.mean_length"][:] = 0
            stream = io.BytesIO()
            write_arrays(stream, arrays)
            (folder / name).write_bytes(stream.getvalue())
            manifest["checksums"][name] = sha256(stream.getvalue())
        rewrite(folder, path, manifest)
        with refused("damaged", folder):
            Collection.open(folder)
