"""The command `matchloom`: one file a command, each of which parses, calls one Python function and prints.

A command is imported when it is called (commands.py), so that `matchloom --help` is there at once.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.metadata import version
from typing import Annotated

import typer
from typer.main import get_command

from matchloom.cli.commands import COMMANDS, Commands

app = typer.Typer(
    name="matchloom",
    cls=Commands,
    rich_markup_mode=None,  # plain help: what a user wrote in brackets is never markup, and a pipe sees the same
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)

_OF_ARCHIVES = ("index", "search", "add", "remove", "tune", "doctor")  # not serve: its log must not wait for its end
# What the system refuses, wherever it does, is no bug of ours.
_REFUSALS = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EIO, errno.ESTALE,
}  # fmt: skip
_OF_TORCH = "DefaultCPUAllocator"  # it says so by a plain RuntimeError where it got no memory
# typer has carried a click of its own since 0.26; by way of the class we need not know which.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"matchloom {version('matchloom')}")
        raise typer.Exit


@app.callback()
def about(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Match two texts and show why: answers to questions from your own file, on a CPU, in minutes.

    \b
    With your own file of questions and answers:
      matchloom fit faq.tsv --out faq
      matchloom search faq "I forgot my password" --top 3 --explain
      matchloom serve faq

    \b
    Without a file (the texts come from Python's own documentation):
      matchloom demo

    A file has the columns query and text (or question and answer), and a column label if some texts are wrong for
    their query. Each command has its own --help, with examples.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 for what the user can correct, 130 for Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not end a run
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        sys.stdout.flush()  # a reader that went away is noticed here, not at the very end
        return code if isinstance(code, int) else 0
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:  # before a command began
        return 130
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "matchloom"
        _complain(f"{getattr(error, 'format_message', error.__str__)()} (see {path} --help)")
        return 2
    except Exception as error:
        from matchloom.types import MatchloomError  # numpy comes with it, and a usage error needs none

        if isinstance(error, MatchloomError):
            from matchloom.cli.words import in_options

            _complain(in_options(str(error)))
        elif (line := _missing_extra(error)) is not None:
            _complain(line)
        elif isinstance(error, OSError) and error.errno in _REFUSALS:
            where = f"{error.filename}: " if error.filename is not None else ""
            _complain(f"{where}{error.strerror}; check permissions, limits and free disk space")
        elif isinstance(error, MemoryError) or _OF_TORCH in str(error):
            _complain(
                "there is too little memory for this; free some, raise the limit, or give less at once (smaller "
                "shards, a smaller --window or --batch)"
            )
        else:
            raise  # a bug of ours, which needs its traceback
        return 2


def _run(given: list[str]) -> object:
    command = get_command(app)
    if not given or given[0] not in COMMANDS:  # help is there at once
        return command.main(args=given or ["--help"], prog_name="matchloom", standalone_mode=False)
    from matchloom.cli.printing import PrintableLog, without_native_noise

    if logging.lastResort is not None:  # what shows warnings where nobody set up logging
        logging.lastResort.setFormatter(PrintableLog())
    with without_native_noise() if given[0] in _OF_ARCHIVES else nullcontext():
        return command.main(args=given, prog_name="matchloom", standalone_mode=False)


def _missing_extra(error: Exception) -> str | None:
    """The line for a package that an extra brings."""
    from matchloom.basics.extras import EXTRAS, missing

    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return str(missing(package, "this command")) if package in EXTRAS else None


def _complain(message: str) -> None:
    from matchloom.basics.screen import printable

    if "MASTER_ADDR" in os.environ and os.environ.get("RANK", "0") != "0":
        return  # of several processes only the first prints the error of all (training/team.py)
    print(f"matchloom: error: {printable(' '.join(message.split()))}", file=sys.stderr)
