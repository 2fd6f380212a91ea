"""The pairs that choose the best epoch: ranked as users rank, against everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from matchloom.data.full_ranking import full_ranking
from matchloom.data.identity import digest, normalize_text, with_ids
from matchloom.data.kinds import PAIRS, kind_of, positives_only
from matchloom.data.negatives import Pool
from matchloom.text.tokenize import Tokenizer
from matchloom.training.config import COMPARING, TrainConfig
from matchloom.types import Pair

WHOLE = 1000  # texts of a collection up to which development questions are ranked against every one
NEAREST = 100  # texts by BM25 that a question is ranked against in a larger one
_MOST_PAIRS, _MOST_QUESTIONS = 100_000, 500  # that are scored after each epoch


def suited(config: TrainConfig, pairs: Sequence[Pair]) -> TrainConfig:
    """The settings with a loss that can learn from these pairs: cross-entropy where no query has both labels."""
    seen: dict[str, set[bool]] = {}
    for pair in pairs:
        seen.setdefault(pair.query_id or normalize_text(pair.query), set()).add(pair.is_labelled_positive)
    labels = set().union(*seen.values())
    if config.loss in COMPARING and not positives_only(pairs) and len(labels) == 2 > max(map(len, seen.values())):
        return replace(config, loss="cross_entropy")
    return config


def independent(config: TrainConfig, pairs: Sequence[Pair] | None) -> bool:
    """Whether these are pairs that match or not, each for itself, and no candidate lists (cross-entropy alone)."""
    return bool(pairs) and config.loss == "cross_entropy" and kind_of(pairs or []).name == PAIRS


def one_list(pairs: Sequence[Pair]) -> list[Pair]:
    """Independent pairs as one candidate list, so that measures of rankings are over all of them."""
    plain = (pair._replace(query_id="all", text_id="", label=float(pair.is_labelled_positive)) for pair in pairs)
    return sorted(with_ids(plain), key=lambda pair: pair.text_id)


def ranked(development: list[Pair], training: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Pair]:
    """Development pairs as lists: as they are where negatives stand in them, else against the whole collection.

    In a collection of more than WHOLE texts a question is ranked against its positives and the NEAREST by BM25.
    """
    if not positives_only(development):
        return development
    positives = [pair for pair in training if pair.is_positive]
    texts = {normalize_text(pair.text) for pair in [*positives, *development]}
    if len(texts) <= WHOLE:
        return full_ranking(development, positives, most=_MOST_PAIRS, seed=seed)
    return list(_near_lists(development, positives, tokenizer, seed))


def _near_lists(
    development: Sequence[Pair], training: Sequence[Pair], tokenizer: Tokenizer, seed: int
) -> Iterator[Pair]:
    pool = Pool([pair.text for pair in [*training, *development]], tokenizer)
    asked: dict[str, list[Pair]] = {}
    for pair in development:
        asked.setdefault(normalize_text(pair.query), []).append(pair)
    for key in sorted(asked, key=lambda key: digest(str(seed), key))[:_MOST_QUESTIONS]:
        query = min(pair.query for pair in asked[key])
        relevant = {pool.rows[normalize_text(pair.text)] for pair in asked[key]}
        for row in sorted(relevant | set(pool.nearest(query, NEAREST, ()).tolist())):  # by digest, not by nearness
            yield Pair(query, pool.texts[row], float(row in relevant), digest(key), str(row))
