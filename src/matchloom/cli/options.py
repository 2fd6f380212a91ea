"""Options that several commands share, and the paragraphs their help ends with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matchloom.text.tokenize import Tokenizer

PAIRS_FILE = (
    "A pairs file is TSV, CSV, JSONL, JSON or Parquet by its name (the text formats also with .gz). Its columns, in "
    "any order: query and text; where there are any label (1 or yes: the text is right for the query, 0 or no: wrong), "
    "query_id (pairs with the same one are one list), text_id, and group (pairs of one group stay on one side of a "
    "split). Other columns are ignored; usual names such as question and answer, sentence1 and sentence2, query and "
    "passage or is_duplicate will do. Two or three columns without a header are query, text and label."
)
_TRAINED = "SCORER is the folder of a trained matcher, a .safetensors file of 'matchloom trans-lm',"
_LEXICAL = "or one of random, bm25, bm25_stemmed, overlap, soft_coverage (which needs --vectors)."
SCORER = f"{_TRAINED} a TREC run file, {_LEXICAL}"
RERANKER = f"{_TRAINED} {_LEXICAL}"  # a run knows its own pairs only

PairsArgument = Annotated[Path, typer.Argument(metavar="PAIRS", help="A pairs file.", show_default=False)]
ScorerArgument = Annotated[
    str, typer.Argument(metavar="SCORER", help="A matcher's folder, a lexical scorer or a run.", show_default=False)
]
ArchiveArgument = Annotated[
    Path, typer.Argument(metavar="ARCHIVE", help="The folder of an archive, made by 'index'.", show_default=False)
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="query=NAME,text=NAME",
        help="The names your file has for query, text, label, query_id, text_id, group; label= leaves that out.",
        show_default=False,
    ),
]
CandidatesOption = Annotated[int, typer.Option(min=1, help="Look at so many pairs, found by words and by vectors.")]
RerankOption = Annotated[
    str | None,
    typer.Option(
        "--rerank",
        metavar="SCORER",
        help="Let this matcher or lexical scorer match answers instead of the archive's own.",
        show_default=False,
    ),
]
MovedOption = Annotated[
    Path | None,
    typer.Option(
        "--matcher", metavar="DIR", help="Where the archive's matcher is, if it was moved.", show_default=False
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of every random draw: the same seed, the same result.")]
TokenizerOption = Annotated[
    str, typer.Option(metavar="KIND", help="english, chinese, or whitespace for texts that are tokenised already.")
]
FirstVectorsOption = Annotated[
    str, typer.Option(metavar="FILE", help="First word vectors: a file, skip-gram (on the training texts) or random.")
]
DimensionsOption = Annotated[int, typer.Option(min=1, help="Length of a vector; a file has its own.")]
MaxWordsOption = Annotated[int, typer.Option(min=1, help="Longer texts are cut.")]
ScorerTokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="KIND",
        help="english (default), chinese or whitespace, for lexical scorers; a matcher knows its own.",
        show_default=False,
    ),
]
VectorsOption = Annotated[
    Path | None,
    typer.Option("--vectors", metavar="FILE", help="Word vectors for soft_coverage.", show_default=False),
]
CollectionOption = Annotated[
    Path | None,
    typer.Option(
        "--collection",
        metavar="FILE",
        help="Texts by which lexical scorers know rare words: one a line, or a pairs file. Else the candidates.",
        show_default=False,
    ),
]


def parse_columns(given: str | None) -> dict[str, str] | None:
    """What `--columns` says: our name of a column -> the user's."""
    if given is None:
        return None
    from matchloom.types import MatchloomError

    columns: dict[str, str] = {}
    for part in given.split(","):
        ours, equals, theirs = (word.strip() for word in part.partition("="))
        if not equals or not ours or ours in columns:
            raise MatchloomError(f"--columns {given!r}: expected query=NAME,text=NAME and the like, each once")
        columns[ours] = theirs
    return columns


def tokenizer_of(kind: str | None, max_words: int | None = None) -> Tokenizer:
    """The tokenizer of an option; an unknown kind is refused before any file is read."""
    from matchloom.text.tokenize import Tokenizer

    tokenizer = Tokenizer(kind or "english", max_words=max_words)
    tokenizer("")
    return tokenizer
