"""What all commands share: help, version, exit codes, errors, pipes, and no torch before it is needed."""

from __future__ import annotations

import errno
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import matchloom.cli.models
from matchloom.cli import commands, main
from tests.cli.conftest import Run, error_of

COMMANDS = {name: commands.load(name) for name in commands.COMMANDS}
DESIGNED = {
    "Answer questions": ["fit", "search", "add", "remove", "refit", "serve", "publish", "mcp", "index", "tune", "demo"],
    "Look closer": ["rank", "score", "explain", "evaluate", "compare", "report", "card", "doctor"],
    "Train": ["train", "models", "encoders", "vectors", "trans-lm", "export"],
    "Data": ["import", "check", "split", "mine", "encode", "corpus", "reproduce"],
}


def test_the_commands_are_those_of_the_design() -> None:
    assert {title: list(group) for title, group in commands.GROUPS.items()} == DESIGNED
    assert list(COMMANDS) == [name for group in DESIGNED.values() for name in group]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_every_parameter_too(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.code == 0
    assert COMMANDS[name].help.partition("\n")[0] == commands.COMMANDS[name].about
    assert f"matchloom {name}" in COMMANDS[name].help, "no example of its own"
    assert len(COMMANDS[name].help.partition("\n")[0]) <= 60, "the list of commands cuts it off"
    for parameter in COMMANDS[name].params:
        if parameter.name != "help":
            assert parameter.help, f"{name} says nothing about {parameter.name}"
            shown = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
            assert shown in result.out


@pytest.mark.parametrize(
    "name", ["split", "vectors", "mine", "train", "trans-lm", "evaluate", "score", "index", "add", "tune"]
)
def test_help_says_what_a_pairs_file_is(run: Run, name: str) -> None:
    out = " ".join(run(name, "--help").out.split())
    assert "A pairs file is TSV, CSV, JSONL, JSON, Parquet, .xlsx" in out
    for column in ("query", "text", "label", "query_id", "text_id", "group"):
        assert column in out.partition("A pairs file is")[2]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("se", {"search", "serve"}),
        ("search --t", {"--top"}),
        ("serve --no-d", {"--no-desk"}),
        ("x", set()),
    ],
)
def test_a_shell_completes_commands_and_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, offered: set[str]
) -> None:
    monkeypatch.setenv("_MATCHLOOM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"matchloom {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert set(capsys.readouterr().out.split()) == offered


def test_without_arguments_it_shows_help(run: Run) -> None:
    result = run()
    assert result.code == 0
    assert "Usage: matchloom" in result.out
    told = " ".join(result.out.split())
    assert told.index("matchloom fit faq.tsv --out faq") < told.index("Options:")
    shown = [
        line.split()[0] for line in result.out.partition("Answer questions:")[2].splitlines() if line.startswith("  ")
    ]
    assert shown == list(COMMANDS)
    assert [told.index(f"{title}:") for title in DESIGNED] == sorted(told.index(f"{title}:") for title in DESIGNED)


def test_version(run: Run) -> None:
    assert run("--version").out.startswith("matchloom 0.")


def test_unknown_command_and_missing_argument_are_one_line(run: Run) -> None:
    assert "'weave'" in error_of(run("weave"))
    assert "PAIRS" in error_of(run("train"))
    assert "matchloom train --help" in error_of(run("train"))
    assert "--nosuch" in error_of(run("models", "--nosuch"))
    assert "--top" in error_of(run("rank", "bm25", "a", "b.txt", "--top", "many"))


def test_a_bug_shows_its_traceback_and_ctrl_c_gives_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(matchloom.cli.models, "table", broken)
    with pytest.raises(ZeroDivisionError):
        main(["models"])
    monkeypatch.setattr(matchloom.cli.models, "table", interrupted)
    assert run("models").code == 130


def test_the_list_of_commands_and_a_wrong_name_do_not_wait_for_torch() -> None:
    code = (
        "import sys, matchloom.cli as c; codes = [c.main([]), c.main(['--help']), c.main(['weave'])]; "
        "assert codes == [0, 0, 2], codes; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'gensim', 'pyarrow', 'lancedb')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_as_a_process_errors_go_to_stderr_with_code_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "matchloom", "score", "bm25", tmp_path / "none.tsv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"matchloom: error: {tmp_path}/none.tsv cannot be read: No such file or directory\n"


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "test.tsv").read_text(encoding="utf-8").splitlines()
    many = tmp_path / "many.tsv"  # more than a pipe holds
    body = "\n".join(line.replace("\t", f"{n}\t", 1) for n in range(200) for line in lines[1:])
    many.write_text(f"{lines[0]}\n{body}\n", encoding="utf-8")
    piped = f"set -o pipefail; {sys.executable} -m matchloom score bm25 {many} | head -n 1"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("query_id\t")
    assert done.stderr == ""


def test_a_terminal_without_the_letters_does_not_end_a_command(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["rank", "bm25", "née ☃", str(corpus / "test.tsv"), "--top", "1", "--json"]) == 0
    assert json.loads(terminal.buffer.getvalue())["query"] == "née ☃"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "runs"), [("rank", True), ("search", False), ("tune", False)])
def test_help_offers_run_files_where_they_can_serve(name: str, runs: bool, run: Run) -> None:
    said = " ".join(run(name, "--help").out.split())
    assert "trans-lm" in said
    assert ("TREC run file" in said) == runs


@pytest.mark.parametrize("where", ["m/vocab.txt", None])
def test_what_the_system_refuses_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, where: str | None) -> None:
    def refuse(_: list[str]) -> None:
        raise OSError(errno.ENOSPC, "No space left", *([where] if where else []))

    monkeypatch.setattr("matchloom.cli._run", refuse)
    told = f"{where}: No space left; check" if where else "No space left; check"
    assert error_of(run("models")).startswith(told)


@pytest.mark.parametrize("torch_says", [False, True])
def test_want_of_memory_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, torch_says: bool) -> None:
    def greedy(_: list[str]) -> None:
        if torch_says:  # what it really says
            import torch

            torch.empty(2**55, dtype=torch.uint8)
        raise MemoryError

    monkeypatch.setattr("matchloom.cli._run", greedy)
    assert "too little memory" in error_of(run("models"))


def test_ctrl_c_is_quiet_while_python_imports() -> None:
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # who starts tests in the background ignores it
        "class Pressed:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from matchloom.__main__ import run\n"
        "sys.exit(run())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
