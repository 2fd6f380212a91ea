"""Candidate lists that do not leak."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from matchloom.basics.progress import track
from matchloom.data.identity import digest, normalize_text
from matchloom.data.negatives import Pool, highest
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

# A group is drawn from this many times its size of neighbours: the very nearest are often near-twins (one function
# documented for two classes) that nobody could tell apart by the query. It sets how hard the lists are: see
# docs/architecture.md for how it was picked.
_NEAR = 8


def grouped_lists(
    pairs: Sequence[Pair],
    *,
    size: int = 5,
    seed: int = 0,
    tokenizer: Tokenizer = Tokenizer(),  # noqa: B008 (a NamedTuple: nobody can change it)
    progress: bool = False,
) -> list[Pair]:
    """Make a list of `size` candidates for each query such that only the query tells which one is right.

    The positive pairs are split into groups of `size`: a pair and others drawn from the 8 * size texts nearest to its
    own by BM25. Each text of a group is a candidate for each query of it, so it is the answer once and a distractor
    size - 1 times, and a scorer that never looks at the query gets P@1 = 1 / size exactly. `group` is set (an earlier
    one is replaced) for `split_by_group`.

    A query or text that comes twice (case and spacing apart) is used once, no text is a negative of a list that any
    pair calls positive, and pairs that are left over when no full group can be made are dropped: the result has `size`
    lines for each pair that was used. Neither the groups nor the order of the result depend on the order of the pairs.
    """
    if size < 2:
        raise MatchloomError(f"size {size} makes no lists; expected 2 candidates or more")
    known = set()
    for pair in pairs:
        if not pair.is_positive:
            raise MatchloomError(
                f"query {pair.query[:60]!r} has a pair with label {pair.label}; give positive pairs only"
            )
        known.add((normalize_text(pair.query), normalize_text(pair.text)))
    waiting = _deduplicate(pairs, seed)
    if len(waiting) < size:
        raise MatchloomError(f"found {len(waiting)} different pairs, expected {size} or more for lists of {size}")
    pool = Pool((pair.text for pair in waiting), tokenizer, progress=progress)
    by_row = {pool.rows[normalize_text(pair.text)]: pair for pair in waiting}
    free = np.ones(len(waiting), dtype=bool)
    lists: list[Pair] = []
    for pair in track(waiting, "Grouping", show=progress):
        row = pool.rows[normalize_text(pair.text)]
        if not free[row]:
            continue
        members = [row]
        scores = np.where(free, pool.scores(pair.text), -np.inf).astype(np.float32)
        near = highest(scores, _NEAR * size, without=members)
        for other in Random(f"{seed} {pair.query_id}").sample(sorted(near.tolist()), len(near)):
            if len(members) < size and not any(
                _is_positive(by_row[other], by_row[member], known) for member in members
            ):
                members.append(other)
        if len(members) == size:
            free[members] = False
            # By row, which is by digest: the pair that was first, the middle of its group, must not stand first.
            lists += _lists([by_row[member] for member in sorted(members)])
    return lists


def _deduplicate(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """The pairs in an order of the seed's own, without those whose query, id or text came before."""
    keyed = [
        (digest(str(seed), normalize_text(pair.query), normalize_text(pair.text)), pair.query, pair.text, pair.query_id)
        for pair in pairs
    ]
    queries: set[str] = set()
    texts: set[str] = set()
    ids: set[str] = set()
    kept = []
    for _, query, text, given_id in sorted(set(keyed)):
        query_id = given_id or digest(query)
        if normalize_text(query) in queries or normalize_text(text) in texts or query_id in ids:
            continue
        queries.add(normalize_text(query))
        texts.add(normalize_text(text))
        ids.add(query_id)
        kept.append(Pair(query, text, 1.0, query_id, digest(text)))
    return kept


def _is_positive(one: Pair, other: Pair, known: set[tuple[str, str]]) -> bool:
    """Whether the text of either is a known positive of the query of the other."""
    return (normalize_text(one.query), normalize_text(other.text)) in known or (
        normalize_text(other.query),
        normalize_text(one.text),
    ) in known


def _lists(members: list[Pair]) -> list[Pair]:
    group = digest(*sorted(pair.query_id for pair in members))
    return [
        Pair(pair.query, other.text, float(other is pair), pair.query_id, other.text_id, group)
        for pair in members
        for other in members
    ]
