"""What a user's file is: questions with answers, judged candidate lists, or independent labelled pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from matchloom.data.identity import normalize_text
from matchloom.types import MatchloomError, Pair

ANSWERS, LISTS, PAIRS = "answers", "lists", "pairs"
KINDS = {
    ANSWERS: "questions with their answers: every question is ranked against all answers",
    LISTS: "judged candidate lists: every question is ranked against its own candidates",
    PAIRS: "independent labelled pairs: each matches or does not match",
}
# Of the queries, this part must have both a positive and a negative text for a file to be one of lists. Paraphrase data
# repeats a few sentences by chance; candidate lists have hardly a query without both.
_BOTH = 0.3


class Kind(NamedTuple):
    """What was found, with the counts that speak for it."""

    name: str
    pairs: int
    queries: int
    texts: int
    positives: int

    def __str__(self) -> str:
        counts = f"{self.pairs:,} pairs, {self.queries:,} different queries, {self.texts:,} different texts"
        return f"{KINDS[self.name]} ({counts})"


def kind_of(pairs: Sequence[Pair], wanted: str | None = None) -> Kind:
    """Tell from labels and repetition what pairs are; `wanted` overrules, and is refused where it cannot be.

    Without a label of 0 the texts are answers. With both labels, queries that have both make lists; else the pairs are
    independent.
    """
    if not pairs:
        raise MatchloomError(
            "there are no pairs to fit; expected a file with the columns query and text", code="no_data"
        )
    if wanted is not None and wanted not in KINDS:
        raise MatchloomError(f"kind {wanted!r} is unknown; choose one of {', '.join(KINDS)}", code="unknown_name")
    labels: dict[str, set[bool]] = {}
    texts: Counter[str] = Counter()
    positives = 0
    for pair in pairs:
        positive = pair.is_positive
        labels.setdefault(pair.query_id or normalize_text(pair.query), set()).add(positive)
        texts[normalize_text(pair.text)] += 1
        positives += positive
    if not positives:
        raise MatchloomError(
            "no pair is positive (label 1, or no label), so that there is nothing to learn from", code="bad_labels"
        )
    found = ANSWERS
    if positives < len(pairs):
        both = sum(len(seen) == 2 for seen in labels.values())
        found = LISTS if both >= _BOTH * len(labels) else PAIRS
    elif wanted in (LISTS, PAIRS):
        raise MatchloomError(
            f"kind {wanted!r} needs negatives too (label 0), and every pair is positive", code="bad_labels"
        )
    return Kind(wanted or found, len(pairs), len(labels), len(texts), positives)


def positives_only(pairs: Sequence[Pair]) -> bool:
    """Whether all pairs are positive: labelled above 0, or none of them labelled."""
    return all(pair.is_labelled_positive for pair in pairs) or all(p.label is None for p in pairs)


def both_labels(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of questions that have both a positive and a negative; no ranking of the others can be wrong."""
    seen: dict[str, set[bool]] = {}
    for pair in pairs:
        seen.setdefault(pair.query_id, set()).add(pair.is_labelled_positive)
    return [pair for pair in pairs if len(seen[pair.query_id]) == 2]
