"""What commands read and where they write: pairs and texts with a bar, folders that are made."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import matchloom
from matchloom.basics.files import read_lines
from matchloom.basics.progress import track
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, read_vectors
from matchloom.types import MatchloomError, Pair


def read_all(
    path: Path,
    *,
    require_label: bool = False,
    columns: str | None = None,
    graded: bool = False,
    fill_ids: bool = True,
    labels: bool = True,
) -> list[Pair]:
    """All pairs of a file; `columns` is what the option --columns says. Without `labels` nobody looks at them."""
    from matchloom.data.formats.shards import refuse_many

    named = parse_columns(columns) if labels else without_labels(columns)
    refuse_many(path, named)
    pairs = matchloom.read_pairs(path, columns=named, require_label=require_label, graded=graded, fill_ids=fill_ids)
    return list(track(pairs, f"Reading {path.name}"))


def parse_columns(given: str | None) -> dict[str, str] | None:
    """What `--columns` says: our name of a column -> the user's."""
    if given is None:
        return None
    columns: dict[str, str] = {}
    for one in given.split(","):
        ours, equals, theirs = (word.strip() for word in one.partition("="))
        if not equals or not ours or ours in columns:
            raise MatchloomError(
                f"--columns {given!r}: expected query=NAME,text=NAME and the like, each once", code="bad_value"
            )
        columns[ours] = theirs
    return columns


def without_labels(columns: str | None) -> dict[str, str]:
    """The same where labels do not matter: a file may have any, also some that are none, such as -1 for "hidden"."""
    return {**(parse_columns(columns) or {}), "label": ""}


def read_texts(path: Path, columns: str | None = None) -> list[str]:
    """The different texts of a file, in their order: of a pairs file its column text, of any other file its lines."""
    return list(read_named_texts(path, columns))


def read_named_texts(path: Path, columns: str | None = None) -> dict[str, str]:
    """The different texts of a file and the text_id of each, where the file has one, in their order.

    A .txt file has lines here, whatever is in them, unless its columns were named.
    """
    from matchloom.data.formats import FORMATS

    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending in FORMATS and (ending != ".txt" or columns is not None):
        pairs = matchloom.read_pairs(path, columns=without_labels(columns), fill_ids=False)
        found: Iterable[tuple[str, str]] = ((pair.text, pair.text_id) for pair in pairs)
    else:
        found = ((line.strip(), "") for _, line in read_lines(path))
    texts: dict[str, str] = {}
    for text, name in track(found, f"Reading {path.name}"):
        if text.strip():
            texts[text] = texts.get(text) or name
    if not texts:
        raise MatchloomError(f"{path} holds no texts; expected one on each line, or a pairs file", code="no_data")
    return texts


def lines_of_input() -> Iterator[str]:
    """The lines of standard input that hold something."""
    try:
        for line in sys.stdin:
            if line.strip():
                yield line.strip()
    except UnicodeDecodeError as error:
        raise MatchloomError(
            f"standard input: byte 0x{error.object[error.start]:02x} is not {error.encoding.upper()}; convert it, for "
            "example with iconv",
            code="bad_row",
        ) from None


def texts_of(pairs: Iterable[Pair]) -> list[str]:
    """The different texts of pairs."""
    return list(dict.fromkeys(pair.text for pair in pairs))


def vectors_for(path: Path | None, texts: Iterable[str], tokenizer: Tokenizer) -> WordVectors | None:
    """The vectors of a file, of the words of these texts only; None without a file."""
    if path is None:
        return None

    return read_vectors(path, keep={word for text in texts for word in tokenizer(text)}, progress=True)


def tokenizer_of(kind: str | None, max_words: int | None = None) -> Tokenizer:
    """The tokenizer of an option; an unknown kind is refused before any file is read."""
    return Tokenizer.named(kind or "english", max_words=max_words)


def make_folder(path: Path) -> Path:
    """Make a folder to write into, and those above it; the same again."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatchloomError(
            f"the folder {path} cannot be made: {error.strerror}; choose another --out", code="unwritable"
        ) from None
    return path
