"""`matchloom compare`: several systems on the same data, in one table and one picture."""

from __future__ import annotations

import time
from dataclasses import replace
from json import loads
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from matchloom import Matcher, TrainConfig, evaluate, train
from matchloom.cli.options import (
    DimensionsOption,
    FirstVectorsOption,
    MaxWordsOption,
    MeasuresOption,
    PairsArgument,
    TokenizerOption,
)
from matchloom.cli.printing import console, note, print_json, table
from matchloom.cli.reading import make_folder, read_all, texts_of, tokenizer_of
from matchloom.cli.train import first_vectors, set_aside
from matchloom.evaluation import Report
from matchloom.evaluation import measure as figure
from matchloom.evaluation.significance import compare
from matchloom.files import read_lines
from matchloom.lexical import LEXICAL, fit_scorer
from matchloom.models import MODELS, model_training
from matchloom.plots import check_plot, new_figure, save_plot
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.training.run import CHECKPOINT, LOG
from matchloom.types import MatchloomError, Pair, Scorer

BASELINES = ("random", "bm25", "bm25_stemmed")


class Row(NamedTuple):
    """One system: its figures on the test pairs, and what it cost."""

    system: str
    values: dict[str, float]
    p: float | None  # of the difference to the first system's first measure
    parameters: int | None
    minutes: float
    pairs_per_second: float


_LINE, _LETTER = 10.0, 4.6  # points of the names in the picture


def command(
    pairs: PairsArgument,
    test: Annotated[Path, typer.Option(metavar="FILE", help="Pairs to measure on.", show_default=False)],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the matchers are kept, one folder each.", show_default=False)
    ],
    dev: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Pairs that choose each best epoch; else a tenth is set aside.", show_default=False
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A model or a lexical scorer; repeat. Else random, bm25, bm25_stemmed and every model.",
            show_default=False,
        ),
    ] = None,
    measures: MeasuresOption = "P@1 RR",
    vectors: FirstVectorsOption = "skip-gram",
    dimensions: DimensionsOption = 50,
    tokenizer: TokenizerOption = "english",
    max_words: MaxWordsOption = 200,
    epochs: Annotated[int, typer.Option(help="At most this many.")] = 20,
    patience: Annotated[int, typer.Option(help="Stop after so many epochs without a better measure.")] = 3,
    freeze_vectors: Annotated[
        bool, typer.Option("--freeze-vectors", help="Keep the word vectors as they are.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the runs in FOLDER; finished ones are not trained again.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw quality against speed.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The table as JSON.")] = False,
) -> None:
    """Train several models on the same data and compare.

    Every model has its own defaults and is trained with the settings that suit it; all share words, first
    vectors, lists and seed. The table gives the measures on the test pairs, p of the difference to the first system
    (paired randomisation over questions), parameters, minutes of training, and pairs scored in a second.

    \b
    Examples:
      matchloom compare data/train.tsv --dev data/dev.tsv --test data/test.tsv --out runs/all --plot all.png
      matchloom compare train.tsv --test test.tsv --out runs/two --system bm25 --system mv_lstm --system match_srnn
    """
    names = list(dict.fromkeys(system or [*BASELINES, *MODELS]))
    for name in names:
        if name not in MODELS and (name not in LEXICAL or name == "trans_lm"):
            known = ", ".join([*MODELS, *(key for key in LEXICAL if key != "trans_lm")])
            raise MatchloomError(f"--system {name!r} is unknown; choose among {known}")
        if (out / name / "matcher.json").exists() and not resume:
            raise MatchloomError(f"{out / name} holds a matcher already; add --resume, or choose another --out")
    if plot is not None:
        check_plot(plot)
    cut = tokenizer_of(tokenizer, max_words)
    training, measured = read_all(pairs, require_label=True), read_all(test, require_label=True)
    wanted = measures.replace(",", " ").split()
    figure(measured, [0.0] * len(measured), wanted)  # refuse them now, not after the first training
    if dev is not None:
        development = read_all(dev, require_label=True)
    else:
        training, development = set_aside(training, seed)
    start = None
    if any(name in MODELS or name == "soft_coverage" for name in names):
        start = first_vectors(vectors, training, cut, dimensions, 1, seed)
    first: Report | None = None
    rows = []
    failed: dict[str, str] = {}
    for name in names:
        begun, before = time.perf_counter(), _seconds_before(out / name) if resume else 0.0
        try:
            if name in MODELS:
                given = {"epochs": epochs, "patience": patience, "freeze_vectors": freeze_vectors, "seed": seed}
                scorer = _trained(name, training, development, given, cut, start, dimensions, out / name, resume)
            else:
                scorer = _fitted(name, training, cut, start, seed)
            minutes = (time.perf_counter() - begun + before) / 60
            report, speed = _measured(scorer, measured, wanted)
        except MatchloomError as error:  # the others are worth their table
            failed[name] = str(error)
            note(f"{name} failed: {error}")
            continue
        except KeyboardInterrupt:
            note(f"stopped at {name}; the same command with --resume goes on.")
            raise
        rows.append(_row(name, report, first, scorer, minutes, speed))
        first = first or report
        note(f"{name}: " + ", ".join(f"{key} {value:.4f}" for key, value in report.values.items()))
    if not rows:
        raise MatchloomError(f"every system failed; {names[0]}: {failed[names[0]]}")
    if json:
        print_json([row._asdict() for row in rows])
    else:
        _print(rows)
    if plot is not None:
        _draw(rows, plot)
        note(f"{plot} is written.")
    if failed:
        raise MatchloomError(
            f"{len(failed)} of {len(names)} systems failed and are not in the table: {', '.join(failed)}"
        )


def _seconds_before(folder: Path) -> float:
    """How long a run that is resumed has trained already, by its log."""
    path = folder / LOG
    return sum(float(loads(line)["seconds"]) for _, line in read_lines(path)) if path.exists() else 0.0


def _trained(
    name: str,
    training: list[Pair],
    development: list[Pair],
    given: dict[str, int | bool],
    tokenizer: Tokenizer,
    vectors: WordVectors | None,
    dimensions: int,
    folder: Path,
    resume: bool,
) -> Scorer:
    config = TrainConfig(**model_training(name))  # type: ignore[arg-type]
    make_folder(folder)
    return train(
        training,
        development,
        model=name,
        config=replace(config, **given),  # type: ignore[arg-type]
        tokenizer=tokenizer,
        vectors=vectors,
        dimensions=dimensions,
        folder=folder,
        resume=resume and (folder / CHECKPOINT).exists(),
        progress=True,
    )


def _fitted(name: str, training: list[Pair], tokenizer: Tokenizer, vectors: WordVectors | None, seed: int) -> Scorer:
    return fit_scorer(name, texts_of(training), tokenizer=tokenizer, vectors=vectors, seed=seed)


def _measured(scorer: Scorer, pairs: list[Pair], measures: list[str]) -> tuple[Report, float]:
    scorer.score(pairs[:256])  # the first call may build or load something
    start = time.perf_counter()
    scores = scorer.score(pairs, progress=True)
    took = time.perf_counter() - start
    return evaluate(scores, pairs, measures=measures, baselines=False), len(pairs) / took


def _row(name: str, report: Report, first: Report | None, scorer: Scorer, minutes: float, speed: float) -> Row:
    p = None if first is None else next(iter(compare(report.measured, first.measured).values())).p
    parameters = scorer.model.size() if isinstance(scorer, Matcher) else None
    return Row(name, report.values, p, parameters, minutes, speed)


def _print(rows: list[Row]) -> None:
    measures = list(rows[0].values)
    columns = [*measures, f"p to {rows[0].system}", "parameters", "minutes", "pairs/s"]
    shown = table("system", *columns, right=tuple(columns))
    for row in rows:
        shown.add_row(
            row.system,
            *(f"{row.values[name]:.4f}" for name in measures),
            "" if row.p is None else f"{row.p:.3f}",
            "" if row.parameters is None else f"{row.parameters:,}",
            f"{row.minutes:.1f}",
            f"{row.pairs_per_second:,.0f}",
        )
    console().print(shown)
    print("Parameters are counted without the word vectors.")


def _draw(rows: list[Row], plot: Path) -> None:
    """Quality against speed; right and up is better."""
    figure = new_figure(9, 6)
    ax = figure.subplots()
    measure = next(iter(rows[0].values))
    for trained, marker, colour in ((True, "o", "#2f6fb0"), (False, "s", "#b35a00")):
        some = [row for row in rows if (row.parameters is not None) == trained]
        if some:
            ax.plot(
                [row.pairs_per_second for row in some],
                [row.values[measure] for row in some],
                marker,
                color=colour,
                label="trained" if trained else "not trained",
            )
    ax.set(xscale="log", xlabel="pairs scored in a second", ylabel=f"{measure} on the test pairs")
    ax.margins(x=0.15, y=0.08)
    ax.grid(alpha=0.3)
    ax.legend(loc="best", fontsize=8)
    figure.draw_without_rendering()  # where the spots lie, before names are put beside them
    spots = [(row.pairs_per_second, row.values[measure]) for row in rows]
    places = (ax.transData.transform(spots) * 72 / figure.dpi).tolist()  # in points
    taken = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    for row, spot, (x, y) in zip(rows, spots, places, strict=True):
        taken.append(_free_place(x + 6, y - 3, len(row.system) * _LETTER, taken))
        offset = (taken[-1].left - x, taken[-1].bottom - y)
        line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.5} if abs(offset[1]) > _LINE else None
        ax.annotate(row.system, spot, xytext=offset, textcoords="offset points", fontsize=8, arrowprops=line)
    save_plot(figure, plot)


class Box(NamedTuple):
    """The place of a name in the picture, in points."""

    left: float
    bottom: float
    right: float
    top: float

    def touches(self, other: Box) -> bool:
        """Whether one would be printed over the other."""
        beside = self.left >= other.right or self.right <= other.left
        return not (beside or self.bottom >= other.top or self.top <= other.bottom)


def _free_place(left: float, bottom: float, width: float, taken: list[Box]) -> Box:
    """The place that is nearest to the wanted one, up or down, and touches nothing."""
    places = (
        Box(left, bottom + shift, left + width, bottom + shift + _LINE)
        for n in range(2 * len(taken) + 1)
        for shift in (n * _LINE, -n * _LINE)
    )
    return next(place for place in places if not any(map(place.touches, taken)))
