"""Several systems on the same data: each trained or fitted, timed, measured, and tested against the first."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from matchloom.artifact import holds
from matchloom.basics.files import read_lines
from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.identity import with_ids
from matchloom.evaluation import Report, compare_runs, evaluate, measure
from matchloom.lexical import LEXICAL, fit_scorer
from matchloom.matcher import Matcher
from matchloom.models import MODELS, Argument
from matchloom.pages import blocks
from matchloom.pages.blocks import Column, table
from matchloom.pages.document import document, frame
from matchloom.pages.markup import safe_text
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.training.log import LOG
from matchloom.training.prepare import MAX_WORDS
from matchloom.training.run import train
from matchloom.types import MatchloomError, Pair, Scorer

BASELINES = ("random", "bm25", "bm25_stemmed")
_WARM_UP = 256  # pairs that are scored before speed is measured: the first call may build or load something


class System(NamedTuple):
    """One system: its name in the table, its model or lexical scorer, and what differs from the model's defaults.

    With a `scorer`, which is there already, nothing is made and `model` means nothing.
    """

    name: str
    model: str
    arguments: Mapping[str, Argument] = {}
    settings: Mapping[str, Any] = {}  # of TrainConfig
    scorer: Scorer | None = None


@dataclass(frozen=True)
class SystemResult:
    """One system's figures on the test pairs and what it cost, or the reason why there are none."""

    system: str
    values: dict[str, float]
    p: float | None = None  # of the difference to the first system's first measure
    parameters: int | None = None  # None for what is not trained
    minutes: float = 0.0
    pairs_per_second: float = 0.0
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as plain numbers; what is undefined is None."""
        values = {name: None if value != value else value for name, value in self.values.items()}
        costs = {"p": self.p, "parameters": self.parameters, "minutes": self.minutes}
        return {"system": self.system, "values": values, **costs, "pairs_per_second": self.pairs_per_second}


@dataclass(frozen=True, repr=False)
class Comparison:
    """The systems that could be measured, in the order given, and why others failed."""

    rows: list[SystemResult]
    failed: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and numbers."""
        return {"rows": [row.to_dict() for row in self.rows], "failed": self.failed}

    def __repr__(self) -> str:
        measure = next(iter(self.rows[0].values))
        rows = ", ".join(f"{row.system} {row.values[measure]:.4f}" for row in self.rows)
        return f"Comparison({measure}: {rows}{f'; {len(self.failed)} failed' if self.failed else ''})"

    def to_html(self) -> str:
        """One page that needs no other file and no network."""
        head, *rows = ([safe_text(cell) for cell in row] for row in self._cells())
        columns = [Column(head[0]), *(Column(name, "number") for name in head[1:])]
        shown = table("Systems", columns, map(blocks.Row, rows), css="figures", narrow="stack")
        failed = "\n".join(
            f'<p class="warning">{safe_text(name)}: {safe_text(why)}</p>' for name, why in self.failed.items()
        )
        return document(
            "Systems compared", f'<h1>Systems compared</h1>\n<section class="block">{shown}\n{failed}</section>'
        )

    def __rich__(self) -> Table:
        head, *rows = self._cells()
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for n, column in enumerate(head):
            table.add_column(column, justify="right" if n else "left", no_wrap=bool(n), overflow="fold")
        for row in rows:
            table.add_row(*row)
        return table

    def _repr_html_(self) -> str:
        return frame(self.to_html(), "Systems compared", height=14 + 2.1 * len(self.rows) + 3.2 * len(self.failed))

    def _cells(self) -> list[list[str]]:
        """The head and a line for each row."""
        measures = list(self.rows[0].values)
        head = ["system", *measures, f"p against {self.rows[0].system}", "parameters", "minutes", "pairs/s"]
        return [head] + [
            [
                row.system,
                *(f"{row.values[name]:.4f}" for name in measures),
                "" if row.p is None else f"{row.p:.3f}",
                "" if row.parameters is None else f"{row.parameters:,}",
                f"{row.minutes:.1f}",
                f"{row.pairs_per_second:,.0f}",
            ]
            for row in self.rows
        ]


def compare(
    training: PairsLike,
    test: PairsLike,
    development: PairsLike | None = None,
    *,
    systems: Iterable[str | System | Scorer] | None = None,
    measures: Iterable[str] = ("P@1", "RR"),
    settings: Mapping[str, Any] | None = None,
    tokenizer: Tokenizer | None = None,
    vectors: WordVectors | None = None,
    dimensions: int = 50,
    collection: Sequence[str] | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    seed: int = 0,
    on_row: Callable[[SystemResult], None] | None = None,
    progress: bool = False,
) -> Comparison:
    """Train or fit several systems on the same pairs, and measure, time and test them on others.

    Each model is trained with its own default arguments and settings; all share words, initial vectors, lists and seed.
    A system that fails does not stop the others. It needs the extra `networks`.

    Args:
        training: Labelled pairs to train on; lexical scorers count their words in them.
        test: Labelled pairs to measure on.
        development: Labelled pairs that choose each model's best epoch; without them every epoch is run.
        systems: Names of models and lexical scorers, a `System` with its own arguments and settings, or existing
            scorers, such as `Matcher.load(folder)`; random, BM25 plain and stemmed and every model by
            default. p is of the difference from the first of them, by a paired randomisation test on the first measure.
        measures: ir-measures names.
        settings: Fields of `TrainConfig` for every model, in place of its own settings.
        tokenizer: English words, at most 200 of a text, unless given.
        vectors: Initial word vectors, the same for all; random ones by default. soft_coverage needs some.
        dimensions: The length of random word vectors.
        collection: Texts in which lexical scorers count words, in place of the training texts.
        folder: Where trained matchers are kept, each in a folder with the name of its system.
        resume: Continue the runs in `folder`; finished ones are not trained again.
        seed: Of every random draw.
        on_row: Called with each row as soon as it is there, with `error` filled in where a system failed.
        progress: Whether to show bars.
    """
    chosen = check_systems(systems, folder, resume=resume)
    pairs, measured = list(as_pairs(training)), list(with_ids(as_pairs(test)))
    wanted = [measures] if isinstance(measures, str) else list(measures)
    measure(measured, [0.0] * len(measured), wanted)  # refuses unknown ones now, not after the first training
    chosen_on = None if development is None else list(as_pairs(development))
    first: Report | None = None
    rows: list[SystemResult] = []
    failed: dict[str, str] = {}
    for system in chosen:
        own = None if folder is None else Path(folder) / system.name
        begun, before = time.perf_counter(), seconds_before(own) if own is not None and resume else 0.0
        try:
            scorer = make_scorer(
                system._replace(settings={**(settings or {}), **system.settings}),
                pairs,
                chosen_on,
                tokenizer=tokenizer,
                vectors=vectors,
                dimensions=dimensions,
                collection=collection,
                folder=own,
                resume=resume,
                seed=seed,
                progress=progress,
            )
            minutes = (time.perf_counter() - begun + before) / 60
            report, speed = _measured(scorer, measured, wanted, progress)
        except MatchloomError as error:
            failed[system.name] = str(error)
            row = SystemResult(system.name, {}, error=str(error))
        else:
            p = None if first is None else next(iter(compare_runs(report.measured, first.measured).values())).p
            first = first or report
            parameters = scorer.model.size() if isinstance(scorer, Matcher) else None
            row = SystemResult(system.name, report.values, p, parameters, minutes, speed)
            rows.append(row)
        if on_row is not None:
            on_row(row)
    if not rows:
        raise MatchloomError(f"every system failed; {chosen[0].name}: {failed[chosen[0].name]}", code="failed")
    return Comparison(rows, failed)


def check_systems(
    systems: Iterable[str | System | Scorer] | None, folder: Path | str | None = None, *, resume: bool = False
) -> list[System]:
    """The systems by name, each once; unknown ones are refused, and folders that hold a matcher unless resumed."""
    found: dict[str, System] = {}
    for one in (*BASELINES, *MODELS) if systems is None else [systems] if isinstance(systems, str) else systems:
        system = _system(one, found)
        if system.scorer is None and system.model not in MODELS and system.model not in LEXICAL:
            raise MatchloomError(
                f"system {system.model!r} is unknown; choose among {', '.join([*MODELS, *LEXICAL])}",
                code="unknown_name",
            )
        own = None if folder is None else Path(folder) / system.name
        if own is not None and holds(own, "matcher") and not resume:
            raise MatchloomError(
                f"{own} already holds a matcher; resume its run, or choose another folder", code="exists"
            )
        found.setdefault(system.name, system)
    if not found:
        raise MatchloomError("there is nothing to compare; name a system", code="no_data")
    return list(found.values())


def _system(given: object, taken: Mapping[str, System]) -> System:
    if isinstance(given, System):
        return given
    if isinstance(given, str):
        name = given.replace("-", "_")  # as the command that makes a trans_lm is called
        return System(name, name)
    if not isinstance(given, Scorer) or isinstance(given, type):
        raise MatchloomError(
            f"a system is {given!r:.60}; expected a name, a System, or a scorer such as a Matcher", code="wrong_type"
        )
    name, number = given.name, 2
    while name in taken:
        name, number = f"{given.name} {number}", number + 1
    return System(name, "", scorer=given)


def make_scorer(
    system: System,
    training: Sequence[Pair],
    development: Sequence[Pair] | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    vectors: WordVectors | None = None,
    dimensions: int = 50,
    collection: Sequence[str] | None = None,
    folder: Path | None = None,
    resume: bool = False,
    seed: int = 0,
    paper: bool = False,
    progress: bool = False,
) -> Scorer:
    """A system trained, or fitted where it is a lexical scorer. The arguments are those of `compare` and `train`."""
    if system.scorer is not None:
        return system.scorer
    words = tokenizer or Tokenizer(max_words=MAX_WORDS)
    if system.model in LEXICAL:
        texts = collection if collection is not None else list(dict.fromkeys(pair.text for pair in training))
        return fit_scorer(system.model, texts, tokenizer=words, vectors=vectors, pairs=training, seed=seed)
    return train(
        training,
        development,
        model=system.model,
        arguments=system.arguments,
        paper=paper,
        hold_out=0,
        tokenizer=words,
        vectors="random" if vectors is None else vectors,
        dimensions=dimensions,
        folder=folder,
        resume=resume and folder is not None and holds(folder, "checkpoint"),
        progress=progress,
        **{**system.settings, "seed": seed},
    )


def seconds_before(folder: Path) -> float:
    """How long a run that is resumed has trained already, by its log."""
    path = folder / LOG
    return sum(float(json.loads(line)["seconds"]) for _, line in read_lines(path)) if path.exists() else 0.0


def _measured(scorer: Scorer, pairs: list[Pair], measures: list[str], progress: bool) -> tuple[Report, float]:
    """The report on the pairs, and pairs scored in a second."""
    scorer.score(pairs[:_WARM_UP])
    start = time.perf_counter()
    scores = scorer.score(pairs, progress=progress)
    took = time.perf_counter() - start
    return evaluate(scores, pairs, measures=measures, baselines=False), len(pairs) / took
