"""What the library says in Python's words, as a command says it: `overwrite=True` is `--overwrite`."""

from __future__ import annotations

import ast
import re

_NAMES = "accent columns feedback kind logo matcher out overwrite resume title"  # those that messages name
_GIVEN = re.compile(rf"(?<![\w-])({_NAMES.replace(' ', '|')})=(True\b|\{{[^{{}}]*\}}|'[^']*')?")


def in_options(message: str) -> str:
    """A message of the library in the words of the command line.

    >>> in_options("add overwrite=True, or columns={'query': 'NAME', 'text': 'NAME'}, or say with kind= what it is")
    'add --overwrite, or --columns query=NAME,text=NAME, or say with --kind what it is'
    """
    return _GIVEN.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    name, value = f"--{found[1]}", found[2] or ""
    if value in ("", "True"):
        return name
    try:
        given = ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # a name that a user chose
        return found[0]
    if isinstance(given, dict):
        given = ",".join(f"{key}={said}" for key, said in given.items())
    return f"{name} {given}"
