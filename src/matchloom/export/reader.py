"""What an exported folder needs beside its graphs: texts become the inputs that export.json tells of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from matchloom.artifact import as_saved, read
from matchloom.basics.validation import many_texts, one_path, one_text
from matchloom.batches import PairBatch
from matchloom.data.batching import make_batch
from matchloom.data.reader import Reader
from matchloom.encoders.pieces import PieceTokenizer
from matchloom.encoders.shape import Shape
from matchloom.export.inputs import at_least, fields, pair_fields
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError

VOCAB, PIECES = "vocab.txt", "tokenizer.json"
FORMAT = 2  # 1 had checksums of its own
_REMEDY = "export the matcher again"

Arrays = dict[str, NDArray[Any]]


class GraphInputs(NamedTuple):
    """Inputs by name: for encoding the query, for encoding the texts, and for matching each text with the query.

    `pairs` lacks only `left` and `right`, which are what the encode graph gives.
    """

    left: Arrays
    right: Arrays
    pairs: Arrays


class _Settings(msgspec.Struct):
    """What reading needs of `export.json`."""

    tokenizer: dict[str, Any]
    encoder: dict[str, Any]
    lexical: bool
    features: str
    least_words: Annotated[int, msgspec.Meta(ge=1, le=10_000)]


@dataclass(frozen=True)
class GraphReader:
    """Reads texts for the graphs of an exported matcher. It computes nothing that a graph does."""

    reader: Reader
    settings: _Settings

    @classmethod
    def load(cls, folder: Path | str) -> GraphReader:
        """The reader of an exported folder; what is missing, cut off or altered is refused in one line.

        Args:
            folder: What `matchloom export` made.
        """
        home = one_path("folder", folder)
        saved = read(home, "export", FORMAT, remedy=_REMEDY)
        with as_saved(home, _REMEDY):
            settings = msgspec.convert(saved.settings, _Settings)
            pieces = None
            if PIECES in saved:
                encoder = settings.encoder
                shape = Shape(**encoder["shape"])
                text, most = saved.content(PIECES).decode(), min(encoder["pieces"], shape.most_pieces)
                pieces = PieceTokenizer(text, shape, most, prompt=str(encoder.get("prompt", "")))
            vocab = Vocab.loads(saved.content(VOCAB), home / VOCAB)
            return cls(Reader(Tokenizer.from_dict(settings.tokenizer), vocab, pieces), settings)

    def read(self, query: str, texts: Sequence[str]) -> GraphInputs:
        """The inputs of a query and of the texts that it is matched with.

        Args:
            query: One text.
            texts: The others.
        """
        every = [one_text("query", query), *many_texts("texts", texts)]
        if len(every) < 2:
            raise MatchloomError("texts is empty; expected at least one", code="no_data")
        table = self.reader.read(every, lexical=self.settings.lexical, features=self.settings.features)
        batch = make_batch(table, table, np.zeros(len(every) - 1, dtype=np.int64), np.arange(1, len(every)))
        least = self.settings.least_words
        left, right = at_least(batch.left, least), at_least(batch.right, least)
        pairs = pair_fields(PairBatch(left, right, batch.left_rows, batch.right_rows, batch.features))
        return GraphInputs(
            *({name: x.numpy() for name, x in one.items()} for one in (fields(left), fields(right), pairs))
        )
