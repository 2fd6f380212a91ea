"""`matchloom index`: a collection of answered questions, built, added to, cleared of some."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import matchloom
from matchloom.artifact import kind_of
from matchloom.basics.stores import shown
from matchloom.cli.batches import refuse_with_engine, refuse_without_engine
from matchloom.cli.collections import (
    Changes,
    note_wrong,
    open_collection,
    refuse_other_tokenizer,
    remove_ids,
    show_collection,
)
from matchloom.cli.options import AddressOption, ColumnsOption, EngineOption, place
from matchloom.cli.printing import note
from matchloom.cli.reading import parse_columns, tokenizer_of
from matchloom.data.formats.shards import refuse_many
from matchloom.types import MatchloomError


def command(
    folder: Annotated[
        Any,
        typer.Argument(
            parser=place,
            metavar="FOLDER",
            help="The collection's folder; created if it does not exist. Of an archive also a URI (s3://...).",
            show_default=False,
        ),
    ],
    pairs: Annotated[
        Path | None,
        typer.Argument(metavar="PAIRS", help="A pairs file: query is a question, text its answer.", show_default=False),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="For a new collection: files (default), which are mapped, or lance, a LanceDB archive for millions.",
            show_default=False,
        ),
    ] = None,
    matcher: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The matcher that encodes a new LanceDB archive.", show_default=False),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="A language (english by default), or whitespace, for a new collection without a matcher.",
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
        typer.Option(metavar="DIR", help="Encode all pairs of an archive again with this matcher.", show_default=False),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Remove deleted and replaced pairs of an archive from the disk now.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print what was done and the status of the collection as JSON.")
    ] = False,
    columns: ColumnsOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --engine: where rows are before the archive has them. Default: FOLDER.rows.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Build a collection without learning or measuring.

    The first PAIRS create the collection, later ones are added. An answer may have many questions, one per line, with
    the same text or text_id; a search shows the answer once. Your own columns (url, category) are returned with each
    answer, and 'matchloom search --where' filters by them. 'matchloom fit' does the same, and also learns the weight of
    each feature from the questions and measures the result. Pairs with label 0 are skipped: their answers are wrong.
    Searches may run while pairs are added, and what was added is kept even if the process is killed.

    With --matcher or --store lance the result is an archive: a LanceDB table for millions of pairs. It ranks by BM25,
    or by a matcher that has sentence vectors or uses a pretrained encoder ('matchloom encoders use') and finds
    questions that share no word. The id of a pair in an archive is its query_id and text_id joined by /, or the one of
    them that the file has. A pair replaces an older one with the same query_id (or, without query_id, with the same
    question and text_id). After training the matcher again, --reencode updates the archive; until that is done,
    searches use the old vectors. Deleted and replaced pairs stay in the archive's files until these are merged;
    --compact removes them at once.

    With --engine a new archive is built from PAIRS, a Parquet file or a folder of them. The rows are made shard by
    shard, on the processors of this machine or of a Ray cluster that shares --rows, and are added to the archive in one
    commit. FOLDER may be a URI of an object store (s3://bucket/name); its credentials come from the environment.

    With FOLDER alone the command prints its status.

    \b
    Examples:
      matchloom index faq faq.tsv
      matchloom add faq more.tsv
      matchloom index faq.archive faq.tsv --matcher runs/faq
      matchloom index faq.archive --delete q17 --delete outdated.txt --compact
      matchloom index s3://bucket/archive shards --store lance --engine ray --rows /shared/rows
    """
    changes = Changes.of(delete or [])
    if _is_archive(folder, store, matcher, reencode):
        from matchloom.cli.archives import build_archive, index_archive, show_archive

        if engine is not None:
            refuse_with_engine(reencode=reencode, delete=delete or None, compact=compact or None)
            index, made = build_archive(folder, pairs, matcher, tokenizer, columns, rows, engine, address)
            show_archive(index, made, json)
            return
        refuse_without_engine(address, rows=rows)
        if reencode is not None and matcher is not None:
            raise MatchloomError("--matcher: --reencode names the matcher; leave out --matcher", code="conflict")
        index, made = index_archive(folder, pairs, matcher, tokenizer, columns, changes, reencode, compact)
        show_archive(index, made, json)
        changes.refuse_unknown()
        return
    if engine is not None:
        raise MatchloomError("--engine builds a LanceDB archive: add --store lance", code="conflict")
    refuse_without_engine(address, rows=rows)
    if compact:
        raise MatchloomError(
            f"--compact is for LanceDB archives; 'matchloom refit {folder}' rewrites a collection",
            code="not_supported",
        )
    done: dict[str, Any] = {}
    refuse_many(pairs, parse_columns(columns), instead="--store lance takes any number")
    if pairs is not None and kind_of(folder) is None:
        collection = matchloom.Collection.create(
            folder, pairs, tokenizer=tokenizer_of(tokenizer), columns=parse_columns(columns), progress=True
        )
        done["added"] = len(collection)
        if collection.entries.note:
            note(collection.entries.note)
    else:
        collection = open_collection(folder)
        refuse_other_tokenizer(folder, collection.tokenizer, tokenizer)
        if changes.ids:
            done["deleted"] = remove_ids(collection, changes)
        if pairs is not None:
            added = collection.add(pairs, columns=parse_columns(columns), progress=True)
            note_wrong(added, pairs)
            done |= {"added": added.new, "replaced": added.replaced}
    show_collection(collection, done, json)
    changes.refuse_unknown()


def _is_archive(folder: Path | str, store: str | None, matcher: Path | None, reencode: Path | None) -> bool:
    """Whether this is about a LanceDB archive, one that is there or one to be made."""
    if store not in (None, "files", "lance"):
        raise MatchloomError(f"--store {store!r}: expected files or lance", code="unknown_name")
    kind = kind_of(folder)
    wanted = store == "lance" or matcher is not None or reencode is not None
    if isinstance(folder, str) and not wanted and kind is None:
        raise MatchloomError(
            f"{shown(folder)}: at a URI only a LanceDB archive can be built; add --store lance, or publish a "
            "collection there by 'matchloom publish'",
            code="conflict",
        )
    if kind == "collection" and wanted:
        raise MatchloomError(
            f"{folder} is a collection in files; --store lance, --matcher and --reencode are for LanceDB archives: "
            "choose another folder",
            code="conflict",
        )
    if kind == "archive" and store == "files":
        raise MatchloomError(f"{folder} is a LanceDB archive, found --store files; leave it out", code="conflict")
    return kind == "archive" or wanted
