"""`make fuzz`: hostile tries of every kind for so many minutes, with the seed that repeats each.

    python -m tests.hostile.fuzz --seed 7 --minutes 5                            every kind
    python -m tests.hostile.fuzz --seed 7 --only archives --first 123 --tries 1  one try again

It prints how many tries of each kind there were and which failed, and ends with 1 if any did. The last kind is the
property tests, in an order drawn from the seed, with fresh examples, ten times as many, while there is time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.trying import Kind

_PROPERTIES = 0.2  # of the time
_TESTS = Path(__file__).parents[1]


def rng_of(name: str, seed: int) -> random.Random:
    """The draws of one try."""
    return random.Random(f"{name} {seed}")


def kinds() -> dict[str, tuple[Callable[[Path], Kind], float]]:
    """All of them, with the share of the time that each gets."""
    from tests.hostile.archives import Archives
    from tests.hostile.artifacts import ARTIFACTS
    from tests.hostile.corpus_files import CorpusFiles
    from tests.hostile.data_files import DataFiles
    from tests.hostile.forged import FORGED
    from tests.hostile.kills import KILLS
    from tests.hostile.limits import Limits, Permissions
    from tests.hostile.odd_texts import OddTexts
    from tests.hostile.sanitizers import Sanitizers

    return {
        "sanitizers": (Sanitizers, 1),
        "data files": (DataFiles, 4),
        "corpus files": (CorpusFiles, 2),
        "odd texts": (OddTexts, 2),
        **{name: (kind, 0.5) for name, kind in ARTIFACTS.items()},
        **{name: (kind, 2) for name, kind in FORGED.items()},
        "archives": (Archives, 5),
        "limits": (Limits, 2),
        "permissions": (Permissions, 1),
        **{f"kills: {name}": (kind, 2) for name, kind in KILLS.items()},
    }


def main() -> int:
    """Run it; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", action="append", help="a kind, or how its name begins; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="the number of the first try")
    parser.add_argument("--tries", type=int, help="how many of each kind, whatever time they take")
    given = parser.parse_args()
    wanted = {
        name: kind
        for name, kind in kinds().items()
        if not given.only or any(name.startswith(one) for one in given.only)
    }
    whole = sum(share for _, share in wanted.values()) / (1 if given.only else 1 - _PROPERTIES)
    logging.getLogger("matchloom").setLevel(logging.ERROR)
    print(f"seed {given.seed}; every try comes again with the same --seed, --only and --first", flush=True)
    failed = 0
    for name, (make, share) in wanted.items():
        failed += _try(name, make, given, 60 * given.minutes * share / whole)
    if not given.only and given.tries is None:
        failed += _properties(given.seed, 60 * given.minutes * _PROPERTIES)
    print(f"{failed} failures" if failed else "no failure", flush=True)
    return 1 if failed else 0


def _try(name: str, make: Callable[[Path], Kind], given: argparse.Namespace, seconds: float) -> int:
    folder = Path(tempfile.mkdtemp(prefix="matchloom-fuzz-"))
    folder.chmod(0o755)
    failures = []
    number = given.first
    try:
        kind = make(folder)
        start = time.monotonic()
        while given.tries is None or number < given.first + given.tries:
            if given.tries is None and time.monotonic() - start > seconds:
                break
            try:
                with _quiet():
                    kind.attempt(rng_of(name, 1_000_000 * given.seed + number))
            except KeyboardInterrupt:
                raise
            except BaseException:  # a panic of Rust's is one
                failures.append(number)
                if len(failures) <= 3:
                    print(f"{name}, try {number} failed:\n{traceback.format_exc()[-2000:]}", flush=True)
            number += 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    late = f"; {kind.landed:,} killed before their end" if hasattr(kind, "landed") else ""
    again = f"; failed: {', '.join(map(str, failures[:20]))}" if failures else ""
    took = time.monotonic() - start
    print(
        f"{name:18} {number - given.first:7,} tries {len(failures):5,} failures {took:6.0f} s{late}{again}", flush=True
    )
    return len(failures)


class _WhileThereIsTime:
    """A plugin of pytest: tests in an order drawn from the seed, until the time is over, and what became of them."""

    def __init__(self, seed: int, seconds: float) -> None:
        self._rng, self._seconds, self._end = random.Random(seed), seconds, 0.0
        self.passed, self.failed = 0, 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.get_closest_marker("hypothesis")]
        self._rng.shuffle(items)
        self._end = time.monotonic() + self._seconds

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time.monotonic() > self._end:
            item.session.shouldstop = "the time is over"
            pytest.skip("the time is over")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed += report.when == "call" and report.passed
        self.failed += report.failed


def _properties(seed: int, seconds: float) -> int:
    """Property tests until the time is over; how many failed."""
    plugin, start = _WhileThereIsTime(seed, seconds), time.monotonic()
    options = ["-m", "hypothesis", "--hypothesis-profile", "fuzz", f"--hypothesis-seed={seed}", "-n", "0", "--tb=short"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        pytest.main([*options, str(_TESTS)], plugins=[plugin])
    if plugin.failed:
        print(said.getvalue()[-5000:])
    took = time.monotonic() - start
    print(f"{'property tests':18} {plugin.passed + plugin.failed:7,} tests {plugin.failed:5,} failures {took:6.0f} s")
    return plugin.failed


@contextlib.contextmanager
def _quiet():  # type: ignore[no-untyped-def]
    """Without what native code prints of panics that are caught."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
