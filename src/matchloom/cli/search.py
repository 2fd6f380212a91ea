"""`matchloom search`: was this asked before?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import matchloom
from matchloom.artifact import kind_of
from matchloom.cli.hits import Asked, show_hits
from matchloom.cli.options import (
    CandidatesOption,
    CoverageOption,
    MovedOption,
    PlaceArgument,
    PrecisionOption,
    RerankOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.reading import lines_of_input
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom import Collection, Fitted

TOP, NEAREST = 10, 3  # answers that are shown, also where none is sure


def command(
    folder: PlaceArgument,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION", help="The question, or - to read one per line from standard input.", show_default=False
        ),
    ],
    top: Annotated[
        int | None,
        typer.Option(min=1, help="How many to show. Default: 10, or the best 3 if none is certain enough."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Only answers with this value in one of your columns; repeat a name to allow more values.",
            show_default=False,
        ),
    ] = None,
    precision: PrecisionOption = None,
    coverage: CoverageOption = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Archives: weight of the questions' similarity. Default: the archive's own.",
            show_default=False,
        ),
    ] = None,
    rerank: RerankOption = None,
    candidates: CandidatesOption = 100,
    matcher: MovedOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Beside each answer, the words that made its score.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page that explains the answers.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON for each question.")] = False,
    vectors: VectorsOption = None,
    seed: SeedOption = 0,
) -> None:
    """Find the answers to a question, and show why.

    FOLDER is what 'matchloom fit' or 'matchloom index' made. Each answer is shown once, with the probability that it is
    right, its most similar known question, and your own columns (url, category), by which --where filters. The parts of
    an explanation add up to the score: what the words of the known question and of the answer add to each feature.

    If no answer is certain enough, the command says so: the probability of the first is below one half, or, on held-out
    questions, fewer than four in five answers with such a score are right.

    --precision 0.95 gives only certain answers: at least 95 in 100 of those shown are right, for questions like those
    in the file. If there is none, the command says so and shows the best three. --coverage 0.8 answers 80 of 100 such
    questions, the most certain ones; the report of 'fit' shows how many of these answers are right.

    In a LanceDB archive, candidates come from the full-text index and, if it has a matcher with sentence vectors, from
    the vectors nearest to the question. Each is scored by alpha * similarity + (1 - alpha) * match. The similarity is
    that of both questions (the product of their vectors, or BM25 divided by the question's score with itself); the
    match is that of the archived answer with the new question. 'matchloom tune' finds alpha.

    \b
    Examples:
      matchloom search faq "how do I get my money back?" --top 3 --explain
      matchloom search faq "refund" --where category=billing --where language=en
      matchloom search faq "what is love?" --precision 0.95
      matchloom search faq - --json < questions.txt > answers.jsonl
      matchloom search faq.archive "refund" --rerank runs/mv_lstm
    """
    asked = Asked(top or TOP, explain, html, json, many=question == "-")
    questions = lines_of_input() if asked.many else [question]
    wanted = parse_where(where or [])
    kind = kind_of(folder)
    if kind is None and isinstance(folder, Path) and not folder.exists():
        raise MatchloomError(
            f"{folder} does not exist; 'matchloom fit FILE --out {folder}' makes it from your questions and answers",
            code="missing",
        )
    if kind == "fit":
        cast("Fitted", matchloom.load(folder)).rank("")  # which says that there are no answers to search
    if kind == "collection":
        _refuse_archive_options(folder, alpha=alpha, rerank=rerank, matcher=matcher, vectors=vectors)
        collection = cast("Collection", matchloom.load(folder))
        for one in questions:
            found = collection.search(
                one, top=asked.top, where=wanted, explain=asked.wants_reasons, precision=precision, coverage=coverage
            )
            if top is None and found.confident is False and not json:
                del found[NEAREST:]
            show_hits(one, found, asked)
    else:
        from matchloom.cli.archives import search_archive

        if precision is not None or coverage is not None:
            name = "--coverage" if precision is None else "--precision"
            raise MatchloomError(
                f"{name}: {folder} is a LanceDB archive, which has no probabilities", code="not_supported"
            )
        if wanted:
            raise MatchloomError(
                f"--where: {folder} is a LanceDB archive, which keeps no columns of your own", code="not_supported"
            )
        options: Any = {"alpha": alpha, "rerank": rerank, "candidates": candidates, "vectors": vectors, "seed": seed}
        search_archive(folder, matcher, questions, asked, **options)
    asked.write_page()


def parse_where(given: Sequence[str]) -> dict[str, list[str]] | None:
    """What `--where` says: a column -> the values that will do."""
    found: dict[str, list[str]] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise MatchloomError(f"--where {one!r}: expected NAME=VALUE", code="bad_value")
        found.setdefault(name, []).append(value)
    return found or None


def _refuse_archive_options(folder: Path, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise MatchloomError(
                f"--{name} is for LanceDB archives; {folder} is a collection, which ranks by its own weights",
                code="conflict",
            )
