"""Which pretrained encoder a fit may use, and how long it would read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from matchloom.basics.extras import has, install_command
from matchloom.encoders.library import Found, find_encoder, found_encoders
from matchloom.search.features.dense import SentenceVectors, encoding_seconds
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair

AUTO = "auto"
_LOOKED_AT = 200  # pairs that a guess is made from
_DEVELOPMENT = 0.2  # of all pairs, about


def encoder_for(wanted: Path | str | None, say: Callable[[str], None]) -> Found | None:
    """The encoder of this name or folder; the first that is found with "auto"; None with None."""
    if wanted is None:
        return None
    if wanted != AUTO:
        folder = find_encoder(wanted)
        return Found(folder.resolve().name, folder, "asked for")
    found = next(iter(found_encoders()), None)
    if found is None:
        return None
    if not (has("torch") and has("tokenizers")):
        say(f"The pretrained encoder {found.name} is not used; to use it: {install_command('encoder')}")
        return None
    say(f"The pretrained encoder {found.name} was found and is tried, too; encoder 'none' turns this off.")
    return found


class Encoded:
    """The encoder, loaded when it is first needed, with the vectors that all rounds share."""

    def __init__(self, encoder: Path, tokenizer: Tokenizer) -> None:
        self._encoder, self._tokenizer = encoder, tokenizer

    @cached_property
    def sentences(self) -> SentenceVectors:
        """Vectors of the texts seen so far."""
        from matchloom.matcher import Matcher  # torch comes with it

        return SentenceVectors(Matcher.untrained(self._encoder, model="sentence_bert", tokenizer=self._tokenizer))


def development_seconds(pairs: Sequence[Pair]) -> float:
    """A guess of how long an encoder reads the development pairs of a file of which these are the training pairs."""
    some = pairs[:: len(pairs) // _LOOKED_AT + 1]
    reading = encoding_seconds([text for pair in some for text in (pair.query, pair.text)])
    return _DEVELOPMENT * reading * len(pairs) / max(1, len(some))
