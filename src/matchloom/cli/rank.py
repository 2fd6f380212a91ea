"""`matchloom rank`: the best of many texts for a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import matchloom
from matchloom.basics.screen import printable
from matchloom.cli.hits import NOT_SURE, is_sure
from matchloom.cli.options import (
    CollectionOption,
    ColumnsOption,
    CoverageOption,
    PrecisionOption,
    ScorerArgument,
    ScorerTokenizerOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.printing import console, in_words, print_json, table
from matchloom.cli.reading import lines_of_input, read_named_texts, read_texts, tokenizer_of
from matchloom.cli.scorers import load_scorer
from matchloom.text.vectors import read_vectors
from matchloom.types import Calibrates, EncodesCandidates, MatchloomError, Ranked, Scorer, Sureness

if TYPE_CHECKING:
    from matchloom.explanation import Explanation
    from matchloom.search.collection import Collection

_NEAREST = 3  # that are shown where none is sure


def command(
    scorer: ScorerArgument,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="The query, or - to read one per line from standard input.", show_default=False
        ),
    ],
    candidates: Annotated[
        Path,
        typer.Argument(
            metavar="CANDIDATES",
            help="Texts, one per line, or a pairs file, whose texts are ranked.",
            show_default=False,
        ),
    ],
    top: Annotated[int, typer.Option(min=1, help="How many to show.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show the words that made each score.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON for each query.")] = False,
    precision: PrecisionOption = None,
    coverage: CoverageOption = None,
    tokenizer: ScorerTokenizerOption = None,
    vectors: VectorsOption = None,
    collection: CollectionOption = None,
    seed: SeedOption = 0,
    columns: ColumnsOption = None,
) -> None:
    """Rank the texts of a file for a query.

    The best comes first; equal scores are ordered by their text. With - as QUERY, queries are read from standard
    input, one per line, and the candidates are encoded only once. CANDIDATES is a plain text file with one
    candidate per line, or a pairs file (.tsv, .csv, .jsonl, .parquet), whose distinct texts are ranked. If SCORER
    gives probabilities (fitted to labelled pairs, or trained with cross_entropy), these are shown, too. For a
    collection they are the probabilities that its own answers are right; --precision and --coverage are those of
    'matchloom search'.

    \b
    Examples:
      matchloom rank runs/faq "how do I reset my password?" answers.txt --top 5 --explain
      matchloom rank bm25 - data/test.tsv --json < questions.txt > rankings.jsonl
    """
    tokenize = tokenizer_of(tokenizer)
    named = read_named_texts(candidates, columns)
    texts = list(named)
    chosen = load_scorer(
        scorer,
        lambda: texts if collection is None else read_texts(collection, columns),
        tokenizer=tokenize,
        vectors=None if vectors is None else read_vectors(vectors, progress=True),
        seed=seed,
    )
    collection_of_answers = _collection(chosen)
    if collection_of_answers is None and (precision is not None or coverage is not None):
        name = "--coverage" if precision is None else "--precision"
        raise MatchloomError(
            f"{name}: {scorer} has no calibrated probabilities; use a collection that 'matchloom fit' made",
            code="not_supported",
        )
    ranked = _ranker(chosen, texts)
    for asked in lines_of_input() if query == "-" else [query]:
        found, sureness = ranked(asked, top), None
        if collection_of_answers is not None:
            own = [one.text for one in found]
            sureness = collection_of_answers.sureness(asked, own, precision=precision, coverage=coverage)
        if sureness is not None and not is_sure(sureness) and not json:
            found = found[:_NEAREST]
        reasons = [matchloom.explain(chosen, asked, one.text) for one in found] if explain else None
        likely = _probabilities(chosen, found) if sureness is None else sureness.probabilities
        if json:
            print_json(_plain(chosen.name, asked, found, named, likely, sureness, reasons))
        else:
            _show(asked, found, likely, sureness, reasons, len(texts), titled=query == "-")


def _collection(scorer: Scorer) -> Collection | None:
    """The collection that this scorer is, or has been fitted to."""
    inner: Any = getattr(scorer, "collection", None) or scorer  # of a fitted system, its own
    return inner if hasattr(inner, "sureness") else None


def _ranker(scorer: Scorer, texts: list[str]) -> Callable[[str, int], list[Ranked]]:
    """A function of query and top. A matcher encodes the texts now, once; any other scorer scores pairs."""
    if isinstance(scorer, EncodesCandidates):
        encoded = scorer.encode(texts, progress=True)
        return lambda query, top: scorer.rank(query, encoded, top=top)

    from matchloom.search.reranking import ranked  # scipy comes with it, for which --help need not wait

    return lambda query, top: ranked(scorer, query, texts, top)


def _probabilities(scorer: Scorer, found: Sequence[Ranked]) -> Sequence[float] | None:
    """How likely each text matches, where the scorer knows."""
    scores = np.array([one.score for one in found], np.float32)
    likely = scorer.probabilities(scores) if isinstance(scorer, Calibrates) else None
    return None if likely is None else list(map(float, likely))


def _plain(
    name: str,
    query: str,
    found: Sequence[Ranked],
    text_ids: Mapping[str, str],
    likely: Sequence[float | None] | None,
    sureness: Sureness | None,
    reasons: list[Explanation] | None,
) -> dict[str, Any]:
    ranking: list[dict[str, Any]] = [
        {"rank": rank, "score": one.score, "index": one.index, "text_id": text_ids[one.text] or None, "text": one.text}
        for rank, one in enumerate(found, start=1)
    ]
    for row, probability in zip(ranking, likely or [], strict=False):
        row["probability"] = probability
    for row, explanation in zip(ranking, reasons or [], strict=False):
        row["explanation"] = explanation.to_dict()
    sure = {} if sureness is None else {name: getattr(sureness, name) for name in ("known", "confident", "answered")}
    sure = {one: value for one, value in sure.items() if value is not None}
    return {"scorer": name, "query": query, **sure, "ranking": ranking}


def _show(
    query: str,
    found: Sequence[Ranked],
    likely: Sequence[float | None] | None,
    sureness: Sureness | None,
    reasons: list[Explanation] | None,
    count: int,
    *,
    titled: bool,
) -> None:
    printer = console()
    if likely is not None and all(one is None for one in likely):
        likely = None  # an empty column would take room from the words
    numbers = ("", "score", *(["probability"] if likely is not None else []))
    shown = table(*numbers, "text", *(["why"] if reasons is not None else []), right=numbers)
    for n, one in enumerate(found):
        chance = "" if likely is None or likely[n] is None else f"{likely[n]:.2f}"
        row = [str(n + 1), f"{one.score:.4f}", *([] if likely is None else [chance])]
        row.append(printable(" ".join(one.text.split())))
        if reasons is not None:
            row.append(printable(in_words(reasons[n])))
        shown.add_row(*row)
    if titled:
        printer.print(printable(query), style="bold")
    if found and sureness is not None and not is_sure(sureness):
        printer.print(NOT_SURE, style="yellow")
    printer.print(shown)
    if titled:
        printer.print()
    elif len(found) < count:
        printer.print(f"{len(found)} of {count:,} texts; --top shows more", style="dim")
