"""The papers' tables, one TOML each in `tables`: the task, the measures, the rows and what was published of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from matchloom.evaluation.labelled import MEASURES
from matchloom.models import Argument
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
TABLES = Path(__file__).parent / "tables"
KINDS = ("lists", "pairs")
TRIALS = "trials_"  # how the names of tables begin that have development figures only
# The folders that a task reads where they are not one of its own name.
FOLDERS: dict[str, tuple[str, ...]] = {
    "cntn_english": ("insuranceqa",),
    "cntn_chinese": ("insuranceqa",),
    "cntn_english_near": ("insuranceqa",),
    "cntn_english_near_lists": ("insuranceqa",),
    "cntn_english_glove": ("insuranceqa", "glove"),
    "cntn_english_hundred": ("insuranceqa",),
    "cntn_chinese_near": ("insuranceqa",),
    "trecqa": ("trecqa", "glove"),
    "wikiqa": ("wikiqa", "glove"),
    "semeval": ("semeval-cqa", "glove"),
    "reuters": ("reuters", "glove"),
    "msrp": ("msrp", "glove"),
    "pydocs": (),
}


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Args:
        name: As the paper has it.
        model: A model or a lexical scorer.
        seeds: Each is a run.
        arguments: Of the model, on top of its paper's.
        train: Fields of `TrainConfig`, on top of the table's and the model's.
        published: The paper's figures, in the order of the table's measures.
        published_development: The paper's figure on development data, by the first measure.
        baselines: Whether simple scorers and blind probes are measured beside it.
        test: Whether it is measured on the test pairs; what only a choice needs is not.
        chosen_on_test: Its epoch is chosen on the test questions with both labels: no result, but what one would have
            looked like that was chosen so. Its name must say it.
    """

    name: str
    model: str
    seeds: tuple[int, ...]
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    published: tuple[float, ...] = ()
    published_development: float | None = None
    baselines: bool = False
    test: bool = True
    chosen_on_test: bool = False


@dataclass(frozen=True)
class PaperTable:
    """One table.

    Args:
        name: The stem of its TOML.
        title: What it is, in a line.
        task: A name of `TASKS`.
        measures: The first one chooses, orders and is tested.
        rows: The systems.
        papers: Where it was published.
        kind: "lists" of candidates to rank, or "pairs" that match or not, each on its own.
        subsets: Which questions count, as in `evaluate`; the first is the one that is compared.
        against: Rows that the others are tested against.
        t_test: Whether by a paired t-test as well, as the paper does.
        own: The row that is the paper's own model.
        note: Where we differ, and why we think so.
        dimensions: Of word vectors that are trained on the task's texts.
        split_by_seed: Whether a seed also draws the parts of the task.
        train: Fields of `TrainConfig` for every row.
        fusion: Pairs of rows that `experiments/benchmarks/retrieval.py` mixes.
    """

    name: str
    title: str
    task: str
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    papers: tuple[str, ...] = ()
    kind: str = "lists"
    subsets: tuple[str, ...] = ("both",)
    against: tuple[str, ...] = ()
    t_test: bool = False
    own: str = ""
    note: str = ""
    dimensions: int = 50
    split_by_seed: bool = False
    train: Mapping[str, Any] = field(default_factory=dict)
    fusion: tuple[Mapping[str, str], ...] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        """What it needs in the folder of the data sets."""
        return FOLDERS.get(self.task, (self.task,))

    @property
    def is_trial(self) -> bool:
        """Whether it has development figures only."""
        return self.name.startswith(TRIALS)

    def missing(self, data: Path) -> list[str]:
        """The folders that are not there."""
        return [name for name in self.folders if not (data / name).is_dir()]

    def rows_named(self, name: str) -> list[Row]:
        """The row of this name, or else those whose names contain it."""
        found = [row for row in self.rows if row.name == name] or [row for row in self.rows if name in row.name]
        if not found:
            known = "; ".join(row.name for row in self.rows)
            raise MatchloomError(f"no row of {self.name} is named {name!r} or has it in its name; its rows: {known}")
        return found


def table_names() -> list[str]:
    """All tables, trials last."""
    names = sorted(path.stem for path in TABLES.glob("*.toml"))
    return sorted(names, key=lambda name: name.startswith(TRIALS))


def read_table(name: str) -> PaperTable:
    """The table of this name."""
    path = TABLES / f"{name}.toml"
    if name not in table_names():
        raise MatchloomError(f"table {name!r} is unknown; choose one of {', '.join(table_names())}, or lcs, or all")
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    seeds, systems = content.pop("seeds", [0]), content.pop("system", [])
    rows = tuple(_made(Row, path, {"seeds": seeds, **system}) for system in systems)
    table = _made(PaperTable, path, {**content, "name": name, "rows": rows})
    _check(table, path)
    return table


def _made(kind: type[T], path: Path, content: Mapping[str, Any]) -> T:
    """A dataclass of what stands in the file; lists are tuples, and what it does not know is refused."""
    known = {one.name for one in fields(kind)}
    unknown = sorted(content.keys() - known)
    if unknown:
        raise MatchloomError(
            f"{path.name}: {unknown[0]!r} is no setting of a {kind.__name__}, which has {sorted(known)}"
        )
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in content.items()})
    except TypeError as error:
        raise MatchloomError(f"{path.name}: {error}") from None


def _check(table: PaperTable, path: Path) -> None:
    names = [row.name for row in table.rows]
    if len(set(names)) < len(names) or not names:
        raise MatchloomError(f"{path.name}: rows need names, each another; found {names}")
    if table.kind not in KINDS:
        raise MatchloomError(f"{path.name}: kind {table.kind!r} is unknown; choose one of {', '.join(KINDS)}")
    wrong = [one for one in table.measures if table.kind == "pairs" and one not in MEASURES]
    if wrong or not table.measures:
        raise MatchloomError(f"{path.name}: measures of pairs are among {', '.join(MEASURES)}, found {wrong}")
    strangers = [name for name in (*table.against, *filter(None, [table.own])) if name not in names]
    if strangers:
        raise MatchloomError(f"{path.name}: {strangers[0]!r} is no row of it")
