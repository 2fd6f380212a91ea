"""`matchloom search`: was this asked before?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.text import Text

import matchloom
from matchloom.artifact import kind_of
from matchloom.basics.files import atomic_write
from matchloom.basics.screen import printable
from matchloom.cli.options import (
    CandidatesOption,
    MovedOption,
    RerankOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.printing import console, note, print_json, table
from matchloom.cli.rank import in_words, lines_of_input
from matchloom.cli.scorers import load_scorer
from matchloom.text.vectors import read_vectors
from matchloom.types import MatchloomError, Scorer

if TYPE_CHECKING:
    from matchloom import Collection, Fitted
    from matchloom.explanation import Explanation
    from matchloom.search.lance.collection import LanceCollection
    from matchloom.types import Hit, Hits

_UNSURE = 0.5  # of a question's words and letters must be known, or a line says so
_LONGEST = 1000  # letters of a text that are shown; --json has all of them


def command(
    archive: Annotated[
        Path,
        typer.Argument(
            metavar="ARCHIVE", help="The folder of an archive, or what 'matchloom fit' made.", show_default=False
        ),
    ],
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION", help="The question, or - to read one per line from standard input.", show_default=False
        ),
    ],
    top: Annotated[int, typer.Option(min=1, help="How many to show.")] = 10,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Weight of the questions' similarity. Default: the archive's own.", show_default=False
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
    """Search an archive for a question that was answered before.

    Candidates come from the full-text index and, where the archive has a matcher with sentence vectors, from those that
    come nearest to the question. Each gets alpha * similarity + (1 - alpha) * match: similarity is that of both
    questions (the product of their vectors, or BM25 as a share of what the question scores with itself), match is how
    well the archived answer fits the new question. 'matchloom tune' finds alpha. An explanation adds up to the score:
    what the words of the archived question add, times alpha, and what the words of its answer add, times 1 - alpha.
    An answer with many questions comes once, with the question that scored highest.

    \b
    Examples:
      matchloom search faq.archive "how do I get my money back?"
      matchloom search faq.archive "refund" --top 3 --rerank runs/mv_lstm --explain
      matchloom search faq.archive - --json < questions.txt > answers.jsonl
    """
    if kind_of(archive) == "fit":
        cast("Fitted", matchloom.load(archive)).rank("")  # which says that there are no answers to search
    if kind_of(archive) == "collection":
        search_collection(
            cast("Collection", matchloom.load(archive)),
            lines_of_input() if question == "-" else [question],
            top,
            explain,
            html,
            json,
        )
        return
    index = LanceCollection.open(archive, matcher)
    scorer = None if rerank is None else reranker(index, rerank, vectors, seed)
    wanted = explain or html is not None
    reasons: list[Explanation] = []
    status = cache(index.status)  # looked up once, if at all
    for asked in lines_of_input() if question == "-" else [question]:
        found = index.search(asked, top=top, candidates=candidates, alpha=alpha, rerank=scorer, explain=wanted)
        reasons += [one.explanation for one in found if one.explanation is not None]
        if json:
            print_json({"question": asked, "answers": [_plain(one) for one in found]})
        else:
            _show(asked, found, explain, titled=question == "-")
            if 0 < len(found) < top:
                _tell_fewer(status(), len(found), top)
    if html is not None:
        _write_page(html, reasons)


def search_collection(
    collection: Collection, questions: Iterable[str], top: int, explained: bool, html: Path | None, json: bool
) -> None:
    """Answer questions from what 'matchloom fit' made: each answer once, with the known question that is nearest."""
    reasons: list[Explanation] = []
    wanted = explained or html is not None
    for asked in questions:
        found = collection.search(asked, top=top, explain=wanted)
        reasons += [one.explanation for one in found if wanted]
        if json:
            print_json({"question": asked, "known": found.known, "answers": [_plain(one) for one in found]})
            continue
        columns = ("", "score", "probability")
        shown = table(*columns, "answer", *(["why"] if explained and wanted else []), right=columns)
        for n, answer in enumerate(found):
            likely = "" if answer.probability is None else f"{answer.probability:.2f}"
            text = Text(_line(answer.text))
            if answer.question:
                text.append(f"\nasked before: {_line(answer.question)}", style="dim")
            text.append(f"\nid {_line(answer.id)}", style="dim")
            told = [printable(in_words(answer.explanation))] if explained and wanted else []
            shown.add_row(str(n + 1), f"{answer.score:.2f}", likely, text, *told)
        printer = console()
        printer.print(printable(asked), style="bold")
        printer.print(shown if found else "nothing found")
        known = found.known
        if found and known is not None and known < _UNSURE:
            printer.print(f"Little of this question is known here: {1 - known:.2f} that none of these answers it.")
    if html is not None:
        _write_page(html, reasons)


def _write_page(path: Path, reasons: list[Explanation]) -> None:
    from matchloom.explanation import render_html

    with atomic_write(path) as file:
        file.write(render_html(reasons))
    note(f"{path} is written; open it in a browser")


def reranker(index: LanceCollection, name: str, vectors: Path | None, seed: int = 0) -> Scorer:
    """The scorer of --rerank; a lexical one counts its words in the archive's answers."""
    if Path(name).is_file():
        raise MatchloomError(
            f"--rerank {name}: a run file has no scores for an archive; expected a matcher's folder or a name",
            code="not_supported",
        )
    read = None if vectors is None else read_vectors(vectors, progress=True)
    return load_scorer(name, index.texts, tokenizer=index.tokenizer, vectors=read, seed=seed)


def _plain(one: Hit) -> dict[str, Any]:
    """A hit for programs: what it has, under the names that Python, service and client use."""
    plain = {name: value for name, value in one._asdict().items() if value is not None and name != "index"}
    return plain if one.explanation is None else {**plain, "explanation": one.explanation.to_dict()}


def _show(question: str, found: Hits, explained: bool, *, titled: bool) -> None:
    printer = console()
    if titled:
        printer.print(printable(question), style="bold")
    if not found:
        printer.print("nothing found", style="dim")
    else:
        numbers = ("", "score", "similarity", "match")
        shown = table(*numbers, "question and answer", *(["why"] if explained else []), right=numbers)
        for n, one in enumerate(found, start=1):
            texts = Text(f"{_line(one.question or '')}\n{_line(one.text)}\n").append(f"id {_line(one.id)}", style="dim")
            row: list[str | Text] = [
                str(n),
                *(f"{value:.4f}" for value in (one.score, one.similarity, one.match)),
                texts,
            ]
            if explained and one.explanation is not None:
                row.append(printable(in_words(one.explanation)))
            shown.add_row(*row)
        printer.print(shown)
    if titled:
        printer.print()


def _tell_fewer(status: dict[str, Any], found: int, top: int) -> None:
    """Why there are fewer answers than were asked for."""
    if status["answers"] <= found:
        why = "the archive has no more"
    elif status["vector_size"] is None:
        why = f"none of the other {status['answers'] - found:,} shares a word with the question"
    else:
        why = "no more were found"
    console().print(f"{found} of {top} answers: {why}", style="dim")


def _line(text: str) -> str:
    """A text on one line, cut where it would fill the screen."""
    line = " ".join(text[: 2 * _LONGEST].split())
    return printable(line if len(line) <= _LONGEST else line[:_LONGEST] + " …")
