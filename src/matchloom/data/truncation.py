"""The first words of a text."""

from __future__ import annotations

from matchloom.text.tokenize import Tokenizer, replace_surrogates


def first_words(text: str, tokenizer: Tokenizer) -> str:
    """The text as it is written, up to the end of the last word that `tokenizer` (with its `max_words`) keeps.

    >>> first_words("Is it 3.5 litres, or four?", Tokenizer("english", max_words=3))
    'Is it 3.5'
    """
    # In their own case, words can be found again in the text.
    words = tokenizer._replace(lower=False, max_words=None)(text)
    if tokenizer.max_words is None or len(words) <= tokenizer.max_words:
        return text
    end, searched = 0, replace_surrogates(text)  # as words are, and as long as the text
    for word in words[: tokenizer.max_words]:
        end = searched.index(word, end) + len(word)
    return text[:end]
