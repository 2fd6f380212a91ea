"""A text's words as the pieces that a pretrained encoder reads, by the `tokenizers` package and a tokenizer.json."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from matchloom.data.reader import WordPieces
from matchloom.encoders.shape import Shape
from matchloom.types import MatchloomError

_log = logging.getLogger("matchloom")

_ROUNDED = 128  # a table of pieces may be larger than the tokenizer's by less than this: up to a round number


class PieceTokenizer:
    """Cuts words into pieces with a mark at either end of the text, which belongs to no word.

    text   the whole of a tokenizer.json, which is kept with a matcher
    most   how many pieces are read of a text, marks included; longer ones are cut, which is told once
    """

    def __init__(self, text: str, shape: Shape, most: int) -> None:
        self.text, self.most = text, most
        self._tokenizer = _load(text)
        self._spaced = _wants_spaces(text)
        self._told = False
        # The tokenizer's words: it may have fewer than the table has rows, by what rounds that up.
        known = self._tokenizer.get_vocab_size(with_added_tokens=True)
        if not 0 <= shape.vocabulary - known < _ROUNDED:
            raise MatchloomError(f"tokenizer.json knows {known:,} pieces and the encoder {shape.vocabulary:,}")
        marks = self._tokenizer.encode(["a"], is_pretokenized=True).word_ids
        if len(marks) < 3 or marks[0] is not None or marks[-1] is not None:
            raise MatchloomError("tokenizer.json puts no marks around a text, as BERT-like encoders need them")

    def __call__(self, words: Sequence[str]) -> WordPieces:
        """The pieces of one text's words."""
        if self._spaced:
            words = [f" {word}" if n else word for n, word in enumerate(words)]
        found = self._tokenizer.encode(list(words), is_pretokenized=True)
        ids, of_word = found.ids, [-1 if word is None else word for word in found.word_ids]
        if len(ids) > self.most:
            if not self._told:
                self._told = True
                _log.warning(
                    "a text of %d pieces is read to its first %d, as every longer one will be", len(ids), self.most
                )
            ids, of_word = [*ids[: self.most - 1], ids[-1]], [*of_word[: self.most - 1], -1]
        return WordPieces(ids, of_word)


def _load(text: str) -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MatchloomError(
            "pretrained encoders need the package tokenizers, which is not installed: pip install 'matchloom[encoder]'"
        ) from None
    try:
        made = tokenizers.Tokenizer.from_str(text)
    except Exception:  # it raises nothing more specific
        raise MatchloomError("tokenizer.json is damaged, cut off or of another kind") from None
    made.no_padding()  # a file may ask for 128 pieces of every text
    made.no_truncation()
    return made


def _wants_spaces(text: str) -> bool:
    """Whether a word inside a text must bring its own space: RoBERTa's pieces tell "word" from " word"."""
    before = json.loads(text).get("pre_tokenizer") or {}
    steps = before.get("pretokenizers", [before])
    return any(step.get("type") == "ByteLevel" and not step.get("add_prefix_space") for step in steps)
