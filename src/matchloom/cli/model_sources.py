"""What the models' files say of themselves, read as text: to list models nobody should have to wait for torch."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import matchloom

_MODELS = Path(matchloom.__file__).parent / "models"


class ModelSource(NamedTuple):
    """A model: who described it and when, what it does, and whether it makes one vector of each text."""

    paper: str
    about: str
    makes_vectors: bool


def model_sources() -> dict[str, ModelSource]:
    """Every entry of MODELS, in its order, as the dict and the files stand in the folder `models`."""
    registry = _parsed("__init__")
    homes = {
        alias.name: node.module.rpartition(".")[2]
        for node in registry.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    makers = next(
        node.value
        for node in registry.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "MODELS"
    )
    assert isinstance(makers, ast.Dict)
    return {
        ast.literal_eval(name): _source(homes[maker.id], maker.id)
        for name, maker in zip(makers.keys, makers.values, strict=True)
        if name is not None and isinstance(maker, ast.Name)
    }


def _source(file: str, maker: str) -> ModelSource:
    """What one file says: its first line ends with (authors, year), its class says whether it makes vectors."""
    tree = _parsed(file)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    made = next(node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == maker)
    title = _first_line(ast.get_docstring(tree))
    paper = re.search(r"\((?:a baseline of )?([^()]+) (\d{4})\)", title)
    assert paper is not None, f"the first line of {file}.py ends with (authors, year)"
    vectors = any(ast.unparse(line) == "sentence_vectors = True" for one in classes for line in one.body)
    return ModelSource(f"{paper[1].split(',')[0]} {paper[2]}", _first_line(ast.get_docstring(made)), vectors)


def _parsed(file: str) -> ast.Module:
    return ast.parse((_MODELS / f"{file}.py").read_text(encoding="utf-8"))


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]
