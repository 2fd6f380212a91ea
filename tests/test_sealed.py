"""Sealed files: what was written comes back, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from matchloom import sealed
from matchloom.basics import files
from matchloom.sealed import read_sealed, write_sealed
from matchloom.types import MatchloomError
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
BESIDE = {"vocab.txt": b"a\nb\n", "about.json": b"{}"}


def write(path: Path, version: int = 2, **changes: Any) -> Path:
    given = {"settings": SETTINGS, "tensors": TENSORS, "beside": BESIDE, **changes}
    write_sealed(path, "thing", version, **given)
    return path


def read(path: Path, **changes: Any) -> sealed.Sealed:
    return read_sealed(path, "thing", 2, **{"remedy": REMEDY, "beside": tuple(BESIDE), **changes})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "x.safetensors")


@pytest.mark.parametrize("framework", ["np", "pt"])
@pytest.mark.parametrize("written", ["np", "pt"])
def test_what_was_written_comes_back(tmp_path: Path, framework: Literal["np", "pt"], written: str) -> None:
    tensors: dict[str, Any] = dict(TENSORS)
    if written == "pt":
        tensors = {name: torch.from_numpy(x).requires_grad_(x.dtype.kind == "f") for name, x in TENSORS.items()}
        tensors["weights"] = tensors["weights"].T.contiguous().T  # not contiguous
    found = read(write(tmp_path / "x.safetensors", tensors=tensors), framework=framework)
    assert (found.settings, found.beside) == (SETTINGS, BESIDE)
    assert found.tensors.keys() == TENSORS.keys()
    for name, x in found.tensors.items():
        assert isinstance(x, torch.Tensor if framework == "pt" else np.ndarray)
        assert np.array_equal(np.asarray(x), TENSORS[name])
        assert np.asarray(x).dtype == TENSORS[name].dtype
    assert sorted(one.name for one in tmp_path.iterdir()) == ["about.json", "vocab.txt", "x.safetensors"]


@examples(25)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8")), st.one_of(st.integers(-9, 9), st.text(max_size=3), st.none())
    ),
    arrays.arrays(st.sampled_from(["f4", "f8", "i8", "u1", "?"]), arrays.array_shapes(min_dims=0, min_side=0)),
)
def test_any_settings_and_tensors_come_back(tmp_path: Path, given: dict[str, Any], x: np.ndarray[Any, Any]) -> None:
    given = {key: value for key, value in given.items() if key not in ("format", "files", "digest")}
    found = read(write(tmp_path / "x", settings=given, tensors={"x": x}))
    assert found.settings == given
    assert np.array_equal(found.tensors["x"], x, equal_nan=x.dtype.kind == "f")


def test_bfloat16_has_no_numpy_and_is_sealed_all_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "x", tensors={"x": torch.ones(3, dtype=torch.bfloat16)})
    assert read(path, framework="pt").tensors["x"].dtype == torch.bfloat16


def refused(path: Path, told: str, **changes: Any) -> None:
    with pytest.raises(MatchloomError, match=told) as caught:
        read(path, **changes)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path.parent))


@pytest.mark.parametrize("keep", [0, 7, 60, 300, -1])
def test_cut_off(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, f"is damaged, cut off or no thing file; {REMEDY}")


def test_any_bit_of_the_tensors_or_settings_counts(path: Path) -> None:
    content = path.read_bytes()
    for place in (-1, -20, content.index(b"loom"), content.index(b"2.5")):
        altered = bytearray(content)
        altered[place] ^= 1
        path.write_bytes(altered)
        refused(path, f"x.safetensors was altered since it was saved; {REMEDY}")


@pytest.mark.parametrize("name", BESIDE)
def test_a_file_beside_that_is_altered_or_missing_is_named(path: Path, name: str) -> None:
    path.with_name(name).write_bytes(b"other")
    refused(path, rf"{name} was altered since it was saved, or does not belong to x\.safetensors; {REMEDY}")
    path.with_name(name).unlink()
    refused(path, f"{name} cannot be read: No such file or directory; {REMEDY}")
    assert read(path, beside=[other for other in BESIDE if other != name]).settings == SETTINGS


def test_a_file_beside_that_was_never_sealed_is_refused(path: Path) -> None:
    path.with_name("new.txt").write_bytes(b"")
    refused(path, "new.txt was altered", beside=["new.txt"])


def test_formats(tmp_path: Path) -> None:
    refused(write(tmp_path / "x", version=9), "x has format 9, this matchloom reads 2; upgrade matchloom")
    refused(write(tmp_path / "x", version=1), f"x has format 1, this matchloom reads 2; {REMEDY}")


@pytest.mark.parametrize(
    "about", ["{", "[]", "{}", '{"format": 2}', '{"format": "2", "digest": "x"}', '{"format": true, "digest": ""}']
)
def test_metadata_that_make_no_sense(path: Path, about: str) -> None:
    safetensors.numpy.save_file(TENSORS, path, {"thing": about})
    refused(path, "is damaged, cut off or no thing file")
    safetensors.numpy.save_file(TENSORS, path, {"other": about})
    refused(path, "is damaged, cut off or no thing file")
    safetensors.numpy.save_file(TENSORS, path)
    refused(path, "is damaged, cut off or no thing file")


def test_nothing_and_folders(tmp_path: Path) -> None:
    refused(tmp_path / "none", f"none cannot be read: No such file or directory.*; {REMEDY}")
    refused(tmp_path, f"cannot be read: .*; {REMEDY}")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("framework", ["np", "pt"])
def test_numbers_that_are_not_finite_are_refused_where_asked(tmp_path: Path, bad: float, framework: str) -> None:
    path = write(tmp_path / "x", tensors={"ids": np.array([1]), "w": np.array([0, bad], np.float32)})
    assert read(path, framework=framework).tensors.keys() == {"ids", "w"}
    refused(path, f"x holds numbers that are not finite, in 'w'; {REMEDY}", framework=framework, finite=True)


def test_a_write_that_fails_leaves_all_files_as_they_were(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    synced: list[int] = []

    def full(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 3:  # the last file of three
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sealed.os, "fsync", full)
    with pytest.raises(MatchloomError, match=r"x\.safetensors was not written \(No space left on device\)"):
        write(path, settings={"other": 1}, beside=dict.fromkeys(BESIDE, b"new"))
    assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before
    assert files.os is sealed.os


def test_the_seal_is_in_the_file_for_all_to_read(path: Path) -> None:
    with safetensors.safe_open(path, "np") as opened:
        about = json.loads(opened.metadata()["thing"])
    assert about["format"] == 2
    assert about.keys() == {*SETTINGS, "format", "files", "digest"}
    assert about["files"].keys() == BESIDE.keys()
