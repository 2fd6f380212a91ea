"""Packages that a plain install leaves out: which extra brings each, and the command in one line where one is missing.

`pip install matchloom` brings what `fit`, `search` and `serve` of an FAQ need. Heavy packages are imported where they
are used; who does so asks `need`, or stands within `named_extras`, so that no user meets a bare ModuleNotFoundError.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from matchloom.types import MatchloomError

#: The extra of pyproject.toml that brings each package.
EXTRAS = {
    "torch": "networks",
    "gensim": "networks",
    "tomotopy": "networks",
    "tokenizers": "encoder",
    "lancedb": "archive",
    "lance": "archive",
    "pyarrow": "parquet",
    "ray": "ray",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "matplotlib": "plots",
    "langchain_core": "langchain",
    "llama_index": "llama-index",
    "haystack": "haystack",
    "pyterrier": "pyterrier",
    "mteb": "mteb",
    "ir_datasets": "ir-datasets",
    "mcp": "mcp",
}
WITH_TORCH = ("networks", "encoder", "archive", "all")  # extras that bring torch
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # torch without CUDA: a tenth of the size
_NAME = "matchloom"


class MissingExtraError(MatchloomError, ImportError):
    """A package of an extra is not installed; the message names the command that brings it."""


def need(package: str, what: str = "") -> Any:
    """Import a package or one of its modules; where it is missing, one line names the command.

    Args:
        package: The name to import, such as "pyarrow.parquet".
        what: What needs it, at the start of the line.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if (told := _told(error, what)) is None:
            raise
        raise told from None


def has(package: str) -> bool:
    """Whether a package is installed; nothing is imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # a finder that refuses it
        return False


@contextmanager
def named_extras(what: str = "", extra: str | None = None) -> Iterator[None]:
    """Around imports and calls, or on a function: a package that is missing is told with the command that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (told := _told(error, what, extra)) is None:
            raise
        raise told from None


def missing(package: str, what: str = "", extra: str | None = None) -> MissingExtraError:
    """The error that names the command which brings a package, by another extra than its own if one is given."""
    start = f"{what} needs" if what else "this needs"
    command = install_command(extra or EXTRAS[package])
    return MissingExtraError(
        f"{start} the package {package}, which is not installed: {command}",
        code="needs_extra",
    )


def install_command(extra: str) -> str:
    """The command that adds an extra to this install, from wherever it came."""
    words = ["pip", "install"]
    if extra in WITH_TORCH and not has("torch"):
        words += ["--extra-index-url", CPU_INDEX]  # else pip takes the build for graphics cards: gigabytes
    return " ".join([*words, *_source(extra)])


def _told(error: ModuleNotFoundError, what: str, extra: str | None = None) -> MissingExtraError | None:
    """The line for a package of an extra; None for what is missing otherwise."""
    package = (error.name or "").partition(".")[0]
    return missing(package, what, extra) if package in EXTRAS else None


def _source(extra: str) -> list[str]:
    """What pip is told to install: the folder or file that this install came from, if it is still there."""
    try:
        told = json.loads(distribution(_NAME).read_text("direct_url.json") or "{}")
        url = str(told.get("url", ""))
        if "vcs_info" in told:
            return [shlex.quote(f"{_NAME}[{extra}] @ {told['vcs_info']['vcs']}+{url}")]
        path = Path(unquote(urlparse(url).path))
        if url.startswith("file:") and path.exists():
            editable = ["--editable"] if told.get("dir_info", {}).get("editable") else []
            return [*editable, shlex.quote(f"{path}[{extra}]")]
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        pass
    return [shlex.quote(f"{_NAME}[{extra}]")]
