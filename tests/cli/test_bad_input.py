"""Files that are wrong, for every command that reads pairs: one line that names the file and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, Run, error_of

COMMANDS = {
    "split": ["{pairs}", "--out", "{out}"],
    "vectors": ["{pairs}", "--out", "{out}"],
    "mine": ["{pairs}", "--out", "{out}"],
    "train": ["{pairs}", "--out", "{out}", *SMALL],
    "evaluate": ["bm25", "{pairs}"],
    "score": ["bm25", "{pairs}"],
    "rank": ["bm25", "loom", "{pairs}"],
}
FILES = {
    "missing": (None, "cannot be read: No such file"),
    "empty": (b"", "holds no pairs"),
    "only a header": (b"query\ttext\tlabel\n", "holds no pairs"),
    "columns missing": (b"query\tlabel\na\t1\n", "expected 'text' (or answer, document, sentence"),
    "wrong label": (b"query\ttext\tlabel\na\tb\tperhaps\n", "line 2: label is 'perhaps'; expected a number"),
    "latin-1": (b"query\ttext\tlabel\nna\xefve\tb\t1\n", "line 2: byte 3 (0xef) is not UTF-8"),
    "cut off": (b"query\ttext\tlabel\na\tb\t1\nc", "line 3: found 1 fields, expected 3"),
    "empty rows": (b"query\ttext\tlabel\n \t\t1\n", "line 2: query and text are both empty"),
    "ids twice": (
        b"query_id\ttext_id\tquery\ttext\tlabel\n1\ta\tx\ty\t1\n1\ta\tx\tz\t0\n",
        "line 3: query_id '1' with text_id 'a' was already given",
    ),
}


# All commands read by one reader: every problem with one command, and every command with one problem. What a label
# must be depends on the command: nobody looks at it in vectors, score and rank (test_columns.py).
LABELLED = ("split", "mine", "train", "evaluate")
ONE_COMMAND, ONE_PROBLEM = "evaluate", "cut off"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        *((ONE_COMMAND, problem) for problem in FILES if problem != ONE_PROBLEM),
        *((command, ONE_PROBLEM) for command in COMMANDS),
        *((command, "wrong label") for command in LABELLED if command != ONE_COMMAND),
    ],
)
def test_every_command_says_what_is_wrong_with_a_file(run: Run, tmp_path: Path, command: str, problem: str) -> None:
    content, expected = FILES[problem]
    pairs, out = tmp_path / "pairs.tsv", tmp_path / "out"
    if content is not None:
        pairs.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    message = error_of(run(command, *(part.format(pairs=pairs, out=out) for part in COMMANDS[command])))
    assert message.startswith(str(pairs))
    assert expected in message
    assert sorted(tmp_path.iterdir()) == before, "nothing is written"


def test_no_label(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("query\ttext\na\tb\n")
    assert "every pair has the same text" in error_of(run("train", pairs, "--out", tmp_path / "run"))
    pairs.write_text("query\ttext\tlabel\na\tb\t1\na\tc\t0\nd\te\t\n")
    assert "1 of 3 pairs have no label; give every one, or none at all" in error_of(run("evaluate", "bm25", pairs))


@pytest.mark.parametrize(
    ("label", "remedy"),
    [
        (1, "every text is right for every question: there is nothing to learn; give more answers"),
        (0, "(0 have positives, 11 have negatives); label positives 1"),
    ],
)
def test_one_label_only(run: Run, tmp_path: Path, label: int, remedy: str) -> None:
    pairs = tmp_path / "pairs.tsv"
    lines = [f"question {n}\tanswer {m}\t{label}" for n in range(12) for m in range(2)]
    pairs.write_text("\n".join(["query\ttext\tlabel", *lines]) + "\n")
    message = error_of(run("train", pairs, "--out", tmp_path / "run", *SMALL))
    assert remedy in message
    message = error_of(run("evaluate", "bm25", pairs))
    assert "none of 12 questions counts" in message


def test_wrong_format(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.pdf"
    pairs.write_text("x")
    assert "use one of .tsv, .csv" in error_of(run("score", "bm25", pairs))


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_unknown_scorer_and_unknown_measure(run: Run, corpus: Path, command: str) -> None:
    message = error_of(run(command, "telepathy", corpus / "test.tsv"))
    assert "none of random, overlap, bm25" in message
    unknown = run("evaluate", "bm25", corpus / "test.tsv", "--measures", "AP Warp")
    assert "measure 'Warp' is unknown" in error_of(unknown)
    assert "no measure was named" in error_of(run("evaluate", "bm25", corpus / "test.tsv", "--measures", " "))


@pytest.mark.parametrize("name", ["matcher.json", "vocab.txt", "weights.safetensors"])
def test_an_altered_or_cut_matcher(run: Run, corpus: Path, copy_of_trained: Path, name: str) -> None:
    whole = (copy_of_trained / name).read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-2] + b"\x01\x02", b""):
        (copy_of_trained / name).write_bytes(content)
        assert name in error_of(run("score", copy_of_trained, corpus / "test.tsv"))
    (copy_of_trained / name).unlink()
    told = f"{copy_of_trained} is no folder" if name == "matcher.json" else f"{name} cannot be read: No such file"
    assert told in error_of(run("rank", copy_of_trained, "a", corpus / "test.tsv"))


def test_a_newer_matcher(run: Run, corpus: Path, copy_of_trained: Path) -> None:
    path = copy_of_trained / "matcher.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"format": 3', '"format": 999'), encoding="utf-8")
    assert "upgrade matchloom" in error_of(run("score", copy_of_trained, corpus / "test.tsv"))


def test_output_into_a_missing_folder(run: Run, corpus: Path, tmp_path: Path) -> None:
    test, out = corpus / "test.tsv", tmp_path / "none" / "file.tsv"
    for command in (
        ["vectors", test, "--out", out],
        ["mine", test, "--out", out, "--count", 1, "--top", 5],
        ["score", "bm25", test, "--out", out],
        ["evaluate", "bm25", test, "--per-query", out],
        ["evaluate", "bm25", test, "--run", out],
        ["evaluate", "bm25", test, "--qrels", out],
        ["evaluate", "bm25", test, "--json", out],
    ):
        assert f"the folder {tmp_path}/none does not exist" in error_of(run(*command))
