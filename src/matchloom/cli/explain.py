"""`matchloom explain`: why a text got its score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import matchloom
from matchloom.basics.files import atomic_write
from matchloom.cli.options import (
    CollectionOption,
    ColumnsOption,
    ScorerArgument,
    ScorerTokenizerOption,
    VectorsOption,
)
from matchloom.cli.printing import console, note, print_json
from matchloom.cli.reading import read_texts, tokenizer_of, vectors_for
from matchloom.cli.scorers import load_scorer
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.explanation import Explanation


def command(
    scorer: ScorerArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One text.", show_default=False)],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The other text.", show_default=False)],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page for a browser.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, including the whole map.")] = False,
    channel: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Which map to show, by its number from 1 or its name. Default: the one that contributes most.",
            show_default=False,
        ),
    ] = None,
    tokenizer: ScorerTokenizerOption = None,
    vectors: VectorsOption = None,
    collection: CollectionOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Show why a text got its score.

    It shows which words matched, how strongly, and how much each contributed. The contributions of all signals and the
    residual add up to the score exactly. The map shows the interaction of every word of the query with every word of
    the text. The scorer random and run files cannot be explained.

    \b
    Examples:
      matchloom explain runs/faq "how do I open a file?" "open(path) opens a file and returns it" --html why.html
      matchloom explain bm25 "open a file" "files are opened with open" --collection answers.txt
    """
    from matchloom.lexical import LEXICAL

    tokenize = tokenizer_of(tokenizer)
    chosen = load_scorer(
        scorer,
        lambda: [text] if collection is None else read_texts(collection, columns),
        tokenizer=tokenize,
        vectors=vectors_for(vectors, (query, text), tokenize),
    )
    explanation = matchloom.explain(chosen, query, text)
    if scorer in LEXICAL and collection is None:
        note(f"{scorer} knows no text but this one, so all words are equally rare; give some with --collection FILE")
    shown = _channel(explanation, channel)
    if html is not None:
        with atomic_write(html) as file:
            file.write(explanation.to_html())
        note(f"{html} is written; open it in a browser")
    if json:
        print_json(explanation.to_dict(grid=True))
    elif html is None:
        console().print(explanation.to_terminal(channel=shown))


def _channel(explanation: Explanation, wanted: str | None) -> str | None:
    """The name of a channel, which may be given by its number."""
    names = explanation.trace.channels
    if wanted is None or wanted in names:
        return wanted
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    listed = ", ".join(f"{number} ({name})" for number, name in enumerate(names, start=1))
    raise MatchloomError(
        f"--channel {wanted!r} is unknown to {explanation.scorer}; choose one of {listed}", code="unknown_name"
    )
