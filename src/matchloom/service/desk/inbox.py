"""Questions that wait for their owner: those without a confident answer, and those whose answer was called wrong.

They come from the question log, where it is kept, and from the file of judgements. A question is asked again before it
is shown: what is answered by now is gone, and so is what was made a question of an entry, or put away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from matchloom.data.identity import normalize_text
from matchloom.service.desk.questions import Asked
from matchloom.service.steps import Steps
from matchloom.text.languages import FUNCTION_WORDS
from matchloom.text.tokenize import Tokenizer, stems

if TYPE_CHECKING:
    from matchloom.search.collection import Collection
    from matchloom.search.feedback import Judgement
    from matchloom.service.systems import ServedSystem
    from matchloom.types import Hits

_LOOKED_AT = 1000  # different questions, the latest
_SHOWN, _SUGGESTED = 20, 3  # questions of a group, answers that are suggested
_AT_ONCE = 32  # questions that are asked again in one step
_ALIKE = 0.3  # cosine from which two questions are of one group


@dataclass
class Waiting:
    """A question that waits."""

    question: str
    count: int = 0
    last: float = 0.0
    down: set[str] = field(default_factory=set)  # ids of answers that were called wrong
    hits: Hits | None = None


def waiting_questions(
    system: ServedSystem, asked: Asked | None, judgements: Iterable[Judgement], dismissed: set[str]
) -> Steps[list[Waiting]]:
    """The questions that wait, the most often asked first. Whoever asks can fill the log, so others get their turns."""
    collection = system.collection
    assert collection is not None
    found: dict[str, Waiting] = {}
    for line in () if asked is None else asked.questions:
        if line.confident is False:
            one = found.setdefault(normalize_text(line.question), Waiting(line.question))
            one.count, one.last = one.count + 1, max(one.last, line.time)
    _judge(found, judgements)
    known = {normalize_text(one) for own in collection.entries.questions for one in own}
    away = known | {normalize_text(one) for one in dismissed}
    there = [one for key, one in found.items() if key not in away and key]
    there = sorted(there, key=lambda one: -one.last)[:_LOOKED_AT]
    for start in range(0, len(there), _AT_ONCE):
        yield
        some = there[start : start + _AT_ONCE]
        for one, hits in zip(some, collection.search([one.question for one in some], top=_SUGGESTED), strict=True):
            one.hits = hits
    still = [one for one in there if one.down or one.hits is None or one.hits.confident is not True]
    return sorted(still, key=lambda one: (-one.count, -one.last, one.question))


def _judge(found: dict[str, Waiting], judgements: Iterable[Judgement]) -> None:
    """A thumb down brings a question in; a later thumb up for the same answer, or for another one, takes it out."""
    for one in sorted(judgements, key=lambda one: one.time):
        key = normalize_text(one.question)
        if one.right:
            found.pop(key, None)
            continue
        own = found.setdefault(key, Waiting(one.question))
        own.count, own.last = own.count + (not own.down), max(own.last, one.time)
        own.down.add(one.id)


def grouped(collection: Collection, waiting: Sequence[Waiting], most: int) -> dict[str, Any]:
    """Questions that are alike together, each group with the answers that are nearest; the largest groups first."""
    groups = [[waiting[n] for n in rows] for rows in _alike([one.question for one in waiting], collection.tokenizer)]
    groups.sort(key=lambda own: (-sum(one.count for one in own), -max(one.last for one in own)))
    return {
        "total": len(waiting),
        "groups": [_plain(collection, own) for own in groups[:most]],
    }


def _plain(collection: Collection, group: Sequence[Waiting]) -> dict[str, Any]:
    hits = [hit for one in group[:_SUGGESTED] for hit in (one.hits or ())]
    wrong = {name for one in group for name in one.down}
    nearest = {hit.id: hit for hit in reversed(hits)}
    ranked = [hit for hit in dict.fromkeys(hit.id for hit in hits) if hit not in wrong][:_SUGGESTED]
    return {
        "questions": [
            {"question": one.question, "count": one.count, "last": one.last, "down": sorted(one.down)}
            for one in group[:_SHOWN]
        ],
        "more": max(0, len(group) - _SHOWN),
        "count": sum(one.count for one in group),
        "last": max(one.last for one in group),
        "why": "thumb down" if wrong else "no confident answer",
        "wrong": [{"id": name, "text": collection[name].text} for name in sorted(wrong) if name in collection],
        "suggestions": [
            {"id": name, "text": nearest[name].text, "probability": nearest[name].probability} for name in ranked
        ],
    }


def _alike(questions: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Groups of questions by the cosine of their words and n-grams with the first of the group."""
    if not questions:
        return []
    rows, columns = [], []
    names: dict[str, int] = {}
    for n, question in enumerate(questions):
        for term in set(_terms(question, tokenizer)):
            rows.append(n)
            columns.append(names.setdefault(term, len(names)))
    table = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(questions), max(1, len(names))))
    weight = np.log(1 + len(questions) / np.maximum(1, table.sum(axis=0)))
    table = sp.csr_array(table * weight[None, :])
    norms = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    table = sp.csr_array(table / np.maximum(norms, 1e-9)[:, None])
    same = (table @ table.T).toarray()
    groups: list[list[int]] = []
    heads = np.zeros(0, int)  # the first of each group
    for n in range(len(questions)):
        best = int(np.argmax(same[n, heads])) if groups else 0
        if groups and same[n, heads[best]] >= _ALIKE:
            groups[best].append(n)
        else:
            groups.append([n])
            heads = np.append(heads, n)
    return groups


def _terms(question: str, tokenizer: Tokenizer) -> list[str]:
    """Stems twice as much as pieces of words, which hold where the language is another or a word is misspelt."""
    every = [word for word in tokenizer(question) if any(map(str.isalnum, word))]
    words = [word for word in every if word not in FUNCTION_WORDS[tokenizer.language]] or every
    inside = [f" {word} "[n : n + 4] for word in words for n in range(max(1, len(word) - 1)) if len(word) > 3]
    return [*(f"w {word}" for word in stems(words, tokenizer.language)), *inside]
