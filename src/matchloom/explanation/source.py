"""The user's own text behind the words: an explanation marks them in place, capitals and punctuation included."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_GAP = 80  # letters between two words that are shown; what a tokenizer drops may be long
_SPACE = re.compile(r"\s+")


class Source(NamedTuple):
    """A text, and where in it each word stands: text[start:end]."""

    text: str
    spans: Sequence[tuple[int, int]]

    def fits(self, words: int) -> bool:
        """Whether there is a place for each of so many words, one behind the other."""
        ends = [0, *(end for _, end in self.spans)]
        in_order = all(last <= start <= end for last, (start, end) in zip(ends, self.spans, strict=False))
        return len(self.spans) == words and in_order and ends[-1] <= len(self.text)


def source_of(tokenizer: object, text: str, words: Sequence[str]) -> Source | None:
    """The source of these words, if the tokenizer has `spans` and cuts the text into just them."""
    spans = getattr(tokenizer, "spans", None)
    if spans is None:
        return None
    found = list(spans(text))
    if [span.word for span in found] != list(words):
        return None  # the scorer made other words of it, such as one that stands for none
    return Source(text, [(span.start, span.end) for span in found])


class Piece(NamedTuple):
    """A stretch of a text as it is shown: word `at`, or what stands between words (None)."""

    text: str
    at: int | None


def pieces(words: Sequence[str], source: Source | None, shown: Sequence[int]) -> Iterator[Piece]:
    """The shown words in their order with what lies between them; an ellipsis where some are left out.

    Without a source, words are parted by spaces. White space of the source is one space; where it has no words there
    is nothing to show.
    """
    last = -1
    for i in shown:
        if i > last + 1:
            yield Piece("… " if last < 0 else " … ", None)
        elif source is not None:
            yield Piece(_between(source, i), None)
        elif i:
            yield Piece(" ", None)
        yield Piece(words[i] if source is None else _SPACE.sub(" ", source.text[slice(*source.spans[i])]), i)
        last = i
    if last < len(words) - 1:
        yield Piece(" …", None)
    elif source is not None and words:
        yield Piece(_between(source, len(words)), None)


def _between(source: Source, i: int) -> str:
    """What stands before word i, behind the one before it."""
    start = source.spans[i - 1][1] if i else 0
    end = source.spans[i][0] if i < len(source.spans) else len(source.text)
    gap = _SPACE.sub(" ", source.text[start : min(end, start + 10 * _GAP)])
    return gap if len(gap) <= _GAP else gap[:_GAP] + " … "
