"""What the help of a command says, in pieces of which pages are made: paragraphs, and arguments with defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Paragraph(NamedTuple):
    """A text; or a title with its examples, which stay line by line."""

    text: str
    examples: tuple[str, ...] = ()


class Parameter(NamedTuple):
    """An argument or an option of a command, as its help shows it; `value` is what an option is given."""

    name: str
    value: str
    default: str
    required: bool
    option: bool
    about: str


def paragraphs(help_text: str) -> Iterator[Paragraph]:
    r"""The paragraphs of a help text; one that starts with \b is a title and its examples."""
    for paragraph in help_text.split("\n\n"):
        if paragraph.startswith("\b"):
            title, *lines = paragraph.removeprefix("\b").strip("\n").splitlines()
            yield Paragraph(title, tuple(line.strip() for line in lines))
        else:
            yield Paragraph(" ".join(paragraph.split()))


def command_parameters(command: Any) -> Iterator[Parameter]:
    """What a command takes, in the order of its help; all but --help."""
    for one in command.params:
        if one.name == "help":
            continue
        option = one.param_type_name == "option"
        yield Parameter(
            name=", ".join(one.opts) if option else str(one.metavar),
            value=str(one.metavar) if option and one.metavar else "",
            default="" if one.default is None or one.default is False else str(one.default),
            required=bool(one.required),
            option=option,
            about=str(one.help),
        )
