"""`matchloom index`: an archive of answered questions, built, appended to, cleared of some, encoded anew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import matchloom
from matchloom.artifact import kind_of
from matchloom.basics.files import read_lines
from matchloom.cli.options import ColumnsOption
from matchloom.cli.printing import console, note, print_json, table
from matchloom.cli.reading import parse_columns, tokenizer_of
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.search.lance.collection import LanceCollection


def command(
    archive: Annotated[
        Path,
        typer.Argument(
            metavar="ARCHIVE", help="The archive's folder; created if it does not exist.", show_default=False
        ),
    ],
    pairs: Annotated[
        Path | None,
        typer.Argument(metavar="PAIRS", help="A pairs file: query is a question, text its answer.", show_default=False),
    ] = None,
    matcher: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The matcher that encodes a new archive. Default: none, BM25 alone.", show_default=False
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
        typer.Option(
            metavar="ID", help="Remove this answer, or those listed in this file; may be repeated.", show_default=False
        ),
    ] = None,
    reencode: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Encode all pairs again with this matcher.", show_default=False),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Remove deleted and replaced pairs from the disk now.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print what was done and the status of the archive as JSON.")
    ] = False,
    columns: ColumnsOption = None,
) -> None:
    """Build or update an archive of answered questions.

    The first PAIRS create the archive, later ones are added. An answer may have many questions, a line for each, with
    the same text; a search shows it once. An id is query_id and text_id joined by /, or whichever of them the file has;
    without either, a digest of the answer. A pair whose query_id (or, without one, whose question and text_id) is there
    already replaces the old one, so several answers to one query_id need a text_id each. --delete takes an id that a
    search shows, or a text_id, and removes all questions of that answer. Pairs with label 0 are left out: their answers
    are wrong. Others may search while pairs are added, and what was added stays even if the process is killed.

    Deleted and replaced pairs are no longer found, but their texts stay in the archive's files until these are
    merged from time to time; --compact removes them at once by copying the archive.

    With a matcher that has sentence vectors, or one over a pretrained encoder ('matchloom encoders use'), the archive
    finds questions that share no word. After training it again, --reencode brings the archive up to date; until that is
    done, searches see the old vectors. With ARCHIVE alone the command prints its status.

    \b
    Examples:
      matchloom index faq.archive faq.tsv --matcher runs/faq
      matchloom index faq.archive more.tsv
      matchloom index faq.archive --delete q17 --delete outdated.txt --compact
      matchloom index faq.archive --reencode runs/faq-2
    """
    done: dict[str, Any] = {}
    ids: list[str] = []
    unknown: list[str] = []
    if reencode is not None and matcher is not None:
        raise MatchloomError("--matcher: --reencode names the matcher; leave out --matcher", code="conflict")
    made = pairs is not None and kind_of(archive) != "archive"
    if not made:
        index = LanceCollection.open(archive, matcher)
        if tokenizer not in (None, index.tokenizer.kind):
            raise MatchloomError(
                f"{archive} has the tokenizer {index.tokenizer.kind}, found --tokenizer {tokenizer}; leave it out",
                code="conflict",
            )
    else:
        if matcher is not None and tokenizer is not None:
            raise MatchloomError(
                "--tokenizer: a matcher has its own; leave it out, or leave out --matcher", code="conflict"
            )
        index = LanceCollection.create(archive, matcher, tokenizer=None if matcher else tokenizer_of(tokenizer))
    if reencode is not None:
        index.reencode(reencode, progress=True)
        done["reencoded"] = len(index)
    if delete:
        ids = list(dict.fromkeys(one for given in delete for one in _ids(given)))
        unknown = index.unknown(ids)
        done["deleted"] = index.remove(ids)
    if pairs is not None:
        try:
            added = index.add(
                matchloom.read_pairs(pairs, columns=parse_columns(columns), fill_ids=False), progress=True
            )
            if made and not added.new:
                raise MatchloomError(
                    f"{pairs} has no pair with a right answer, so there is nothing to archive", code="no_data"
                )
        except MatchloomError:
            if made and not len(index):
                shutil.rmtree(archive)  # what cannot be read must not leave an archive behind
            raise
        done |= {"added": added.new, "replaced": added.replaced}
        if added.wrong:
            note(f"{added.wrong:,} pairs of {pairs} have label 0 and are left out.")
        if made and added.replaced:
            note(f"{added.replaced:,} pairs of {pairs} replaced earlier ones with the same id.")
    if compact:
        index.compact(progress=True)
    _show(index, done, json)
    if unknown:  # said last, with all else done: a list may be deleted a second time
        raise MatchloomError(
            f"{len(unknown):,} of {len(ids):,} ids to delete are not in the archive, such as {unknown[0]!r}; "
            "'matchloom search' shows ids",
            code="missing",
        )


def _ids(given: str) -> list[str]:
    """An id, or the lines of a file."""
    try:
        listed = Path(given).is_file()
    except OSError:  # too long for a name
        listed = False
    return [line.strip() for _, line in read_lines(given) if line.strip()] if listed else [given]


def _show(index: LanceCollection, done: dict[str, Any], json: bool) -> None:
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
        if status["position_size"]:
            by += where + f", {status['position_size']} numbers a word"
        else:
            by += where + (f", vectors of {vectors}" if vectors else ", no sentence vectors")
    for key, value in (
        ("pairs", f"{status['pairs']:,}"),
        ("answers", f"{status['answers']:,}"),
        ("searched by", by),
        ("not indexed yet", f"{status['pairs'] - status['words_indexed']:,}, which are searched one by one"),
        ("alpha", f"{status['alpha']:.2f}"),
        ("on the disk", f"{status['bytes'] / 1e6:,.1f} MB"),
    ):
        shown.add_row(key, value)
    console().print(shown)
