"""Negatives that a matcher finds itself: what it ranks highest for a question and is no positive of it.

A network with sentence vectors looks at every answer of a collection of up to WHOLE; others, and larger collections,
are ranked among the CANDIDATES nearest by BM25. An unjudged text near the top is often a positive that nobody wrote
down. Three filters leave such texts out: those that nearly repeat a positive (COPY of their different words are the
same), those that stand above the best positive by more than a margin, and the first LEAST_RANK. The margin is what
development questions show: by how much their best negative is above their best positive, at the quantile MARGIN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from matchloom.basics.parallel import thread_pool
from matchloom.basics.progress import track
from matchloom.batches import PairBatch, Texts
from matchloom.data.batching import features_of, pad_texts
from matchloom.data.negatives import highest
from matchloom.data.tokenized import Rows, TokenizedTexts
from matchloom.matcher import Matcher, ReadPairs
from matchloom.training.collection import Collection
from matchloom.types import Pair, Scores

WHOLE = 50_000  # answers up to which sentence vectors are compared with all of them
CANDIDATES = 200  # answers by BM25 that others are ranked among
MINED = 50  # that are kept for each question
LEAST_RANK = 0  # of the highest that are passed over
COPY = 0.8
MARGIN = 0.95
_AT_ONCE = 256  # texts that are encoded together
_MATCHED = 2048  # vectors that are matched together: so many stay near the processor


def mined(matcher: Matcher, collection: Collection, read: ReadPairs, margin: float, progress: bool) -> list[Rows]:
    """The negatives of each question, as `Collection.near` has them; those that are questions stay as they were."""
    model = matcher.model.eval()
    whole = model.sentence_vectors and not model.needs_features and collection.answers <= WHOLE
    ranked = (_among_all if whole else _among_candidates)(matcher, collection, read)
    filtered = _Filter(collection, read.right, margin)
    found = []
    for q, (rows, scores, best) in enumerate(track(ranked, "mining", total=len(collection.relevant), show=progress)):
        questions = collection.near[q][collection.near[q] >= collection.answers]
        found.append(np.concatenate([np.sort(filtered(q, rows, scores, best)), questions]))
    return found


def development_margin(pairs: Sequence[Pair], scores: Scores) -> float:
    """By how much a development question's best negative may be above its best positive, at the quantile MARGIN."""
    best: dict[tuple[str, bool], float] = {}
    for pair, score in zip(pairs, scores.tolist(), strict=True):
        key = (pair.query_id, pair.is_labelled_positive)
        best[key] = max(score, best.get(key, score))
    above = [best[q, False] - score for (q, positive), score in best.items() if positive and (q, False) in best]
    return max(0.0, float(np.quantile(above, MARGIN))) if above else float("inf")


Ranking = tuple[Rows, Scores, float]  # rows of answers, highest first, their scores, and that of the best positive


class _Filter:
    """What stays of a ranking when positives that nobody wrote down are left out."""

    def __init__(self, collection: Collection, texts: TokenizedTexts, margin: float) -> None:
        self._collection, self._texts, self._margin = collection, texts, margin
        self._words: dict[int, frozenset[int]] = {}

    def __call__(self, q: int, rows: Rows, scores: Scores, best: float) -> Rows:
        relevant = self._collection.relevant[q]
        own = [self._word_set(int(row)) for row in relevant[relevant < self._collection.answers]]
        kept: list[int] = []
        for row in rows[LEAST_RANK:][scores[LEAST_RANK:] <= best + self._margin].tolist():
            words = self._word_set(row)
            if not any(len(words & other) >= COPY * len(words | other) for other in own):
                kept.append(row)
                if len(kept) == MINED:
                    break
        return np.array(kept, dtype=np.int64)

    def _word_set(self, row: int) -> frozenset[int]:
        if row not in self._words:
            self._words[row] = frozenset(self._texts.word_ids(row).tolist())
        return self._words[row]


def _among_all(matcher: Matcher, collection: Collection, read: ReadPairs) -> Iterator[Ranking]:
    """Every question against every answer, by their sentence vectors."""
    model, device = matcher.model, matcher.device
    left = torch.cat(list(_encoded(matcher, read.left, len(read.left))))
    right = torch.cat(list(_encoded(matcher, read.right, collection.answers, right=True)))
    unread = Texts(torch.zeros((1, 1), dtype=torch.long, device=device), torch.ones(1, dtype=torch.long, device=device))

    def work(q: int) -> Ranking:
        found = []
        with torch.inference_mode():
            for some in torch.split(right, _MATCHED):
                places = torch.arange(len(some), device=device)  # nothing but the vectors is looked at
                batch = PairBatch(unread, unread, torch.zeros_like(places), places)
                found.append(model.match(left[q : q + 1], some, batch))
        return _ranking(collection, q, np.arange(collection.answers), torch.cat(found).cpu().numpy())

    with thread_pool() as pool:
        yield from pool.map(work, range(len(collection.relevant)))


def _encoded(matcher: Matcher, table: TokenizedTexts, count: int, *, right: bool = False) -> Iterator[Tensor]:
    encode = matcher.model.encode_right if right else matcher.model.encode
    with torch.inference_mode():
        for start in range(0, count, _AT_ONCE):
            rows = np.arange(start, min(start + _AT_ONCE, count))
            yield encode(pad_texts(table, rows, right=right).to(matcher.device))


def _among_candidates(matcher: Matcher, collection: Collection, read: ReadPairs) -> Iterator[Ranking]:
    """Every question against its answers and the candidates by BM25."""
    wide = collection.candidates or collection.near
    left, right = read.left, read.right
    for start in range(0, len(wide), _AT_ONCE):
        some = range(start, min(start + _AT_ONCE, len(wide)))
        rows = [_answers(collection, np.union1d(wide[q], collection.relevant[q])) for q in some]
        asked = np.repeat(np.arange(some.start, some.stop), [len(own) for own in rows])
        texts = np.concatenate(rows)
        pairs = ReadPairs(left, right, asked, texts, features_of(left, right, asked, texts))
        scores = np.split(matcher.score_read(pairs), np.cumsum([len(own) for own in rows])[:-1])
        for q, own, values in zip(some, rows, scores, strict=True):
            yield _ranking(collection, q, own, values)


def _answers(collection: Collection, rows: Rows) -> Rows:
    return rows[rows < collection.answers]


def _ranking(collection: Collection, q: int, rows: Rows, scores: Scores) -> Ranking:
    """The highest of these answers that are no positives, more than are kept, for some are filtered out."""
    positive = np.isin(rows, collection.relevant[q])
    best = float(scores[positive].max())
    places = highest(np.where(positive, -np.inf, scores).astype(np.float32), 2 * MINED + LEAST_RANK)
    places = places[np.argsort(-scores[places], kind="stable")]
    return rows[places], scores[places], best
