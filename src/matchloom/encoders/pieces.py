"""A text as the pieces that a pretrained encoder reads, by the `tokenizers` package and a tokenizer.json."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from matchloom.basics.extras import need
from matchloom.data.reader import WordPieces
from matchloom.encoders.shape import Shape
from matchloom.text.tokenize import Span
from matchloom.types import MatchloomError

_log = logging.getLogger("matchloom")

_ROUNDED = 128  # a table of pieces may be larger than the tokenizer's by less than this: up to a round number


class PieceTokenizer:
    """Cuts a text into pieces, with a mark at either end. Marks and punctuation belong to no word.

    text   the whole of a tokenizer.json, which is kept with a matcher
    most   how many pieces are read of a text, marks included; longer ones are cut, which is told once
    prompt        what stands before every text, as an encoder learnt it; its pieces belong to no word
    between       the marks between two texts that are read as one: BERT has one there, RoBERTa two
    second_typed  whether the second of them is of another type, as BERT's is
    """

    def __init__(self, text: str, shape: Shape, most: int, *, prompt: str = "") -> None:
        self.text, self.most, self.prompt = text, most, prompt
        self._tokenizer = _load(text)
        self._told = False
        known = self._tokenizer.get_vocab_size(with_added_tokens=True)
        if not 0 <= shape.vocabulary - known < _ROUNDED:
            raise MatchloomError(
                f"tokenizer.json knows {known:,} pieces and the encoder {shape.vocabulary:,}", code="mismatch"
            )
        largest = max(self._tokenizer.get_vocab(with_added_tokens=True).values())
        if largest >= shape.vocabulary:
            raise MatchloomError(
                f"tokenizer.json has a piece number {largest:,}, the encoder {shape.vocabulary:,} pieces",
                code="mismatch",
            )
        try:
            self._tokenizer.encode("a \U0010ffff")  # what no vocabulary has
        except Exception as error:  # it raises nothing more specific
            raise MatchloomError(
                f"tokenizer.json cannot cut every text into pieces ({error})", code="damaged"
            ) from None
        unknown = self._tokenizer.encode("\U0010ffff").ids[1:-1]
        self.unknown = unknown[0] if len(unknown) == 1 else None  # what stands for all that has no piece
        marks = self._tokenizer.encode("a").word_ids
        if len(marks) < 3 or marks[0] is not None or marks[-1] is not None:
            raise MatchloomError(
                "tokenizer.json adds no special tokens around a text, which BERT-like encoders need",
                code="not_supported",
            )
        pair = self._tokenizer.encode("a", "a")
        second = pair.sequence_ids.index(1)
        first = second - pair.sequence_ids[second - 1 :: -1].index(0)  # behind the first text
        self.between: list[int] = pair.ids[first:second] or self._tokenizer.encode("a").ids[-1:]
        self.second_typed = pair.type_ids[second] != 0

    def __call__(self, text: str, words: Sequence[Span]) -> WordPieces:
        """The pieces of one text, whose words stand at these places."""
        found = self._tokenizer.encode(self.prompt + text)
        ids, of_word, n = found.ids, [], 0
        for start, end in found.offsets:
            last = end - len(self.prompt) - 1  # a piece may begin with the space before its word
            while n < len(words) and words[n].end <= last:
                n += 1
            of_word.append(n if start < end and n < len(words) and words[n].start <= last else -1)
        if len(ids) > self.most:
            if not self._told:
                self._told = True
                _log.warning(
                    "a text of %d pieces was cut to its first %d, and so are all longer texts", len(ids), self.most
                )
            ids, of_word = [*ids[: self.most - 1], ids[-1]], [*of_word[: self.most - 1], -1]
        return WordPieces(ids, of_word)


def _load(text: str) -> Any:
    tokenizers = need("tokenizers", "a pretrained encoder")
    try:
        made = tokenizers.Tokenizer.from_str(text)
    except Exception:  # it raises nothing more specific
        raise MatchloomError("tokenizer.json is damaged, cut off or of another kind", code="damaged") from None
    made.no_padding()  # a file may ask for 128 pieces of every text
    made.no_truncation()
    made.encode_special_tokens = True  # "[SEP]" in a user's text is five letters and no mark
    return made
