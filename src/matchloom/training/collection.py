"""Training on positives alone: negatives are drawn from the whole collection, anew every epoch.

A text of the collection is an answer, or (`questions`) a question asked before: two questions of one answer are a
positive pair, too. A negative of a question is a text of the same kind that belongs to none of its answers. Half of
them are drawn from the NEAREST texts by BM25, for at the end a question is ranked against these, and half from all
texts. With `in_batch` what was drawn for the other questions of a batch is compared with, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.arrays import distinct
from matchloom.basics.progress import track
from matchloom.data.batching import features_of, make_batch
from matchloom.data.identity import answers_of, normalize_text
from matchloom.data.negatives import Pool, WordsOf
from matchloom.data.tokenized import Rows, TokenizedTexts, deduplicate
from matchloom.matcher import ReadPairs
from matchloom.text.tokenize import Tokenizer
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Shard, Step, batches, compared
from matchloom.types import Pair

NEAREST = 50
_AT_ONCE = 512  # questions for which BM25 is asked together
_LEAST_STEPS = 20  # of an epoch: a small collection is gone over several times, each with other negatives
_TRIES = 8  # times as many texts are drawn as are wanted, for some may be positives


class Collection(NamedTuple):
    """Positive pairs as rows of texts on either side.

    `relevant[q]` are the texts of the collection that belong to an answer of question q; answers stand before the first
    `answers` rows' end, questions behind them, `texts` in all.
    """

    texts: int
    answers: int
    relevant: list[Rows]
    positives: list[tuple[int, Rows]]  # a question and the texts of one kind, one of which is drawn in each epoch
    near: list[Rows]  # negatives of each question among which half are drawn, sorted
    candidates: list[Rows]  # answers by BM25 among which a matcher mines where it cannot look at all; empty: `near`


class Collected(NamedTuple):
    """A collection and what its rows stand for."""

    collection: Collection
    questions: list[str]
    texts: list[str]


def collect(
    pairs: Sequence[Pair], tokenizer: Tokenizer, *, questions: bool, candidates: int = 0, progress: bool = False
) -> Collected:
    """The collection of positive pairs; a question is one whatever its case and spaces."""
    spelt: dict[str, str] = {}
    for pair in pairs:
        spelt[normalize_text(pair.query)] = min(pair.query, spelt.get(normalize_text(pair.query), pair.query))
    asked, question_rows = deduplicate([spelt[normalize_text(pair.query)] for pair in pairs])
    answers, answer_rows = deduplicate([pair.text for pair in pairs])
    found = belongings(question_rows, answer_rows, answers_of(pairs), questions=questions)
    texts = [*answers, *asked] if found.texts > found.answers else answers
    near, wide = nearest(asked, answers, found.relevant, tokenizer, candidates, progress)
    if found.texts > found.answers:
        among = [own[own >= found.answers] - found.answers for own in found.relevant]
        others, _ = nearest(asked, asked, among, tokenizer, 0, progress)
        near = [np.concatenate([some, found.answers + more]) for some, more in zip(near, others, strict=True)]
    return Collected(found._replace(near=near, candidates=wide), asked, texts)


def belongings(question_rows: Rows, answer_rows: Rows, homes: Sequence[int] | Rows, *, questions: bool) -> Collection:
    """Which texts belong to which question, for pairs of these rows and answers (`homes`); nothing is near yet.

    Rows count from 0 without a gap. With `questions`, others of the same answer are positives of a question, too.
    """
    first = int(answer_rows.max()) + 1  # of the questions among the texts
    count = int(question_rows.max()) + 1
    size = first + count
    names, home_of = np.unique(np.asarray(homes, dtype=np.int64), return_inverse=True)
    own_q, own_home = np.divmod(distinct(question_rows * len(names) + home_of), len(names))
    texts_of = _Members(home_of, answer_rows, len(names), size)
    asked_of = _Members(home_of, first + question_rows, len(names), size)
    pairs = [own_q[rows] * size + texts for rows, texts in (texts_of.of(own_home), asked_of.of(own_home))]
    of_q, flat = np.divmod(distinct(np.concatenate(pairs)), size)
    relevant = np.split(flat, np.cumsum(np.bincount(of_q, minlength=count))[:-1])
    positives: list[tuple[int, Rows]] = []
    ends = np.cumsum(np.bincount(own_q, minlength=count)).tolist()
    for q, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        positives += [(q, texts_of[home]) for home in own_home[start:end].tolist()]
        if questions and relevant[q][-2] >= first:  # the last is the question itself, or behind it
            twins = relevant[q][relevant[q] >= first]
            positives.append((q, twins[twins != first + q]))
    both = any(int(own[0]) >= first for _, own in positives)
    return Collection(first + (count if both else 0), first, relevant, positives, [], [])


class _Members:
    """What belongs to each of so many groups, sorted."""

    def __init__(self, groups: Rows, members: Rows, count: int, size: int) -> None:
        group_of, self._flat = np.divmod(distinct(groups * size + members), size)
        self._sizes = np.bincount(group_of, minlength=count)
        self._ends = np.cumsum(self._sizes)

    def __getitem__(self, group: int) -> Rows:
        return self._flat[self._ends[group] - self._sizes[group] : self._ends[group]]

    def of(self, groups: Rows) -> tuple[Rows, Rows]:
        """For groups that follow each other: the place of the group of each member, and the member."""
        sizes = self._sizes[groups]
        starts = np.repeat(self._ends[groups] - np.cumsum(sizes), sizes)
        return np.repeat(np.arange(len(groups)), sizes), self._flat[starts + np.arange(len(starts))]


def nearest(
    asked: Sequence[str],
    texts: Sequence[str],
    relevant: Sequence[Rows],
    words: WordsOf,
    candidates: int = 0,
    progress: bool = False,
) -> tuple[list[Rows], list[Rows]]:
    """The rows of the texts nearest to each question by BM25 that are no positives of it, sorted; and more of them.

    Args:
        asked: The questions.
        texts: What they are compared with.
        relevant: The rows of each question's positives.
        words: A tokenizer, or what it made of each of these texts.
        candidates: How many more; none by default.
        progress: Whether to show a bar.
    """
    pool = Pool(texts, words)
    row_of = np.array([pool.rows[normalize_text(text)] for text in texts], dtype=np.int64)
    flat, sizes = np.argsort(row_of, kind="stable"), np.bincount(row_of)  # texts that are one but for case and spaces
    starts = np.cumsum(sizes) - sizes
    positive = np.zeros(len(texts), dtype=bool)

    def found(own: Rows, rows: NDArray[np.intp]) -> Rows:
        """All texts of these rows of the pool but the question's own."""
        owners = np.repeat(starts[rows] - (np.cumsum(sizes[rows]) - sizes[rows]), sizes[rows])
        best = flat[owners + np.arange(len(owners))]
        own = own[own < len(texts)]  # behind them are positives of another kind
        positive[own] = True
        best = np.sort(best[~positive[best]])
        positive[own] = False
        return best

    near: list[Rows] = []
    wide: list[Rows] = []
    for start in track(range(0, len(asked), _AT_ONCE), "near texts", show=progress):
        some, own = asked[start : start + _AT_ONCE], relevant[start : start + _AT_ONCE]
        for count, result in ((NEAREST, near), (candidates, wide)):
            if count:
                best = pool.nearest_each(some, [count + len(one) for one in own], [()] * len(some))
                result += [found(one, rows) for one, rows in zip(own, best, strict=True)]
    return near, wide


def collection_pairs(collection: Collection, left: TokenizedTexts, right: TokenizedTexts) -> ReadPairs:
    """The tables of a collection's questions and texts with its positive pairs of questions and answers."""
    rows = np.array(
        [(q, text) for q, own in collection.positives for text in own if text < collection.answers], dtype=np.int64
    )
    return ReadPairs(left, right, rows[:, 0], rows[:, 1], features_of(left, right, rows[:, 0], rows[:, 1]))


class CollectionExamples:
    """Questions, each with a positive and negatives drawn from the collection.

    A member of an example is a pair of a question and a text, as one number: row of the question times the number of
    texts plus row of the text. `read` holds the positive pairs, for what reads them before the first step.
    """

    def __init__(
        self, collection: Collection, read: ReadPairs, config: TrainConfig, *, shards: int, by_length: bool
    ) -> None:
        self.collection, self.read, self.config = collection, read, config
        self.shards, self.by_length = shards, by_length
        self.labels = np.ones(len(read.left_rows), dtype=np.float32)
        self.mined_in = 0  # the epoch before which a matcher mined what is near; 0: by BM25

    def __len__(self) -> int:
        return len(self.collection.positives)

    def features(self) -> NDArray[np.float32] | None:
        """The features of the first epoch's pairs, positives and negatives; None for a model without."""
        if self.read.features is None:
            return None
        pairs = np.concatenate([member for step in self.steps(0) for shard in step for member in shard])
        return features_of(self.read.left, self.read.right, *np.divmod(pairs, self.collection.texts))

    def steps(self, epoch: int) -> Iterator[Step]:
        """The batches of one epoch, each split into what its shards hold: the members of their examples."""
        rng = np.random.default_rng([self.config.seed, epoch])
        triples = len(self) * min(self.config.negatives, self.collection.texts)
        rounds = -(-_LEAST_STEPS * self.config.batch // triples)
        members = [self._members(q, own, rng) for _ in range(rounds) for q, own in self.collection.positives]
        members = [member for member in members if len(member) > 1]  # every text may be a positive
        size = max(1, round(self.config.batch / np.mean([len(member) - 1 for member in members])))
        texts = self.collection.texts
        lengths = np.array([self.read.right.lengths[member % texts].max() for member in members])
        for step in batches(members, lengths if self.by_length else None, size, self.shards, rng):
            yield [self._all_compared(shard) for shard in step] if self.config.in_batch else step

    def _all_compared(self, members: list[Rows]) -> list[Rows]:
        """Each example with the texts of the others behind its own, those of its kind that are no positives of it."""
        found, drawn = self.collection, distinct(np.concatenate(members) % self.collection.texts)
        wider = []
        for member in members:
            q, positive = divmod(int(member[0]), found.texts)
            alike = drawn[(drawn < found.answers) == (positive < found.answers)]
            more = np.setdiff1d(alike, np.concatenate([found.relevant[q], member % found.texts]))
            wider.append(np.concatenate([member, q * found.texts + more]))
        return wider

    def _members(self, q: int, own: Rows, rng: np.random.Generator) -> Rows:
        found = self.collection
        positive = int(own[rng.integers(len(own))])
        first, last = (0, found.answers) if positive < found.answers else (found.answers, found.texts)
        known = set(found.relevant[q].tolist())
        if last - first <= self.config.negatives + len(known):
            negatives = [n for n in range(first, last) if n not in known]
        else:
            near = found.near[q][(found.near[q] >= first) & (found.near[q] < last)]
            drawn = rng.permutation(near)[: self.config.negatives // 2].tolist()
            others = rng.integers(first, last, size=_TRIES * self.config.negatives + len(known)).tolist()
            negatives = list(dict.fromkeys(n for n in [*drawn, *others] if n not in known))[: self.config.negatives]
        return q * found.texts + np.array([positive, *negatives], dtype=np.int64)

    def shard(self, members: list[Rows]) -> Shard:
        """The padded pairs of some examples."""
        rows, places = np.divmod(np.concatenate(members), self.collection.texts)
        return compared(make_batch(self.read.left, self.read.right, rows, places), members, self.config)
