"""LanceDB archives, as `matchloom index` and `matchloom search` use them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

import matchloom
from matchloom.artifact import kind_of
from matchloom.basics.screen import printable
from matchloom.basics.stores import shown
from matchloom.cli.collections import Changes, note_wrong, refuse_other_tokenizer, show_status
from matchloom.cli.hits import Asked, line_of, plain_hit
from matchloom.cli.printing import console, in_words, note, print_json, table
from matchloom.cli.reading import parse_columns, tokenizer_of
from matchloom.cli.scorers import load_scorer
from matchloom.text.vectors import read_vectors
from matchloom.types import Hits, MatchloomError, Scorer

if TYPE_CHECKING:
    from matchloom.search.lance.collection import LanceCollection


def index_archive(
    folder: Path | str,
    pairs: Path | None,
    matcher: Path | None,
    tokenizer: str | None,
    columns: str | None,
    changes: Changes,
    reencode: Path | None,
    compact: bool,
) -> tuple[LanceCollection, dict[str, Any]]:
    """Do what the options of `matchloom index` say; what was done, counted."""
    done: dict[str, Any] = {}
    index, made = _opened(folder, pairs, matcher, tokenizer)
    if reencode is not None:
        index.reencode(reencode, progress=True)
        done["reencoded"] = len(index)
    if changes.ids:
        changes.unknown = index.unknown(changes.ids)
        done["deleted"] = index.remove(changes.ids)
    if pairs is not None:
        done |= _add(index, pairs, columns, made)
    if compact:
        index.compact(progress=True)
    return index, done


def build_archive(
    folder: Path | str,
    pairs: Path | None,
    matcher: Path | None,
    tokenizer: str | None,
    columns: str | None,
    rows: Path | None,
    engine: str,
    address: str | None,
) -> tuple[LanceCollection, dict[str, Any]]:
    """Build an archive from shards."""
    from matchloom.batch.indexing import IndexWork, index_shards
    from matchloom.search.lance.collection import LanceCollection

    if pairs is None:
        raise MatchloomError("--engine builds an archive of PAIRS: name a Parquet file, or a folder", code="no_data")
    _refuse_two_tokenizers(matcher, tokenizer)
    where = rows or _rows_beside(folder)
    work = IndexWork(None if matcher is None else str(matcher), tokenizer or "english", parse_columns(columns))
    added = index_shards(folder, work, pairs, where, engine=engine, address=address, progress=True)
    note_wrong(added, pairs)
    return LanceCollection.open(folder), {"added": added.new, "replaced": added.replaced}


def _rows_beside(folder: Path | str) -> Path:
    if isinstance(folder, Path):
        return folder.with_name(f"{folder.name}.rows")
    return Path(f"{shown(folder).rstrip('/').rpartition('/')[2]}.rows")


def _opened(
    folder: Path | str, pairs: Path | None, matcher: Path | None, tokenizer: str | None
) -> tuple[LanceCollection, bool]:
    """The archive, and whether it is new."""
    from matchloom.search.lance.collection import LanceCollection

    if pairs is None or kind_of(folder) == "archive":
        index = LanceCollection.open(folder, matcher)
        refuse_other_tokenizer(folder, index.tokenizer, tokenizer)
        return index, False
    _refuse_two_tokenizers(matcher, tokenizer)
    words = None if matcher is not None else tokenizer_of(tokenizer)
    return LanceCollection.create(folder, matcher, tokenizer=words), True


def _refuse_two_tokenizers(matcher: Path | None, tokenizer: str | None) -> None:
    if matcher is not None and tokenizer is not None:
        raise MatchloomError(
            "--tokenizer: a matcher has its own; leave it out, or leave out --matcher", code="conflict"
        )


def _add(index: LanceCollection, pairs: Path, columns: str | None, made: bool) -> dict[str, int]:
    try:
        added = index.add(matchloom.read_pairs(pairs, columns=parse_columns(columns), fill_ids=False), progress=True)
        if made and not added.new:
            raise MatchloomError(
                f"{pairs} has no pair with a right answer, so there is nothing to archive", code="no_data"
            )
    except MatchloomError:
        if made and not len(index):
            index.erase()  # what cannot be read must not leave an archive behind
        raise
    note_wrong(added, pairs)
    if made and added.replaced:
        note(f"{added.replaced:,} pairs of {pairs} replaced earlier ones with the same id.")
    return {"added": added.new, "replaced": added.replaced}


def show_archive(index: LanceCollection, done: dict[str, Any], json: bool) -> None:
    """Print what was done and what there is."""
    status = index.status()
    behind = status["pairs"] - status["words_indexed"]
    rows = [
        ("pairs", f"{status['pairs']:,}"),
        ("answers", f"{status['answers']:,}"),
        ("searched by", _searched_by(status)),
        ("not indexed yet", f"{behind:,} (searched one by one)"),
        ("alpha", f"{status['alpha']:.2f}"),
        *([] if status["bytes"] is None else [("on the disk", f"{status['bytes'] / 1e6:,.1f} MB")]),
    ]
    show_status(done, status, rows, json)


def _searched_by(status: dict[str, Any]) -> str:
    if not status["matcher"]:
        return "BM25 alone"
    by = str(status["matcher"]) + (f" ({status['matcher_folder']})" if status["matcher_folder"] else "")
    if status["position_size"]:
        return f"{by}, {status['position_size']} numbers per word"
    return by + (f", vectors of {status['vector_size']}" if status["vector_size"] else ", no sentence vectors")


def search_archive(
    folder: Path | str,
    matcher: Path | None,
    questions: Iterable[str],
    asked: Asked,
    *,
    alpha: float | None,
    rerank: str | None,
    candidates: int,
    vectors: Path | None,
    seed: int,
) -> None:
    """Answer questions from an archive: each answer once, with the archived question that scored highest."""
    from matchloom.search.lance.collection import LanceCollection

    index = LanceCollection.open(folder, matcher)
    scorer = None if rerank is None else reranker(index, rerank, vectors, seed)
    status = cache(index.status)  # looked up once, if at all
    for question in questions:
        found = index.search(
            question, top=asked.top, candidates=candidates, alpha=alpha, rerank=scorer, explain=asked.wants_reasons
        )
        asked.keep_reasons(found)
        if asked.json:
            print_json({"question": question, "answers": [plain_hit(one) for one in found]})
        else:
            _show(question, found, asked.explain, titled=asked.many)
            if 0 < len(found) < asked.top:
                _explain_fewer(status(), len(found), asked.top)


def reranker(index: LanceCollection, name: str, vectors: Path | None, seed: int = 0) -> Scorer:
    """The scorer of --rerank; a lexical one counts its words in the archive's answers."""
    if Path(name).is_file():
        raise MatchloomError(
            f"--rerank {name}: a run file has no scores for an archive; expected a matcher's folder or a name",
            code="not_supported",
        )
    read = None if vectors is None else read_vectors(vectors, progress=True)
    return load_scorer(name, index.texts, tokenizer=index.tokenizer, vectors=read, seed=seed)


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
            texts = Text(f"{line_of(one.question or '')}\n{line_of(one.text)}\n").append(
                f"id {line_of(one.id)}", style="dim"
            )
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


def _explain_fewer(status: dict[str, Any], found: int, top: int) -> None:
    """Why there are fewer answers than were asked for."""
    if status["answers"] <= found:
        why = "the archive has no others"
    elif status["vector_size"] is None:
        why = f"none of the other {status['answers'] - found:,} shares a word with the question"
    else:
        why = "no more were found"
    console().print(f"{found} of {top} answers: {why}", style="dim")
