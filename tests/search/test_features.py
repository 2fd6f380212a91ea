"""What every feature promises: left out is refitted, contributions add up, some are as all, saved is as fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from matchloom.lexical.columns import Ids, Rows
from matchloom.search.entries import Entries
from matchloom.search.features import linear
from matchloom.search.features.base import Feature, Known
from matchloom.search.features.bm25 import BM25Feature
from matchloom.search.features.centroid import Centroid
from matchloom.search.features.linear import LinearFeature, LinearWeights, Machine, Turned, fit_linear, learn_svm
from matchloom.search.features.ridge import Ridge
from matchloom.search.features.softmax import learn_softmax
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.features.translation import Translation, learn
from matchloom.search.queries import KnownTexts
from matchloom.search.reader import Reader, ngrams_of
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.search.collections import CHINESE, ENGLISH, pairs_of

SHARED = [Pair("closing issues by commit", "Put two stars on either side of the words.")]  # one question, two answers
ASKED = ["how do I strikethrogh closed text text", "two keys or a second factor", "zzz", ""]


class Case(NamedTuple):
    reader: Reader
    known: Known


def case(kind: str, *, whole: bool = True) -> Case:
    entries = Entries.of([*pairs_of(ENGLISH), *SHARED] if kind == "english" else pairs_of(CHINESE))
    questions, member = entries.known
    reader = Reader(Tokenizer(kind), whole=whole)
    asked, told = reader.fit(questions, list(entries.texts), member)
    return Case(reader, Known(asked, told, member))


class _Left(KnownTexts):
    """Some of the rows of others."""

    def __init__(self, whole: KnownTexts, rows: list[int]) -> None:
        self.counts, self.vectors = whole.counts[rows], whole.vectors[rows]


def without(known: Known, row: int) -> Known:
    rows = [n for n in range(known.member.shape[0]) if n != row]
    return Known(_Left(known.questions, rows), known.texts, known.member[rows])


def documents(known: Known, full: Known, reader: Reader, table: Any = "scores") -> Feature:
    statistics = BM25Feature.fit(full, documents=True).statistics
    return BM25Feature.fit(known, documents=True, statistics=statistics, table=table)


Fit = Callable[[Known, Known, Reader], Feature]
FITS: dict[str, Fit] = {
    "ridge": lambda known, full, reader: Ridge.fit(known),
    "bm25_doc": documents,
    "bm25_ans": lambda known, full, reader: BM25Feature.fit(known, documents=False),
    "centroid": lambda known, full, reader: Centroid.fit(known, reader.dense, questions=True, large=False),
    "text": lambda known, full, reader: Centroid.fit(known, reader.dense, questions=False, large=False),
}
BY_ROWS: dict[str, Fit] = {
    "bm25_doc, by rows": lambda known, full, reader: documents(known, full, reader, table=None),
    "bm25_doc, candidates": lambda known, full, reader: documents(known, full, reader, table="candidates"),
    "bm25_ans, by rows": lambda known, full, reader: BM25Feature.fit(known, documents=False, table=None),
    "centroid, by rows": lambda known, full, reader: Centroid.fit(known, reader.dense, questions=True, large=True),
    "text, by rows": lambda known, full, reader: Centroid.fit(known, reader.dense, questions=False, large=True),
}
TRANSLATIONS: dict[str, Fit] = {
    "translation": lambda known, full, reader: Translation.fit(known, reader.dense, large=False),
    "translation, by rows": lambda known, full, reader: Translation.fit(known, reader.dense, large=True),
}
EVERY = {**FITS, **BY_ROWS, **TRANSLATIONS}


@pytest.mark.parametrize("kind", ["english", "chinese"])
@pytest.mark.parametrize("name", [*FITS, *BY_ROWS])
def test_left_out_is_what_a_second_fit_would_say(name: str, kind: str) -> None:
    made, fit = case(kind), {**FITS, **BY_ROWS}[name]
    known, reader = made.known, made.reader
    feature = fit(known, known, reader)
    for row in range(known.member.shape[0]):
        read = known.questions.row(row)
        left = feature.leave_one_out(row)
        refitted = fit(without(known, row), known, reader).scores(read)[0]
        np.testing.assert_allclose(left, refitted, atol=2e-6)
        assert feature.name in ("bm25_ans", "text") or not np.allclose(left, feature.scores(read)[0])


def test_translation_is_left_out_by_folds() -> None:
    reader, known = case("english")
    rows = np.arange(known.member.shape[0])
    feature = Translation.fit(known, reader.dense, [rows[::2], rows[1::2]], large=False)
    for row in rows.tolist():
        table = learn(known, rows[row % 2 :: 2])
        refitted = Translation.fit(known, reader.dense, large=False)
        shape = (known.texts.counts.shape[1],) * 2
        refitted._table = Rows(sp.csr_array((table.probability, (table.w, table.t)), shape=shape))
        np.testing.assert_array_equal(feature.leave_one_out(row), refitted.scores(known.questions.row(row))[0])


def test_the_background_of_translations_is_of_stems_alone() -> None:
    reader, known = case("english")
    feature = Translation.fit(known, reader.dense, large=False)
    stems = np.array(sorted(reader.stems.values()))
    assert feature._background[stems].sum() == pytest.approx(1)
    counts = np.asarray(known.texts.counts.sum(axis=0) + known.questions.counts.sum(axis=0)).ravel()[stems]
    np.testing.assert_allclose(feature._background[stems], (counts + 0.5) / (counts + 0.5).sum())


def learn_regression(vectors: sp.csr_array, classes: Ids) -> LinearWeights:
    """The regression of nothing but these examples."""
    turned = Turned.of((vectors @ vectors.T).toarray(), vectors, None, 1.0)
    return turned.weights(np.arange(len(classes)), classes)


def test_a_regression_is_where_its_loss_is_lowest() -> None:
    random = np.random.default_rng(0)
    examples, classes = random.normal(size=(40, 6)), np.arange(40) % 4
    weights, bias = learn_softmax(examples, classes, 10.0, 200)
    logits = examples @ weights + bias
    gap = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) - np.eye(4)[classes]
    np.testing.assert_allclose(10 * examples.T @ gap + weights, 0, atol=0.2)
    np.testing.assert_allclose(10 * gap.sum(axis=0), 0, atol=0.2)


def test_a_machine_without_some_examples_is_the_one_that_learns_from_the_others() -> None:
    random = np.random.default_rng(0)
    vectors = sp.csr_array(random.random((60, 200)) * (random.random((60, 200)) < 0.1))
    rows, classes = np.append(np.arange(60), 3), np.append(np.arange(60) % 6, 1)  # one text is of two classes
    whole = learn_svm(vectors[rows], classes)
    said = vectors @ whole.weights + whole.bias
    likeness = (vectors @ vectors.T).toarray()
    machine = Machine.of(likeness, rows, classes, said, vectors.nnz)
    assert machine is not None
    assert Machine.of(likeness, rows, classes, said, 0) is None  # it would not pay
    held = np.arange(0, 60, 5)
    kept = ~np.isin(rows, held)
    left = machine.left_out(kept, held)
    other = learn_svm(vectors[rows[kept]], classes[kept])
    assert left is not None
    np.testing.assert_allclose(left, vectors[held] @ other.weights + other.bias, atol=1e-3)


@pytest.mark.parametrize("kind", ["english", "chinese"])
def test_linear_classifiers_are_left_out_by_folds_and_add_up(kind: str) -> None:
    reader, known = case(kind)
    asked, told, _ = known
    links = known.member.tocoo()
    rows = np.concatenate([links.row, len(asked) + np.arange(len(told))])
    classes = np.concatenate([links.col, np.arange(len(told))])
    made = fit_linear(known)
    assert [feature.name for feature in made] == ["svm", "softmax"]
    # A regression ends where steps gain nothing, and not at the same point when its examples are turned otherwise.
    for feature, learn_again, near in zip(made, (learn_svm, learn_regression), (1e-4, 2e-3), strict=True):
        vectors = feature.seen.matrix([*asked.texts, *told.texts], [*asked.words, *told.words])
        again = LinearFeature.load(feature.name, feature.arrays(), feature.seen)
        together = feature.scores(reader.read(asked.texts))
        for row in range(len(asked)):
            kept = ~np.isin(rows, np.arange(row % 5, len(asked), 5))
            other = learn_again(vectors[rows[kept]], classes[kept])
            left = other.scores(feature.seen.read([asked.texts[row]], [asked.words[row]]))[0]
            np.testing.assert_allclose(feature.leave_one_out(row), left, atol=near)
            read = reader.read([asked.texts[row]])
            added = [feature.contributions(read, answer) for answer in range(len(told))]
            scores = feature.scores(read)[0]
            np.testing.assert_allclose([one.sum() for one in added], scores, atol=1e-9)
            assert len(feature.features(read)) == len(added[0]) == len(feature.outside(read, read))
            assert again.scores(read)[0].tolist() == scores.tolist() == together[row].tolist()
            assert not np.allclose(feature.leave_one_out(row), scores)
    without_folds = fit_linear(known, folds=False)
    assert [feature._left_out.shape[0] for feature in without_folds] == [0, 0]
    for one, other in zip(made, without_folds, strict=True):
        assert one.weights.weights.tolist() == other.weights.weights.tolist()


def test_many_examples_teach_pairs_of_words_and_leave_out_some_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "SOLVED", 0)
    reader, known = case("english")
    asked, told, _ = known
    monkeypatch.setattr(linear, "_ENOUGH", 2 * len(asked) // linear.FOLDS)
    made = fit_linear(known)
    assert [feature.name for feature in made] == ["svm", "softmax"]
    rows, classes = linear.examples_of(known.member)
    held = np.arange(len(asked)) % linear.FOLDS < linear.folds_of(len(asked))
    assert 0 < held.sum() < len(held)
    for feature, again_learnt in zip(made, (linear.learn_svm, linear.learn_regression), strict=True):
        vectors = feature.seen.matrix([*asked.texts, *told.texts], [*asked.words, *told.words])
        assert any("\n" in word for word in feature.seen._words.numbers)
        again = LinearFeature.load(feature.name, feature.arrays(), TfIdf.load(feature.seen.arrays()))
        for row in range(len(asked)):
            read = reader.read([asked.texts[row]])
            scores = feature.scores(read)[0]
            assert again.scores(read)[0].tolist() == scores.tolist()
            added = [feature.contributions(read, answer).sum() for answer in range(len(told))]
            np.testing.assert_allclose(added, scores, atol=1e-9)
            if held[row]:
                kept = ~np.isin(rows, np.arange(row % 5, len(asked), 5))
                other = again_learnt(vectors[rows[kept]], classes[kept])
                left = other.scores(feature.seen.read([asked.texts[row]], [asked.words[row]]))[0]
                np.testing.assert_allclose(feature.leave_one_out(row), left, atol=2e-2)
            else:
                assert not feature.leave_one_out(row).any()


def test_where_examples_and_entries_are_too_many_words_alone_are_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "SOLVED", 0)
    _, known = case("english")
    asked, told, _ = known
    rows, _ = linear.examples_of(known.member)
    whole = fit_linear(known)[0].seen
    numbers = whole.matrix([*asked.texts, *told.texts], [*asked.words, *told.words])[rows].nnz
    monkeypatch.setattr(linear, "_WORK", numbers * len(told) - 1)
    made = fit_linear(known)
    assert [feature.name for feature in made] == ["svm", "softmax"]
    for feature in made:
        assert feature.seen.size == feature.seen.word_count == whole.word_count
        assert feature.leave_one_out(0).any()
        assert TfIdf.load(feature.seen.arrays()).size == whole.word_count
    monkeypatch.setattr(linear, "_WORK", 1)
    assert fit_linear(known) == []


@pytest.mark.parametrize(("questions", "folds"), [(0, 0), (3, 3), (3_000, 5), (8_954, 2), (15_000, 1), (10**6, 1)])
def test_of_many_questions_some_folds_are_left_out(questions: int, folds: int) -> None:
    assert linear.folds_of(questions) == folds


def test_a_regression_of_many_knows_columns_that_two_examples_have() -> None:
    vectors = sp.csr_array(np.array([[1.0, 0, 2], [1, 1, 0], [0, 0, 1]]))
    learnt = linear.learn_regression(vectors, np.array([0, 1, 0]))
    assert not learnt.weights[1].any()
    assert learnt.weights[0].any()
    assert learnt.weights[2, 0] > 0 > learnt.weights[2, 1]


def test_pairs_of_words_are_those_of_two_texts() -> None:
    texts = ["open the door", "open the window", "a door"]
    seen = TfIdf.fit(texts, [text.split() for text in texts], pairs=True)
    assert [word for word in seen._words.numbers if "\n" in word] == ["open\nthe"]
    number = seen._words.numbers["open\nthe"]
    assert seen.positions(["please", "open", "the", "box"])[number] == [(1, 2)]
    assert number in seen.read(["open the box"], [["open", "the", "box"]])[0][0]
    assert number not in seen.read(["the open box"], [["the", "open", "box"]])[0][0]


def test_letters_of_a_classifier_belong_to_words() -> None:
    def of(*texts: str, language: str = "english") -> TfIdf:
        return TfIdf.fit(texts, [Tokenizer(language)(text) for text in texts])

    def read(seen: TfIdf, text: str) -> tuple[Any, Any]:
        return seen.read([text], [Tokenizer()(text)])[0]

    seen = of("closing issues", "人寿保险")
    places = seen.positions(["closing", "issue"])
    words = len(seen._words.numbers)
    spelt = {gram for gram, own in seen._ngrams.numbers.items() if places.get(words + own) == [(0,)]}
    assert {" clo", "sing", "ng "} <= spelt
    chinese = of("人寿保险", language="chinese").positions(["人寿", "保险"])
    assert (0, 1) in {place for own in chinese.values() for place in own}
    text = "Closing closing an issue"
    row = seen.matrix([text], [Tokenizer()(text)])
    features, values = read(seen, text)
    np.testing.assert_allclose(row.toarray()[0, features], values)
    assert len(features) == row.nnz
    empty = of("", " ")
    assert empty.matrix(["a"], [["a"]]).shape == (1, 0)
    assert len(read(empty, "a")[0]) == len(read(seen, "?")[0]) == 0


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("name", EVERY)
def test_contributions_add_up(name: str, question: str) -> None:
    reader, known = case("english")
    feature = EVERY[name](known, known, reader)
    read = reader.read([question])
    scores = feature.scores(read)[0]
    assert scores.shape == (known.member.shape[1],)
    own = [feature.contributions(read, answer) for answer in range(len(scores))]
    assert {len(added) for added in own} == {len((read.terms if feature.reads == "terms" else read.vectors).columns)}
    np.testing.assert_allclose([added.sum() for added in own], scores, atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_some_entries_and_other_questions_change_no_bit(name: str) -> None:
    reader, known = case("english")
    feature = EVERY[name](known, known, reader)
    rows = np.array([4, 0, 2])
    together = feature.scores(reader.read(ASKED))
    for n, question in enumerate(ASKED):
        read = reader.read([question])
        assert feature.scores(read)[0].tolist() == together[n].tolist()
        assert feature.some(read, rows).tolist() == together[n][rows].tolist()


@pytest.mark.parametrize("name", EVERY)
def test_both_ways_to_store_are_the_same_to_the_bit_where_one_is_saved(name: str) -> None:
    reader, known = case("english")
    feature = EVERY[name](known, known, reader)
    arrays = feature.arrays()
    loaded: Feature
    if isinstance(feature, BM25Feature):
        loaded = BM25Feature.load(feature.name, arrays)
    elif isinstance(feature, Centroid):
        loaded = Centroid.load(feature.name, arrays, reader.dense, reader.size)
    elif isinstance(feature, Translation):
        loaded = Translation.load(arrays, reader.dense)
    else:
        loaded = Ridge.load(arrays)
    read = reader.read(ASKED)
    assert loaded.scores(read).tolist() == feature.scores(read).tolist()


@pytest.mark.parametrize("name", ["bm25_ans", "centroid", "text", "translation", "centroid, by rows"])
def test_a_text_outside_is_an_answer_without_questions(name: str) -> None:
    reader, known = case("english")
    feature = EVERY[name](known, known, reader)
    lonely = next(a for a in range(known.member.shape[1]) if not known.member[:, [a]].nnz)
    read = reader.read(["two keys or a second factor"])
    outside = feature.outside(read, known.texts.row(lonely)).sum()
    np.testing.assert_allclose(outside, feature.scores(read)[0, lonely], atol=1e-6)


def test_a_read_text_has_two_blocks_of_half_length() -> None:
    reader = case("english").reader
    features, values = reader.read(["How do I make text bold?"]).vectors[0]
    ngrams = reader.kinds[features] == 2
    np.testing.assert_allclose([(values[block] ** 2).sum() for block in (ngrams, ~ngrams)], 0.5, atol=1e-6)
    assert set(reader.read(["bold text"]).vectors.columns.tolist()) == set(reader.positions(["bold", "text"]))
    assert ngrams_of("a") == [" a", "a ", " a "]


@pytest.mark.parametrize("whole", [True, False])
def test_a_reader_that_grew_reads_what_it_knew_as_before_and_is_saved_as_it_was(whole: bool) -> None:
    reader = case("english", whole=whole).reader
    before, arrays = reader.read(ASKED), reader.arrays()
    size = reader.size
    reader.extend(["how is kvass brewed"], ["Kvass is brewed of bread and patience."])
    assert reader.size > size
    after = reader.read(ASKED)
    for side in ("terms", "vectors"):
        one, other = getattr(before, side), getattr(after, side)
        known = other.below(size)
        assert known.columns.tolist() == one.columns.tolist()
    assert reader.read(["kvass brewed"]).coverage[0] == 1
    assert {name: one.tolist() for name, one in reader.arrays().items()} == {
        name: one.tolist() for name, one in arrays.items()
    }
    loaded = Reader.load(Tokenizer(), whole, reader.arrays())
    again = loaded.read(ASKED)
    assert again.vectors.columns.tolist() == before.vectors.columns.tolist()
    assert again.vectors.values.tolist() == before.vectors.values.tolist()
    loaded.extend(["how is kvass brewed"], ["Kvass is brewed of bread and patience."])
    assert loaded.read(ASKED).vectors.values.tolist() == after.vectors.values.tolist()
