"""Features of a pair against plain sets, one pair at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.batching import features_of, make_batch
from matchloom.data.features import FEATURES, FeatureTexts, pair_features, question_type
from matchloom.data.reader import Reader
from matchloom.lexical.statistics import is_stop_word
from matchloom.text.tokenize import Tokenizer, stem
from matchloom.text.vocab import Vocab
from tests.reference.m2s_net import overlap
from tests.reference.rae import paraphrase
from tests.refusing import refused

TOKENIZER = Tokenizer("whitespace")
SEEN = "Who built the old loom of York ? In 1785 Edmund Cartwright built the first power loom . How many looms".split()  # noqa: SIM905
WORDS = [*SEEN, "Lancashire", "weavers", "weaver", "two", "3.5", "1790", "the", "of", "of"]
VOCAB = Vocab.build([TOKENIZER(" ".join(SEEN[:7])), TOKENIZER(" ".join(SEEN[7:]))])
FREQUENCIES = dict(zip(VOCAB.words, VOCAB.document_frequencies, strict=True))
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=5)


def share(found: set, whole: set, weight=lambda item: 1.0) -> float:
    total = sum(weight(item) for item in whole)
    return sum(weight(item) for item in whole & found) / total if total else 0.0


def slowly(left: str, right: str) -> list[float]:
    """Every feature of `pair`, from its description."""
    ours, theirs = left.lower().split(), right.lower().split()

    def content(words: list[str]) -> set[str]:
        return {word for word in words if not is_stop_word(word)}

    def stems(words: list[str]) -> set[str]:
        return {stem(word) for word in content(words)}

    def bigrams(words: list[str]) -> set[tuple[str, str]]:
        return {(a, b) for a, b in pairwise(words) if not (is_stop_word(a) and is_stop_word(b))}

    def names(text: str) -> set[str]:
        return {w.lower() for w in text.split()[1:] if w[0].isupper() and not is_stop_word(w.lower())}

    values = overlap(ours, theirs, FREQUENCIES, VOCAB.documents)
    for items, weight in ((content, VOCAB.idf), (stems, VOCAB.stem_idf), (bigrams, lambda p: sum(map(VOCAB.idf, p)))):
        values += [share(items(theirs), items(ours)), share(items(theirs), items(ours), weight)]
    values.append(share(set(theirs), names(left)))
    values.append(max((VOCAB.idf(word) for word in content(ours) - set(theirs)), default=0.0))
    values.append(share(set(ours), content(theirs)))
    values.append(np.log(1 + len(theirs)))
    kind = question_type(ours)
    new = set(theirs) - set(ours)
    name = bool(names(right) & new)
    number = bool(new & {"1785", "1790", "3.5", "two"})
    year = bool(new & {"1785", "1790"})
    asked = [("who", name), ("where", name), ("when", year), ("when", number), ("how many", number)]
    return values + [float(kind == k and has) for k, has in [*asked, ("what", name), ("what", number)]]


@given(left=texts, right=texts, data=st.data())
def test_features_equal_plain_sets(left: list[str], right: list[str], data: st.DataObject) -> None:
    rows = st.lists(st.tuples(st.integers(0, len(left) - 1), st.integers(0, len(right) - 1)), min_size=1, max_size=6)
    left_rows, right_rows = (np.array(side) for side in zip(*data.draw(rows), strict=True))
    ours, theirs = (
        FeatureTexts("pair", [TOKENIZER.tokenize(text) for text in side], VOCAB, lower=TOKENIZER.lower)
        for side in (left, right)
    )
    found = pair_features(ours, theirs, left_rows, right_rows)
    assert found.dtype == np.float32
    expected = [slowly(left[i], right[j]) for i, j in zip(left_rows, right_rows, strict=True)]
    # Single against double precision: shares and idf are sums of at most nine terms near 1, known to 6e-8 each.
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    few = [
        FeatureTexts("overlap", [TOKENIZER.tokenize(text) for text in side], VOCAB, lower=TOKENIZER.lower)
        for side in (left, right)
    ]
    np.testing.assert_array_equal(pair_features(*few, left_rows, right_rows), found[:, :2])


@given(left=texts, right=texts)
def test_paraphrase_features_equal_plain_sets(left: list[str], right: list[str]) -> None:
    ours, theirs = (
        FeatureTexts("paraphrase", [TOKENIZER.tokenize(text) for text in side], VOCAB, lower=TOKENIZER.lower)
        for side in (left, right)
    )
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
    found = pair_features(ours, theirs, *np.array(pairs).T)
    expected = [paraphrase(left[i].lower().split(), right[j].lower().split()) for i, j in pairs]
    # Whole numbers and their quotients, rounded once to single precision: what is not 0 is far from 0, so no floor.
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("no loom", "a mill", [1, 0, 0]),
        ("built in 1785", "from 1785 on", [1, 1, 0]),
        ("built in 1785", "two from 1785", [0, 0, 1]),
        ("built in 1785", "a mill", [0, 0, 1]),
        ("built in 1785", "two from 1790", [0, 0, 0]),
    ],
)
def test_numbers_are_the_same_or_some_are_missing(left: str, right: str, expected: list[float]) -> None:
    table = Reader(TOKENIZER, VOCAB).read([left, right], features="paraphrase")
    assert features_of(table, table, np.array([0]), np.array([1]))[0, :3].tolist() == expected
    assert features_of(table, table, np.array([1]), np.array([0]))[0, :3].tolist() == expected


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who built the loom ?", "who"),
        ("In what year was it built ?", "when"),
        ("When was it built ?", "when"),
        ("Where is the mill ?", "where"),
        ("What city has a mill ?", "where"),
        ("How many looms are there ?", "how many"),
        ("How much is a loom ?", "how many"),
        ("How is cloth woven ?", ""),
        ("What is a loom ?", "what"),
        ("Name a mill .", "what"),
        ("the loom", ""),
        ("", ""),
    ],
)
def test_question_types(question: str, kind: str) -> None:
    assert question_type(question.split()) == kind


def test_a_year_and_a_new_name_are_seen_through_lower_casing() -> None:
    sides = ["Who built the loom ?", "When was the loom built ?", "it was built by Cartwright in 1785 ."]
    table = Reader(TOKENIZER, VOCAB).read(sides, features="pair")
    batch = make_batch(table, table, np.array([0, 1]), np.array([2, 2]))
    found = [dict(zip(FEATURES["pair"], row, strict=True)) for row in batch.features.tolist()]
    assert [row["who: a name"] for row in found] == [1, 0]
    assert [row["when: a year"] for row in found] == [0, 1]


def test_batches_have_features_only_where_they_are_asked_for() -> None:
    plain = Reader(TOKENIZER, VOCAB).read(["a loom", "loom"])
    assert features_of(plain, plain, np.array([0]), np.array([1])) is None
    assert make_batch(plain, plain, np.array([0]), np.array([1])).features is None
    table = Reader(TOKENIZER, VOCAB).read(["a loom", "loom"], features="overlap")
    batch = make_batch(table, table, np.array([0]), np.array([1]))
    assert batch.features.shape == (1, 2)
    assert batch.to("cpu").features is not None


def test_an_unknown_set_is_named() -> None:
    with refused("unknown_name", "features", "'all'"):
        FeatureTexts("all", [TOKENIZER.tokenize(text) for text in ["loom"]], VOCAB, lower=TOKENIZER.lower)
