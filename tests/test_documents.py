"""What the documents show is true: examples in docstrings, and the commands and programs of README and tutorial."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from matchloom.cli import main

ROOT = Path(__file__).parents[1]
SOURCES = {ROOT / "src" / "matchloom": ROOT / "src", ROOT / "experiments": ROOT}  # and where their names begin
DOCUMENTS = ["README.md", "docs/tutorial.md"]
# What is appended to a command so that it ends within seconds; all else is run as it is shown.
SHORTER = {"train": ["--epochs", "2"], "reproduce": ["--pairs", "200", "--epochs", "1"]}
# The first pairs are those that the tutorial shows; searches and judgements ask for them.
SHOWN = [
    ("How do I reset my password?", "Open Settings, choose Security, then Reset password. A link is sent to you."),
    ("Can I pay by invoice?", "Companies can. Ask sales for an account with monthly invoices."),
]
THINGS = "invoice report project calendar contact message picture folder table note".split()  # noqa: SIM905
DEEDS = {
    "delete": "Select the {0}, press Delete and confirm; it stays in the bin for a month.",
    "share": "Open the {0}, choose Share and give the address of a colleague.",
    "rename": "Click on the name of the {0} twice and type another.",
    "print": "The menu of a {0} has Print; choose a printer and the paper.",
    "copy": "Hold Ctrl and drag the {0} to where the copy should be.",
    "lock": "A {0} with the mark of a key is locked; set it in Properties.",
    "find": "Type a word of the {0} into the field at the top.",
    "export": "Choose Export in the menu of the {0}, and a format.",
    "restore": "Go to the bin, look for the {0} and press Restore.",
    "move": "Drag the {0} to its new place, or cut and paste it.",
}


def with_examples() -> list[str]:
    """The modules that have examples in docstrings."""
    return [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for package, root in SOURCES.items()
        for path in sorted(package.rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", with_examples())
def test_examples_in_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted, "an example that is skipped shows nothing"
    assert not found.failed


class Block(NamedTuple):
    """A fenced block: where it starts, its language, the file it shows if it has a title, and its lines."""

    line: int
    language: str
    title: str
    source: str


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for found in re.finditer(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL):
        yield Block(text.count("\n", 0, found.start()) + 1, found[1], found[2] or "", found[3])


def write_inputs(folder: Path) -> None:
    """The files that a reader of the documents has."""
    pairs = SHOWN + [
        (f"How do I {deed} a {thing}?", how.format(thing)) for deed, how in DEEDS.items() for thing in THINGS
    ]
    lines = [f"{question}\t{answer}" for question, answer in pairs]
    (folder / "faq.tsv").write_text("\n".join(["question\tanswer", *lines]) + "\n", encoding="utf-8")
    (folder / "answers.txt").write_text("".join(f"{answer}\n" for _, answer in pairs), encoding="utf-8")
    more = "question\tanswer\nWhere is the bin?\tBelow your folders, on the left.\n"
    (folder / "more.tsv").write_text(more, encoding="utf-8")
    (folder / "their.run").write_text("q1 Q0 a 1 0.9 x\nq1 Q0 b 2 0.5 x\n", encoding="utf-8")
    (folder / "their.qrels").write_text("q1 0 a 1\nq1 0 b 0\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_block_runs_in_order(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("experiments.reproduction.lcs.LONGER", (12,))
    write_inputs(tmp_path)
    ran = []
    for block in blocks(ROOT / document):
        where = f"{document}:{block.line}"
        if block.title:
            Path(block.title).write_text(block.source, encoding="utf-8")
        elif block.language == "sh":
            for line in block.source.splitlines():
                name, *arguments = shlex.split(line, comments=True)
                if name == "make":  # sets up another environment, and runs this suite
                    continue
                assert name == "matchloom", f"{where}: {line}"
                code = main([*arguments, *SHORTER.get(arguments[0], [])])
                assert code == 0, f"{where}: {line}\n{capsys.readouterr().err}"
                ran.append(arguments[0])
        elif block.language == "python":
            exec(compile(block.source, where, "exec"), {"__name__": "__main__"})
            ran.append("python")
        else:
            assert block.language == "text", f"{where}: is {block.language} to be run?"
    assert {"split", "mine", "train", "evaluate", "rank", "index", "search", "python"} <= set(ran)
