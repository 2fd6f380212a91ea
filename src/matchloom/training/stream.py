"""Examples of more pairs than fit in memory: a window of blocks at a time, each an ordinary set of examples.

An epoch goes through all blocks of a token cache once, in an order drawn by the seed and the epoch; a window is so many
blocks of any shards, and its examples are drawn and shuffled as those of pairs in memory. Negatives of positives alone
come from the window: half of those near the question from its own block, where BM25 looked for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.arrays import distinct
from matchloom.data.batching import features_of
from matchloom.data.identity import components_of
from matchloom.data.token_cache import Block, TokenCache
from matchloom.data.tokenized import Ragged, Rows, TokenizedTexts
from matchloom.matcher import Matcher, ReadPairs
from matchloom.training.collection import CollectionExamples, belongings, collection_pairs
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Examples, TrainingExamples, group_rows
from matchloom.training.lists import ListExamples
from matchloom.types import MatchloomError


class Windows(Protocol):
    """The examples of a run, in so many windows an epoch."""

    count: int

    def window(self, epoch: int, number: int) -> Examples | None:
        """The examples of one window; None where nothing of it can be learnt from."""
        ...


class OneWindow:
    """Examples that are all in memory."""

    count = 1

    def __init__(self, examples: Examples) -> None:
        self._examples = examples

    def window(self, epoch: int, number: int) -> Examples:
        """The same in every epoch."""
        return self._examples


class StreamWindows:
    """The blocks of a token cache, `config.window` pairs at a time."""

    def __init__(
        self, cache: TokenCache, matcher: Matcher, config: TrainConfig, *, alone: bool, shards: int, by_length: bool
    ) -> None:
        self._cache, self._matcher, self._config, self._alone = cache, matcher, config, alone
        self._shards, self._by_length = shards, by_length
        self.count = min(-(-len(cache) // config.window), len(cache.sizes))

    def window(self, epoch: int, number: int) -> Examples | None:
        """The examples of one window; None where no question of it has both a positive and a negative."""
        order = np.random.default_rng([self._config.seed, epoch]).permutation(len(self._cache.sizes))
        blocks = [self._cache.block(int(b)) for b in np.array_split(order, self.count)[number]]
        return self._collection(blocks) if self._alone else self._lists(blocks)

    def _lists(self, blocks: Sequence[Block]) -> Examples | None:
        left, right = (self._table([_side(block, side) for block in blocks]) for side in ("left", "right"))
        rows = [_shifted(blocks, f"{side}_rows", f"{side}_lengths") for side in ("left", "right")]
        labels = np.concatenate([block["labels"] for block in blocks]).astype(np.float32)
        lists = np.concatenate([block["lists"] for block in blocks]).tolist()
        try:
            groups = group_rows(labels, lists, self._config)
        except MatchloomError:  # over all of the cache there is something to learn
            return None
        read = ReadPairs(left, right, rows[0], rows[1], features_of(left, right, *rows))
        kind = ListExamples if self._config.positives and groups.negatives is not None else TrainingExamples
        return kind(groups, read, self._config, shards=self._shards, by_length=self._by_length)

    def _collection(self, blocks: Sequence[Block]) -> Examples | None:
        """Texts that stand in several blocks become one, by their digests, as do their questions and answers."""
        left, right = ([_side(block, side) for block in blocks] for side in ("left", "right"))
        asked = _Distinct(blocks, "left", "questions")
        answers = _Distinct(blocks, "right", "texts")
        ids = not self._cache.counted.local_ids
        keys = [np.concatenate([block[name] for block in blocks]) for name in ("answers", "text_ids")]
        everywhere = np.ones(len(keys[0]), dtype=bool)
        homes = components_of([(keys[0], everywhere), (keys[1], (keys[1] > 0) & ids)])
        found = belongings(asked.of_pairs, answers.of_pairs, homes, questions=self._config.questions)
        if found.answers < 2 or all((own < found.answers).sum() == found.answers for own in found.relevant):
            return None
        near = self._near(blocks, asked, answers, found.relevant)
        table = self._table(left, asked.first)
        texts = [*_taken(right, answers.first), *(_taken(left, asked.first) if found.texts > found.answers else ())]
        read = collection_pairs(found, table, self._table(texts))
        found = found._replace(near=near)
        return CollectionExamples(found, read, self._config, shards=self._shards, by_length=self._by_length)

    @staticmethod
    def _near(blocks: Sequence[Block], asked: _Distinct, answers: _Distinct, relevant: Sequence[Rows]) -> list[Rows]:
        """The texts nearest to each question in its own block that are no positives of it, sorted."""
        asking: list[Rows] = []
        found: list[Rows] = []
        at_left = at_right = 0
        for block in blocks:
            sizes = block["near_lengths"]
            asking.append(np.repeat(asked.of_rows[at_left : at_left + len(sizes)], sizes))
            found.append(answers.of_rows[at_right + block["near_flat"].astype(np.int64)])
            at_left, at_right = at_left + len(block["left_lengths"]), at_right + len(block["right_lengths"])
        size = 1 + max(len(answers.of_rows), *(int(own[-1]) for own in relevant))
        own = np.repeat(np.arange(len(relevant)), [len(rows) for rows in relevant]) * size + np.concatenate(relevant)
        near = distinct(np.concatenate(asking) * size + np.concatenate(found))
        own = own[own <= near[-1]] if len(near) else own[:0]
        places = np.searchsorted(near, own)
        near = np.delete(near, places[near[places] == own])
        ends = np.searchsorted(near, np.arange(1, len(relevant)) * size)
        return np.split(near % size, ends)

    def _table(self, texts: Sequence[_Texts], rows: Rows | None = None) -> TokenizedTexts:
        """What the matcher reads of texts of several blocks, or of some of their rows."""
        if rows is not None:
            texts = _taken(texts, rows)
        words = _joined([one.words for one in texts])
        present = np.zeros(len(self._cache.words), dtype=bool)
        present[words.flat] = True
        numbers = np.flatnonzero(present)
        places = np.cumsum(present) - 1
        pieces = [one.pieces for one in texts]
        model = self._matcher.model
        return self._matcher.reader.read_words(
            [self._cache.words[n] for n in numbers.tolist()],
            Ragged(places[words.flat], words.lengths),
            lexical=model.needs_lexical,
            features=model.needs_features,
            pieces=None
            if self._matcher.reader.pieces is None
            else (_joined([one[0] for one in pieces if one]), _joined([one[1] for one in pieces if one])),
        )


class _Texts:
    """The texts of one side of a block."""

    def __init__(self, words: Ragged, pieces: tuple[Ragged, Ragged] | None) -> None:
        self.words, self.pieces = words, pieces


def _side(block: Block, side: str) -> _Texts:
    lengths = block[f"{side}_piece_lengths"].astype(np.int64)
    pieces = tuple(Ragged(block[f"{side}_{name}"].astype(np.int64), lengths) for name in ("pieces", "piece_words"))
    words = Ragged(block[f"{side}_flat"].astype(np.int64), block[f"{side}_lengths"].astype(np.int64))
    return _Texts(words, (pieces[0], pieces[1]) if len(lengths) else None)


class _Distinct:
    """The distinct texts of several blocks: the first row of each, and the number of each row and of each pair."""

    def __init__(self, blocks: Sequence[Block], side: str, keys: str) -> None:
        rows = _shifted(blocks, f"{side}_rows", f"{side}_lengths")
        key_of = np.zeros(sum(len(block[f"{side}_lengths"]) for block in blocks), dtype=np.uint64)
        key_of[rows] = np.concatenate([block[keys] for block in blocks])
        _, self.first, self.of_rows = np.unique(key_of, return_index=True, return_inverse=True)
        self.of_pairs: Rows = self.of_rows[rows]


def _shifted(blocks: Sequence[Block], rows: str, lengths: str) -> Rows:
    """Rows of each block as rows of all of them."""
    starts = np.cumsum([0, *(len(block[lengths]) for block in blocks[:-1])])
    return np.concatenate([block[rows].astype(np.int64) + s for block, s in zip(blocks, starts, strict=True)])


def _joined(ragged: Sequence[Ragged]) -> Ragged:
    return Ragged(np.concatenate([one.flat for one in ragged]), np.concatenate([one.lengths for one in ragged]))


def _taken(texts: Sequence[_Texts], rows: Rows) -> list[_Texts]:
    """Some rows of all texts, in this order."""
    pieces = [one.pieces for one in texts if one.pieces is not None]
    both = tuple(_some(_joined([one[side] for one in pieces]), rows) for side in (0, 1)) if pieces else ()
    return [_Texts(_some(_joined([one.words for one in texts]), rows), (both[0], both[1]) if both else None)]


def _some(ragged: Ragged, rows: Rows) -> Ragged:
    lengths = ragged.lengths[rows]
    starts: NDArray[Any] = np.repeat(ragged.starts[rows] - (np.cumsum(lengths) - lengths), lengths)
    return Ragged(ragged.flat[starts + np.arange(lengths.sum())], lengths)
