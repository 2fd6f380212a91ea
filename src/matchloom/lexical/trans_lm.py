"""TransLM: how likely is the query, if each of its words is one of the text's words or a translation of one?

    P(w|d)    = (1 - lambda) P_mx(w|d) + lambda P_ml(w|C)                    (Xue et al., SIGIR 2008)
    P_mx(w|d) = (1 - beta) P_ml(w|d) + beta * sum over words t of d of T(w|t) P_ml(t|d)
    score     = sum over words w of q of  ln(P(w|d) / (lambda P_ml(w|C)))

P_ml are shares of words, in the text d and in the collection C; T(w|t) is IBM Model 1's, learnt from questions and
their answers. The score is the logarithm of the product of all P(w|d) less what the collection alone gives every text:
the same order for each query, at least 0, and 0 where nothing of the text speaks for the query. A word that the
collection does not hold counts as seen once. A T(w|t) below 0.0001 after the last pass is dropped, and the others stay
as they are. T(w|w) stays as it was learnt: 1 - beta is what sees the same word again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.artifact import as_saved, packed, read, write
from matchloom.basics.arrays import distinct
from matchloom.basics.progress import track
from matchloom.lexical.ibm_model1 import Bags, Ids, Translations, learn_translations, word_pairs
from matchloom.lexical.statistics import ENGLISH, Words
from matchloom.text.tokenize import Tokenizer
from matchloom.traces import empty_grid, grid_trace
from matchloom.types import MatchloomError, Pair, Scores, Trace

FORMAT = 3  # 2 was one file
WORDS, TABLES = "words.txt", "tables.safetensors"
_REMEDY = "make it from a pairs file with 'matchloom trans-lm'"
_BLOCK = 1_000_000  # pairs of words that are looked up at a time


class TransLM:
    """The translation-based language model. `smoothing` is lambda.

    >>> pairs = [Pair("who weaves", "a loom makes cloth"), Pair("who grinds", "a mill makes flour")]
    >>> scorer = TransLM.fit([pair.text for pair in pairs], pairs)
    >>> bool(scorer.score([Pair("weaves", "a loom"), Pair("weaves", "a mill")])[0] > 1)
    True
    """

    def __init__(
        self,
        words: Sequence[str],
        counts: Ids,
        translations: Translations,
        *,
        tokenizer: Words = ENGLISH,
        smoothing: float = 0.2,
        beta: float = 0.8,
    ) -> None:
        if not (0 < smoothing <= 1 and 0 <= beta <= 1):
            raise MatchloomError(
                f"trans_lm takes a smoothing above 0 and up to 1, and beta between 0 and 1, "
                f"found smoothing={smoothing}, beta={beta}",
                code="bad_value",
            )
        self.name = "trans_lm"
        self.words: list[str] = list(words)
        self.counts = counts  # of each word in the collection
        self.translations = translations
        self.tokenizer = tokenizer
        self.smoothing = smoothing
        self.beta = beta
        self._index = {word: n for n, word in enumerate(self.words)}
        self._keys = translations.w.astype(np.int64) * len(self.words) + translations.t
        self._total = max(1, int(counts.sum()))

    def __repr__(self) -> str:
        return f"TransLM({len(self.words):,} words, {len(self.translations.w):,} translations)"

    @classmethod
    def fit(
        cls,
        texts: Iterable[str],
        pairs: Iterable[Pair],
        *,
        tokenizer: Words = ENGLISH,
        smoothing: float = 0.2,
        beta: float = 0.8,
        iterations: int = 5,
        progress: bool = False,
    ) -> TransLM:
        """Take word counts from the texts and translations from the pairs; those with label 0 are left out."""
        index: dict[str, int] = {}

        def numbered(text: str) -> Ids:
            return np.array([index.setdefault(word, len(index)) for word in tokenizer(text)], dtype=np.int64)

        right = sorted({(p.query, p.text) for p in pairs if p.is_positive})
        if not right:
            raise MatchloomError(
                "trans_lm learns translations from positive pairs (label 1 or none), and there are none", code="no_data"
            )
        questions, answers = (
            [numbered(pair[side]) for pair in track(right, label, show=progress)]
            for side, label in enumerate(("reading queries", "reading texts"))
        )
        seen = [numbered(text) for text in track(list(texts), "reading the collection", show=progress)]
        translations = learn_translations(questions, answers, iterations=iterations, progress=progress)
        counts = np.bincount(np.concatenate([*seen, np.empty(0, dtype=np.int64)]), minlength=len(index))
        return cls(list(index), counts, translations, tokenizer=tokenizer, smoothing=smoothing, beta=beta)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair; it depends on that pair, the collection and the translations only."""
        unseen: dict[str, int] = {}
        bags: dict[str, Bags] = {}
        scores = np.zeros(len(pairs))
        jobs: list[_Job] = []
        cells = 0
        for n, pair in enumerate(track(pairs, self.name, show=progress)):
            for text in (pair.query, pair.text):
                if text not in bags:
                    bags[text] = Bags.of([self._ids(self.tokenizer(text), unseen)])
            for job in _jobs(n, bags[pair.query], bags[pair.text]):
                jobs.append(job)
                cells += len(job.asked) * len(job.text.words)
                if cells >= _BLOCK:
                    self._add(scores, jobs)
                    jobs, cells = [], 0
        self._add(scores, jobs)
        return scores.astype(np.float32)

    def score_all(self, queries: Sequence[str], texts: Bags) -> NDArray[np.float64]:
        """What `score` gives each query with each text of `bags`: what a word gains by a text is found once for all."""
        unseen: dict[str, int] = {}
        asked = [Bags.of([self._ids(self.tokenizer(query), unseen)]) for query in queries]
        words = distinct(np.concatenate([*(bag.words for bag in asked), np.empty(0, dtype=np.int64)]))
        ends = np.cumsum(texts.sizes)
        gains = np.zeros((len(words), len(ends)))
        for n, (size, end) in enumerate(zip(texts.sizes.tolist(), ends.tolist(), strict=True)):
            own = Bags(texts.words[end - size : end], texts.counts[end - size : end], texts.sizes[n : n + 1])
            for job in _jobs(0, Bags(words, np.ones(len(words), dtype=np.int64), words[:1]), own):
                first = int(np.searchsorted(words, job.asked[0]))
                gains[first : first + len(job.asked), n] = self._gains([job])
        scores = np.zeros((len(queries), len(ends)))
        for own_scores, bag in zip(scores, asked, strict=True):
            for row, times in zip(np.searchsorted(words, bag.words).tolist(), bag.counts.tolist(), strict=True):
                own_scores += times * gains[row]  # one after the other, as `score` adds them up
        return scores.astype(np.float32).astype(np.float64)

    def bags(self, texts: Iterable[str]) -> Bags:
        """Texts as `score_all` takes them."""
        return Bags.of([self._ids(self.tokenizer(text), {}) for text in texts])

    def _add(self, scores: NDArray[np.float64], jobs: list[_Job]) -> None:
        """Add to each pair's score what the query words of these jobs give."""
        if jobs:
            places = np.repeat([job.place for job in jobs], [len(job.asked) for job in jobs])
            np.add.at(scores, places, self._gains(jobs))

    def _gains(self, jobs: Sequence[_Job]) -> NDArray[np.float64]:
        """What each query word of these jobs gives, as often as it is asked."""
        sizes = np.array([len(job.asked) for job in jobs])
        asked = np.concatenate([job.asked for job in jobs])
        times = np.concatenate([job.times for job in jobs])
        words = np.concatenate([job.text.words for job in jobs])
        counts = np.concatenate([job.text.counts for job in jobs])
        rows, columns = word_pairs(sizes, np.concatenate([job.text.sizes for job in jobs]))
        likely = self._mixed(asked[rows], words[columns]) * counts[columns]
        lengths = np.repeat([int(job.text.counts.sum()) for job in jobs], sizes)
        P_mx = np.bincount(rows, likely, minlength=len(asked)) / lengths
        gains: NDArray[np.float64] = times * self._gain(asked, P_mx)
        return gains

    def _ids(self, words: list[str], unseen: dict[str, int]) -> Ids:
        """The number of each word; those that were never seen get numbers behind all others."""
        known, behind = self._index, len(self.words)
        return np.array(
            [known[w] if w in known else behind + unseen.setdefault(w, len(unseen)) for w in words], dtype=np.int64
        )

    def _mixed(self, w: Ids, t: Ids) -> NDArray[np.float64]:
        """(1 - beta) [w = t] + beta T(w|t) for each w and t."""
        size = len(self.words)
        found = np.zeros(len(w))
        if len(self._keys):
            keys = w * size + t
            places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
            there = (self._keys[places] == keys) & (w < size) & (t < size)
            found[there] = self.translations.probability[places[there]]
        found *= self.beta
        found += (1 - self.beta) * (w == t)
        return found

    def _gain(self, w: Ids, P_mx: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln(P(w|d) / (lambda P_ml(w|C)))."""
        seen = np.ones(len(w))
        known = w < len(self.words)
        seen[known] = np.maximum(self.counts[w[known]], 1)
        gain: NDArray[np.float64] = np.log1p((1 - self.smoothing) * P_mx * self._total / (self.smoothing * seen))
        return gain

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Which words of the text speak for each word of the query: P_mx(w|d) and the gain, by text word."""
        left, right = self.tokenizer(query), self.tokenizer(text)
        score = float(self.score([Pair(query, text)])[0])
        grid = empty_grid(len(left), len(right))
        contributions = np.zeros(grid.shape)
        if left and right:
            unseen: dict[str, int] = {}
            w, t = self._ids(left, unseen), self._ids(right, unseen)
            parts = self._mixed(np.repeat(w, len(t)), np.tile(t, len(w))).reshape(len(w), len(t)) / len(t)
            P_mx = parts.sum(1)
            grid[0] = parts
            contributions[0] = parts * (self._gain(w, P_mx) / np.where(P_mx > 0, P_mx, 1))[:, None]
        return left, right, grid_trace(score, grid, contributions, ["translation"])

    def save(self, folder: Path | str) -> None:
        """Write a folder with the words, their counts and the translations."""
        if not isinstance(self.tokenizer, Tokenizer):
            raise MatchloomError(
                "trans_lm can be saved with a Tokenizer only; this one was made with another function",
                code="not_supported",
            )
        tensors: dict[str, NDArray[Any]] = {"counts": self.counts.astype(np.int64), **self.translations._asdict()}
        settings = {"tokenizer": self.tokenizer._asdict(), "smoothing": self.smoothing, "beta": self.beta}
        files = {WORDS: "\n".join(self.words).encode(), TABLES: packed(tensors)}
        write(folder, "trans_lm", FORMAT, settings, files)

    @classmethod
    def load(cls, folder: Path | str) -> TransLM:
        """Read what `save` wrote. A folder that is cut off, altered, newer or something else is refused in one line."""
        saved = read(folder, "trans_lm", FORMAT, remedy=_REMEDY)
        settings, tensors = saved.settings, saved.tensors(TABLES, finite=True)
        with as_saved(folder, _REMEDY):
            text = saved.content(WORDS).decode()
            words = text.split("\n") if text else []
            counts = tensors.pop("counts")
            table = Translations(**tensors)
            if not _fit(words, counts, table):
                raise MatchloomError(
                    f"{folder} holds words, counts and translations that do not fit; {_REMEDY}", code="damaged"
                )
            return cls(
                words,
                counts,
                table,
                tokenizer=Tokenizer.from_dict(settings["tokenizer"]),
                smoothing=settings["smoothing"],
                beta=settings["beta"],
            )


def _fit(words: list[str], counts: Ids, table: Translations) -> bool:
    """Whether these are of the kinds and sizes that `save` writes."""
    kinds = [str(column.dtype) for column in (counts, *table)] == ["int64", "int32", "int32", "float32"]
    shapes = counts.shape == (len(words),) and len({column.shape for column in table}) == 1 and table.w.ndim == 1
    ids = (table.w, table.t)
    return kinds and shapes and all(((x >= 0) & (x < len(words))).all() for x in ids) and bool((counts >= 0).all())


class _Job(NamedTuple):
    """Some query words of the pair at `place`, how often each stands in the query, and the text they meet."""

    place: int
    asked: Ids
    times: Ids
    text: Bags


def _jobs(place: int, query: Bags, text: Bags) -> Iterator[_Job]:
    """A pair in pieces that fit a block, so that two long texts do not ask for gigabytes."""
    step = max(1, _BLOCK // max(1, len(text.words)))
    if len(text.words):
        for i in range(0, len(query.words), step):
            yield _Job(place, query.words[i : i + step], query.counts[i : i + step], text)
