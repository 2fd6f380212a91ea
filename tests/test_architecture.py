"""Data flows one way: a part imports only from parts to its left."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import matchloom

SOURCE = Path(matchloom.__file__).parent
# Parts in one row may not import each other either, except within a part.
ORDER = [
    ("types",),
    ("basics", "traces", "calibration", "batches"),
    ("artifact", "pages"),
    ("text",),
    ("kernels",),
    ("lexical",),
    ("data",),
    ("layers",),
    ("encoders",),
    ("models",),
    ("explanation",),
    ("matcher_files",),
    ("matcher",),
    ("evaluation", "export"),
    ("training",),
    ("search",),
    ("comparison",),
    ("fitting",),
    ("runs",),
    ("client", "service"),
    ("cli",),
    ("__main__",),
]
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def part_of(module: str) -> str:
    return module.split(".")[1]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names.add(node.module or "")
            if node.module == "matchloom":
                names |= {f"matchloom.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("matchloom.")}


def faults(path: Path) -> Iterator[str]:
    """What a module imports that it must not."""
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own not in RANK:
        yield f"{own} has no place in the design; add it to docs/architecture.md and to ORDER"
        return
    for name in sorted(imported(path)):
        other = part_of(name)
        if other == own:
            continue
        home = matchloom._HOMES.get(other)  # a public name, imported from the package itself
        other = home.split(".")[0] if home else other
        if other not in RANK or RANK[other] >= RANK[own]:
            yield f"{path.relative_to(SOURCE)} imports {name}"


def test_imports_come_from_the_left() -> None:
    assert [fault for path in MODULES for fault in faults(path)] == []


def test_experiments_import_the_package_and_it_only_asks_for_them_in_two_commands() -> None:
    own = re.compile(r"^\s*(import|from) (experiments|tests)\b", re.M)
    assert not [path for path in MODULES if own.search(path.read_text(encoding="utf-8"))]
    asking = {path.relative_to(SOURCE).as_posix() for path in MODULES if "matchloom.cli.experiments" in imported(path)}
    assert asking == {"cli/commands.py", "cli/corpus.py"}


def test_the_rule_can_fail() -> None:
    assert RANK["training"] > RANK["models"] > RANK["layers"] > RANK["types"]


def test_public_names_are_few_and_all_there() -> None:
    expected = {
        "Pair",
        "read_pairs",
        "mine_negatives",
        "MODELS",
        "TrainConfig",
        "train",
        "compare",
        "Matcher",
        "evaluate",
        "explain",
        "Collection",
        "Fitted",
        "fit",
        "load",
        "BM25",
    }
    assert set(matchloom.__all__) == expected
    for name in matchloom.__all__:
        assert getattr(matchloom, name) is not None
    with pytest.raises(AttributeError):
        matchloom.no_such_name  # noqa: B018


def test_the_library_does_not_need_the_service() -> None:
    for path in MODULES:
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own not in ("service", "client"):
            source = path.read_text(encoding="utf-8")
            assert not re.search(r"^(import|from) (fastapi|starlette|uvicorn|httpx|prometheus_client)", source, re.M), (
                path
            )


def test_importing_is_quick_and_silent() -> None:
    code = "import sys, matchloom; print([name for name in ('torch', 'fastapi', 'httpx') if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
    assert run.stderr == ""
