"""What is made from the code itself, by `python -m matchloom.cli.docs docs`: pages, a manual page, a schema."""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from typer.main import get_command

import matchloom
from matchloom.cli import app
from matchloom.cli.commands import GROUPS, PAIRS_FILE, SCORER, load
from matchloom.cli.docstrings import documented, is_made_by_callers, parameters, public_methods, written
from matchloom.cli.helps import Parameter, command_parameters, paragraphs
from matchloom.cli.man import man_page
from matchloom.cli.models import LEXICAL_ABOUT
from matchloom.lexical.statistics import ENGLISH
from matchloom.models import MODELS, model_arguments, model_training
from matchloom.service.look import Look, look_schema
from matchloom.text.tokenize import Tokenizer

_HEAD = """# Commands

This page is generated from the commands' own help (`make docs`); a test keeps it up to date.
Results go to standard output, progress bars and notes to standard error. Exit codes: 0; 2 with one line that
names the error and its remedy; 130 after Ctrl-C.
"""


def commands_page() -> str:
    """The whole page."""
    root: Any = get_command(app)
    sections = [_HEAD, _text(root.help), _text(PAIRS_FILE), _text(SCORER)]  # the latter two end many a help
    sections += [f"{title}: {', '.join(map(_link, group))}.\n" for title, group in GROUPS.items()]
    for title, group in GROUPS.items():
        sections.append(f"## {title}\n")
        sections += map(_command, group)
    return "\n".join(sections).rstrip() + "\n"


def _link(name: str) -> str:
    return f"[{name}](#matchloom-{name})"


def _command(name: str) -> str:
    """The section of one command."""
    command = load(name)
    sections = [f"### matchloom {name}\n", _text(command.help)]
    rows = list(map(_row, command_parameters(command)))
    if rows:
        sections.append("| | default | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(sections)


def _text(help_text: str) -> str:
    """The paragraphs of a help text, examples in a block."""
    made = (
        "\n".join([one.text, "", "```sh", *one.examples, "```"]) if one.examples else one.text
        for one in paragraphs(help_text)
    )
    return "\n\n".join(made) + "\n"


def _row(one: Parameter) -> str:
    """One line of the table of a command's arguments and options."""
    name = f"{one.name} {one.value}".rstrip()
    return f"| `{name}` | {'required' if one.required else _code(one.default)} | {one.about} |"


_MODELS_HEAD = """# Models

This page is generated from the models' own files (`make docs`); a test keeps it up to date. Each model takes an
embedding and the arguments below, by keyword in Python and by `--set NAME=VALUE` in `matchloom train`.

Every model over word vectors also takes `ensemble_size` (default 1): the number of networks that differ in their
first weights. Each is trained by its own loss, and the score is the mean of their scores. They share word vectors,
batches and the choice of the epoch.
"""


def models_page() -> str:
    """Every model with its paper, symbols, departures and arguments, and the scorers that need no training."""
    sections = [_MODELS_HEAD]
    for name, make in MODELS.items():
        module = inspect.getmodule(make)
        sections.append(f"## {name}\n\n{documented(make).text}\n")
        sections.append(f"```text\n{(inspect.getdoc(module) or '').strip()}\n```\n")
        about = documented(make).arguments
        rows = [
            f"| `{key}` | {_code(written(value))} | {about.get(key, '')} |"
            for key, value in model_arguments(name).items()
        ]
        sections.append("| argument | default | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
        if theirs := model_training(name):
            said = ", ".join(f"`{key}` {written(value)}" for key, value in theirs.items())
            sections.append(f"Default training settings: {said}.\n")
    sections.append("## Scorers without a network\n")
    sections.append("| | |\n|---|---|\n" + "\n".join(f"| `{k}` | {v} |" for k, v in LEXICAL_ABOUT.items()) + "\n")
    return "\n".join(sections)


_API_HEAD = """# Python

This page is generated from the code (`make docs`); a test keeps it up to date. Everything below is imported from
`matchloom` itself; torch is loaded when the first name that needs it is used. A few names need an extra, as their text
says; where it is missing, the error names the command that installs it. All else comes with `pip install matchloom`.
Data frames need the extra `parquet`; collections in LanceDB (`store="lance"`) need the extra `archive`.
"""


_WIDTH = 100  # of a signature


def api_page() -> str:
    """Every public name with its signature, what it does and the meaning of each argument."""
    sections = [_API_HEAD]
    for name in sorted(matchloom.__all__, key=lambda name: (isinstance(getattr(matchloom, name), type), name.lower())):
        thing = getattr(matchloom, name)
        if not callable(thing):
            known = ", ".join(f"`{key}`" for key in thing)
            sections.append(
                f"## {name}\n\nThe models by name (see [models](models.md)), of the extra `networks`: {known}.\n"
            )
            continue
        sections.append(
            _section(f"## {name}", name, thing, listed=not inspect.isclass(thing) or is_made_by_callers(thing))
        )
        for method, function in public_methods(thing) if inspect.isclass(thing) else ():
            sections.append(_section(f"### {name}.{method}", method, function, listed=inspect.isfunction(function)))
    return "\n".join(sections)


def _section(title: str, name: str, thing: Any, *, listed: bool) -> str:
    """One function, method, class or property; `listed` with its signature and arguments."""
    said = documented(thing)
    parts = [title, _examples(said.text)]
    if listed:
        given = [one.name if one.default is one.empty else f"{one.name}={_default(one)}" for one in parameters(thing)]
        by_name = [n for n, one in enumerate(parameters(thing)) if one.kind is one.KEYWORD_ONLY]
        if by_name:
            given.insert(by_name[0], "*")
        arrow = "" if inspect.isclass(thing) else f" -> {inspect.signature(thing).return_annotation}"
        parts.insert(1, "```python\n" + _folded(f"{name}(", given, f"){arrow}") + "\n```")
        rows = [f"| `{one.name}` | {_kind(one)} | {said.arguments.get(one.name, '')} |" for one in parameters(thing)]
        if rows:
            parts.append("| argument | type | |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def _folded(head: str, given: list[str], tail: str) -> str:
    """A signature, over several lines where one would be long."""
    inside = ", ".join(given)
    if len(head + inside + tail) <= _WIDTH:
        return head + inside + tail
    return "\n".join([head, textwrap.indent(textwrap.fill(inside, _WIDTH - 4), "    "), tail])


def _default(one: inspect.Parameter) -> str:
    return "english" if isinstance(one.default, Tokenizer) or one.default is ENGLISH else repr(one.default)


def _kind(one: inspect.Parameter) -> str:
    """The annotation as it is written; a NamedTuple wraps its own."""
    written_as = str(getattr(one.annotation, "__forward_arg__", one.annotation))
    return _code(written_as.replace(" | ", " or "))  # a bar ends a cell, and not every reader knows it escaped


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _examples(text: str) -> str:
    """Examples of a docstring in a block of code."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```python\n{one}\n```" if one.startswith(">>>") else one for one in paragraphs)


def page_schema() -> str:
    """The JSON schema of the TOML file of `serve --page`."""
    return json.dumps(look_schema(documented(Look).arguments), indent=2) + "\n"


PAGES = {
    "api.md": api_page,
    "commands.md": commands_page,
    "models.md": models_page,
    "matchloom.1": man_page,
    "page.schema.json": page_schema,
}

if __name__ == "__main__":
    for page, make_page in PAGES.items():
        (Path(sys.argv[1]) / page).write_text(make_page(), encoding="utf-8")
