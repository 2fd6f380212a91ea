"""The pairs that choose the best epoch: given, or held out; ranked as users rank, against everything."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from matchloom.data.against_all import against_all
from matchloom.data.grouping import split_by_group
from matchloom.data.holding_out import hold_out_questions
from matchloom.data.ids import digest, fold, with_ids
from matchloom.data.kinds import PAIRS, kind_of
from matchloom.data.negatives import Pool
from matchloom.text.tokenize import Tokenizer
from matchloom.training.config import COMPARING, TrainConfig
from matchloom.types import MatchloomError, Pair

_log = logging.getLogger("matchloom")

FEWEST = 10  # questions from which some can be held out
WHOLE = 1000  # texts of a collection up to which development questions are ranked against every one
NEAREST = 100  # texts by BM25 that a question is ranked against in a larger one
_MOST_PAIRS, _MOST_QUESTIONS = 100_000, 500  # that are scored after each epoch


def right_alone(pairs: Sequence[Pair]) -> bool:
    """Whether pairs are all right: labelled above 0, or none of them labelled."""
    return all(pair.label is not None and pair.label > 0 for pair in pairs) or all(p.label is None for p in pairs)


def hold_out(pairs: list[Pair], part: float, seed: int) -> tuple[list[Pair], list[Pair] | None]:
    """Training and development pairs: a part of the questions, whole groups where pairs have them."""
    if not 0 < part < 1:
        raise MatchloomError(f"hold_out must be between 0 and 1, or 0 for none, found {part}")
    asked = len({pair.query_id or fold(pair.query) for pair in pairs})
    if asked < FEWEST:
        _log.warning("%d questions are too few to hold any out; every epoch is run and the last one kept", asked)
        return pairs, None
    if right_alone(pairs) and not any(pair.group for pair in pairs):
        kept, held = hold_out_questions(pairs, part, seed=seed)
        return kept, held or None
    training, development = split_by_group(pairs, parts=(1 - part, part), seed=seed)
    return training, development


def suited(config: TrainConfig, pairs: Sequence[Pair]) -> TrainConfig:
    """The settings with a loss that can learn from these pairs: cross-entropy where no query has both labels."""
    seen: dict[str, set[bool]] = {}
    for pair in pairs:
        seen.setdefault(pair.query_id or fold(pair.query), set()).add((pair.label or 0) > 0)
    labels = set().union(*seen.values())
    if config.loss in COMPARING and not right_alone(pairs) and len(labels) == 2 > max(map(len, seen.values())):
        return replace(config, loss="cross_entropy")
    return config


def independent(config: TrainConfig, pairs: Sequence[Pair] | None) -> bool:
    """Whether these are pairs that match or not, each for itself, and no candidate lists (cross-entropy alone)."""
    return bool(pairs) and config.loss == "cross_entropy" and kind_of(pairs or []).name == PAIRS


def one_list(pairs: Sequence[Pair]) -> list[Pair]:
    """Independent pairs as one candidate list, so that measures of rankings are over all of them."""
    plain = (pair._replace(query_id="all", text_id="", label=float((pair.label or 0) > 0)) for pair in pairs)
    return sorted(with_ids(plain), key=lambda pair: pair.text_id)


def ranked(development: list[Pair], training: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Pair]:
    """Development pairs as lists: as they are where wrong texts stand in them, else against the whole collection.

    In a collection of more than WHOLE texts a question is ranked against its right texts and the NEAREST by BM25.
    """
    if not right_alone(development):
        return development
    right = [pair for pair in training if pair.label is None or pair.label > 0]
    texts = {fold(pair.text) for pair in [*right, *development]}
    if len(texts) <= WHOLE:
        return against_all(development, right, most=_MOST_PAIRS, seed=seed)
    return list(_near_lists(development, right, tokenizer, seed))


def _near_lists(
    development: Sequence[Pair], training: Sequence[Pair], tokenizer: Tokenizer, seed: int
) -> Iterator[Pair]:
    pool = Pool([pair.text for pair in [*training, *development]], tokenizer)
    asked: dict[str, list[Pair]] = {}
    for pair in development:
        asked.setdefault(fold(pair.query), []).append(pair)
    for key in sorted(asked, key=lambda key: digest(str(seed), key))[:_MOST_QUESTIONS]:
        query = min(pair.query for pair in asked[key])
        right = {pool.rows[fold(pair.text)] for pair in asked[key]}
        for row in sorted(right | set(pool.nearest(query, NEAREST, ()).tolist())):  # by digest, not by nearness
            yield Pair(query, pool.texts[row], float(row in right), digest(key), str(row))
