"""The entries of a collection: answers, each with all the questions it answers and the user's own columns."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import chain

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.data.entries import Entry
from matchloom.data.identity import digest, local_ids, normalize_text, same_answers, spellings
from matchloom.data.unanswerable import has_answer
from matchloom.lexical.columns import Floats, Ids
from matchloom.text.tokenize import replace_surrogates
from matchloom.types import MatchloomError, Pair

Own = Mapping[str, str]


@dataclass(frozen=True)
class Entries:
    """Entries by id, whatever the order of lines was.

    `other_ids` and `other_texts` are what else an answer is known by, where pairs gave one answer several ids or wrote
    one id's text in several ways. `note` says what a user should know of how pairs were joined.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    questions: Sequence[Sequence[str]]
    columns: Sequence[Own] = field(default=())
    other_ids: Sequence[Sequence[str]] = field(default=())
    other_texts: Sequence[Sequence[str]] = field(default=())
    note: str = field(default="", compare=False)

    @classmethod
    def of(cls, pairs: Iterable[Pair], own: Iterable[Own] | None = None) -> Entries:
        """The entries of pairs with label above 0 or none; `own` are the user's columns of each pair.

        Pairs that share a text_id or a text (but for case and spaces) are of one answer. A pair with an empty query
        is an answer that nobody asked for yet; one with an empty text, or no_answer, is none. What represents an
        answer depends on its pairs and not on their order: its least id, the text that most of its pairs have, each
        question once, the most frequent value of a column.

        Where text_ids do not name answers (numbers of candidates that start anew for each question, or documents that
        texts are parts of), one id would join what has nothing in common: then texts alone tell answers apart, and
        `note` says so. `local_ids` says how that is found out.
        """
        rows = zip(pairs, own, strict=True) if own is not None else ((pair, {}) for pair in pairs)
        positive = [(_clean(pair), columns) for pair, columns in rows if pair.is_positive]
        right = [row for row in positive if has_answer(row[0])]
        if not right:
            raise MatchloomError(
                "answers are taken from pairs with label 1 or none and a text that is not empty, and there are none",
                code="no_data",
            )
        empty = len(positive) - len(right)
        left_out = "" if not empty else f"{empty:,} {'pair has' if empty == 1 else 'pairs have'} no answer: skipped."
        conflicts = local_ids([pair for pair, _ in right])
        note = ""
        if conflicts:
            right = [(pair._replace(text_id=""), columns) for pair, columns in right]
            note = (
                f"text_id is not used to identify answers: {len(conflicts):,} of them (such as {conflicts[0]!r}) have "
                "clearly different texts. Answers are identified by their texts."
            )
        groups: dict[int, list[tuple[Pair, Own]]] = {}
        for row, answer in zip(right, same_answers([pair for pair, _ in right]), strict=True):
            groups.setdefault(answer, []).append(row)
        spelt = spellings(pair.query for pair, _ in right)
        made = [_made([pair for pair, _ in rows], [own for _, own in rows], spelt) for rows in groups.values()]
        made.sort(key=lambda row: row[0].id)
        entries = [row[0] for row in made]
        notes = " ".join(line for line in (left_out, note) if line)
        return cls.listed(entries, [row[1] for row in made], [row[2] for row in made], notes)

    @classmethod
    def listed(
        cls,
        entries: Iterable[Entry],
        other_ids: Sequence[Sequence[str]] = (),
        other_texts: Sequence[Sequence[str]] = (),
        note: str = "",
    ) -> Entries:
        """From entries in the order of their ids."""
        listed = list(entries)
        ids, texts, questions, columns = ([one[n] for one in listed] for n in range(4))
        return cls(ids, texts, questions, columns, other_ids, other_texts, note)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, n: int) -> Entry:
        own = self.columns[n] if self.columns else {}
        return Entry(self.ids[n], self.texts[n], tuple(self.questions[n]), own)

    def __repr__(self) -> str:
        return f"Entries({len(self):,} answers, {sum(map(len, self.questions)):,} questions)"

    def row(self, name: str) -> int | None:
        """Where an id stands; other ids of an answer count, too."""
        n = bisect_left(self.ids, name)
        return n if n < len(self) and self.ids[n] == name else self._by_other_id.get(name)

    @cached_property
    def _by_other_id(self) -> dict[str, int]:
        return {name: n for n, names in enumerate(self.other_ids) for name in names}

    @cached_property
    def text_keys(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The keys of all texts in their order, and where each stands; other texts of an answer are among them."""
        rows = [*range(len(self)), *(n for n, texts in enumerate(self.other_texts) for _ in texts)]
        texts = chain(self.texts, chain.from_iterable(self.other_texts))
        keys = np.fromiter((_key(text) for text in texts), dtype=np.int64, count=len(rows))
        order = np.argsort(keys, kind="stable")  # of texts with one key, the answer's own comes first
        return keys[order], np.array(rows, dtype=np.int64)[order]

    @cached_property
    def known(self) -> tuple[list[str], sp.csr_array]:
        """The different questions, by digest, and which of them each entry has. (questions, entries)"""
        different = {question for questions in self.questions for question in questions}
        questions = sorted(different, key=lambda question: (digest(normalize_text(question)), question))
        row = {question: n for n, question in enumerate(questions)}
        rows = [row[question] for own in self.questions for question in own]
        columns = np.repeat(np.arange(len(self)), [len(own) for own in self.questions])
        shape = (len(questions), len(self))
        return questions, sp.csr_array((np.ones(len(rows)), (np.array(rows, dtype=np.int64), columns)), shape=shape)

    def find(self, text: str, text_id: str = "") -> int | None:
        """Where an answer stands, known by its text or else by its id; None for a text outside the collection.

        The text comes first: an id may have been made up for a list of candidates.
        """
        keys, rows = self.text_keys
        n = int(np.searchsorted(keys, _key(text)))
        if n < len(keys) and keys[n] == _key(text):
            return int(rows[n])
        return self.row(text_id) if text_id else None


def _key(text: str) -> int:
    """A number that texts share which are the same but for case and spaces; two others share one by no chance."""
    return int.from_bytes(
        blake2b(normalize_text(text).encode(errors="surrogatepass"), digest_size=8).digest(), "big", signed=True
    )


def _clean(pair: Pair) -> Pair:
    """Half characters could not be saved."""
    return pair._replace(query=replace_surrogates(pair.query), text=replace_surrogates(pair.text))


def _made(pairs: Sequence[Pair], own: Sequence[Own], spelt: Mapping[str, str]) -> tuple[Entry, list[str], list[str]]:
    """An entry from its pairs, and what else it is known by."""
    named = sorted({pair.text_id for pair in pairs if pair.text_id})
    counts = Counter(pair.text for pair in pairs)
    written = sorted(counts, key=lambda text: (-counts[text], text))
    questions = tuple(sorted({spelt[normalize_text(pair.query)] for pair in pairs} - {""}))
    columns = {name: _most_frequent(one[name] for one in own if name in one) for one in own for name in one}
    name = named[0] if named else digest(normalize_text(written[0]))
    return Entry(name, written[0], questions, columns), named[1:], written[1:]


def _most_frequent(values: Iterable[str]) -> str:
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


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
