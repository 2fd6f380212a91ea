"""Longest common subsequences of random letters: the simulation of Match-SRNN (Wan et al., IJCAI 2016, section 5)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from matchloom.data.identity import with_ids
from matchloom.types import MatchloomError, Pair


def lcs_pairs(count: int, *, max_length: int = 10, alphabet: str = "ABCDEFGHIJ", seed: int) -> list[Pair]:
    """Draw pairs of letter sequences, 1 to `max_length` long; the label is the length of their longest common one.

    Letters are separated by spaces (tokenise by whitespace, cased). The paper trains on the length over a normaliser:
    divide labels by `max_length`. It draws 10,000 pairs to train and 1,000 to test.
    """
    if count < 0 or max_length < 1 or not alphabet:
        raise MatchloomError(f"no pairs from count {count}, max_length {max_length} and alphabet {alphabet!r}")
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        a, b = ([draw.choice(alphabet) for _ in range(draw.randint(1, max_length))] for _ in range(2))
        pairs.append(Pair(" ".join(a), " ".join(b), float(lcs_length(a, b))))
    return list(with_ids(pairs))


def lcs_table(a: Sequence[str], b: Sequence[str]) -> list[list[int]]:
    """c[i][j], how long the longest common subsequence of a[: i + 1] and b[: j + 1] is, by equation 7.

    >>> lcs_table("AB", "BA")
    [[0, 1], [1, 1]]
    """
    table: list[list[int]] = []
    above = [0] * (len(b) + 1)  # c[i-1, .], the border first
    for x in a:
        row = [0]
        for j, y in enumerate(b):
            row.append(max(row[j], above[j + 1], above[j] + (x == y)))
        table.append(row[1:])
        above = row
    return table


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """How long the longest common subsequence is.

    >>> lcs_length("ABCDE", "FACGD")
    3
    """
    return lcs_table(a, b)[-1][-1] if a and b else 0


def lcs_path(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """The way back through the table from its last cell, turned round: along equal letters, else where c is larger.

    >>> lcs_path("ABC", "AC")
    [(0, 0), (1, 0), (2, 1)]
    """
    c, path = lcs_table(a, b), []
    i, j = len(a) - 1, len(b) - 1
    while i >= 0 and j >= 0:
        path.append((i, j))
        left, top = (c[i][j - 1] if j else 0), (c[i - 1][j] if i else 0)
        if a[i] == b[j]:
            i, j = i - 1, j - 1
        elif left >= top and j:
            j -= 1
        else:
            i -= 1
    return path[::-1]


def is_lcs(a: Sequence[str], b: Sequence[str], matches: Sequence[tuple[int, int]]) -> bool:
    """Whether matched positions (i, j), from 0 and in rising order, spell a longest common subsequence of a and b.

    >>> is_lcs("ABCDE", "FACGD", [(0, 1), (2, 2), (3, 4)])
    True
    """
    inside = all(0 <= i < len(a) and 0 <= j < len(b) and a[i] == b[j] for i, j in matches)
    rising = all(i < k and j < m for (i, j), (k, m) in pairwise(matches))
    return inside and rising and len(matches) == lcs_length(a, b)
