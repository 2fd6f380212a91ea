"""`matchloom index`: an archive of answered questions, built, appended to, cleared of some, encoded anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matchloom.cli.options import tokenizer_of
from matchloom.cli.printing import console, note, print_json, table

if TYPE_CHECKING:
    from matchloom import QuestionIndex
    from matchloom.types import Pair


def command(
    archive: Annotated[
        Path, typer.Argument(metavar="ARCHIVE", help="The archive's folder; made if it is new.", show_default=False)
    ],
    pairs: Annotated[
        Path | None,
        typer.Argument(metavar="PAIRS", help="A pairs file: query is a question, text its answer.", show_default=False),
    ] = None,
    matcher: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The matcher that encodes a new archive; else BM25 alone.", show_default=False
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="english (default), chinese or whitespace, for a new archive without a matcher.",
            show_default=False,
        ),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Remove this pair, or those listed in this file; repeat.", show_default=False),
    ] = None,
    reencode: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Encode all pairs again, with this matcher.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="What was done and what is there as JSON.")] = False,
) -> None:
    """Keep an archive of answered questions to search in.

    The first PAIRS make the archive, later ones are added; a pair whose id is there already takes its place. An id is
    query_id and text_id joined by /, or the one of them that the file has; without either, a digest of both texts.
    Pairs with label 0 are left out: their answers are wrong. Others may search while pairs are added, and what was
    added stays, whatever happens to the process.

    With a matcher that has sentence vectors, the archive finds questions that share no word. After training it again,
    --reencode brings the archive up to date; until that is done, searches see the old vectors. With ARCHIVE alone the
    command says what is there.

    \b
    Examples:
      matchloom index faq.archive faq.tsv --matcher runs/faq
      matchloom index faq.archive more.tsv
      matchloom index faq.archive --delete q17 --delete outdated.txt
      matchloom index faq.archive --reencode runs/faq-2
    """
    from matchloom import QuestionIndex
    from matchloom.types import MatchloomError

    done: dict[str, Any] = {}
    if (archive / "archive.json").exists() or pairs is None:
        index = QuestionIndex.open(archive, matcher if reencode is None else None)
        if tokenizer not in (None, index.tokenizer.kind):
            raise MatchloomError(
                f"{archive} has the tokenizer {index.tokenizer.kind}, found --tokenizer {tokenizer}; leave it out"
            )
    else:
        if matcher is not None and tokenizer is not None:
            raise MatchloomError("--tokenizer: a matcher has its own; leave it out, or leave out --matcher")
        next(iter(_right(pairs, [])), None)  # a file that cannot be read must not leave an archive behind
        index = QuestionIndex.create(archive, matcher, tokenizer=None if matcher else tokenizer_of(tokenizer))
    if reencode is not None:
        index.reencode(reencode, progress=True)
        done["reencoded"] = len(index)
    if delete:
        done["deleted"] = index.delete([one for given in delete for one in _ids(given)])
    if pairs is not None:
        wrong: list[None] = []
        done["added"] = index.add(_right(pairs, wrong), progress=True)
        if wrong:
            note(f"{len(wrong):,} pairs of {pairs} have label 0 and are left out.")
    _show(index, done, json)


def _right(path: Path, wrong: list[None]) -> Iterator[Pair]:
    """The pairs of a file that are not labelled wrong; each other one leaves its mark."""
    from matchloom import read_pairs

    for pair in read_pairs(path, fill_ids=False):
        if pair.label is not None and pair.label <= 0:
            wrong.append(None)
        else:
            yield pair


def _ids(given: str) -> list[str]:
    """An id, or the lines of a file."""
    from matchloom.files import read_lines

    try:
        listed = Path(given).is_file()
    except OSError:  # too long for a name
        listed = False
    return [line.strip() for _, line in read_lines(given) if line.strip()] if listed else [given]


def _show(index: QuestionIndex, done: dict[str, Any], json: bool) -> None:
    status = index.status()
    if json:
        print_json({**done, **status})
        return
    shown = table("", "")
    shown.show_header = False
    for key, value in done.items():
        shown.add_row(key, f"{value:,}")
    vectors = status["vector_size"]
    by = status["matcher"] or "BM25 alone"
    if status["matcher"]:
        where = f" ({status['matcher_folder']})" if status["matcher_folder"] else ""
        by += where + (f", vectors of {vectors}" if vectors else ", no sentence vectors")
    for key, value in (
        ("pairs", f"{status['pairs']:,}"),
        ("searched by", by),
        ("not indexed yet", f"{status['pairs'] - status['words_indexed']:,}, which are looked through one by one"),
        ("alpha", f"{status['alpha']:.2f}"),
        ("on the disk", f"{status['bytes'] / 1e6:,.1f} MB"),
    ):
        shown.add_row(key, value)
    console().print(shown)
