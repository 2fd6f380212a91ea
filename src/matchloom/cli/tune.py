"""`matchloom tune`: the weight of the similarity of questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchloom.basics.plots import check_plot
from matchloom.cli.archives import reranker
from matchloom.cli.options import (
    ArchiveArgument,
    CandidatesOption,
    ColumnsOption,
    MovedOption,
    RerankOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.printing import console, note, print_json, table
from matchloom.cli.reading import read_all

_WIDTH = 40  # of the longest bar


def command(
    archive: ArchiveArgument,
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="Judged pairs, which should not be test data.", show_default=False)
    ],
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot the curve as .png, .svg or .pdf.", show_default=False),
    ] = None,
    rerank: RerankOption = None,
    candidates: CandidatesOption = 100,
    matcher: MovedOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the curve as JSON.")] = False,
    vectors: VectorsOption = None,
    seed: SeedOption = 0,
    columns: ColumnsOption = None,
) -> None:
    """Choose alpha, the weight of similar questions.

    In PAIRS, query is a new question, text_id the id of an archived pair or answer (or text an archived question or
    answer), and label is 1 if that answers it. Every alpha from 0 to 1 in steps of 0.05 is measured by mean
    average precision (MAP), and the best is saved in the archive for later searches. If every question has both
    labels, only the judged answers are ranked. Otherwise all candidates are ranked, and those without a judgement count
    as wrong.
    With --rerank the best alpha is only printed: give it to 'matchloom search' with --alpha.

    \b
    Examples:
      matchloom tune faq.archive dev.tsv --plot alpha.png
      matchloom tune faq.archive dev.tsv --rerank runs/mv_lstm
    """
    if plot is not None:
        check_plot(plot)
    from matchloom.search.lance.collection import LanceCollection

    index = LanceCollection.open(archive, matcher)
    scorer = None if rerank is None else reranker(index, rerank, vectors, seed)
    judged = read_all(pairs, require_label=True, columns=columns, fill_ids=False)
    tuned = index.tune(judged, rerank=scorer, candidates=candidates, progress=True)
    if plot is not None:
        from matchloom.search.tuning import draw_curve

        draw_curve(tuned, plot)
        note(f"{plot} is written.")
    if json:
        print_json({**tuned._asdict(), "kept": rerank is None})
        return
    highest = max(value for _, value in tuned.curve)
    shown = table("alpha", "MAP", "", right=("alpha", "MAP"))
    for alpha, value in tuned.curve:
        bar = "█" * round(_WIDTH * value / (highest or 1))
        shown.add_row(f"{alpha:.2f}", f"{value:.4f}", bar + (" best" if alpha == tuned.alpha else ""))
    printer = console()
    printer.print(shown)
    kept = "saved in the archive" if rerank is None else f"for --rerank {rerank}: give it to search with --alpha"
    printer.print(f"alpha {tuned.alpha:.2f}, {kept} ({tuned.questions} questions, {tuned.ranked} ranked)")
