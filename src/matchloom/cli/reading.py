"""What commands read and where they write: pairs and texts with a bar, folders that are made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from matchloom.cli.options import parse_columns

if TYPE_CHECKING:
    from matchloom.text.tokenize import Tokenizer
    from matchloom.text.vectors import WordVectors
    from matchloom.types import Pair


def read_all(
    path: Path, *, require_label: bool = False, columns: str | None = None, graded: bool = False
) -> list[Pair]:
    """All pairs of a file; `columns` is what the option --columns says."""
    from matchloom import read_pairs
    from matchloom.progress import track

    named = parse_columns(columns)
    pairs = read_pairs(path, columns=named, require_label=require_label, graded=graded)
    return list(track(pairs, f"Reading {path.name}"))


def read_texts(path: Path) -> list[str]:
    """The different texts of a file, in their order: of a pairs file its column text, of any other file its lines.

    A .txt file has lines here, whatever is in them.
    """
    from matchloom import read_pairs
    from matchloom.data.formats import FORMATS
    from matchloom.files import read_lines
    from matchloom.progress import track
    from matchloom.types import MatchloomError

    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending in FORMATS and ending != ".txt":
        found: Iterable[str] = (pair.text for pair in read_pairs(path, graded=True))
    else:
        found = (line.strip() for _, line in read_lines(path))
    texts = list(dict.fromkeys(text for text in track(found, f"Reading {path.name}") if text.strip()))
    if not texts:
        raise MatchloomError(f"{path} holds no texts; expected one on each line, or a pairs file")
    return texts


def texts_of(pairs: Iterable[Pair]) -> list[str]:
    """The different texts of pairs."""
    return list(dict.fromkeys(pair.text for pair in pairs))


def both_sides(pairs: Iterable[Pair]) -> list[str]:
    """The different texts of both sides of pairs."""
    return list(dict.fromkeys(side for pair in pairs for side in (pair.query, pair.text)))


def vectors_for(path: Path | None, texts: Iterable[str], tokenizer: Tokenizer) -> WordVectors | None:
    """The vectors of a file, of the words of these texts only; None without a file."""
    if path is None:
        return None
    from matchloom.text.vectors import read_vectors

    return read_vectors(path, keep={word for text in texts for word in tokenizer(text)}, progress=True)


def make_folder(path: Path) -> None:
    """Make a folder to write into, and those above it."""
    from matchloom.types import MatchloomError

    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatchloomError(f"the folder {path} cannot be made: {error.strerror}; choose another --out") from None
