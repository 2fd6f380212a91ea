"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The real data sets, which are no part of the project; tests that ask for them are skipped without."""
    folder = Path(os.environ.get("MATCHLOOM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real data sets are not here (set MATCHLOOM_DATA to their folder)")
    return folder


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    # pytest-xdist already uses the cores; more threads a test only get in each other's way.
    torch.set_num_threads(1)
