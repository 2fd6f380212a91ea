"""The collection that questions are asked of: answers, each with all the questions it is known to answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matchloom.data.identity import digest, local_ids, normalize_text, same_answers, spellings
from matchloom.types import MatchloomError, Pair

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """Answers in the order in which they first appeared, with ids, texts and known questions.

    `other_ids` and `other_texts` are what else an answer is known by, where pairs gave one answer several ids or wrote
    one id's text in several ways. `note` says what a user should know of how pairs were joined.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    questions: Sequence[Sequence[str]]
    other_ids: Sequence[Sequence[str]] = field(default=())
    other_texts: Sequence[Sequence[str]] = field(default=())
    note: str = field(default="", compare=False)

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Answers:
        """The answers of pairs with label above 0 or none.

        Pairs that share a text_id or a text (but for case and spaces) are of one answer. A pair with an empty query
        is an answer that nobody asked for yet. What represents an answer depends on its pairs and not on their order:
        its least id, the text that most of its pairs have, each question once.

        Where text_ids do not name answers (numbers of candidates that start anew for each question, or documents that
        texts are parts of), one id would join what has nothing in common: then texts alone tell answers apart, and
        `note` says so. `local_ids` says how that is found out.
        """
        right = [pair for pair in pairs if pair.is_positive]
        if not right:
            raise MatchloomError("answers are taken from pairs with label 1 or none, and there are none")
        conflicts = local_ids(right)
        note = ""
        if conflicts:
            right = [pair._replace(text_id="") for pair in right]
            note = (
                f"text_id does not name an answer here: under {len(conflicts):,} of them (such as {conflicts[0]!r}) "
                "stand clearly different texts. Answers are told apart by their texts."
            )
        groups: dict[int, list[Pair]] = {}
        for pair, answer in zip(right, same_answers(right), strict=True):
            groups.setdefault(answer, []).append(pair)
        spelt = spellings(pair.query for pair in right)
        ids, texts, questions, other_ids, other_texts = [], [], [], [], []
        for members in groups.values():
            named = sorted({pair.text_id for pair in members if pair.text_id})
            counts = Counter(pair.text for pair in members)
            written = sorted(counts, key=lambda text: (-counts[text], text))
            ids.append(named[0] if named else digest(normalize_text(written[0])))
            texts.append(written[0])
            questions.append(sorted({spelt[normalize_text(pair.query)] for pair in members} - {""}))
            other_ids.append(named[1:])
            other_texts.append(written[1:])
        return cls(ids, texts, questions, other_ids, other_texts, note)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Answers({len(self):,} answers, {sum(map(len, self.questions)):,} questions)"

    @cached_property
    def order(self) -> Ids:
        """The answers by id: in this order everything is computed, whatever the order of lines was."""
        return np.array(sorted(range(len(self)), key=lambda n: self.ids[n]), dtype=np.int64)

    def sorted(self) -> Answers:
        """The same answers by id."""
        order = self.order.tolist()
        names, texts = ([side[n] for n in order] for side in (self.ids, self.texts))
        questions, other_ids, other_texts = (
            [side[n] for n in order] if side else [] for side in (self.questions, self.other_ids, self.other_texts)
        )
        return Answers(names, texts, questions, other_ids, other_texts, self.note)

    @cached_property
    def _by_id(self) -> dict[str, int]:
        found = {name: n for n, names in enumerate(self.other_ids) for name in names}
        return found | {name: n for n, name in enumerate(self.ids)}

    @cached_property
    def _by_text(self) -> dict[str, int]:
        found = {normalize_text(text): n for n, texts in enumerate(self.other_texts) for text in texts}
        return found | {normalize_text(text): n for n, text in enumerate(self.texts)}

    def find(self, text: str, text_id: str = "") -> int | None:
        """Where an answer stands, known by its text or else by its id; None for a text outside the collection.

        The text comes first: an id may have been made up for a list of candidates.
        """
        found = self._by_text.get(normalize_text(text))
        return self._by_id.get(text_id) if found is None and text_id else found


def best_first(scores: Floats, top: int | None) -> Ids:
    """The indices of the highest scores, the highest first; equal ones by index."""
    if top is None or top >= len(scores):
        return np.argsort(-scores, kind="stable")
    if top <= 0:
        return np.empty(0, dtype=np.int64)
    least = np.partition(scores, -top)[-top]
    above = np.flatnonzero(scores > least)
    chosen = np.concatenate([above, np.flatnonzero(scores == least)[: top - len(above)]])
    chosen.sort()
    return chosen[np.argsort(-scores[chosen], kind="stable")]
