"""The pages docs/commands.md and docs/models.md, made from the code itself: `python -m matchloom.cli.docs docs`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from matchloom.cli import app
from matchloom.cli.commands import COMMANDS, PAIRS_FILE, SCORER, load
from matchloom.cli.models import LEXICAL_ABOUT, written
from matchloom.models import MODELS, model_arguments, model_training

_HEAD = """# Commands

This page is generated from the commands' own help (`make docs`); a test keeps it up to date.
Results go to standard output, bars and notes to standard error. Exit codes: 0; 2 with one line that says
what to put right; 130 after Ctrl-C.
"""


def commands_page() -> str:
    """The whole page."""
    root: Any = get_command(app)
    sections = [_HEAD, _text(root.help), _text(PAIRS_FILE), _text(SCORER)]  # the latter two end many a help
    for name in COMMANDS:
        command = load(name)
        sections.append(f"## matchloom {name}\n")
        sections.append(_text(command.help))
        rows = [row for row in map(_row, command.params) if row]
        if rows:
            sections.append("| | default | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(sections).rstrip() + "\n"


def _text(help_text: str) -> str:
    r"""The paragraphs of a help text; one that starts with \b is kept line by line: a title and its examples."""
    paragraphs = []
    for paragraph in help_text.split("\n\n"):
        if paragraph.startswith("\b"):
            title, *lines = paragraph.removeprefix("\b").strip("\n").splitlines()
            paragraphs.append("\n".join([title, "", "```sh", *(line.strip() for line in lines), "```"]))
        else:
            paragraphs.append(" ".join(paragraph.split()))
    return "\n\n".join(paragraphs) + "\n"


def _row(parameter: Any) -> str:
    """One line of the table of a command's arguments and options; none for --help."""
    if parameter.name == "help":
        return ""
    option = parameter.param_type_name == "option"
    name = ", ".join(parameter.opts) if option else str(parameter.metavar)
    if option and parameter.metavar:
        name += f" {parameter.metavar}"
    default = parameter.default
    shown = "" if default is None or default is False else f"`{default}`"
    return f"| `{name}` | {'required' if parameter.required else shown} | {parameter.help} |"


_MODELS_HEAD = """# Models

This page is generated from the models' own files (`make docs`); a test keeps it up to date. Each model takes an
embedding and the arguments below, by keyword in Python and by `--set NAME=VALUE` in `matchloom train`.
"""


def models_page() -> str:
    """Every model with its paper, symbols, departures and arguments, and the scorers that need no training."""
    sections = [_MODELS_HEAD]
    for name, make in MODELS.items():
        module = inspect.getmodule(make)
        sections.append(f"## {name}\n\n{inspect.getdoc(make)}\n")
        sections.append(f"```text\n{(inspect.getdoc(module) or '').strip()}\n```\n")
        rows = [f"| `{key}` | `{written(value)}` |" for key, value in model_arguments(name).items()]
        sections.append("| argument | default |\n|---|---|\n" + "\n".join(rows) + "\n")
        if theirs := model_training(name):
            said = ", ".join(f"`{key}` {written(value)}" for key, value in theirs.items())
            sections.append(f"Trained, unless told otherwise, with {said}.\n")
    sections.append("## Scorers without a network\n")
    sections.append("| | |\n|---|---|\n" + "\n".join(f"| `{k}` | {v} |" for k, v in LEXICAL_ABOUT.items()) + "\n")
    return "\n".join(sections)


PAGES = {"commands.md": commands_page, "models.md": models_page}

if __name__ == "__main__":
    for page, make_page in PAGES.items():
        (Path(sys.argv[1]) / page).write_text(make_page(), encoding="utf-8")
