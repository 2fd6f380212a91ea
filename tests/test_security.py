"""SECURITY.md: every promise names the tests that try to break it, and these exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def promises() -> list[str]:
    """The paragraphs of what is promised."""
    section = TEXT.partition("## What is promised")[2].partition("\nNot promised")[0]
    return [part for part in re.split(r"\n(?=- )", section) if part.startswith("- ")]


def test_every_promise_names_a_test_that_exists() -> None:
    found = promises()
    assert len(found) >= 10
    for promise in found:
        named = re.findall(r"tests/[\w./]+\.py(?:::\w+)?", promise)
        assert named, promise
        for one in named:
            path, _, function = one.partition("::")
            assert (ROOT / path).is_file(), one
            assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), one


def trees() -> Iterator[tuple[Path, ast.AST]]:
    """The source, file by file."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> set[str]:
    """Modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_nothing_that_is_read_is_executed() -> None:
    for path, tree in trees():
        bad = imported(tree) & {"pickle", "marshal", "shelve", "dill", "joblib", "jinja2", "yaml"}
        assert not bad, (path, bad)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in ("eval", "exec", "compile", "torch.load", "os.system"), (path, node.lineno)
                assert not any(
                    one.arg in ("allow_pickle", "shell") and ast.unparse(one.value) == "True" for one in node.keywords
                )


def test_the_library_opens_no_connection_by_itself() -> None:
    """Only the service and its client have a socket at all."""
    speaking = ("service", "client")
    for path, tree in trees():
        own = path.relative_to(ROOT / "src" / "matchloom").parts[0]
        bad = {
            one
            for one in imported(tree)
            if one.partition(".")[0] in ("socket", "httpx", "urllib3", "requests", "aiohttp")
        }
        bad |= imported(tree) & {"urllib.request", "http.client", "ftplib", "smtplib"}
        assert not bad or own in speaking, (path, bad)
