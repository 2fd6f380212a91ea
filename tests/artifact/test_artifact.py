"""Artifacts: what was written comes back, and nothing else does; a kill leaves the old one or the new one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from matchloom import artifact
from matchloom.artifact import KINDS, Saved, holds, kind_of, load, packed, settings_of
from matchloom.artifact.manifest import checksum_of, sha256
from matchloom.types import MatchloomError
from tests.artifact.rewriting import Inner
from tests.drawing import examples

REMEDY = "make it again"
SETTINGS = {"name": "loom", "sizes": [1, 2.5, None], "ünï": True}
TENSORS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "ids": np.array([-3, 9], np.int64),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 4), np.float32),
    "one": np.array(0.5),
}
FILES = {"vocab.txt": b"a\nb\n", "x.safetensors": packed(TENSORS)}


def write(folder: Path, version: int = 2, settings: Any = SETTINGS, files: Any = FILES, **inside: Any) -> Path:
    artifact.write(folder, "thing", version, settings, files, inside=inside)
    return folder


def read(folder: Path) -> Saved:
    return artifact.read(folder, "thing", 2, remedy=REMEDY)


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "inner", "tests.artifact.rewriting:Inner.load")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "thing", part=Inner("warp"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize("framework", ["np", "pt"])
@pytest.mark.parametrize("written", ["np", "pt"])
def test_what_was_written_comes_back(tmp_path: Path, framework: Literal["np", "pt"], written: str) -> None:
    tensors: dict[str, Any] = dict(TENSORS)
    if written == "pt":
        tensors = {name: torch.from_numpy(x).requires_grad_(x.dtype.kind == "f") for name, x in TENSORS.items()}
        tensors["weights"] = tensors["weights"].T.contiguous().T  # not contiguous
    found = read(write(tmp_path / "new", files={"x.safetensors": packed(tensors), "a": lambda file: file.write(b"a")}))
    assert (found.settings, found.content("a")) == (SETTINGS, b"a")
    assert "a" in found
    assert "b" not in found
    back = found.tensors("x.safetensors", framework)
    assert back.keys() == TENSORS.keys()
    for name, x in back.items():
        assert isinstance(x, torch.Tensor if framework == "pt" else np.ndarray)
        assert np.array_equal(np.asarray(x), TENSORS[name])
        assert np.asarray(x).dtype == TENSORS[name].dtype
    assert sorted(one.name for one in (tmp_path / "new").iterdir()) == ["a", "thing.json", "x.safetensors"]


@examples(25)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8")), st.one_of(st.integers(-9, 9), st.text(max_size=3), st.none())
    ),
    arrays.arrays(st.sampled_from(["f4", "f8", "i8", "u1", "?"]), arrays.array_shapes(min_dims=0, min_side=0)),
)
def test_any_settings_and_tensors_come_back(tmp_path: Path, given: dict[str, Any], x: np.ndarray[Any, Any]) -> None:
    found = read(write(tmp_path, settings=given, files={"x": packed({"x": x})}))
    assert found.settings == given
    assert np.array_equal(found.tensors("x")["x"], x, equal_nan=x.dtype.kind == "f")


def test_bfloat16_has_no_numpy_and_is_kept_all_the_same(tmp_path: Path) -> None:
    saved = read(write(tmp_path, files={"x": packed({"x": torch.ones(3, dtype=torch.bfloat16)})}))
    assert saved.tensors("x", "pt")["x"].dtype == torch.bfloat16


def test_equal_things_give_equal_bytes(tmp_path: Path) -> None:
    a, b = (write(tmp_path / name, part=Inner("warp")) for name in "ab")
    assert contents(a) == contents(b)


def refused(folder: Path, told: str) -> None:
    with pytest.raises(MatchloomError, match=told) as caught:
        read(folder).inside("part")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(folder))


def resealed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a manifest and make its own checksum fit again."""
    manifest = json.loads((folder / "thing.json").read_bytes())
    change(manifest)
    (folder / "thing.json").write_text(json.dumps({**manifest, "checksum": checksum_of(manifest)}))


@pytest.mark.parametrize("name", ["thing.json", "vocab.txt", "x.safetensors", "part/inner.json", "part/more.txt"])
def test_any_harm_to_any_file_is_refused_and_named(folder: Path, name: str) -> None:
    path, content = folder / name, (folder / name).read_bytes()
    for place in range(0, len(content), max(1, len(content) // 40)):
        altered = bytearray(content)
        altered[place] ^= 1
        path.write_bytes(altered)
        refused(folder, name)
    for cut in (0, 1, len(content) // 2, len(content) - 2):
        path.write_bytes(content[:cut])
        refused(folder, rf"{name} (is damaged or cut off|was altered)")
    path.unlink()
    refused(folder, name.rpartition("/")[2] if "inner" not in name else "part")
    os.mkfifo(path)
    refused(folder, f"{name} is no file")
    path.unlink()
    other = folder.parent / "elsewhere"
    other.write_bytes(content)
    path.symlink_to(other)
    refused(folder, f"{name} is a link")
    path.unlink()
    path.mkdir()
    refused(folder, f"{name} is no file")
    path.rmdir()
    path.write_bytes(content)
    assert read(folder).inside("part").text == "warp"


def test_what_is_inside_cannot_be_exchanged(folder: Path, tmp_path: Path) -> None:
    Inner("weft").save(tmp_path / "other")
    shutil.rmtree(folder / "part")
    shutil.copytree(tmp_path / "other", folder / "part")
    refused(folder, "part/inner.json was altered since it was saved, or belongs to another")
    shutil.rmtree(folder / "part")
    refused(folder, "part is no folder")
    (folder / "part").symlink_to(tmp_path / "other")
    refused(folder, "part is no folder")


def test_formats(tmp_path: Path) -> None:
    refused(write(tmp_path, version=9), "has format 9, this matchloom reads format 2; upgrade matchloom")
    refused(write(tmp_path, version=1), f"has format 1, this matchloom reads format 2; {REMEDY}")


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", "{}", "7", "null", '{"format": 2}', '{"format": "2"}', '{"format": true}', '{"format": 1e999}'),
        "[" * 100_000,
        '{"format": 2, "kind": "thing", "settings": {}, "checksums": {}, "checksum": 1}',
    ],
)
def test_manifests_that_make_no_sense(folder: Path, content: str) -> None:
    (folder / "thing.json").write_text(content)
    refused(folder, rf"thing\.json is damaged or cut off; {REMEDY}")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "..", ".", "", "a/b", "part/../x", "a\0b", ".hidden"])
def test_a_manifest_names_nothing_outside(folder: Path, name: str) -> None:
    resealed(folder, lambda manifest: manifest["checksums"].update({name: sha256(b"")}))
    refused(folder, "which is no file of this folder")


def test_a_manifest_of_another_kind(folder: Path) -> None:
    resealed(folder, lambda manifest: manifest.update(kind="other"))
    refused(folder, "altered")


def test_nothing_and_no_folders(tmp_path: Path) -> None:
    refused(tmp_path / "none", f"none is not a folder.*; {REMEDY}")
    refused(tmp_path, r"has no thing\.json, so it is no thing")
    (tmp_path / "file").touch()
    refused(tmp_path / "file", "file is not a folder")
    refused(tmp_path / ("n" * 300), "cannot be read: File name too long")


def test_what_was_not_saved_is_not_there(folder: Path) -> None:
    (folder / "new.txt").write_text("x")
    with pytest.raises(MatchloomError, match=r"new\.txt is not among the files that were saved"):
        read(folder).content("new.txt")
    with pytest.raises(MatchloomError, match="has nothing inside that is named 'other'"):
        read(folder).inside("other")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("framework", ["np", "pt"])
def test_numbers_that_are_not_finite_are_refused_where_asked(tmp_path: Path, bad: float, framework: Any) -> None:
    tensors = {"ids": np.array([1]), "w": np.array([0, bad], np.float32)}
    saved = read(write(tmp_path, files={"x": packed(tensors)}))
    assert saved.tensors("x", framework).keys() == {"ids", "w"}
    with pytest.raises(MatchloomError, match=f"x holds numbers that are not finite, in 'w'; {REMEDY}"):
        saved.tensors("x", framework, finite=True)


def test_what_is_no_safetensors_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match=f"{tmp_path}/x holds what does not fit .*; {REMEDY}"):
        read(write(tmp_path, files={"x": b"none"})).tensors("x")


def test_a_write_that_fails_leaves_all_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(folder)
    for last in range(1, 10):  # the last is the manifest's; names come after it
        synced: list[int] = []

        def full(descriptor: int, last: int = last, synced: list[int] = synced) -> None:
            synced.append(descriptor)
            if len(synced) == last:
                raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(MatchloomError, match=r"was not written \(No space left on device\)"):
                write(folder, settings={"other": 1}, files=dict.fromkeys(FILES, b"new"), part=Inner("weft"))
        assert contents(folder) == before, last
        assert not list(folder.rglob("*.tmp"))


def test_what_only_the_old_manifest_names_goes(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    write(folder, files={"vocab.txt": b"c"}, part=Inner("weft"))
    assert sorted(one.name for one in folder.iterdir()) == ["notes.txt", "part-2", "thing.json", "vocab.txt"]
    assert read(folder).inside("part").text == "weft"
    write(folder, files={}, part=Inner("twine"))
    assert sorted(one.name for one in folder.iterdir()) == ["notes.txt", "part", "thing.json"]
    write(folder, files={})
    assert sorted(one.name for one in folder.iterdir()) == ["notes.txt", "thing.json"]


def test_folders_of_others_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "notes.txt").write_text("mine")
    write(tmp_path, part=Inner("warp"))
    assert (tmp_path / "part" / "notes.txt").read_text() == "mine"
    assert read(tmp_path).inside("part").text == "warp"


def test_links_and_pipes_are_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    for make in (lambda path: path.symlink_to(tmp_path / "precious"), os.mkfifo):
        for name in ("thing.json", "vocab.txt"):
            home = tmp_path / "home"
            home.mkdir()
            make(home / name)
            with pytest.raises(MatchloomError, match=f"{name} is no file, and is not replaced"):
                write(home)
            shutil.rmtree(home)
    assert (tmp_path / "precious").read_text() == "mine"


def test_what_cannot_be_kept_inside_is_told(tmp_path: Path) -> None:
    class Nothing:
        def save(self, folder: Path) -> None:
            folder.mkdir()

    with pytest.raises(MatchloomError, match="Nothing cannot be kept in a folder"):
        write(tmp_path, part=Nothing())
    assert list(tmp_path.iterdir()) == []


def test_kinds(folder: Path, tmp_path: Path) -> None:
    assert kind_of(folder) is None, "a thing is nothing that can be loaded"
    assert kind_of(folder / "part") == "inner"
    assert kind_of("what is the longest name" * 100) is None
    assert kind_of(tmp_path / "none") is None
    assert holds(folder, "thing")
    assert settings_of(folder, "thing") == SETTINGS
    assert settings_of(folder, "other") is None
    assert isinstance(load(folder / "part"), Inner)
    with pytest.raises(MatchloomError, match="is no folder that 'matchloom fit', 'train' or 'index' made"):
        load(folder)
    with pytest.raises(MatchloomError, match="is not a folder"):
        load(tmp_path / "none")
    with pytest.raises(MatchloomError, match="folder is 7"):
        load(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [pytest.param(n, marks=[pytest.mark.slow] if n % 4 else []) for n in range(32)] + [99])
def test_a_kill_leaves_the_old_or_the_new(tmp_path: Path, step: int) -> None:
    folder = write(
        tmp_path / "thing", settings={"number": 1}, files={"same.txt": b"old", "gone.txt": b"old"}, part=Inner("warp")
    )
    run = subprocess.run(
        [sys.executable, "-m", "tests.artifact.rewriting", str(folder), str(step)], capture_output=True, text=True
    )
    assert run.returncode in (0, -signal.SIGKILL), run.stderr
    assert (run.stdout == "done\n") == (run.returncode == 0)
    assert step != 99 or run.returncode == 0
    found = read(folder)
    number = found.settings["number"]
    assert found.content("same.txt") == {1: b"old", 2: b"new"}[number]
    assert ("gone.txt" in found) == (number == 1)
    assert found.inside("part").text == {1: "warp", 2: "weft"}[number]
    write(folder, settings={"number": 3}, files={}, part=Inner("twine"))
    assert not list(folder.glob(".*")), "what the dead left is swept"
