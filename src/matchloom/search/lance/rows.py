"""A pair as a row of an archive: what names it, what tells two rows apart, and which rows have the same answer."""

from __future__ import annotations

from typing import NamedTuple

from matchloom.data.identity import digest, normalize_text
from matchloom.types import Pair


class PairRow(NamedTuple):
    """What a table keeps of a pair beside what is computed from it.

    `id` is what people see and delete by. An answer with many questions has many rows of one id, so that rows are told
    apart by `key`.
    """

    key: str
    id: str
    text_id: str
    question: str
    answer: str

    @classmethod
    def of(cls, pair: Pair) -> PairRow:
        """The row of a pair; of two with one key the later takes the place of the earlier."""
        name = pair_id(pair)
        if pair.query_id:
            key = name
        elif pair.text_id:
            key = f"{name}/{digest(normalize_text(pair.query))}"
        else:
            key = digest(pair.query, pair.text)
        return cls(key, name, pair.text_id, pair.query, pair.text)

    @property
    def same(self) -> str:
        """What rows with the same answer share; an empty answer is nobody else's.

        The text decides and not its id: ids may count within a list, and a text that is shown twice is one too many.
        """
        return answer_key(self.answer) if self.answer.strip() else self.key


def pair_id(pair: Pair) -> str:
    """The id under which a pair is archived: query_id and text_id, as far as there are any, or else its answer's."""
    return "/".join(part for part in (pair.query_id, pair.text_id) if part) or answer_key(pair.text)


def answer_key(answer: str) -> str:
    """A digest of an answer; case and spaces make no other of it."""
    return digest(normalize_text(answer))
