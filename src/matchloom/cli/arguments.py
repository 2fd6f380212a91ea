"""`--set NAME=VALUE` into the arguments of a model, each by the type of its default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matchloom.cli.docstrings import written
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.models import Argument

_YES_OR_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_arguments(model: str, settings: Sequence[str]) -> dict[str, Argument]:
    """The arguments that `settings` give to a model; a wrong one lists those it takes."""
    from matchloom.models import all_arguments

    defaults = all_arguments(model)
    takes = f"{model} takes {', '.join(f'{name}={written(value)}' for name, value in defaults.items())}"
    parsed: dict[str, Argument] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in defaults:
            raise MatchloomError(f"--set {setting!r}: expected NAME=VALUE; {takes}", code="bad_value")
        kind = type(defaults[name])
        try:
            parsed[name] = _YES_OR_NO[value.lower()] if kind is bool else kind(value)
        except (ValueError, KeyError):
            expected = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
            raise MatchloomError(f"--set {setting!r}: {name} is {expected}; {takes}", code="bad_value") from None
    return parsed
