from __future__ import annotations

import os
from pathlib import Path

import pytest
from fastapi import FastAPI

from tests.service.making import make_app, write_all


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of `write_all`. Do not change them: take copies."""
    return write_all(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def app(served: Path) -> FastAPI:
    """Everything, to be read."""
    return make_app(served, "faq", "mv", "tickets")


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: MATCHLOOM_SCREENSHOTS, or a folder that is thrown away."""
    given = os.environ.get("MATCHLOOM_SCREENSHOTS")
    folder = Path(given) if given else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
