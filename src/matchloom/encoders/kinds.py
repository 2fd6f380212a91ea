"""ENCODERS names the kinds of encoders that a saved matcher may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matchloom.encoders.base import Encoder
from matchloom.encoders.transformer import Transformer
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError

# From what `Encoder.settings` gave and the matcher's vocabulary to an encoder whose weights are to be loaded.
ENCODERS: dict[str, Callable[[dict[str, Any], Vocab], Encoder]] = {
    "word_embedding": lambda settings, vocab: WordEmbedding(len(vocab), settings["size"]),
    "transformer": lambda settings, _: Transformer.of_settings(settings),
}


def build_encoder(settings: dict[str, Any], vocab: Vocab) -> Encoder:
    """The encoder that these settings describe; its weights are loaded with the model's."""
    kind = settings.get("kind")
    if kind not in ENCODERS:
        raise MatchloomError(
            f"encoder {kind!r} is unknown to this matchloom, which has {', '.join(ENCODERS)}; upgrade it",
            code="wrong_format",
        )
    return ENCODERS[kind](settings, vocab)
