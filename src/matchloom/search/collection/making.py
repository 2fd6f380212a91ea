"""How a collection is made: learnt from pairs, or written into a new folder in one of the stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matchloom.basics.extras import named_extras
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.data.formats import PairsLike
    from matchloom.data.formats.columns import Columns
    from matchloom.matcher import Matcher
    from matchloom.search.lance.collection import LanceCollection
    from matchloom.text.tokenize import Tokenizer

LANCE, STORES = "archive", ("files", "lance")


def check_store(store: str) -> None:
    """Refuse a store that is not there."""
    if store not in STORES:
        raise MatchloomError(f"store is {store!r}; expected one of {', '.join(STORES)}", code="unknown_name")


@named_extras("an encoder", "encoder")
def as_matcher(given: Matcher | Path | str) -> Matcher:
    """A matcher, or that of a folder."""
    from matchloom.matcher import Matcher

    return given if isinstance(given, Matcher) else Matcher.load(given)


@named_extras("an archive (LanceDB)")
def created_in_lance(
    folder: Path | str,
    pairs: PairsLike,
    encoder: Matcher | Path | str | None,
    tokenizer: Tokenizer | None,
    columns: Columns | None,
    progress: bool,
) -> LanceCollection:
    """A new archive with pairs in it."""
    from matchloom.data.formats import as_pairs
    from matchloom.search.lance.collection import LanceCollection

    made = LanceCollection.create(folder, encoder, tokenizer=tokenizer)
    made.add(as_pairs(pairs, columns=columns), progress=progress)
    return made
