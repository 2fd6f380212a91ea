"""Do two texts match? One logistic regression on words, character n-grams and what the texts share.

    score(q, t) = b + sum over columns k of  u_k |q_k - t_k| + v_k q_k t_k        TF-IDF of words and n-grams
                    + sum over pairs (x, y) of  p_xy                              x only in q, y only in t
                    + sum over features f of  w_f (x_f(q, t) - mean_f) / deviation_f

The first line learns which words may differ and which must not, the second which words stand for each other, the third
how much has to be shared (`pair_features.py`, with an encoder its cosine, too, and that of its tuned self where this
helps held-out pairs: `pair_tuning.py`). How far weights are held back, the threshold and the probabilities come from
folds of the training pairs. Nothing is drawn at random but the batches of a tuned encoder, with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.artifact import as_saved, packed, read, write
from matchloom.calibration import LOG_ODDS, Calibration, best_threshold, labels, platt
from matchloom.data.identity import both_sides, digest
from matchloom.data.splits import fold_labelled
from matchloom.data.tokenized import deduplicate
from matchloom.evaluation.labelled import measure_labelled
from matchloom.fitting.pair_features import CHARACTERS, ENCODER, NAMES, SCALE, TUNED, PairFeatures, letter
from matchloom.fitting.pair_learning import FEW, HELD_BACK, in_folds, learn_weights
from matchloom.fitting.pair_trace import traced
from matchloom.fitting.pair_tuning import pairs_can_tune, tune_on_pairs, worth_keeping
from matchloom.fitting.word_scorers import COUNTS, REMEDY, dump_collection, load_collection
from matchloom.search.features.base import inside, prefixed
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.features.tuned import layers_of, sentences_of
from matchloom.text.tokenize import Tokenizer, replace_surrogates, word_hash
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError, Pair, Scores, Trace

if TYPE_CHECKING:  # torch comes with it, and only who has an encoder needs it
    from matchloom.matcher import Matcher
    from matchloom.search.features.dense import SentenceVectors

_TUNED = "tuned"  # the name of what is saved of an encoder that was tuned
VOCAB, WEIGHTS, FORMAT = "vocab.txt", "weights.safetensors", 3  # 2 had no words of their own
PLAIN = "tfidf_classifier"
FOLDS = 5
FAR = 4.0  # deviations from the mean beyond which a feature says no more
PAIR_COLUMNS = 1 << 18  # of hashed pairs of words
MOST_ALONE = 8  # words that one text alone has, beyond which no pairs of words are counted
MOST = 50_000  # pairs to learn from
_CHARACTERS = 10_000_000  # of all their texts, about: a number for each of their n-grams is in memory, some times over
_CHUNK = 8192
_FLATTEST = 1e-3  # slope of the probabilities, where held-out pairs say that nothing was learnt: order stays
_SEEN = 2  # pairs that have a column; what one alone has tells nothing of others
Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """What the regression sees of some pairs."""

    features: Floats  # (B, F), as they are
    differ: sp.csr_array  # (B, S)
    shared: sp.csr_array  # (B, S)
    pairs: sp.csr_array  # (B, P)


class PairTuning(NamedTuple):
    """What came of tuning an encoder: average precision of held-out pairs before and after."""

    pairs: int
    before: float
    after: float
    kept: bool


class _Examples(NamedTuple):
    """Pairs as scikit-learn takes them, and what folds of them chose."""

    x: sp.csr_matrix
    used: NDArray[np.int64]  # which of `size` columns those of x are
    size: int
    held_back: float
    scores: Floats  # of held-out pairs


class PairClassifier:
    """A logistic regression on two texts. `fit` makes it from labelled pairs, `load` from a folder."""

    def __init__(
        self,
        features: PairFeatures,
        seen: TfIdf,
        *,
        plain: bool = False,
        matcher: Matcher | None = None,
        tuned: SentenceVectors | None = None,
    ) -> None:
        """`plain` is TF-IDF of words and nothing else, for comparison. A `matcher` has the vectors of texts.

        `tuned` has those of the same encoder after it was tuned on pairs.
        """
        self.features = features
        self.seen = seen
        self.plain = plain
        self.matcher, self.tuned = matcher, tuned
        self.tuning: PairTuning | None = None  # where it was tried
        self.tokenizer: Tokenizer = features.tokenizer
        self.name = PLAIN if plain else "pair_classifier" if matcher is None else "encoder_classifier"
        encoded = [*([] if matcher is None else [ENCODER]), *([] if tuned is None else [TUNED])]
        self.names = () if plain else (*NAMES, *encoded)
        self.mean, self.deviation, self.weights = (np.full(len(self.names), x, np.float64) for x in (0, 1, 0))
        self.differ: NDArray[np.float32] = np.zeros(seen.size, np.float32)
        self.shared: NDArray[np.float32] = np.zeros(seen.size, np.float32)
        self.word_pairs: NDArray[np.float32] = np.zeros(0 if plain else PAIR_COLUMNS, np.float32)
        self.bias: float = 0.0
        self.calibration = LOG_ODDS

    # ---- learning

    @classmethod
    def fit(
        cls,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        *,
        sentences: SentenceVectors | None = None,
        plain: bool = False,
        tune: bool = False,
    ) -> PairClassifier:
        """Learn from labelled pairs of both labels; `calibration` is then that of their folds.

        With `tune` the last layers of a pretrained encoder learn, too, where that helps held-out pairs.
        """
        pairs = sorted(pairs, key=_by_content)[: _most(pairs)]  # their order does not show, not in the last digit
        texts = [replace_surrogates(text) for text in sorted(both_sides(pairs))]
        features = PairFeatures.fit(texts, tokenizer)
        words = [_words(tokenizer, text) for text in texts]
        seen = TfIdf.fit([] if plain else texts, words)
        made = cls(features, seen, plain=plain, matcher=None if sentences is None else sentences.matcher)
        columns, right, homes = made.columns(pairs, sentences), labels(pairs), np.array(fold_labelled(pairs, FOLDS))
        examples = made._examples(columns, right, homes)
        if tune and sentences is not None and pairs_can_tune(sentences, pairs):
            made, examples = made._tuned(pairs, sentences, columns, examples, right, homes)
        made._learn(examples, right)
        return made

    def _examples(self, columns: Columns, right: NDArray[np.bool_], homes: NDArray[np.int64]) -> _Examples:
        """What is learnt from; features are then known by their mean and deviation."""
        self.mean, deviation = columns.features.mean(axis=0), columns.features.std(axis=0)
        self.deviation = np.where(deviation > 1e-6, deviation, 1.0)
        x, used, size = self._joined(columns)
        return _Examples(x, used, size, *in_folds(x, right, homes, self._strengths(len(right))))

    def _tuned(
        self,
        pairs: Sequence[Pair],
        sentences: SentenceVectors,
        columns: Columns,
        examples: _Examples,
        right: NDArray[np.bool_],
        homes: NDArray[np.int64],
    ) -> tuple[PairClassifier, _Examples]:
        """The same with a tuned encoder, where held-out pairs are better for it; else as it is."""
        learnt = tune_on_pairs(sentences, pairs)
        other = PairClassifier(self.features, self.seen, matcher=self.matcher, tuned=learnt.sentences)
        both = np.concatenate([columns.features, learnt.held_out[:, None]], axis=1)
        found = other._examples(columns._replace(features=both), right, homes)
        before, after = (measure_labelled(one.scores, right, None).each["AP"] for one in (examples, found))
        kept = worth_keeping(after - before)
        chosen = (other, found) if kept else (self, examples)
        chosen[0].tuning = PairTuning(len(pairs), float(before.mean()), float(after.mean()), kept)
        return chosen

    def _learn(self, examples: _Examples, right: NDArray[np.bool_]) -> None:
        # A regression that is held back says too little of everything, its bias included: a score of 0 is no even
        # chance. What held-out pairs say of its scores is, and so it is a part of the weights.
        slope, offset = platt(examples.scores, right)
        slope = max(slope, _FLATTEST)
        weights = np.zeros(examples.size)
        learnt, bias = learn_weights(examples.x, right, examples.held_back)
        weights[examples.used], self.bias = slope * learnt, slope * bias + offset
        self.calibration = Calibration(best_threshold(slope * examples.scores + offset, right), 1.0, 0.0)
        ends = np.cumsum([len(self.weights), len(self.differ), len(self.shared)])
        self.weights, *rest = np.split(weights, ends)
        self.differ, self.shared, self.word_pairs = (one.astype(np.float32) for one in rest)

    def _strengths(self, pairs: int) -> Sequence[float]:
        return (1.0,) if self.plain else HELD_BACK if pairs <= FEW else HELD_BACK[3:]

    def _joined(self, columns: Columns) -> tuple[sp.csr_matrix, NDArray[np.int64], int]:
        """The columns of two pairs or more, as scikit-learn takes them; which they are, of how many (F + 2 S + P)."""
        parts = [sp.csr_array(SCALE * self.scaled(columns.features)), columns.differ, columns.shared, columns.pairs]
        made = sp.hstack(parts, format="csr")
        used = np.flatnonzero(np.bincount(made.indices, minlength=made.shape[1]) >= _SEEN)
        x = sp.csr_matrix(made[:, used])
        x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)
        return x, used, made.shape[1]

    # ---- reading

    def columns(self, pairs: Sequence[Pair], sentences: SentenceVectors | None = None) -> Columns:
        """What is known of each pair; `sentences` has vectors that were made before."""
        chunks = [pairs[start : start + _CHUNK] for start in range(0, max(1, len(pairs)), _CHUNK)]
        parts = [self._columns(chunk, sentences) for chunk in chunks]
        features = np.concatenate([one.features for one in parts])
        return Columns(features, *(sp.vstack([one[n] for one in parts], format="csr") for n in (1, 2, 3)))

    def _columns(self, pairs: Sequence[Pair], sentences: SentenceVectors | None) -> Columns:
        pairs = [Pair(replace_surrogates(pair.query), replace_surrogates(pair.text)) for pair in pairs]
        texts, rows = deduplicate([text for pair in pairs for text in (pair.query, pair.text)])
        words = [self.tokenizer(text) for text in texts]
        vectors = self.seen.matrix(texts, [own + _letters(self.tokenizer, own) for own in words])
        left, right = vectors[rows[::2]], vectors[rows[1::2]]
        shared = sp.csr_array(left.multiply(right))
        found = [(n, self.word_pair_columns(words[i], words[j])) for n, (i, j) in enumerate(rows.reshape(-1, 2))]
        return Columns(
            self._features(pairs, shared, texts, rows, sentences),
            sp.csr_array(abs(left - right)),
            shared,
            _counted([(n, column) for n, own in found for column in own.values()], len(pairs), len(self.word_pairs)),
        )

    def _features(
        self,
        pairs: Sequence[Pair],
        shared: sp.csr_array,
        texts: Sequence[str],
        rows: NDArray[np.int64],
        sentences: SentenceVectors | None,
    ) -> Floats:
        if self.plain or not pairs:
            return np.empty((len(pairs), len(self.names)))
        words = self.seen.word_count
        cosines = np.stack([shared[:, :words].sum(axis=1), shared[:, words:].sum(axis=1)], axis=1)
        found = self.features.of(pairs, cosines)
        if self.matcher is None:
            return found
        every = [self.matcher.vectors(texts) if sentences is None else sentences.of(texts)]
        if self.tuned is not None:
            every.append(self.tuned.matcher.vectors(texts))
        encoded = [(own[rows[::2]].astype(np.float64) * own[rows[1::2]]).sum(axis=1) for own in every]
        return np.column_stack([found, *encoded])

    def word_pair_columns(self, left: Sequence[str], right: Sequence[str]) -> dict[tuple[str, str], int]:
        """The columns of the pairs of a word that only `left` has and one that only `right` has, in either order."""
        if self.plain:
            return {}
        ours, theirs = (
            [w for w in dict.fromkeys(a) if w not in b] for a, b in ((left, set(right)), (right, set(left)))
        )
        if max(len(ours), len(theirs)) > MOST_ALONE:
            return {}
        return {(x, y): word_hash("\0".join(sorted((x, y)))) % PAIR_COLUMNS for x in ours for y in theirs}

    def scaled(self, features: Floats) -> Floats:
        """Features in deviations from their mean."""
        scaled: Floats = np.clip((features - self.mean) / self.deviation, -FAR, FAR)
        return scaled

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """The logarithm of the odds that each pair matches, as held-out pairs had them: 0 is an even chance."""
        chunks = [pairs[start : start + _CHUNK] for start in range(0, len(pairs), _CHUNK)]
        return np.concatenate([np.empty(0, np.float32), *(self._score(chunk) for chunk in chunks)])

    def _score(self, pairs: Sequence[Pair]) -> Scores:
        features, differ, shared, word_pairs = self._columns(pairs, None)
        linear = differ @ self.differ + shared @ self.shared + word_pairs @ self.word_pairs
        added = (SCALE * self.scaled(features) * self.weights).sum(axis=1)
        return np.asarray(added + linear + self.bias, np.float32)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """What words of both texts add, and words of one of them; all else has its name."""
        return traced(self, query, text)

    # ---- saving

    def save(self, folder: Path | str) -> None:
        """Write weights, vocabulary and word counts: numbers and text."""
        tensors: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in _TENSORS}
        settings = {"tokenizer": self.tokenizer._asdict(), "bias": self.bias, "features": self.names}
        layers = {} if self.tuned is None else prefixed(_TUNED, layers_of(self.tuned))
        files = {
            VOCAB: self.features.vocab.dumps().encode(),
            COUNTS: dump_collection(self.features.counts),
            WEIGHTS: packed(tensors | self.seen.arrays() | layers),
        }
        inside: Any = {} if self.matcher is None else {"encoder": self.matcher}
        write(folder, "pair_classifier", FORMAT, settings, files, inside=inside)

    @classmethod
    def load(cls, folder: Path | str) -> PairClassifier:
        """Read what `save` wrote; what is missing, altered or newer is refused in one line."""
        saved = read(folder, "pair_classifier", FORMAT, remedy=REMEDY)
        settings, tensors = saved.settings, saved.tensors(WEIGHTS, finite=True)
        names = settings.get("features")
        if names not in ([], [*NAMES], [*NAMES, ENCODER], [*NAMES, ENCODER, TUNED]):
            raise MatchloomError(f"{folder} has the features of another version; {REMEDY}", code="wrong_format")
        with as_saved(folder, REMEDY):
            vocab = Vocab.loads(saved.content(VOCAB), Path(folder) / VOCAB)
            counts = load_collection(saved.content(COUNTS))
            features = PairFeatures(Tokenizer.from_dict(settings["tokenizer"]), vocab, counts)
            matcher = saved.inside("encoder") if ENCODER in names else None
            tuned = _with_layers(matcher, inside(_TUNED, tensors)) if TUNED in names else None
            made = cls(features, TfIdf.load(tensors), plain=not names, matcher=matcher, tuned=tuned)
            for name in _TENSORS:
                own = getattr(made, name)
                if tensors[name].shape != own.shape or tensors[name].dtype != own.dtype:
                    raise ValueError(name)
                setattr(made, name, tensors[name])
            made.bias = float(settings["bias"])
        if not (abs(made.bias) < 1e30 and (made.deviation > 0).all()):
            raise MatchloomError(f"{folder} holds numbers that no scores can be made of; {REMEDY}", code="damaged")
        return made


def _with_layers(matcher: Any, layers: Mapping[str, NDArray[Any]]) -> SentenceVectors:
    """The encoder with the layers that were tuned; a ValueError where they do not fit."""
    from matchloom.search.features.dense import SentenceVectors

    if not layers:
        raise ValueError(_TUNED)
    return sentences_of(SentenceVectors(matcher), layers)


_TENSORS = ("mean", "deviation", "weights", "differ", "shared", "word_pairs")


def some_pairs(pairs: Sequence[Pair], most: int) -> Sequence[Pair]:
    """At most so many of the pairs, whatever order they came in."""
    if len(pairs) <= most:
        return pairs
    return sorted(pairs, key=_by_content)[:most]


def _by_content(pair: Pair) -> tuple[str, bool]:
    return digest(pair.query, pair.text), pair.is_labelled_positive


def _most(pairs: Sequence[Pair]) -> int:
    """How many of the pairs are learnt from: fewer of long texts."""
    mean = sum(len(pair.query) + len(pair.text) for pair in pairs) / max(1, len(pairs))
    return min(MOST, max(1000, int(_CHARACTERS / max(1.0, mean))))


def _words(tokenizer: Tokenizer, text: str) -> list[str]:
    words = tokenizer(text)
    return words + _letters(tokenizer, words)


def _letters(tokenizer: Tokenizer, words: Sequence[str]) -> list[str]:
    return [letter(one) for word in words for one in word] if tokenizer.kind in CHARACTERS else []


def _counted(places: Sequence[tuple[int, int]], rows: int, columns: int) -> sp.csr_array:
    """How often each column stands in each row, times SCALE."""
    at = np.array(places, dtype=np.int64).reshape(-1, 2)
    values = np.full(len(at), SCALE, np.float64)
    return sp.csr_array((values, (at[:, 0], at[:, 1])), shape=(rows, columns))
