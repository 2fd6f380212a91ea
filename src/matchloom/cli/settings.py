"""The options of `matchloom train` that are settings of `TrainConfig`: its fields, their defaults and docstring.

A new field of `TrainConfig` is a new option by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, get_type_hints

import typer

from matchloom import TrainConfig
from matchloom.cli.docstrings import documented


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of `TrainConfig`, in place of its `**settings`.

    What a user gave arrives as a setting; the others do not, for a model has settings of its own.
    """
    about, types = documented(TrainConfig).arguments, get_type_hints(TrainConfig)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[types[field.name], typer.Option(help=about[field.name])],
        )
        for field in fields(TrainConfig)
    ]
    names = {field.name for field in fields(TrainConfig)}

    def called(ctx: typer.Context, **given: Any) -> None:
        unchanged = {name for name in names if not is_given(ctx, name)}
        command(ctx, **{name: value for name, value in given.items() if name not in unchanged})

    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    called.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
    called.__doc__, called.__name__, called.__module__ = command.__doc__, command.__name__, command.__module__
    return called


def is_given(ctx: typer.Context, name: str) -> bool:
    """Whether the user gave this option."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
