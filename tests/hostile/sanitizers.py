"""The native kernels, built with address and undefined-behaviour sanitizers, with random shapes."""

from __future__ import annotations

import platform
import random
import shutil
import subprocess
from pathlib import Path

_SOURCES = Path(__file__).parents[1] / "kernels"
_FLAGS = ["-std=c++17", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
_BUILDS = {"plain": ([], ""), "avx2": (["-mavx2", "-mfma"], "avx2"), "avx512": (["-mavx512f", "-mfma"], "avx512f")}


class Sanitizers:
    """Every build that this machine can run; none without a compiler."""

    def __init__(self, folder: Path) -> None:
        compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
        self._programs: list[Path] = []
        if compiler is None:
            print("sanitizers: there is no C++ compiler, so they are left out", flush=True)
            return
        flags = _processor_flags()
        for build, (extra, needed) in _BUILDS.items():
            if needed and needed not in flags:
                continue
            for source in sorted(_SOURCES.glob("sanitize*.cpp")):
                program = folder / f"{source.stem}-{build}"
                subprocess.run([compiler, *_FLAGS, *extra, str(source), "-o", str(program)], check=True)
                self._programs.append(program)

    def attempt(self, rng: random.Random) -> None:
        """One program with one seed."""
        if self._programs:
            program = rng.choice(self._programs)
            done = subprocess.run(
                [program, str(rng.randrange(2**31))], capture_output=True, text=True, check=False, timeout=300
            )
            assert done.returncode == 0, (program.name, done.stderr[-2000:])


def _processor_flags() -> set[str]:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return set()
    try:
        return set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return set()
