"""Every split there is: groups that stay together, questions that are held out, three parts of a user's file.

What goes where is drawn by digests of a seed and of content, so that no split depends on the order of lines.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.identity import answers_of, components, digest, normalize_text, with_ids
from matchloom.data.kinds import both_labels, positives_only
from matchloom.types import MatchloomError, Pair

_log = logging.getLogger("matchloom")

#: The group of an answer in the training pairs whose only question is held out. What ranks answers then compares with
#: texts alone: among others that have a question of theirs, an answer without one is hardly ever found.
ALONE = "(its only question is held out)"
FEWEST = 10  # questions from which some can be held out to choose an epoch
LEAST = 6  # judged questions, or groups of pairs with either label, from which three parts can be made
LARGEST = 0.1  # of the pairs may hang together; more would leave no room for three parts
_ENOUGH = 20  # groups to choose and to test on, where there are so many
_REPHRASED = 0.3  # of the questions: where so many have an answer with another question, an answer keeps one


def split_by_group(
    pairs: PairsLike, *, parts: Sequence[float] = (8, 1, 1), seed: int = 0, source: Path | str = ""
) -> tuple[list[Pair], ...]:
    """Part the pairs in these proportions such that a group (a query where there is none) stays on one side.

    Which group goes where depends on the seed and the names of the groups, not on the order of the pairs; the pairs of
    a part stay in the order they came in. Groups are counted, not pairs. A refusal names the `source` of the pairs.
    """
    if not parts or any(part <= 0 for part in parts):
        raise MatchloomError(f"parts {tuple(parts)} must all be above zero")
    given = list(as_pairs(pairs, graded=True))
    keys = [("group", p.group) if p.group else ("query", p.query_id or digest(p.query)) for p in given]
    shuffled = sorted(set(keys), key=lambda key: digest(str(seed), *key))
    ends = [round(len(shuffled) * share / sum(parts)) for share in accumulate(parts)]
    starts = [0, *ends[:-1]]
    if any(start == end for start, end in zip(starts, ends, strict=True)):
        count = f"{len(shuffled)} group{'' if len(shuffled) == 1 else 's'} of pairs"
        raise MatchloomError(
            f"{source or 'the data'}: {count} cannot be split {tuple(parts)} without an empty part; give more pairs"
        )
    side = {key: i for i, (start, end) in enumerate(zip(starts, ends, strict=True)) for key in shuffled[start:end]}
    split: tuple[list[Pair], ...] = tuple([] for _ in parts)
    for key, pair in zip(keys, given, strict=True):
        split[side[key]].append(pair)
    return split


def group_queries(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with a group each: those of one query, by its id or its wording, and of one group already given."""
    keys = (
        [("query", normalize_text(p.query)), ("id", p.query_id), *([("group", p.group)] if p.group else [])]
        for p in pairs
    )
    return _grouped(pairs, components(keys))


def group_texts(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with a group each: those that share a text, on whichever side.

    Where a tenth of all pairs or more would hang together, those of one query; and where even these are so many, those
    of the same two texts only.
    """
    given = [[("group", p.group)] if p.group else [] for p in pairs]
    sides = [(normalize_text(p.query), normalize_text(p.text)) for p in pairs]
    levels = (
        [[*own, ("text", query), ("text", text)] for own, (query, text) in zip(given, sides, strict=True)],
        [[*own, ("text", query)] for own, (query, _) in zip(given, sides, strict=True)],
        [[("both", *sorted(side))] for side in sides],
    )
    found: list[int] = []
    for keys in levels:
        found = components(keys)
        if max(Counter(found).values(), default=0) <= max(2, LARGEST * len(pairs)):
            break
    return _grouped(pairs, found)


def _grouped(pairs: Sequence[Pair], homes: Sequence[int]) -> list[Pair]:
    """Groups are named after their content, so that a split does not depend on the order of the pairs."""
    members: dict[int, list[str]] = {}
    for home, pair in zip(homes, pairs, strict=True):
        members.setdefault(home, []).append(digest(normalize_text(pair.query), normalize_text(pair.text)))
    names = {home: digest(*sorted(set(own))) for home, own in members.items()}
    return [pair._replace(group=names[home]) for home, pair in zip(homes, pairs, strict=True)]


def hold_out(pairs: list[Pair], part: float, seed: int) -> tuple[list[Pair], list[Pair] | None]:
    """Training and development pairs: a part of the questions, whole groups where pairs have them."""
    if not 0 < part < 1:
        raise MatchloomError(f"hold_out must be between 0 and 1, or 0 for none, found {part}", code="bad_value")
    asked = len({pair.query_id or normalize_text(pair.query) for pair in pairs})
    if asked < FEWEST:
        _log.warning("%d questions are too few to hold any out; every epoch is run and the last one kept", asked)
        return pairs, None
    if positives_only(pairs) and not any(pair.group for pair in pairs):
        kept, held = hold_out_questions(pairs, part, seed=seed)
        return kept, held or None
    training, development = split_by_group(pairs, parts=(1 - part, part), seed=seed)
    return training, development


def hold_out_questions(
    pairs: Sequence[Pair],
    part: float,
    *,
    seed: int = 0,
    most: int | None = None,
    fold_number: int | None = None,
    keep_answers: bool = False,
) -> tuple[list[Pair], list[Pair]]:
    """Positive pairs to learn from, and those of a part of the questions.

    An answer keeps a question where it has several, for users ask again what is known, in other words. Only where
    hardly any answer has two may its only question be held out.

    Args:
        pairs: Questions with their answers; negatives are left out.
        part: Of the questions, is held out.
        seed: Of the draw.
        most: Questions that are held out at most.
        fold_number: Hold out this one of 1 / part folds, which have no question in common.
        keep_answers: Keep the answer of a question that is held out, without it: the collection stays whole. Where it
            was the answer's only question, the pair's group is ALONE.
    """
    positives = [pair for pair in pairs if pair.is_positive]
    homes = _homes(positives)
    asked = Counter(home for own in homes.values() for home in own)
    order = sorted(homes, key=lambda question: digest(str(seed), question))
    once = _asked_once(homes, asked)
    drawn = order if once else [question for question in order if _rephrased(homes[question], asked)]
    count = max(1, min(round(part * len(order)), len(order) - 1, len(order) if most is None else most))
    if fold_number is not None:
        drawn = drawn[fold_number :: round(1 / part)]
        count = len(drawn)
    held: set[str] = set()
    for question in drawn:
        if len(held) == count:
            break
        if once or _rephrased(homes[question], asked):
            held.add(question)
            asked.subtract(homes[question])
    kept = [pair for pair in positives if normalize_text(pair.query) not in held]
    out = [pair for pair in positives if normalize_text(pair.query) in held]
    if keep_answers:
        kept += [pair._replace(query="", query_id="", group=ALONE if once else pair.group) for pair in out]
    return kept, out


def hold_out_clusters(
    train: Sequence[Pair], held: Sequence[Pair], clusters: Mapping[str, int], *, most: float = 0.3
) -> tuple[list[Pair], list[Pair]]:
    """Training pairs without the clusters of held-out questions, and the pairs of those of them that can be asked.

    Every answer stays, and keeps a question: where a cluster holds all of an answer's, its held-out questions are not
    asked. Others are, in an order of their own, until `most` of the training questions are gone.
    """
    positives = [*(pair for pair in train if pair.is_positive), *(pair for pair in held if pair.is_positive)]
    homes = _homes(positives)
    known = {question for pair in train if (question := normalize_text(pair.query)) and pair.is_positive}
    left = Counter(home for question in known for home in homes[question])
    members: dict[int, list[str]] = {}
    for question in known:
        members.setdefault(clusters.get(question, -1), []).append(question)
    gone: set[str] = set()
    asked: set[str] = set()
    for question in sorted({normalize_text(pair.query) for pair in held} & homes.keys(), key=digest):
        more = set(members.get(clusters.get(question, -2), ())) - gone
        lost = Counter(home for one in more for home in homes[one])
        if any(left[home] <= lost[home] for home in homes[question] | lost.keys()):
            continue
        if len(gone) + len(more) <= most * len(known):
            asked.add(question)
            gone |= more
            left.subtract(lost)
    kept = [p._replace(query="", query_id="") if normalize_text(p.query) in gone else p for p in train]
    return kept, [pair for pair in held if normalize_text(pair.query) in asked]


def asked_once(pairs: Sequence[Pair]) -> bool:
    """Whether hardly any answer has two questions, so that a question is held out with its answer's only one."""
    homes = _homes([pair for pair in pairs if pair.is_positive])
    return _asked_once(homes, Counter(home for own in homes.values() for home in own))


def texts_alone(pairs: Sequence[Pair]) -> bool:
    """Whether answers stand here without the only question they had, which was held out."""
    return any(pair.group == ALONE for pair in pairs)


def _homes(pairs: Sequence[Pair]) -> dict[str, set[int]]:
    """The answers of each question; an answer that nobody asked for has none."""
    homes: dict[str, set[int]] = {}
    for pair, answer in zip(pairs, answers_of(pairs), strict=True):
        if question := normalize_text(pair.query):
            homes.setdefault(question, set()).add(answer)
    return homes


def _rephrased(answers: set[int], asked: Mapping[int, int]) -> bool:
    """Whether each of a question's answers has another question, too."""
    return all(asked[answer] > 1 for answer in answers)


def _asked_once(homes: Mapping[str, set[int]], asked: Mapping[int, int]) -> bool:
    return sum(_rephrased(own, asked) for own in homes.values()) < _REPHRASED * len(homes)


def split_lists(pairs: Sequence[Pair], seed: int) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Judged lists for training, development and test, by question.

    Questions without both a positive and a negative cannot be measured: they stay with the training pairs, whose words
    they add to.
    """
    grouped = group_queries(list(with_ids(pairs)))
    judged = {pair.group for pair in both_labels(grouped)}
    if len(judged) < LEAST:
        raise MatchloomError(
            f"{len(judged)} questions have both a positive (label 1) and a negative (label 0), expected {LEAST} "
            "or more to learn, choose and test; label more questions"
        )
    train, development, test = _in_three(grouped, judged, seed)
    return [*train, *(pair for pair in grouped if pair.group not in judged)], development, test


def split_labelled(pairs: Sequence[Pair], seed: int) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Independent labelled pairs for training, development and test; those with a text in common stay together.

    `group_texts` says how far. Groups with a pair of the rarer label are split for themselves, so that every part has
    both.
    """
    grouped = group_texts(list(with_ids(pairs)))
    rare = 2 * sum(pair.is_labelled_positive for pair in grouped) < len(grouped)
    kinds = {pair.group for pair in grouped if pair.is_labelled_positive == rare}
    if len(kinds) < LEAST:
        raise MatchloomError(
            f"{len(kinds)} independent groups of pairs have label {rare:.0f}, expected {LEAST} or more to learn, "
            "choose and test; label more pairs"
        )
    others = {pair.group for pair in grouped} - kinds
    parts: tuple[list[Pair], list[Pair], list[Pair]] = ([], [], [])
    # Where a group mostly holds both labels, as of a question with positives and negatives, there are few others.
    for groups in (kinds, others) if len(others) >= LEAST else (kinds | others,):
        for part, more in zip(parts, _in_three(grouped, groups, seed), strict=True):
            part.extend(more)
    if any(len({pair.is_labelled_positive for pair in part}) < 2 for part in parts):
        raise MatchloomError("too few groups of pairs have both labels for training, choosing and testing; label more")
    return parts


def fold_labelled(pairs: Sequence[Pair], folds: int) -> list[int]:
    """The fold of each labelled pair: groups as those of `split_labelled` stay together, labels are alike.

    There are fewer folds where a label has fewer groups; the order of the pairs does not show.
    """
    grouped = group_texts(list(with_ids(pairs)))
    rare = 2 * sum(pair.is_labelled_positive for pair in grouped) < len(grouped)
    kinds = {pair.group for pair in grouped if pair.is_labelled_positive == rare}
    count = min(folds, len(kinds), len({pair.group for pair in grouped if pair.is_labelled_positive != rare}))
    if count < 2:
        raise MatchloomError(
            f"{len(kinds)} independent groups of pairs have label {rare:.0f}, expected 2 or more; label more pairs"
        )
    others = {pair.group for pair in grouped} - kinds
    order = [*sorted(kinds), *sorted(others)]  # named by digests, so that this is a draw
    homes = {group: n % count for n, group in enumerate(order)}
    return [homes[pair.group] for pair in grouped]


def _in_three(pairs: Sequence[Pair], groups: set[str], seed: int) -> tuple[list[Pair], ...]:
    """The pairs of these groups, 70:15:15, with 20 groups or a quarter to choose and to test on where that is more."""
    held = max(round(0.15 * len(groups)), min(_ENOUGH, len(groups) // 4))
    some = [pair for pair in pairs if pair.group in groups]
    return split_by_group(some, parts=(len(groups) - 2 * held, held, held), seed=seed)
