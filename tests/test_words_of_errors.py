"""Errors that reach Python name arguments as Python writes them; commands say them as options (cli/words.py)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchloom.cli.words import in_options

SOURCE = Path(__file__).parents[1] / "src" / "matchloom"
OPTION = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"(?:matchloom \w+|setup\.py) [^;,)]*")  # a whole command is shown as it is typed
ERRORS = {"MatchloomError"}


def words(node: ast.AST) -> str:
    """The string that an expression makes, with {} for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(words(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{}" + "".join(words(part) for part in ast.walk(node.value) if isinstance(part, ast.JoinedStr))
    return "".join(words(part) for part in ast.iter_child_nodes(node))


def messages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
            yield words(node.args[0])
        elif isinstance(node, ast.Assign) and "REMEDY" in ast.unparse(node.targets[0]):
            yield words(node.value)


def test_no_error_outside_the_commands_names_an_option() -> None:
    seen, wrong = 0, []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if place.parts[0] == "cli" or place.as_posix() == "service/server.py":  # what `matchloom serve` alone runs
            continue
        for message in messages(ast.parse(path.read_text(encoding="utf-8"))):
            seen += 1
            if OPTION.search(COMMAND.sub("", message)):
                wrong.append(f"{place}: {message}")
    assert seen > 300
    assert wrong == []


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("replace it (overwrite=True), or choose", "replace it (--overwrite), or choose"),
        ("leave it out: columns={'text_id': ''}", "leave it out: --columns text_id="),
        ("give it as feedback='a b.jsonl', beside", "give it as --feedback a b.jsonl, beside"),
        ("title= is empty", "--title is empty"),
        ("without=out words", "without=out words"),
    ],
)
def test_commands_say_options(python: str, command: str) -> None:
    assert in_options(python) == command
