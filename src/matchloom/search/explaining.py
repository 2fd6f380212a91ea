"""Explanations of what a collection found, with the known question and the answer each in its own section."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from matchloom.explanation import Explanation
from matchloom.explanation.source import source_of


def with_known_question(scorer: Any, made: Explanation, query: str, text: str) -> Explanation:
    """An explanation whose text begins with the words of a known question, in two sections with their own texts.

    So does what a fitted ranker explains: the known question that is nearest, and then the answer.
    """
    inner = getattr(scorer, "scorer", scorer)  # of a fitted system
    tokenize = getattr(inner, "tokenizer", None)
    if tokenize is None or made.sections or not hasattr(inner, "entries"):
        return made
    text_words = tokenize(text)
    count = len(made.text) - len(text_words)
    found = inner.entries.find(text)
    if count <= 0 or found is None or made.text[count:] != text_words:
        return made
    asked = next((one for one in inner.entries.questions[found] if tokenize(one) == made.text[:count]), None)
    if asked is None:
        return made
    sources = (
        source_of(tokenize, query, made.query),
        source_of(tokenize, asked, made.text[:count]),
        source_of(tokenize, text, text_words),
    )
    return replace(made, sections=(("known question", 0), ("answer", count)), sources=sources)
