"""A short round of attacks on a running service; `python -m tests.hostile.service` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.full_disk import filled
from tests.hostile.retries import retried
from tests.hostile.service import ATTACKS, attacked


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "largest requests"])
def test_others_are_served_and_nothing_breaks(name: str, tmp_path: Path) -> None:
    found = attacked(tmp_path, name, seed=0, tries=20, seconds=1.0)
    assert found["tries"] > 0
    assert not found["failures"], found


@pytest.mark.slow
def test_what_is_sent_again_to_workers_that_are_killed_is_done_once(tmp_path: Path) -> None:
    found = retried(tmp_path, seed=0, kills=2, clients=4)
    assert sum(found["confirmed"].values()) > 0
    assert not found["failures"], found


@pytest.mark.slow
def test_a_full_disk_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    try:
        found = filled(tmp_path, seed=0, tries=4)
    except OSError as error:
        pytest.skip(f"no small file system may be mounted here: {error}")
    assert not found["failures"], found
