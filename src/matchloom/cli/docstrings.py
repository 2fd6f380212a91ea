"""The `Args:` sections of docstrings, for the pages in docs and for `matchloom models MODEL`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple


class Documented(NamedTuple):
    """A docstring: what it says, and the meaning of each argument."""

    text: str
    arguments: dict[str, str]


def documented(thing: object) -> Documented:
    """Read the docstring of a function or a class: `Args:`, then a line for each argument, indented if it goes on."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    start = lines.index("Args:") if "Args:" in lines else len(lines)
    end = next((n for n in range(start + 1, len(lines)) if lines[n][:1].strip()), len(lines))
    arguments: dict[str, str] = {}
    name = ""
    for line in lines[start + 1 : end]:
        if line.startswith("     "):
            arguments[name] += " " + line.strip()
        elif line.strip():
            name, _, meaning = line.strip().partition(": ")
            arguments[name] = meaning
    return Documented("\n".join(lines[:start] + lines[end:]).strip(), arguments)


def written(value: object) -> str:
    """A value as `--set` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def parameters(function: Any) -> list[inspect.Parameter]:
    """What a caller gives to a function, or to a class to make an instance."""
    return [one for one in inspect.signature(function).parameters.values() if one.name not in ("self", "cls")]


def public_methods(owner: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class that users call, in the order of its file, then of those it is made of."""
    own = [kind for kind in owner.__mro__ if kind.__module__.partition(".")[0] == "matchloom"]
    for name, member in (item for kind in own for item in vars(kind).items()):
        method = member.__func__ if isinstance(member, classmethod) else member
        if not name.startswith("_") and (inspect.isfunction(method) or isinstance(method, property)):
            yield name, method


def is_made_by_callers(owner: type) -> bool:
    """Whether users call the class itself, rather than a class method that makes an instance, such as `load`."""
    return not any(isinstance(member, classmethod) for name, member in vars(owner).items() if name[0] != "_")
