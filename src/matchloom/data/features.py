"""Features of a pair: numbers that the two texts and the training text's IDF give, with no network.

A model asks for a feature set by name (`PairModel.needs_features`). Each text is looked at once; the features of many
pairs are then made together by looking up hashed words, 50,000 pairs in half a second.

Capitals say what a name is, and most tokenizers drop them: features see the words as they stand in the text, and
compare them as the tokenizer would have them. Question types are told by English words; for other
languages those features stay 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.lexical.statistics import is_stop_word
from matchloom.text.languages import ENGLISH
from matchloom.text.tokenize import stem, word_hash
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

# Feature sets and the names of their features. Left is the query, right the text.
OVERLAP = ("shared words", "shared words by rarity")  # of M2S-Net: distinct shared words / words of both texts
COVERAGE = tuple(
    f"{kind} found{weighted}"  # the part of the query's distinct items that the text holds
    for kind in ("content words", "stems", "word pairs")
    for weighted in ("", " by rarity")
)
ANSWER_TYPES = (  # 1 where the query asks so and the text has such a word that the query does not have
    "who: a name",
    "where: a name",
    "when: a year",
    "when: a number",
    "how many: a number",
    "what: a name",
    "what: a number",
)
PARAPHRASE = (  # of RAE; numbers are digits and number words
    "same numbers or none",
    "same numbers",
    "numbers of one among more of the other",  # a proper subset; none is one of some
    "difference of lengths",
    "query's words in the text",  # the part of its distinct words
    "text's words in the query",
    "query's word pairs in the text",
    "text's word pairs in the query",
)
FEATURES: dict[str, tuple[str, ...]] = {
    "overlap": OVERLAP,
    "paraphrase": PARAPHRASE,
    "pair": (
        *OVERLAP,
        *COVERAGE,
        "names found",  # the part of the query's capitalised words
        "rarest content word missed",  # its IDF
        "text's content words asked for",  # the part of the text's content words that the query holds
        "length of the text",  # log(1 + words)
        *ANSWER_TYPES,
    ),
}

_KINDS = {
    "overlap": ("words",),
    "paraphrase": ("words", "numbers", "phrases"),
    "pair": ("words", "numbers", "content", "stems", "bigrams", "names", "years"),
}
_NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty "  # noqa: SIM905
    "ninety hundred thousand million billion trillion dozen half".split()
)
_PLACES = frozenset(("city", "country", "state", "place", "town", "county", "continent", "province", "capital"))
_TIMES = frozenset(("year", "date", "day", "month", "century", "decade", "time"))
_AMOUNTS = frozenset(("many", "much", "long", "old", "tall", "far", "big", "large", "high", "deep", "fast", "often"))
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_WORD = 1 << 64
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # odd: different rows shift a hash by different amounts


class Word(NamedTuple):
    """What the features know of one word."""

    text: str  # as the tokenizer has it
    key: int
    idf: float
    stop: bool
    stem: int
    stem_idf: float
    capital: bool
    number: bool
    year: bool


class FeatureTexts:
    """What the features of these texts' pairs are made of: for each text its distinct words, stems, names and so on."""

    def __init__(
        self, name: str, tokenized: Sequence[Sequence[str]], vocab: Vocab, *, lower: bool, language: str = ENGLISH
    ) -> None:
        """Of tokenized texts, capitals included; `lower` says whether the vocabulary is lower-cased."""
        if name not in FEATURES:
            raise MatchloomError(
                f"features {name!r} are unknown; choose one of {', '.join(FEATURES)}, or none", code="unknown_name"
            )

        @cache
        def known(cased: str) -> Word:
            lowered = cased.lower()
            text = lowered if lower else cased
            stemmed = stem(text, language)
            number = any(letter.isdigit() for letter in text) or lowered in _NUMBER_WORDS
            return Word(
                text,
                word_hash(text),
                vocab.idf(text),
                is_stop_word(lowered, language),
                word_hash(stemmed),
                vocab.stem_idf(stemmed, language),
                cased[:1].isupper(),
                number,
                _YEAR.fullmatch(text) is not None,
            )

        self.name = name
        found: dict[str, list[dict[int, float]]] = {kind: [] for kind in _KINDS[name]}
        lengths, types = [], []
        for text in tokenized:
            words = [known(word) for word in text]
            lengths.append(len(words))
            found["words"].append({w.key: w.idf for w in words})
            if "numbers" in found:
                found["numbers"].append({w.key: 1.0 for w in words if w.number})
            if name == "paraphrase":
                found["phrases"].append({(3 * a.key + b.key) % _WORD: 1.0 for a, b in pairwise(words)})
            if name == "pair":
                types.append(question_type([w.text for w in words]))
                content = [w for w in words if not w.stop]
                found["content"].append({w.key: w.idf for w in content})
                found["stems"].append({w.stem: w.stem_idf for w in content})
                found["bigrams"].append(
                    {(3 * a.key + b.key) % _WORD: a.idf + b.idf for a, b in pairwise(words) if not (a.stop and b.stop)}
                )
                # A first word has its capital from the sentence; a name there goes unseen.
                found["names"].append({w.key: 1.0 for w in words[1:] if w.capital and not w.stop})
                found["years"].append({w.key: 1.0 for w in words if w.year})
        self.lengths: Floats = np.array(lengths, dtype=np.float64)
        self.types: NDArray[np.object_] = np.array(types, dtype=object)
        self.items: dict[str, Items] = {kind: Items(of_texts) for kind, of_texts in found.items()}


class Items:
    """For each text its distinct items with their weights, flat; and all (text, item) pairs in order, to look up."""

    def __init__(self, of_texts: list[dict[int, float]]) -> None:
        self.counts: Rows = np.array([len(items) for items in of_texts], dtype=np.int64)
        self.starts: Rows = np.cumsum(self.counts) - self.counts
        self.keys: NDArray[np.uint64] = np.array([key for items in of_texts for key in items], dtype=np.uint64)
        self.weights: Floats = np.array([w for items in of_texts for w in items.values()], dtype=np.float64)
        owners = np.repeat(np.arange(len(of_texts)), self.counts).astype(np.uint64)
        self.known: NDArray[np.uint64] = np.sort(self.keys + owners * _GOLDEN)


def question_type(words: Sequence[str]) -> str:
    """What a question asks for: who, where, when, how many, or what; "" for what is no question of these.

    >>> question_type("in what year was the loom built".split()), question_type("how many looms are there".split())
    ('when', 'how many')
    """
    words = [word.lower() for word in words]
    for first, second in pairwise([*words, ""]):
        if first in ("who", "whom", "whose"):
            return "who"
        if first == "where" or (first in ("what", "which") and second in _PLACES):
            return "where"
        if first == "when" or (first in ("what", "which") and second in _TIMES):
            return "when"
        if first == "how" and second in _AMOUNTS:
            return "how many"
        if first in ("what", "which", "name"):
            return "what"
    return ""


def pair_features(left: FeatureTexts, right: FeatureTexts, left_rows: Rows, right_rows: Rows) -> NDArray[np.float32]:
    """The features of the pairs (left[left_rows[b]], right[right_rows[b]]), in the order of FEATURES. (B, F)"""

    def looked_up(kind: str, among: str, *, back: bool = False) -> tuple[Rows, Floats, NDArray[np.bool_]]:
        """For each item of the pairs' left texts (with `back`: right) its pair, its weight, and if it was found."""
        ours, theirs, our_rows, their_rows = left, right, left_rows, right_rows
        if back:
            ours, theirs, our_rows, their_rows = right, left, right_rows, left_rows
        mine, known = ours.items[kind], theirs.items[among].known
        counts = mine.counts[our_rows]
        pairs = np.repeat(np.arange(len(our_rows)), counts)
        places = np.repeat(mine.starts[our_rows] - (np.cumsum(counts) - counts), counts) + np.arange(len(pairs))
        codes = mine.keys[places] + their_rows[pairs].astype(np.uint64) * _GOLDEN
        at = np.searchsorted(known, codes)
        hit = known[np.minimum(at, len(known) - 1)] == codes if len(known) else np.zeros(len(codes), dtype=bool)
        return pairs, mine.weights[places], hit

    B = len(left_rows)

    def total(pairs: Rows, values: Floats | NDArray[np.bool_]) -> Floats:
        return np.bincount(pairs, weights=values.astype(np.float64), minlength=B).astype(np.float64)

    def part(values: Floats, whole: Floats) -> Floats:
        return np.divide(values, whole, out=np.zeros(B), where=whole > 0)

    def new(kind: str) -> NDArray[np.bool_]:
        """True where the right text has an item that the words of the left one do not have."""
        pairs, _, hit = looked_up(kind, "words", back=True)
        return total(pairs, ~hit) > 0

    def shared(kind: str, *, back: bool = False) -> tuple[Floats, Floats]:
        """How many items of the left texts (with `back`: right) were found in the other, and how many there are."""
        pairs, _, hit = looked_up(kind, kind, back=back)
        return total(pairs, hit), total(pairs, np.ones(len(pairs)))

    def paraphrase() -> list[Floats | NDArray[np.bool_]]:
        both, ours = shared("numbers")
        _, theirs = shared("numbers", back=True)
        same = (both == ours) & (both == theirs)
        within = ((both == ours) | (both == theirs)) & ~same
        apart = np.abs(left.lengths[left_rows] - right.lengths[right_rows])
        return [
            same,
            same & (both > 0),
            within,
            apart,
            *(part(*shared(kind, back=back)) for kind in ("words", "phrases") for back in (False, True)),
        ]

    if left.name == "paraphrase":
        return np.stack(paraphrase(), axis=1).astype(np.float32)
    pairs, weights, hit = looked_up("words", "words")
    words = left.lengths[left_rows] + right.lengths[right_rows]
    columns = [part(total(pairs, hit), words), part(total(pairs, hit * weights), words)]
    if left.name == "pair":
        for kind in ("content", "stems", "bigrams"):
            pairs, weights, hit = looked_up(kind, kind)
            columns.append(part(total(pairs, hit), total(pairs, np.ones(len(pairs)))))
            columns.append(part(total(pairs, hit * weights), total(pairs, weights)))
        pairs, _, hit = looked_up("names", "words")
        columns.append(part(total(pairs, hit), total(pairs, np.ones(len(pairs)))))
        pairs, weights, hit = looked_up("content", "words")
        missed = np.zeros(B)
        np.maximum.at(missed, pairs, weights * ~hit)
        columns.append(missed)
        pairs, _, hit = looked_up("content", "words", back=True)
        columns.append(part(total(pairs, hit), total(pairs, np.ones(len(pairs)))))
        columns.append(np.log1p(right.lengths[right_rows]))
        has = {"a name": new("names"), "a number": new("numbers"), "a year": new("years")}
        asked = left.types[left_rows]
        for feature in ANSWER_TYPES:
            kind, _, wanted = feature.partition(": ")
            columns.append((asked == kind) & has[wanted])
    return np.stack(columns, axis=1).astype(np.float32)
