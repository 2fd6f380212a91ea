"""Do two texts match? A logistic regression on what they share, told from the texts of one file alone.

    score(q, t) = b + sum over features f of  w_f (x_f(q, t) - mean_f) / deviation_f

Features are those of `matchloom.data.features` in both directions, cosines of words and of character n-grams, BM25 in
both directions, and lengths. Similarities of the two texts have w >= 0, and what they lack w <= 0: no accident of few
pairs can make a shared word speak against a match. All other weights are free. Nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import HashingVectorizer

from matchloom.artifact import as_saved, packed, read, write
from matchloom.data.features import ANSWER_TYPES, COVERAGE, FEATURES, OVERLAP, FeatureTexts, pair_features
from matchloom.data.identity import both_sides, digest
from matchloom.data.tokenized import deduplicate
from matchloom.fitting.word_scorers import COUNTS, REMEDY, dump_collection, load_collection, swapped
from matchloom.lexical import BM25, Words, WordStatistics
from matchloom.text.tokenize import Tokenizer, stem
from matchloom.text.vocab import Vocab
from matchloom.traces import empty_grid, grid_trace
from matchloom.types import Component, MatchloomError, Pair, Scores, Trace

VOCAB, WEIGHTS, FORMAT = "vocab.txt", "weights.safetensors", 2  # 1 had its checksums in the weights
BACK = "back: "  # of the text in the query
ALIKE = ("same character n-grams", "same words", "BM25", "back: BM25", "length ratio")
_BACK = tuple(name for name in FEATURES["pair"] if name not in ANSWER_TYPES)  # an answer asks for nothing
NAMES = (*FEATURES["pair"], *(f"{BACK}{name}" for name in _BACK), *FEATURES["paraphrase"], *ALIKE)
_SIMILARITY = {
    *OVERLAP,
    *COVERAGE,
    "names found",
    "text's content words asked for",
    "same numbers",
    *(name for name in FEATURES["paraphrase"] if " in the " in name),
    *ALIKE[:-1],
}
_LACK = {"rarest content word missed"}
_STRENGTHS = (3.0, 30.0, 300.0)  # of the penalty on weights; development pairs choose
_FAR = 4.0  # deviations from the mean beyond which a feature says no more
_COLUMNS = 1 << 17  # of hashed words and character n-grams
_CHUNK = 8192
MOST = 20_000  # pairs to learn from
Floats = NDArray[np.float64]


def _side_of(name: str) -> int:
    """1 for what may only speak for a match, -1 against it, 0 for either."""
    plain = name.removeprefix(BACK)
    return 1 if plain in _SIMILARITY else -1 if plain in _LACK else 0


class Cosines:
    """Hashed TF-IDF vectors of words or of character n-grams; the cosines of pairs of texts."""

    def __init__(self, kind: str, words: Words | None, idf: Floats) -> None:
        """Of the stems that `words` gives, or of character n-grams, in a way that suits the tokenizer's `kind`."""
        if words is None:
            chinese = kind == "chinese"
            analyzer: Any = "char" if chinese else "char_wb"
            options: dict[str, Any] = {"ngram_range": (1, 2) if chinese else (3, 4), "lowercase": True}
        else:
            analyzer, options = lambda text: [stem(word) for word in words(text)], {}
        self._counts = HashingVectorizer(
            analyzer=analyzer, n_features=_COLUMNS, norm=None, alternate_sign=False, dtype=np.float64, **options
        )
        self.idf = idf

    def fit(self, texts: Sequence[str]) -> None:
        """Take document frequencies from these texts."""
        counts = self._counts.transform(texts)
        found = np.bincount(counts.indices, minlength=_COLUMNS)
        self.idf = np.log((1 + len(texts)) / (1 + found)) + 1

    def vectors(self, texts: Sequence[str]) -> sp.csr_array:
        """L2-normalised, or 0 without words."""
        found = sp.csr_array(self._counts.transform(texts))
        found.data = (1 + np.log(found.data)) * self.idf[found.indices]
        lengths = np.sqrt(np.asarray(found.multiply(found).sum(axis=1))).ravel()
        scale = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return sp.csr_array(sp.diags_array(scale) @ found)


class PairClassifier:
    """A logistic regression on features of the pair. `fit` makes it from labelled pairs, `load` from a folder."""

    name = "pair_classifier"

    def __init__(
        self, tokenizer: Tokenizer, vocab: Vocab, counts: WordStatistics, char_ngrams: Floats, of_words: Floats
    ) -> None:
        self.tokenizer, self.vocab, self.counts = tokenizer, vocab, counts

        @lru_cache(maxsize=1 << 16)  # both directions of BM25, and the cosine, read each text
        def words(text: str, /) -> list[str]:
            return tokenizer(text)

        self.bm25 = BM25(counts, tokenizer=words, stem=True, stop_words=True, normalize=True)
        self._cosines = (Cosines(tokenizer.kind, None, char_ngrams), Cosines(tokenizer.kind, words, of_words))
        self.mean, self.deviation, self.weights = np.zeros(len(NAMES)), np.ones(len(NAMES)), np.zeros(len(NAMES))
        self.bias = 0.0

    @classmethod
    def fit(cls, pairs: Sequence[Pair], development: Sequence[Pair], tokenizer: Tokenizer) -> PairClassifier:
        """Learn from labelled pairs; how much weights are held back is chosen on development pairs.

        Fifty weights need no more than some thousand pairs: of many, 20,000 are taken, and a quarter as many to choose.
        """
        pairs, development = some_pairs(pairs, MOST), some_pairs(development, MOST // 4)
        texts = sorted(both_sides(pairs))
        words_of = [tokenizer(text) for text in texts]
        if not any(words_of):
            raise MatchloomError(f"the training texts hold no word for the {tokenizer.kind} tokenizer; try another one")
        counts = BM25.fit(texts, tokenizer=tokenizer, stem=True, stop_words=True).collection
        made = cls(tokenizer, Vocab.build(words_of), counts, np.ones(_COLUMNS), np.ones(_COLUMNS))
        for cosines in made._cosines:
            cosines.fit(texts)
        x, y = made.features(pairs), _labels(pairs)
        made.mean, deviation = x.mean(axis=0), x.std(axis=0)
        made.deviation = np.where(deviation > 1e-6, deviation, 1.0)
        scaled, aside, wanted = made._scaled(x), made._scaled(made.features(development)), _labels(development)
        found = []
        for strength in _STRENGTHS:
            weights, bias = fit_logistic(scaled, y, strength)
            found.append((log_loss(aside @ weights + bias, wanted), -strength, weights, bias))
        _, _, made.weights, made.bias = min(found, key=lambda one: one[:2])
        return made

    def features(self, pairs: Sequence[Pair]) -> Floats:
        """What is known of each pair, in the order of NAMES. (B, F)"""
        if not pairs:
            return np.empty((0, len(NAMES)))
        chunks = [pairs[start : start + _CHUNK] for start in range(0, len(pairs), _CHUNK)]
        return np.concatenate([self._features(chunk) for chunk in chunks])

    def _features(self, pairs: Sequence[Pair]) -> Floats:
        (left, lefts), (right, rights) = (
            deduplicate([pair.query for pair in pairs]),
            deduplicate([pair.text for pair in pairs]),
        )
        words_of = [[self.tokenizer.tokenize(text) for text in side] for side in (left, right)]
        columns = []
        for name in ("pair", "paraphrase"):
            ours, theirs = (FeatureTexts(name, side, self.vocab, lower=self.tokenizer.lower) for side in words_of)
            columns.append(pair_features(ours, theirs, lefts, rights))
            if name == "pair":
                columns.append(pair_features(theirs, ours, rights, lefts)[:, : len(_BACK)])
        for cosines in self._cosines:
            both = cosines.vectors(left)[lefts].multiply(cosines.vectors(right)[rights])
            columns.append(np.asarray(both.sum(axis=1)).reshape(-1, 1))
        columns += [self.bm25.score(some)[:, None] for some in (pairs, [swapped(pair) for pair in pairs])]
        lengths = [
            np.array([len(text) for text in side])[rows] for side, rows in zip(words_of, (lefts, rights), strict=True)
        ]
        columns.append((np.minimum(*lengths) / np.maximum(1, np.maximum(*lengths)))[:, None])
        return np.concatenate(columns, axis=1).astype(np.float64)

    def _scaled(self, features: Floats) -> Floats:
        scaled: Floats = np.clip((features - self.mean) / self.deviation, -_FAR, _FAR)
        return scaled

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """The logarithm of the odds that each pair matches, as the training pairs had them."""
        return np.asarray((self._scaled(self.features(pairs)) * self.weights).sum(axis=1) + self.bias, np.float32)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """What similarity adds is parted among the words whose stems both texts have, by rarity; all else has its name.

        Similarity counts from none at all; what a mean pair has of it is a component.
        """
        pair = Pair(query, text)
        values = self.features([pair])[0]
        added = self._scaled(values[None])[0] * self.weights
        left, right = self.tokenizer(query), self.tokenizer(text)
        stems = [stem(word) for word in right]
        grid = empty_grid(len(left), len(right))
        for i, word in enumerate(left):
            for j in [j for j, other in enumerate(stems) if other == stem(word)]:
                grid[0, i, j] = self.vocab.stem_idf(stem(word)) + 1e-3  # a word of all texts still is shared
        of_words = np.array([_side_of(name) > 0 for name in NAMES]) & (grid.sum() > 0)
        none = self._scaled(np.zeros((1, len(NAMES))))[0] * self.weights
        similarity = float((added - none)[of_words].sum())
        components = [Component("similarity of a mean pair", 0.0, float(none[of_words].sum()), 0)]
        components += [
            Component(name, float(value), float(contribution))
            for name, value, contribution, inside in zip(NAMES, values, added, of_words, strict=True)
            if contribution and not inside
        ]
        parts = grid / max(float(grid.sum()), 1e-12) * similarity
        return left, right, grid_trace(float(self.score([pair])[0]), grid, parts, ["shared words"], components)

    def save(self, folder: Path | str) -> None:
        """Write weights, vocabulary and word counts: numbers and text."""
        tensors = {"mean": self.mean, "deviation": self.deviation, "weights": self.weights}
        tensors |= {name: cosines.idf for name, cosines in zip(("char_ngrams", "words"), self._cosines, strict=True)}
        settings = {"tokenizer": self.tokenizer._asdict(), "bias": self.bias, "features": NAMES}
        files = {VOCAB: self.vocab.dumps().encode(), COUNTS: dump_collection(self.counts), WEIGHTS: packed(tensors)}
        write(folder, "pair_classifier", FORMAT, settings, files)

    @classmethod
    def load(cls, folder: Path | str) -> PairClassifier:
        """Read what `save` wrote; what is missing, altered or newer is refused in one line."""
        saved = read(folder, "pair_classifier", FORMAT, remedy=REMEDY)
        settings, tensors = saved.settings, saved.tensors(WEIGHTS, finite=True)
        if settings.get("features") != list(NAMES):
            raise MatchloomError(f"{folder} has the features of another version; {REMEDY}", code="wrong_format")
        sizes = {"char_ngrams": _COLUMNS, "words": _COLUMNS} | dict.fromkeys(
            ("mean", "deviation", "weights"), len(NAMES)
        )
        kinds = {name: (x.shape, x.dtype) for name, x in tensors.items()}
        if kinds != {name: ((size,), np.dtype(np.float64)) for name, size in sizes.items()}:
            raise MatchloomError(f"{folder} holds numbers of other kinds than it should; {REMEDY}", code="damaged")
        with as_saved(folder, REMEDY):
            vocab = Vocab.loads(saved.content(VOCAB), Path(folder) / VOCAB)
            counts = load_collection(saved.content(COUNTS))
            tokenizer = Tokenizer.from_dict(settings["tokenizer"])
            made = cls(tokenizer, vocab, counts, tensors["char_ngrams"], tensors["words"])
            made.mean, made.deviation, made.weights = (tensors[x] for x in ("mean", "deviation", "weights"))
            made.bias = float(settings["bias"])
        if not (abs(made.bias) < 1e30 and (made.deviation > 0).all()):
            raise MatchloomError(f"{folder} holds numbers that no scores can be made of; {REMEDY}", code="damaged")
        return made


def some_pairs(pairs: Sequence[Pair], most: int) -> Sequence[Pair]:
    """At most so many of the pairs, whatever order they came in."""
    if len(pairs) <= most:
        return pairs
    return sorted(pairs, key=lambda pair: (digest(pair.query, pair.text), pair.label))[:most]


def fit_logistic(x: Floats, y: Floats, strength: float) -> tuple[Floats, float]:
    """The weights (F,) and bias of least loss, each weight on its side of 0; `strength` holds weights back."""
    signs = 2 * y - 1

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, bias = parameters[:-1], parameters[-1]
        margins = signs * (x @ weights + bias)
        pulled = -signs * expit(-margins)
        value = np.logaddexp(0, -margins).sum() + strength / 2 * weights @ weights
        return float(value), np.append(x.T @ pulled + strength * weights, pulled.sum())

    bounds = [{1: (0, None), -1: (None, 0), 0: (None, None)}[_side_of(name)] for name in NAMES] + [(None, None)]
    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x[:-1], np.float64), float(found.x[-1])


def log_loss(scores: Floats, labels: Floats) -> float:
    """The mean surprise at the labels."""
    return float(np.logaddexp(0, -(2 * labels - 1) * scores).mean())


def _labels(pairs: Sequence[Pair]) -> Floats:
    return np.array([float(pair.is_labelled_positive) for pair in pairs])
