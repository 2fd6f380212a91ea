"""The manual page docs/matchloom.1, made from the commands' own help; `matchloom.cli.docs` writes it with the pages."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from matchloom.cli import app
from matchloom.cli.commands import GROUPS, PAIRS_FILE, SCORER, load
from matchloom.cli.helps import command_parameters, paragraphs

_ABOUT = "answers from your own FAQ or support archive"
_EXITS = {
    "0": "Success.",
    "1": "The reader of the output closed it before its end.",
    "2": "An error that the user can correct; one line on standard error names it.",
    "130": "Ctrl-C.",
}
_VARIABLES = {
    "MATCHLOOM_API_KEY": "The key of a service, for 'matchloom serve' and for the Python client.",
    "_MATCHLOOM_COMPLETE": "Set by the shell while it completes a command; see --show-completion.",
}


def man_page() -> str:
    """The whole page, in the macros that every `man` reads."""
    root: Any = get_command(app)
    lines = ['.TH MATCHLOOM 1 "" matchloom "User commands"', ".SH NAME", f"matchloom \\- {_safe(_ABOUT)}"]
    lines += [".SH SYNOPSIS", ".B matchloom", ".I COMMAND", "[ARGUMENTS] [OPTIONS]"]
    lines += [".SH DESCRIPTION", *_text(root.help), *_parameters(root)]
    for title, group in GROUPS.items():
        lines += [f".SH {_safe(title).upper()}"]
        for name in group:
            lines += _command(name)
    lines += [".SH PAIRS FILES", *_text(PAIRS_FILE), ".SH SCORERS", *_text(SCORER)]
    for title, meanings in (("EXIT STATUS", _EXITS), ("ENVIRONMENT", _VARIABLES)):
        lines += [f".SH {title}"]
        for name, meaning in meanings.items():
            lines += [".TP", f".B {_safe(name)}", _safe(meaning)]
    return "\n".join(lines) + "\n"


def _command(name: str) -> list[str]:
    command = load(name)
    arguments = [one.name for one in command_parameters(command) if not one.option]
    title = " ".join(["matchloom", name, *arguments])
    return [f'.SS "{_safe(title)}"', *_text(command.help), *_parameters(command)]


def _parameters(command: Any) -> list[str]:
    """Arguments and options, each with its meaning and its default."""
    lines: list[str] = []
    for one in command_parameters(command):
        value = f' " {_safe(one.value)}"' if one.value else ""
        ending = f" Default: {one.default}." if one.default else " Required." if one.required and one.option else ""
        lines += [".TP", f'.BI "{_safe(one.name)}"{value}', _safe(one.about + ending)]
    return lines


def _text(help_text: str) -> list[str]:
    lines = []
    for one in paragraphs(help_text):
        lines += [".PP", _safe(one.text)]
        if one.examples:
            lines += [".RS", ".nf", *map(_safe, one.examples), ".fi", ".RE"]
    return lines[1:]  # a heading stands before the first


def _safe(text: str) -> str:
    """A line whose letters mean themselves: hyphens can be copied, and nothing is a macro."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{plain}" if plain[:1] in (".", "'") else plain
