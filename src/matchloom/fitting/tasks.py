"""The task of each kind of file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from matchloom.basics.extras import named_extras
from matchloom.data.kinds import ANSWERS, LISTS, PAIRS
from matchloom.fitting.systems import Task
from matchloom.types import MatchloomError

#: Where the task of each kind is; it is imported when such a file is fitted, for lists and pairs bring networks.
TASKS = {
    ANSWERS: "matchloom.fitting.answers_task:AnswersTask",
    LISTS: "matchloom.fitting.lists_task:ListsTask",
    PAIRS: "matchloom.fitting.pairs_task:PairsTask",
}


def task_for(kind: str, encoder: Path | None) -> Task:
    """The task of this kind, which may use the encoder."""
    if kind not in TASKS:
        raise MatchloomError(f"pairs of kind {kind!r} cannot be fitted", code="unknown_name")
    module, name = TASKS[kind].split(":")
    with named_extras(f"fit of {kind}"):
        made: Task = getattr(import_module(module), name)(encoder)
    return made
