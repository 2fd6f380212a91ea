"""The embedded corpus: what the running Python's standard library says about itself, read when it is asked for.

A pair is (summary, rest of the description) of one module, class or function. Nothing is downloaded or carried along:
sources are read by `ast` and never run; C modules, which have no sources, are asked for their docstrings.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import os
import platform
import re
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

from matchloom.data.docstrings import summary_and_rest
from matchloom.data.repeats import once_each
from matchloom.types import MatchloomError, Pair

# Tests, programs that live in the library, and data.
_LEFT_OUT = {"test", "tests", "idlelib", "turtledemo", "pydoc_data", "encodings", "site-packages"}

# Written in C, safe to import (no output, no terminal set-up, no deprecation) and worth reading.
_C_MODULES = """
    _abc _asyncio _bisect _bz2 _codecs _collections _contextvars _csv _ctypes _curses _datetime _decimal _elementtree
    _functools _hashlib _heapq _imp _io _json _lsprof _lzma _multiprocessing _operator _pickle _posixsubprocess _queue
    _random _signal _socket _sqlite3 _sre _ssl _stat _statistics _string _struct _symtable _thread _tracemalloc _typing
    _uuid _warnings _weakref _zoneinfo array atexit binascii builtins cmath errno faulthandler fcntl gc grp itertools
    marshal math mmap nt posix pwd pyexpat resource select sys syslog termios time unicodedata winreg winsound zlib
""".split()  # noqa: SIM905
_C_MEMBERS = (
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


def read_pydocs(library: Path | str | None = None) -> list[Pair]:
    """Read (summary, rest of the description) from the docstrings of the standard library, in the order of names.

    Signatures, doctests, code, tables, lists of parameters and headings are left out. Both sides have 5 to 50 words
    (longer descriptions are cut), and no text occurs twice, on either side. Ids are names such as `json.dump`. How
    many pairs there are depends on the version of Python: say `python_version()` beside any figure.

    `library` reads the Python sources of another folder instead, without the C modules.
    """
    if library is None:
        docstrings = dict(_from_c_modules())
        docstrings.update(_from_sources(Path(sysconfig.get_path("stdlib")), sys.stdlib_module_names))
    else:
        docstrings = _from_sources(Path(library))
    pairs = []
    for name in _one_of_twins(docstrings):
        if found := summary_and_rest(docstrings[name]):
            pairs.append(Pair(*found, 1.0, name, name, name))
    return sorted(once_each(pairs), key=lambda pair: pair.query_id)


def python_version() -> str:
    """The version of Python whose library `read_pydocs` reads."""
    return platform.python_version()


def _one_of_twins(names: dict[str, str]) -> list[str]:
    """Leave out `_pyio.open` and `_io.open` where there is `io.open`: the same thing, told in nearly the same words."""
    twins: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name.startswith("_"), name)):
        twins.setdefault(re.sub(r"^_(py)?", "", name), name)
    return list(twins.values())


def _from_sources(library: Path, top_level: frozenset[str] | None = None) -> dict[str, str]:
    """Name and docstring of everything that the `.py` files of a folder define; `top_level` says which to enter."""
    docstrings: dict[str, str] = {}
    collecting = gc.isenabled()
    gc.disable()  # parsing makes millions of nodes, and looking for cycles among them doubles the time
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes in somebody's string
            for path, name in _modules(library, top_level):
                try:
                    docstrings.update(_documented(ast.parse(path.read_bytes()), name))
                except (SyntaxError, ValueError, OSError):  # a template, or a file for another version
                    continue
    finally:
        if collecting:
            gc.enable()
    if not docstrings:
        raise MatchloomError(
            f"{library}: no Python sources here (a zipped library?); use a Python whose library is installed as files"
        )
    return docstrings


def _modules(library: Path, top_level: frozenset[str] | None) -> Iterator[tuple[Path, str]]:
    """Path and dotted name of each module under a folder."""
    for folder, folders, files in os.walk(library):
        inside = Path(folder).relative_to(library).parts
        anything = bool(inside) or top_level is None
        folders[:] = [
            name
            for name in folders
            if name.isidentifier() and name not in _LEFT_OUT and (anything or name in (top_level or ()))
        ]
        for file in files:
            path = Path(folder) / file
            if path.suffix == ".py" and (anything or path.stem in (top_level or ())):
                yield path, ".".join(inside if inside and path.stem == "__init__" else (*inside, path.stem))


def _documented(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
        docstring := ast.get_docstring(node)
    ):
        yield name, docstring
    for child in getattr(node, "body", []) + getattr(node, "orelse", []) + getattr(node, "handlers", []):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(child, f"{name}.{child.name}")
        elif isinstance(child, ast.If | ast.Try | ast.ExceptHandler):
            yield from _documented(child, name)


def _from_c_modules() -> Iterator[tuple[str, str]]:
    """Name and docstring of the functions, classes and methods of those C modules that this Python has."""
    for module_name in _C_MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:  # other systems, or built without it
            continue
        yield from _docstring(module, module_name)
        for name, item in sorted(vars(module).items()):
            if isinstance(item, type) and item.__module__.partition(".")[0] in sys.stdlib_module_names:
                owner = f"{item.__module__}.{item.__qualname__}"
                yield from _docstring(item, owner)
                for member_name, member in sorted(vars(item).items()):
                    if isinstance(member, _C_MEMBERS):
                        yield from _docstring(member, f"{owner}.{member_name}")
            elif isinstance(item, types.BuiltinFunctionType):
                yield from _docstring(item, f"{module_name}.{name}")


def _docstring(item: object, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(docstring := item.__doc__, str):
        yield name, inspect.cleandoc(docstring)
