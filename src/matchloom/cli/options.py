"""Options that several commands share. Nothing of the library is imported here: `--help` need not wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

PairsArgument = Annotated[Path, typer.Argument(metavar="PAIRS", help="A pairs file.", show_default=False)]
ScorerArgument = Annotated[
    str, typer.Argument(metavar="SCORER", help="A matcher's folder, a lexical scorer or a run.", show_default=False)
]


def place(given: str) -> Any:
    """A folder, or a URI as it was given, of which a path would take a slash."""
    from matchloom.basics.stores import one_place

    return one_place("FOLDER", given)


ArchiveArgument = Annotated[
    Any,
    typer.Argument(
        parser=place, metavar="ARCHIVE", help="The folder or URI of an archive, made by 'index'.", show_default=False
    ),
]
PlaceArgument = Annotated[
    Any,
    typer.Argument(
        parser=place,
        metavar="FOLDER",
        help="A collection that 'fit' or 'index' made, or the URI of a LanceDB archive.",
        show_default=False,
    ),
]
FolderArgument = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="A collection that 'fit' or 'index' made.", show_default=False),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="query=NAME,text=NAME",
        help="The names your files have for query, text, label, query_id, text_id, group; label= ignores that column.",
        show_default=False,
    ),
]
CandidatesOption = Annotated[
    int, typer.Option(min=1, help="How many archived pairs to score, found by words and by vectors.")
]
RerankOption = Annotated[
    str | None,
    typer.Option(
        "--rerank",
        metavar="SCORER",
        help="Match answers with this matcher or lexical scorer in place of the archive's own.",
        show_default=False,
    ),
]
MovedOption = Annotated[
    Path | None,
    typer.Option(
        "--matcher", metavar="DIR", help="Where the archive's matcher is, if it was moved.", show_default=False
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of every random draw: the same seed gives the same result.")]
TokenizerOption = Annotated[
    str, typer.Option(metavar="KIND", help="A language, or whitespace for text that is already tokenised.")
]
FirstVectorsOption = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Initial word vectors: a file, skip-gram (trained on the training texts) or random."
    ),
]
DimensionsOption = Annotated[int, typer.Option(min=1, help="Size of a word vector; a file has its own.")]
MaxWordsOption = Annotated[int, typer.Option(min=1, help="How many words of a text to read; the rest is cut.")]
MeasuresOption = Annotated[str, typer.Option(help="Measures by their ir-measures names, such as R@10 or Success@5.")]
ScorerTokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="KIND",
        help="A language (english by default), or whitespace, for lexical scorers; a matcher has its own.",
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
        help="Texts in which lexical scorers count words: one per line, or a pairs file. Default: the candidates.",
        show_default=False,
    ),
]

PrecisionOption = Annotated[
    float | None,
    typer.Option(
        "--precision",
        help="The share of shown answers that must be right, such as 0.95; less certain ones are not given.",
        show_default=False,
    ),
]
CoverageOption = Annotated[
    float | None,
    typer.Option(
        "--coverage",
        help="The share of questions that get an answer, such as 0.8: the most certain ones do.",
        show_default=False,
    ),
]

SnapshotKeyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Snapshots are signed with the key in this file, and others refused. Or MATCHLOOM_SNAPSHOT_KEY.",
        show_default=False,
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        metavar="ENGINE",
        help="Work on Parquet shards: local (in this process) or ray. PAIRS and --out are then folders.",
        show_default=False,
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a Ray cluster, such as auto. Default: Ray is started on this machine.",
        show_default=False,
    ),
]
