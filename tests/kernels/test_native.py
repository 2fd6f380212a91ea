"""Loading the native kernels, and doing without them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from matchloom.kernels import native
from matchloom.layers.spatial_gru import SpatialGRU


@pytest.fixture
def fresh() -> Iterator[None]:
    """The loader as if nothing had been loaded, before and after."""
    native.library.cache_clear()
    yield
    native.library.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_the_fastest_suitable_build_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(native.SWITCH, raising=False)
    builds = native.suitable()
    loaded = native.library()
    if not builds:
        pytest.skip("the kernel was not built")
    assert loaded is not None
    assert loaded.build == builds[-1]
    assert native.status().startswith(f"{builds[-1]} build: spatial GRU")
    assert native.library() is loaded


@pytest.mark.usefixtures("fresh")
def test_it_can_be_switched_off_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(native.SWITCH, "none")
    with caplog.at_level(logging.WARNING, "matchloom"):
        assert native.library() is None
        assert native.library() is None
    assert [record.getMessage() for record in caplog.records] == [
        "the native kernels are not used (MATCHLOOM_KERNEL is 'none'); torch takes their place, much slower"
    ]
    assert native.status().startswith("absent or switched off: torch computes")


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("content", [None, b"no library"])
def test_a_missing_or_broken_library_leaves_torch(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(native.SWITCH, raising=False)
    monkeypatch.setattr(native, "path_of", lambda build: tmp_path / f"{build}.so")
    if content:
        (tmp_path / "plain.so").write_bytes(content)
    with caplog.at_level(logging.WARNING, "matchloom"):
        assert native.library() is None
    assert ("does not load" if content else "not built") in caplog.text
    s = torch.ones(2, 1, 3, 3)
    assert SpatialGRU(1, 2)(s, torch.tensor([3, 1]), torch.tensor([2, 3])).shape == (2, 2)
