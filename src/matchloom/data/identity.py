"""When two texts, questions or answers are the same; ids made from content, so that the order of lines is nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from matchloom.types import Pair

_CONFLICTS, _COMPARED = 3, 20
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}\p{N}]+")


def digest(*parts: str) -> str:
    """Sixteen hexadecimal digits that stand for these texts: the same on every machine and in every run.

    >>> digest("what is a loom?")
    '95d61a04ff053d4c'
    """
    # A file may hold half of a surrogate pair; an id must not fail on it.
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def normalize_text(text: str) -> str:
    """The text without case and with single spaces: texts that are equal after this are one."""
    return " ".join(text.casefold().split())


def spellings(queries: Iterable[str]) -> dict[str, str]:
    """One spelling for all questions that differ in case and spaces only: the least; none for an empty one."""
    spelt: dict[str, str] = {"": ""}
    for query in queries:
        key = normalize_text(query)
        if key:
            spelt[key] = min(spelt.get(key, query), query)
    return spelt


def with_ids(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Fill the ids that are empty and leave the others; pairs come out one by one as they come in.

    A query's id is a digest of its text. A candidate's id is a digest of all that its pair says and of how often
    that same pair came before, so that a text listed twice gets two ids. A digest has no order of its own: ties that
    are broken by id follow neither the lines of the file nor the labels.
    """
    seen: Counter[str] = Counter()
    for pair in pairs:
        query_id = pair.query_id or digest(pair.query)
        text_id = pair.text_id or tell_apart(content_id(pair), seen)
        yield pair._replace(query_id=query_id, text_id=text_id)


def content_id(pair: Pair) -> str:
    """A digest of all that a pair says."""
    label = "" if pair.label is None else str(float(pair.label))
    return digest(pair.query_id or digest(pair.query), pair.query, pair.text, label, pair.group)


def tell_apart(made: str, seen: Counter[str]) -> str:
    """A digest that was made of a pair; another one where the same was seen before."""
    seen[made] += 1
    return made if seen[made] == 1 else digest(made, str(seen[made]))


def both_sides(pairs: Iterable[Pair]) -> list[str]:
    """The different texts of both sides of pairs, in their order."""
    return list(dict.fromkeys(side for pair in pairs for side in (pair.query, pair.text)))


def in_order(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs in an order that is theirs and not their file's, also where some have a label and some have none."""
    return sorted(pairs, key=lambda pair: (pair[:2], (pair.label is None, pair.label or 0.0), pair[3:]))


def questions_of(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The different questions (case and spacing apart) in an order of their own, each with its positive pairs."""
    spelt: dict[str, str] = {}
    found: dict[str, list[Pair]] = {}
    for pair in in_order(pairs):
        key = normalize_text(pair.query)
        if key and pair.is_positive:
            found.setdefault(spelt.setdefault(key, pair.query), []).append(pair)
    return found


def count_known(asked: Iterable[Pair], questions: Iterable[str]) -> int:
    """How many of the different questions that are asked are among these, case and spacing apart.

    >>> count_known([Pair("Lost it", "Write."), Pair("Broken", "Call.")], ["lost  it"])
    1
    """
    return len({normalize_text(query) for query in questions_of(asked)} & set(map(normalize_text, questions)))


def components(keys: Iterable[Sequence[Hashable]]) -> list[int]:
    """The component of each row, named by its first row: rows with a key in common, directly or not, are of one.

    >>> components([("a", "b"), ("c",), ("b", "d")])
    [0, 1, 0]
    """
    rows = list(keys)
    first: dict[Hashable, int] = {}
    ends = [(row, first.setdefault(key, row)) for row, own in enumerate(rows) for key in own]
    found: list[int] = _joined(len(rows), np.array(ends, dtype=np.int64).reshape(-1, 2)).tolist()
    return found


def components_of(columns: Sequence[tuple[NDArray[Any], NDArray[np.bool_]]]) -> NDArray[np.int64]:
    """The same of rows with a key in each column, where the mask beside it says so.

    >>> on = np.ones(3, dtype=bool)
    >>> components_of([(np.array([7, 8, 9]), on), (np.array([5, 0, 5]), np.array([True, False, True]))]).tolist()
    [0, 1, 0]
    """
    ends = []
    for keys, there in columns:
        rows = np.flatnonzero(there)
        _, first, key_of = np.unique(keys[rows], return_index=True, return_inverse=True)
        ends.append(np.stack([rows, rows[first][key_of]], axis=1))
    return _joined(len(columns[0][0]), np.concatenate(ends))


def _joined(count: int, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The component of each of so many rows, by pairs of rows that are of one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not count:
        return np.empty(0, dtype=np.int64)
    graph = coo_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    _, firsts, places = np.unique(labels, return_index=True, return_inverse=True)
    found: NDArray[np.int64] = firsts[places]
    return found


def same_answers(pairs: Sequence[Pair]) -> list[int]:
    """The answer of each pair, as a number: pairs that share a text_id, or a text but for case and spaces, have one."""
    return components(
        [("text", normalize_text(pair.text)), *([("id", pair.text_id)] if pair.text_id else [])] for pair in pairs
    )


def answers_of(pairs: Sequence[Pair]) -> list[int]:
    """`same_answers`, by texts alone where text_ids name something else."""
    return same_answers([pair._replace(text_id="") for pair in pairs] if local_ids(pairs) else pairs)


def local_ids(pairs: Iterable[Pair]) -> list[str]:
    """The text_ids that speak against all of them as names of answers; none where they can be trusted.

    An id with several texts is one answer, written in several ways, as long as the texts share words. A text that
    shares less than a quarter of the words with its id's most frequent one is a conflict. An answer may have been
    written anew altogether; but where most ids with several texts have conflicts, and there are three or more, ids name
    something else.
    """
    texts: dict[str, Counter[str]] = {}
    for pair in pairs:
        if pair.text_id:
            texts.setdefault(pair.text_id, Counter())[normalize_text(pair.text)] += 1
    several = {name: own for name, own in texts.items() if len(own) > 1}
    conflicts: dict[str, int] = {}
    for name, own in several.items():
        first, *others = sorted(own, key=lambda text: (-own[text], text))[:_COMPARED]
        words = _words(first)
        apart = sum(4 * len(words & other) < len(words | other) for other in map(_words, others))
        if apart:
            conflicts[name] = apart
    return sorted(conflicts) if 2 * len(conflicts) > len(several) and sum(conflicts.values()) >= _CONFLICTS else []


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def pairs_digest(*parts: Sequence[Pair]) -> str:
    """What tells sets of pairs apart, their order included."""
    return digest(*(digest(*(repr(tuple(pair)) for pair in part)) for part in parts))
