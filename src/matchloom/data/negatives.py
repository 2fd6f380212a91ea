"""Negatives for positive pairs: drawn at random, from the neighbours of the true text, or by any scorer.

Negatives drawn from the neighbours of the true text leak (a scorer that never sees the question can tell them from
it by their length): this is the papers' protocol, for the papers' tables. For lists of one's own see grouping.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from random import Random
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.identity import digest, in_order, normalize_text
from matchloom.kernels.native import address, library
from matchloom.lexical.bm25 import K1, B
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scorer, Scores

SOURCES = ("bm25", "cosine", "query", "random")
#: How a text becomes words: a tokenizer, or what it made of the texts before.
WordsOf = Tokenizer | Callable[[str], list[str]]
PRECUT = 10  # a scorer sees the `PRECUT * top` texts of the pool that BM25 finds for the question


class Pool:
    """Different texts, and for any words the nearest of them by BM25, the scorer's own (lexical/bm25.py), or cosine.

    The texts stand in the order of their digests, so that neither the order they came in nor the alphabet decides
    which of equally near ones is taken. `ids` are those of texts that have one of their own.
    """

    def __init__(
        self,
        texts: Iterable[str],
        tokenizer: WordsOf,
        *,
        ids: Mapping[str, str] | None = None,
        progress: bool = False,
    ) -> None:
        self.ids: Mapping[str, str] = ids or {}
        spellings: dict[str, str] = {}
        for text in texts:
            normalized = normalize_text(text)
            spellings[normalized] = min(text, spellings.get(normalized, text))
        normalized_texts = sorted(spellings, key=digest)
        self.texts: list[str] = [spellings[normalized] for normalized in normalized_texts]
        self.rows: dict[str, int] = {normalized: row for row, normalized in enumerate(normalized_texts)}
        self._tokenizer = tokenizer
        self._progress = progress
        self._words: dict[str, int] = {}
        self._index: bm25s.BM25 | None = None
        self._table: tuple[NDArray[Any], ...] = ()
        self._vectors: tuple[Any, Any] | None = None

    def scores(self, text: str) -> Scores:
        """BM25 of every text of the pool for the words of this one."""
        index, known = self._indexed(), self._known(text)
        return np.asarray(index.get_scores_from_ids(known), dtype=np.float32)

    def _indexed(self) -> bm25s.BM25:
        """The index; random negatives need none."""
        if self._index is None:
            index = bm25s.BM25(method="lucene", k1=K1, b=B)
            # Our own word ids: those of bm25s change from run to run.
            ids = [
                [self._words.setdefault(word, len(self._words)) for word in self._tokenizer(line)]
                for line in track(self.texts, "Indexing texts", show=self._progress)
            ]
            if not self._words:
                raise MatchloomError(
                    "no text of the pool holds a word; check the texts and the tokenizer", code="no_data"
                )
            index.index((ids, self._words), create_empty_token=False, show_progress=False)
            kinds = {"indptr": np.int64, "indices": np.int32, "data": np.float32}
            self._table = tuple(np.ascontiguousarray(index.scores[name], kind) for name, kind in kinds.items())
            self._index = index
        return self._index

    def _known(self, text: str) -> list[int]:
        return [self._words[word] for word in self._tokenizer(text) if word in self._words]

    def cosines(self, text: str) -> Scores:
        """The cosine of every text of the pool to this one; a vector has TF-IDF for each word."""
        if self._vectors is None:
            from sklearn.feature_extraction.text import TfidfVectorizer  # a second that others need not wait

            maker = TfidfVectorizer(analyzer=self._tokenizer)
            self._vectors = maker, maker.fit_transform(track(self.texts, "Indexing texts", show=self._progress))
        maker, vectors = self._vectors
        return np.asarray((vectors @ maker.transform([text]).T).todense(), dtype=np.float32)[:, 0]

    def nearest(self, text: str, count: int, without: Iterable[int], *, cosine: bool = False) -> NDArray[np.intp]:
        """The rows of the `count` texts with the highest scores, in no particular order, leaving some rows out."""
        if cosine:
            return highest(self.cosines(text), count, without)
        return self.nearest_each([text], [count], [list(without)])[0]

    def nearest_each(
        self, texts: Sequence[str], counts: Sequence[int], without: Sequence[Sequence[int]]
    ) -> list[NDArray[np.intp]]:
        """The same for each of several texts, by BM25."""
        self._indexed()
        native, known = library(), [self._known(text) for text in texts]
        if native is None:
            asked_for = zip(texts, counts, without, strict=True)
            return [highest(self.scores(text), count, left_out) for text, count, left_out in asked_for]
        words, excluded = _laid(known), _laid(without)
        most = np.array(counts, dtype=np.int64)
        out = np.empty(int(np.minimum(most, len(self.texts)).sum()), dtype=np.int64)
        sizes = np.empty(len(texts), dtype=np.int64)
        given = [*self._table, len(self.texts), len(texts), *words, most, *excluded, sizes, out]
        if native.highest_rows(*(one if isinstance(one, int) else address(one) for one in given)):
            raise MemoryError("the native search ran out of memory")
        return np.split(out, np.cumsum(sizes))[:-1]


def _laid(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each list begins, and all of them end to end."""
    bounds = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in lists], out=bounds[1:])
    return bounds, np.fromiter(chain.from_iterable(lists), np.int64, int(bounds[-1]))


def highest(scores: Scores, count: int, without: Iterable[int] = ()) -> NDArray[np.intp]:
    """Where the `count` highest scores stand, in no particular order; of equal scores the first ones count."""
    scores = scores.copy()
    scores[list(without)] = -np.inf
    if count < len(scores):
        # The value at the cut is the same on every machine; which of equal scores argpartition takes is not.
        cut = np.partition(scores, len(scores) - count)[len(scores) - count]
        above = np.flatnonzero(scores > cut)
        rows = np.concatenate([above, np.flatnonzero(scores == cut)[: count - len(above)]])
    else:
        rows = np.arange(len(scores))
    kept: NDArray[np.intp] = rows[scores[rows] > -np.inf]
    return kept


def mine_negatives(
    positives: PairsLike,
    *,
    count: int = 4,
    source: str | Scorer = "bm25",
    top: int = 1000,
    seed: int = 0,
    tokenizer: Tokenizer = Tokenizer(),  # noqa: B008 (a NamedTuple: nobody can change it)
    pool: Sequence[str] | Pool | None = None,
    elsewhere: Mapping[str, Iterable[str]] | None = None,
    progress: bool = False,
) -> Iterator[Pair]:
    """Yield each positive pair (label 1) among its `count` negatives (label 0) of the same query and group.

    A negative is never a text that is positive for the same query, by id or by wording, case and spacing apart, and
    no text comes twice in a list. The draw of a query depends on the seed and its id, not on the order of the pairs.
    Pairs come out query by query, a positive and its negatives together, in the order of the texts' digests: the
    position in a list does not depend on the label. A text has one text_id throughout: its own if a pair gives it one
    that no other text has, else a digest. Query ids are filled from content.

    Args:
        positives: Positive pairs (label 1, or none): Pairs, tuples, dicts, a data frame or the path of a file.
        count: Negatives for each of them.
        source: Where negatives come from. "random" draws from the whole pool; "bm25" from the `top` texts nearest to
            the true text, as the papers do for questions, and "cosine" from the nearest by TF-IDF, as they do for
            sentence completion; "query" from those that BM25 finds for the query; a scorer from the `top` texts it
            ranks highest for the query, among the ten times as many that BM25 finds for it.
        top: How many of the nearest texts to draw from.
        seed: Of every random draw.
        tokenizer: How BM25 finds words.
        pool: Texts to draw from; those of the positives by default.
        elsewhere: More texts that are positive for a query, if the given pairs are not complete.
        progress: Whether to show a bar.
    """
    pairs = list(as_pairs(positives, graded=True))
    if not pairs:
        raise MatchloomError("there are no pairs to find negatives for", code="no_data")
    if not isinstance(source, Scorer) and source not in SOURCES:
        raise MatchloomError(f"source {source!r} is unknown; use {', '.join(SOURCES)} or a scorer", code="unknown_name")
    if count < 1 or top < count:
        raise MatchloomError(
            f"cannot draw {count} negatives from the top {top}; expected 1 <= count <= top", code="bad_value"
        )
    lists: dict[str, list[Pair]] = defaultdict(list)
    wordings: dict[str, set[str]] = defaultdict(set)  # the true texts of each wording of a query
    text_ids = {**one_id_each(pairs), **(pool.ids if isinstance(pool, Pool) else {})}
    for pair in pairs:
        if not pair.is_positive:
            raise MatchloomError(
                f"query {pair.query[:60]!r} has a pair with label {pair.label}; give positive pairs only",
                code="bad_labels",
            )
        query_id = pair.query_id or digest(pair.query)
        text_id = text_ids.get(pair.text) or digest(pair.text)
        lists[query_id].append(pair._replace(label=1.0, query_id=query_id, text_id=text_id))
        wordings[normalize_text(pair.query)].add(normalize_text(pair.text))
    for query, others in (elsewhere or {}).items():
        if (known := normalize_text(query)) in wordings:
            wordings[known].update(map(normalize_text, others))
    own = (pair.text for pair in pairs) if pool is None else pool
    texts = own if isinstance(own, Pool) else Pool(own, tokenizer, progress=progress)
    return _mine(lists, wordings, texts, text_ids, count, source, top, seed, progress)


def one_id_each(pairs: Iterable[Pair]) -> dict[str, str]:
    """An id for each text that has one of its own: of several the first, and none that two texts share."""
    given = {(pair.text_id, pair.text) for pair in pairs if pair.text_id}
    owners = Counter(text_id for text_id, _ in given)
    return {text: text_id for text_id, text in sorted(given, reverse=True) if owners[text_id] == 1}


def _mine(
    lists: dict[str, list[Pair]],
    wordings: dict[str, set[str]],
    pool: Pool,
    text_ids: dict[str, str],
    count: int,
    source: str | Scorer,
    top: int,
    seed: int,
    progress: bool,
) -> Iterator[Pair]:
    for query_id, pairs in track(lists.items(), "Mining negatives", total=len(lists), show=progress):
        random = Random(f"{seed} {query_id}")
        true = set().union(*(wordings[normalize_text(pair.query)] for pair in pairs))
        taken = {pool.rows[text] for text in true if text in pool.rows}
        for pair in in_order({pair.text_id: pair for pair in in_order(pairs)}.values()):
            rows = _draw(pair, pool, taken, count, source, top, random)
            if len(rows) < count:
                raise MatchloomError(
                    f"query {query_id!r} ({pair.query[:60]!r}): found {len(rows)} texts to draw, expected {count}; "
                    "give a larger pool or ask for fewer negatives",
                    code="no_data",
                )
            taken.update(rows)
            texts = [pool.texts[row] for row in rows]
            negatives = [
                Pair(pair.query, text, 0.0, query_id, text_ids.get(text) or digest(text), pair.group) for text in texts
            ]
            # Not by id: where the texts of a pool have none, their digests would stand apart from the positives' ids.
            yield from sorted([pair, *negatives], key=lambda one: digest(one.text))


def _draw(
    pair: Pair, pool: Pool, taken: set[int], count: int, source: str | Scorer, top: int, random: Random
) -> list[int]:
    """Rows of the pool that are not taken: `count` of them, or as many as there are."""
    if source == "random":
        rows = random.sample(range(len(pool.texts)), min(len(pool.texts), count + len(taken)))
        return [row for row in rows if row not in taken][:count]
    if isinstance(source, Scorer):
        near = np.sort(pool.nearest(pair.query, PRECUT * top, taken))
        texts = (pool.texts[row] for row in near)
        scores = source.score([Pair(pair.query, text, None, pair.query_id, digest(text), pair.group) for text in texts])
        if not np.isfinite(scores).all():
            raise MatchloomError(
                f"scorer {source.name!r} gives query {pair.query_id!r} a score that is not finite", code="bad_value"
            )
        best = near[highest(scores, top)]
    else:
        near_to = pair.query if source == "query" else pair.text
        best = pool.nearest(near_to, top, taken, cosine=source == "cosine")
    return random.sample(best.tolist(), min(count, len(best)))
