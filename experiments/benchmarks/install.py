"""What an install costs: seconds, packages and MB in a fresh environment, and the first answer after it.

    python -m experiments.benchmarks.install                       # the core, networks, archive, all
    python -m experiments.benchmarks.install core --python python3.13 --keep none

Each is `pip install --constraint constraints.txt '.[EXTRA]'` of this clone, into an environment that is thrown away. MB
are of site-packages without pip and setuptools.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments import places
from experiments.reproduction.provenance import commit

ROOT = Path(__file__).parents[2]
WANTED = ("core", "networks", "archive", "all")
_OURS = (
    "pip",
    "setuptools",
    "pkg_resources",
    "_distutils_hack",
    "distutils-precedence.pth",
)
_FAQ = "question\tanswer\n" + "".join(
    f"{ask} {thing}\t{answer}\n"
    for thing, answer in (
        ("my password", "Choose Reset password."),
        ("a parcel", "Within two days."),
        ("an invoice", "By mail."),
    )
    for ask in ("how do I change", "I have lost", "what about", "where is", "tell me about")
)


def measure(what: str, python: str) -> dict[str, Any]:
    """One install, and the first answer of it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        subprocess.run([python, "-m", "venv", home / "env"], check=True)
        target = str(ROOT) if what == "core" else f"{ROOT}[{what}]"
        before, began = _cpu(), time.perf_counter()
        pip = [str(home / "env" / "bin" / "pip"), "install", "--quiet", "--no-cache-dir"]
        subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), target], check=True)
        seconds, cpu = time.perf_counter() - began, _cpu() - before
        (packages,) = (home / "env" / "lib").glob("python*/site-packages")
        names = [one for one in packages.iterdir() if not one.name.startswith(_OURS)]
        (home / "faq.tsv").write_text(_FAQ, encoding="utf-8")
        command = home / "env" / "bin" / "matchloom"
        subprocess.run(
            [command, "fit", "faq.tsv", "--out", "faq", "--encoder", "none"], cwd=home, check=True, capture_output=True
        )
        began = time.perf_counter()
        subprocess.run([command, "search", "faq", "lost parcel"], cwd=home, check=True, capture_output=True)
        return {
            "what": what,
            "megabytes": sum(_bytes(one) for one in names) / 2**20,
            "packages": len([one for one in names if one.suffix == ".dist-info"]),
            "seconds": seconds,
            "cpu": cpu,
            "first_answer": time.perf_counter() - began,
        }


def _bytes(path: Path) -> int:
    """As a disk has it: in blocks."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_blocks * 512 for one in files)


def _cpu() -> float:
    """Seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure what is asked for, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=f"core, or extras; by default {', '.join(WANTED)}")
    parser.add_argument("--python", default=shutil.which("python3") or "python3")
    parser.add_argument("--keep", type=Path, default=places.RESULTS / "install.json", help="none keeps nothing")
    given = parser.parse_args()
    version = subprocess.run([given.python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    rows = []
    for what in given.what or WANTED:
        rows.append(measure(what, given.python))
        print(
            ", ".join(
                f"{key} {value if isinstance(value, str) else round(value, 2)}" for key, value in rows[-1].items()
            )
        )
        if str(given.keep) != "none":
            done = {"commit": commit(), "python": version, "rows": rows}
            given.keep.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
