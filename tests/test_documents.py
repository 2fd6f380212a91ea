"""What the documents show is true: examples in docstrings, and the commands and programs of README and tutorial."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchloom.cli import main
from matchloom.data.formats import read_pairs
from matchloom.data.formats.understood import understand
from matchloom.search.calibration import ENCODER, SIGNALS, WORDS, Prior

ROOT = Path(__file__).parents[1]
SOURCES = {ROOT / "src" / "matchloom": ROOT / "src", ROOT / "experiments": ROOT}  # and where their names begin
GUIDES = [
    "docs/start.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "guides").glob("*.md"))),
]
DOCUMENTS = ["README.md", "docs/tutorial.md", "docs/adding-a-model.md", *GUIDES]
LINKED = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
FAQ_RESULTS = "docs/results/an-faq-with-few-and-with-many-questions.md"
# What is appended to a command so that it ends within seconds; all else is run as it is shown.
SHORTER = {"train": ["--epochs", "2"], "reproduce": ["--pairs", "200", "--epochs", "1"]}
# What a document has to show, and run, at least.
TOLD = {
    "README.md": {"fit", "search", "serve", "add", "remove", "refit", "train", "python"},
    "docs/tutorial.md": {"import", "check", "fit", "search", "evaluate", "add", "refit", "remove", "doctor", "split"}
    | {"mine", "train", "rank", "index", "tune", "reproduce", "python"},
}
LONGEST = 900  # words of the README


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
    """The files that a reader of the documents has: the example as a pairs file, and what they asked since."""
    shutil.copy(ROOT / "docs" / "examples" / "shop.json", folder)
    understand(folder / "shop.json").write(folder / "faq.tsv")
    answers = {pair.text for pair in read_pairs(folder / "faq.tsv")}
    (folder / "answers.txt").write_text("".join(f"{answer}\n" for answer in sorted(answers)), encoding="utf-8")
    asked = "question\tanswer\ttext_id\nMy parcel is wet\tSend us a photo within a week.\tdamaged\n"
    (folder / "asked.tsv").write_text(asked, encoding="utf-8")
    (folder / "shards").mkdir()
    rows = list(read_pairs(folder / "faq.tsv"))
    for name, own in (("a", rows[::2]), ("b", rows[1::2])):
        table = pa.table({"query": [pair.query for pair in own], "text": [pair.text for pair in own]})
        pq.write_table(table, folder / "shards" / f"{name}.parquet")
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
                ran.append(arguments[0])
                if arguments[0] == "serve":  # ends when it is told to; tests/service have it
                    continue
                code = main([*arguments, *SHORTER.get(arguments[0], [])])
                assert code == 0, f"{where}: {line}\n{capsys.readouterr().err}"
        elif block.language == "python":
            exec(compile(block.source, where, "exec"), {"__name__": "__main__"})
            ran.append("python")
        else:
            assert block.language == "text", f"{where}: is {block.language} to be run?"
    assert set(ran) >= TOLD.get(document, set())
    assert ran


def test_the_page_of_search_has_the_weights_that_are_used() -> None:
    page = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
    for prior in (WORDS, ENCODER):
        begin, questions, answers = prior.log_temperature
        temperature = f"{begin:.2f} - {-questions:.2f} ln q + {answers:.2f} ln n"
        for weights, last in ((prior.standardised, temperature), (prior.raw, "")):
            assert f"{' | '.join(f'{one:.2f}' for one in weights)} | {last}".rstrip() + " |" in page


@pytest.mark.parametrize(("way", "prior"), [("words", WORDS), ("encoder", ENCODER)])
def test_the_weights_that_are_used_are_what_development_says(way: str, prior: Prior) -> None:
    found = json.loads((ROOT / "experiments" / "results" / "development.json").read_text(encoding="utf-8"))[way]
    for part, weights in (("answerable", prior.standardised), ("answerable, one question an answer", prior.raw)):
        names = ", ".join(name for name, weight in zip(SIGNALS, weights[1:], strict=True) if weight)
        said = found[part][names]
        assert [round(one, 2) for one in said["bias, " + ", ".join(SIGNALS)]] == [*weights]
        if part == "answerable":
            temperature = said["log temperature: 1, ln questions, ln answers"]
            assert [round(one, 2) for one in temperature] == [*prior.log_temperature]


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    readme, results = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", FAQ_RESULTS))
    rows = re.findall(r"^\| .*?((?: \| \**\.\d{3}\**)+) \|$", readme, re.M)
    told = {tuple(re.findall(r"\.\d{3}", row)) for row in rows}
    found = {tuple(re.findall(r"\.\d{3}", row)) for row in results.splitlines() if row.startswith("| ")}
    assert len(told) > 4
    assert told <= found


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= LONGEST


@pytest.mark.parametrize("document", sorted(path.relative_to(ROOT).as_posix() for path in LINKED))
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for link in re.findall(
        r"\]\((?!https?:)([^)#\s]+)[^)]*\)", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    ):
        assert ((ROOT / document).parent / link).exists(), f"{document} links to {link}"
