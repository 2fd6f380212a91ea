"""Fixtures for all tests, and how property tests draw their examples."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Before torch is imported, and for every process that a test starts. Threads that wait for work spin by default, and
# take the cores from the other test process; one thread is what a test process and its children get of two cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MATCHLOOM_ENCODERS"] = "none"  # what a machine has of these must not change what is tested

import pytest
import torch
from hypothesis import HealthCheck, settings
from typer.main import get_command

from matchloom.encoders.library import cache as cache_of_encoders
from tests.drawing import USUAL

# A clock fails a test on a busy machine and not on a quiet one, so none is asked: no deadline, no check of how long
# drawing takes. What a test function's examples share is a folder whose files each of them writes anew, or what
# monkeypatch sets again. And no store of old finds: an example comes from the test and the seed alone.
STEADY = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], database=None
)
# The same examples each time: what fails here fails for everybody.
settings.register_profile("ci", STEADY, derandomize=True, max_examples=USUAL)
# New ones each time, ten times as many: `make fuzz`, which prints the seed that draws them again.
settings.register_profile("fuzz", STEADY, derandomize=False, max_examples=10 * USUAL, print_blob=True)
settings.register_profile("long", settings.get_profile("fuzz"), max_examples=30 * USUAL)
settings.load_profile("ci")  # unless --hypothesis-profile names another


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a machine could not do is said, and not only counted."""
    if shutil.which("chromium") is None:
        terminalreporter.write_line("Skipped: all tests in a browser; chromium is not here (apt install chromium).")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The real data sets, which are no part of the project; tests that ask for them are skipped without."""
    folder = Path(os.environ.get("MATCHLOOM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real data sets are not here (set MATCHLOOM_DATA to their folder)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _commands_are_made_once() -> Iterator[None]:
    # A process runs one command and so makes them once, in a tenth of a second; the tests run hundreds.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matchloom.cli.get_command", cache(get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def users_encoders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where this user keeps encoders. What tests keep goes elsewhere."""
    encoders = cache_of_encoders()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield encoders


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_here() -> Iterator[None]:
    # A command without a name for its file writes into the working directory; a test works in a folder of its own.
    before = set(Path.cwd().iterdir())
    yield
    left = {path.name for path in set(Path.cwd().iterdir()) - before if not path.name.startswith(".")}
    assert not left, f"tests wrote {sorted(left)} into the working directory"


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    # pytest-xdist already uses the cores; more threads a test only get in each other's way.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _width_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    # What commands print must not depend on the terminal in which the tests were started.
    monkeypatch.delenv("COLUMNS", raising=False)
