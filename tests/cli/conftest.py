"""A tiny corpus, one matcher trained on it by the command itself, and a way to run commands."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from matchloom.cli import main

THINGS = {
    "bread": "flour and warm water rise before the oven",
    "cheese": "milk curdles and is pressed into a wheel",
    "paper": "pulp of wood is rolled thin and dried",
    "glass": "sand melts in a furnace and is blown",
    "soap": "oil and lye are stirred until they set",
    "rope": "fibres of hemp are twisted into long strands",
    "ink": "soot and gum are ground with water",
    "candles": "wax is poured around a wick and cools",
    "bricks": "clay is shaped in moulds and fired",
    "cloth": "threads are crossed on a loom by hand",
    "salt": "sea water dries in shallow pans under the sun",
    "honey": "bees fill the comb and the keeper empties it",
}
NAMES = list(THINGS)
# Every other text names its thing, so that exact matching finds half of the answers.
TEXTS = {name: f"for {name}, {text}" if n % 2 else text for n, (name, text) in enumerate(THINGS.items())}
# Sizes of nothing in particular, small enough to train in a second.
SMALL = ["--set", "hidden=8", "--set", "units=8", "--set", "lexical=true", "--dimensions", "8", "--batch", "8"]
SMALL += ["--optimizer", "adam", "--learning-rate", "0.01", "--epochs", "3"]


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


def rows(queries: Sequence[str]) -> list[str]:
    """One list of three candidates for each question about each thing: the right text first."""
    lines = ["query_id\ttext_id\tquery\ttext\tlabel"]
    for q, form in enumerate(queries):
        for n, name in enumerate(NAMES):
            for place, other in enumerate((name, NAMES[(n + q + 1) % 12], NAMES[(n + q + 4) % 12])):
                lines.append(f"{form[:3]}{n}\t{other}\t{form.format(name)}\t{TEXTS[other]}\t{int(place == 0)}")
    return lines


def write_tsv(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.tsv, dev.tsv, test.tsv (lists of three) and right.tsv (right pairs only)."""
    folder = tmp_path_factory.mktemp("corpus")
    write_tsv(folder / "train.tsv", rows(["how is {} made", "who makes {} and how"]))
    write_tsv(folder / "dev.tsv", rows(["what makes {}"]))
    write_tsv(folder / "test.tsv", rows(["tell me about {}"]))
    right = [f"making {name}\t{text}" for name, text in THINGS.items()]
    write_tsv(folder / "right.tsv", ["query\ttext", *right])
    return folder


@pytest.fixture(scope="session")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a matcher. Do not change it: take a `copy_of_trained`."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    given = [str(corpus / "train.tsv"), "--dev", str(corpus / "dev.tsv"), "--out", str(folder)]
    assert main(["train", *given, *SMALL]) == 0
    return folder


@pytest.fixture
def copy_of_trained(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "copy"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit code, standard output, standard error."""

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return run


def error_of(result: Result) -> str:
    """The one line of an error; fails if there was a traceback, more than one line, output or another exit code."""
    assert result.code == 2, result
    assert result.out == ""
    lines = [line for line in result.err.splitlines() if line.startswith("matchloom: error: ")]
    assert len(lines) == 1, result.err
    assert "Traceback" not in result.err
    return lines[0].removeprefix("matchloom: error: ")
