"""What is known of two texts, by name: features of `matchloom.data.features` both ways, BM25, lengths, alignment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from matchloom.data.features import ANSWER_TYPES, COVERAGE, FEATURES, OVERLAP, FeatureTexts, pair_features
from matchloom.data.tokenized import deduplicate
from matchloom.fitting.alignment import ALIGNED, aligned
from matchloom.fitting.word_scorers import swapped
from matchloom.lexical import BM25, WordStatistics
from matchloom.text.tokenize import Tokenizer, stems
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError, Pair

BACK = "back: "  # of the text in the query
COSINES = ("same words", "same character n-grams")
ENCODER, TUNED = "encoder's cosine", "tuned encoder's cosine"
CHARACTERS = ("chinese", "japanese")  # kinds of texts where a character is nearly a word
SCALE = 0.3  # of features and of pairs of words, beside words and n-grams
_BACK = tuple(name for name in FEATURES["pair"] if name not in ANSWER_TYPES)  # an answer asks for nothing
_OWN = (*FEATURES["pair"], *(f"{BACK}{name}" for name in _BACK), *FEATURES["paraphrase"])
NAMES = (*_OWN, "BM25", "back: BM25", "length ratio", *ALIGNED, *COSINES)
_SIMILAR = {
    *OVERLAP,
    *COVERAGE,
    "names found",
    "text's content words asked for",
    "same numbers",
    *(name for name in FEATURES["paraphrase"] if " in the " in name),
    "BM25",
    *COSINES,
}
Floats = NDArray[np.float64]


def is_similarity(name: str) -> bool:
    """Whether a feature grows with what the two texts share."""
    return name.removeprefix(BACK) in _SIMILAR


def letter(character: str) -> str:
    """A character that counts as a word, apart from the word of this one character."""
    return f"\0{character}"


class PairFeatures:
    """The features of pairs, by how frequent words are in the texts of one file."""

    def __init__(self, tokenizer: Tokenizer, vocab: Vocab, counts: WordStatistics) -> None:
        self.tokenizer, self.vocab, self.counts = tokenizer, vocab, counts
        self._bm25 = BM25(counts, tokenizer=tokenizer, stem=True, stop_words=True, normalize=True)

    @classmethod
    def fit(cls, texts: Sequence[str], tokenizer: Tokenizer) -> PairFeatures:
        """From the texts of both sides."""
        words = [tokenizer(text) for text in texts]
        if not any(words):
            raise MatchloomError(f"the training texts hold no word for the {tokenizer.kind} tokenizer; try another one")
        counts = BM25.fit(texts, tokenizer=tokenizer, stem=True, stop_words=True).collection
        return cls(tokenizer, Vocab.build(words), counts)

    def of(self, pairs: Sequence[Pair], cosines: Floats) -> Floats:
        """One row a pair, in the order of NAMES; `cosines` (B, 2) are those of words and of n-grams. (B, F)"""
        (left, lefts), (right, rights) = (
            deduplicate([pair.query for pair in pairs]),
            deduplicate([pair.text for pair in pairs]),
        )
        words_of = [[self.tokenizer.tokenize(text) for text in side] for side in (left, right)]
        forward, back, paraphrase = self._counted(words_of[0], words_of[1], lefts, rights)
        bm25 = [self._bm25.score(some)[:, None] for some in (pairs, [swapped(pair) for pair in pairs])]
        lengths = [
            np.array([len(text) for text in side])[rows] for side, rows in zip(words_of, (lefts, rights), strict=True)
        ]
        ratio = (np.minimum(*lengths) / np.maximum(1, np.maximum(*lengths)))[:, None]
        in_order = self._aligned(left, right, lefts, rights)
        return np.concatenate([forward, back, paraphrase, *bm25, ratio, in_order, cosines], axis=1).astype(np.float64)

    def _aligned(
        self, left: Sequence[str], right: Sequence[str], lefts: NDArray[np.int64], rights: NDArray[np.int64]
    ) -> Floats:
        language, characters = self.tokenizer.language, self.tokenizer.kind in CHARACTERS
        ours, theirs = ([stems(self.tokenizer(text), language) for text in side] for side in (left, right))
        rarity = partial(self.vocab.stem_idf, language=language)
        found = [
            aligned(ours[i], theirs[j], rarity, characters=characters)
            for i, j in zip(lefts.tolist(), rights.tolist(), strict=True)
        ]
        return np.array(found).reshape(len(lefts), len(ALIGNED))

    def _counted(
        self,
        left: Sequence[Sequence[str]],
        right: Sequence[Sequence[str]],
        lefts: NDArray[np.int64],
        rights: NDArray[np.int64],
    ) -> list[NDArray[np.float32]]:
        """The features of shared words: of the query in the text, of the text in the query, and of both."""
        lower, language = self.tokenizer.lower, self.tokenizer.language
        sides = {
            name: [FeatureTexts(name, side, self.vocab, lower=lower, language=language) for side in (left, right)]
            for name in ("pair", "paraphrase")
        }
        (ours, theirs), (our, their) = sides["pair"], sides["paraphrase"]
        return [
            pair_features(ours, theirs, lefts, rights),
            pair_features(theirs, ours, rights, lefts)[:, : len(_BACK)],
            pair_features(our, their, lefts, rights),
        ]
