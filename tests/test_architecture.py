"""Data flows one way: a part imports only from parts to its left."""

from __future__ import annotations

import importlib
import operator
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import matchloom
from experiments.import_map import ROOMS, SOURCE, home_of, imported, modules, part_of, with_picture

# Parts in one row may not import each other either, except within a part.
ORDER = [
    ("types",),
    ("basics", "traces", "calibration", "batches"),
    ("artifact", "pages"),
    ("kernels",),
    ("text",),
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
    ("comparison", "publishing", "batch"),
    ("fitting",),
    ("runs",),
    ("client", "service"),
    ("integrations",),
    ("cli",),
    ("__main__",),
]
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}
MODULES = modules()
ARCHITECTURE = Path(__file__).parents[1] / "docs" / "architecture.md"
STEP = re.compile(r"^\d+\. .* ((?:`[\w/]+\.py`: (?:`[\w.]+`(?:, )?)+(?:; )?)+)$")


def faults(path: Path) -> Iterator[str]:
    """What a module imports that it must not."""
    own = part_of(path)
    if own not in RANK:
        yield f"{own} has no place in the design; add it to docs/architecture.md, to ORDER and to ROOMS"
        return
    for name in sorted(imported(path)):
        other = home_of(name)
        if other != own and (other not in RANK or RANK[other] >= RANK[own]):
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


def test_the_picture_of_the_architecture_is_the_import_graph() -> None:
    page = ARCHITECTURE.read_text(encoding="utf-8")
    assert page.count("```mermaid") == 1
    assert with_picture(page) == page, "run: make docs"
    assert sorted(part for room in ROOMS.values() for part in room) == sorted(set(RANK) - {"__main__"})
    told = re.findall(r"^\| `(\w+)(?:\.py|/)`", page, re.M)
    assert set(told) >= set(RANK) - {"__main__"}, "a part without its line in the table"


def flows() -> dict[str, list[str]]:
    """The steps of each flow that docs/architecture.md tells."""
    page = ARCHITECTURE.read_text(encoding="utf-8")
    told = page.partition("\n## Four flows\n")[2].partition("\n## ")[0]
    sections = (section.partition("\n") for section in told.split("\n### ")[1:])
    return {title: re.findall(r"^\d+\. .*$", steps, re.M) for title, _, steps in sections}


def test_the_flows_name_files_and_functions_that_exist() -> None:
    assert [len(steps) for steps in flows().values()] == [10] * 4
    for step in (step for steps in flows().values() for step in steps):
        found = STEP.match(step)
        assert found, f"expected a step, its file and its function: {step}"
        for file, names in re.findall(r"`([\w/]+)\.py`: ((?:`[\w.]+`(?:, )?)+)", found[1]):
            module = importlib.import_module("matchloom." + file.replace("/", "."))
            for name in re.findall(r"`([\w.]+)`", names):
                assert callable(operator.attrgetter(name)(module)), f"{file}.py has no {name}"


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


def test_the_first_file_imports_next_to_nothing() -> None:
    """Until it is read, Ctrl-C meets Python's own handler, which shows a traceback."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); import matchloom; print('typing' in sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_importing_is_quick_and_silent() -> None:
    code = "import sys, matchloom; print([name for name in ('torch', 'fastapi', 'httpx') if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
    assert run.stderr == ""
