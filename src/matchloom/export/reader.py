"""What an exported folder needs beside its graphs: texts become the inputs that export.json tells of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.validation import many_texts, one_path, one_text
from matchloom.batches import PairBatch
from matchloom.data.batching import make_batch
from matchloom.data.reader import Reader
from matchloom.encoders.pieces import PieceTokenizer
from matchloom.encoders.shape import Shape
from matchloom.export.inputs import at_least, fields, pair_fields
from matchloom.sealed import as_saved
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError

ABOUT, VOCAB, PIECES = "export.json", "vocab.txt", "tokenizer.json"
FORMAT = 1
_REMEDY = "export the matcher again"

Arrays = dict[str, NDArray[Any]]


class GraphInputs(NamedTuple):
    """Inputs by name: for encoding the query, for encoding the texts, and for matching each text with the query.

    `pairs` lacks only `left` and `right`, which are what the encode graph gives.
    """

    left: Arrays
    right: Arrays
    pairs: Arrays


@dataclass(frozen=True)
class GraphReader:
    """Reads texts for the graphs of an exported matcher. It computes nothing that a graph does."""

    reader: Reader
    about: dict[str, Any]

    @classmethod
    def load(cls, folder: Path | str) -> GraphReader:
        """The reader of an exported folder; what is missing, cut off or altered is refused in one line.

        Args:
            folder: What `matchloom export` made.
        """
        home = one_path("folder", folder)
        try:
            about = json.loads((home / ABOUT).read_bytes())
            contents = {name: (home / name).read_bytes() for name in about["files"]}
            version, seals = about["format"], about["files"]
        except OSError as error:
            raise MatchloomError(
                f"{error.filename} cannot be read: {error.strerror}; {_REMEDY}", code="unreadable"
            ) from None
        except (ValueError, TypeError, KeyError, RecursionError):
            raise MatchloomError(f"{home / ABOUT} is damaged or cut off; {_REMEDY}", code="damaged") from None
        if version != FORMAT:
            raise MatchloomError(
                f"{home / ABOUT} has format {version}, this matchloom reads {FORMAT}; {_REMEDY}", code="wrong_format"
            )
        for name, content in contents.items():
            if hashlib.sha256(content).hexdigest() != seals[name]:
                raise MatchloomError(f"{home / name} was altered since it was exported; {_REMEDY}", code="altered")
        with as_saved(home / ABOUT, _REMEDY):
            pieces = None
            if PIECES in contents:
                encoder = about["encoder"]
                shape = Shape(**encoder["shape"])
                pieces = PieceTokenizer(contents[PIECES].decode(), shape, min(encoder["pieces"], shape.most_pieces))
            tokenizer = Tokenizer.from_dict(about["tokenizer"])
            return cls(Reader(tokenizer, Vocab.load(home / VOCAB), pieces), about)

    def read(self, query: str, texts: Sequence[str]) -> GraphInputs:
        """The inputs of a query and of the texts that it is matched with.

        Args:
            query: One text.
            texts: The others.
        """
        every = [one_text("query", query), *many_texts("texts", texts)]
        if len(every) < 2:
            raise MatchloomError("texts is empty; expected at least one", code="no_data")
        table = self.reader.read(every, lexical=self.about["lexical"], features=self.about["features"])
        batch = make_batch(table, table, np.zeros(len(every) - 1, dtype=np.int64), np.arange(1, len(every)))
        least = self.about["least_words"]
        left, right = at_least(batch.left, least), at_least(batch.right, least)
        pairs = pair_fields(PairBatch(left, right, batch.left_rows, batch.right_rows, batch.features))
        return GraphInputs(
            *({name: x.numpy() for name, x in one.items()} for one in (fields(left), fields(right), pairs))
        )
