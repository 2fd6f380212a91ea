"""`matchloom compare`: several systems on the same data, in one table and one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

import matchloom
from matchloom.basics.plots import check_plot, new_figure, save_plot
from matchloom.cli.arguments import parse_arguments
from matchloom.cli.options import (
    ColumnsOption,
    DimensionsOption,
    FirstVectorsOption,
    MaxWordsOption,
    MeasuresOption,
    PairsArgument,
    TokenizerOption,
)
from matchloom.cli.printing import console, note, print_json, say
from matchloom.cli.reading import make_folder, read_all, tokenizer_of
from matchloom.cli.scorers import load_scorer
from matchloom.data.identity import both_sides
from matchloom.text.vectors import first_vectors
from matchloom.types import MatchloomError, Pair

if TYPE_CHECKING:
    from matchloom.comparison import System, SystemResult

_LINE, _LETTER = 10.0, 4.6  # points of the names in the picture


def command(
    pairs: PairsArgument,
    test: Annotated[Path, typer.Option(metavar="FILE", help="Pairs to measure on.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where to save the matchers, one folder each; needed if any is trained.",
            show_default=False,
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Pairs that choose the best epoch of each. Default: a tenth of the questions is held out.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A model, a lexical scorer, or what fit, train or trans-lm wrote; may be repeated. Default: random, "
            "bm25, bm25_stemmed and every model.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[MODEL.]NAME=VALUE",
            help="An argument for the models that take it, or for one of them; may be repeated.",
            show_default=False,
        ),
    ] = None,
    measures: MeasuresOption = "P@1 RR",
    vectors: FirstVectorsOption = "skip-gram",
    dimensions: DimensionsOption = 50,
    tokenizer: TokenizerOption = "english",
    max_words: MaxWordsOption = 200,
    epochs: Annotated[int, typer.Option(help="Maximum number of epochs.")] = 20,
    patience: Annotated[int, typer.Option(help="Stop after this many epochs without improvement.")] = 3,
    freeze_vectors: Annotated[bool, typer.Option("--freeze-vectors", help="Do not train the word vectors.")] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of every random draw: the same seed gives the same result.")
    ] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the runs in FOLDER; finished ones are not trained again.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot quality against speed.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The table as JSON.")] = False,
    columns: ColumnsOption = None,
) -> None:
    """Train several models on the same data and compare.

    Every model is trained with its own default arguments and settings; all share vocabulary, initial word vectors,
    lists and seed. The table has the measures on the test pairs, p of the difference from the first system (paired
    randomisation over questions), parameters, minutes of training, and pairs scored per second.

    \b
    Examples:
      matchloom compare data/train.tsv --dev data/dev.tsv --test data/test.tsv --out runs/all --plot all.png
      matchloom compare train.tsv --test test.tsv --out runs/two --system bm25 --system mv_lstm --set lexical=true
      matchloom compare train.tsv --test test.tsv --system bm25_stemmed --system trans-lm --system faq --system runs/faq
    """
    from matchloom.comparison import check_systems
    from matchloom.evaluation import measure
    from matchloom.models import MODELS
    from matchloom.training.prepare import HOLD_OUT, set_aside

    systems = check_systems(_with_arguments(_systems(system), settings or []), out, resume=resume)
    names = [one.name for one in systems]
    if out is None and any(one.model in MODELS for one in systems):
        raise MatchloomError("--out FOLDER is missing: it is where trained models are saved", code="conflict")
    if plot is not None:
        check_plot(plot)
    tokenize = tokenizer_of(tokenizer, max_words)
    training, measured = (read_all(path, require_label=True, columns=columns) for path in (pairs, test))
    wanted = measures.replace(",", " ").split()
    measure(measured, [0.0] * len(measured), wanted)  # refuse them now, not after vectors are trained
    if dev is not None:
        development: list[Pair] | None = read_all(dev, require_label=True, columns=columns)
    else:
        training, development = set_aside(training, HOLD_OUT, seed, note)
    start = None
    if any(name in MODELS or name == "soft_coverage" for name in names):
        words = (tokenize(text) for text in both_sides(training))
        start = first_vectors(vectors, words, dimensions=dimensions, seed=seed, progress=True)
    done: list[SystemResult] = []
    try:
        compared = matchloom.compare(
            training,
            measured,
            development,
            systems=systems,
            measures=wanted,
            settings={"epochs": epochs, "patience": patience, "freeze_vectors": freeze_vectors},
            tokenizer=tokenize,
            vectors=start,
            dimensions=dimensions,
            folder=None if out is None else make_folder(out),
            resume=resume,
            seed=seed,
            on_row=lambda row: _tell(row, done),
            progress=True,
        )
    except KeyboardInterrupt:
        note(f"stopped at {names[len(done)]}; the same command with --resume continues.")
        raise
    if json:
        print_json(compared.to_dict()["rows"])
    else:
        console().print(compared)
        say("Parameters are counted without the word vectors.")
    if plot is not None:
        _draw(compared.rows, plot)
        note(f"{plot} is written.")
    if compared.failed:
        raise MatchloomError(
            f"{len(compared.failed)} of {len(names)} systems failed and are not in the table: "
            f"{', '.join(compared.failed)}",
            code="failed",
        )


def _systems(given: list[str] | None) -> list[System | str] | None:
    """The systems of the option: names, or folders and files, which are loaded now."""
    from matchloom.comparison import System
    from matchloom.lexical import LEXICAL
    from matchloom.models import MODELS

    if not given:
        return None
    found: list[System | str] = []
    for one in given:
        name = one.replace("-", "_")
        if name in MODELS or name in LEXICAL or not Path(one).exists():
            found.append(name)
        else:
            scorer = load_scorer(one, list, tokenizer=tokenizer_of(None))
            found.append(System(one.rstrip("/"), "", scorer=scorer))
    return found


def _with_arguments(systems: list[System | str] | None, settings: list[str]) -> list[System | str]:
    """The systems with the arguments of --set; one that no system takes is refused."""
    from matchloom.comparison import BASELINES, System
    from matchloom.models import MODELS, all_arguments

    found = [one if isinstance(one, System) else System(one, one) for one in systems or (*BASELINES, *MODELS)]
    for setting in settings:
        model, dot, rest = setting.partition("=")[0].rpartition(".")
        plain = setting[len(model) + 1 :] if dot else setting
        takers = [
            one
            for one in found
            if one.model in MODELS and (one.model == model if dot else rest in all_arguments(one.model))
        ]
        if not takers:
            named = f"{model} is not compared" if dot else "no model that is compared takes it"
            raise MatchloomError(
                f"--set {setting!r}: {named}; 'matchloom models MODEL' lists arguments", code="unknown_name"
            )
        for n, one in enumerate(found):
            if one in takers:
                found[n] = one._replace(arguments={**one.arguments, **parse_arguments(one.model, [plain])})
    return list(found)


def _tell(row: SystemResult, done: list[SystemResult]) -> None:
    """A line as soon as a system is through."""
    done.append(row)
    figures = ", ".join(f"{key} {value:.4f}" for key, value in row.values.items())
    note(f"{row.system} failed: {row.error}" if row.error else f"{row.system}: {figures}")


def _draw(rows: list[SystemResult], plot: Path) -> None:
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
    ax.set(xscale="log", xlabel="pairs scored per second", ylabel=f"{measure} on the test pairs")
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
