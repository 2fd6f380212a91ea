"""What a Python user may expect of the public objects: forms of input, short reprs, one line for what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import matchloom
from matchloom import BM25, Collection, Fitted, Matcher, Pair, compare, evaluate, explain, read_pairs
from matchloom.data.formats import scorable
from matchloom.lexical import Overlap, SoftCoverage, TransLM
from matchloom.search.lance.collection import LanceCollection
from matchloom.text.vectors import WordVectors
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError, Scorer
from tests.fitting.samples import small_report
from tests.refusing import refused
from tests.search.lance.making import made_matcher, made_pairs

TEXTS = [pair.text for pair in made_pairs(5)]
ASKED = [pair.query for pair in made_pairs(3, seed=4)]


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return made_matcher("lstm_rnn")


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    verbs = {"Choose Print in the menu.": ("print", "get it on paper"), "Ask sales for an invoice.": ("pay", "invoice")}
    pairs = [Pair(f"how do I {verb}", answer) for answer, some in verbs.items() for verb in some]
    return Fitted(Collection.fit(pairs), small_report(), "answers")


def test_names_version_and_dir() -> None:
    assert matchloom.__version__ == version("matchloom")
    assert {"BM25", "fit", "compare", "Fitted", "__version__"} <= set(dir(matchloom))
    assert set(matchloom.__all__) <= set(dir(matchloom))
    for name in dir(matchloom):
        assert getattr(matchloom, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'bm52'"):
        _ = matchloom.bm52


def test_scores_of_pairs_in_any_form(matcher: Matcher) -> None:
    pairs = [Pair(ASKED[0], text) for text in TEXTS]
    expected = matcher.score(pairs)
    for form in (
        [(ASKED[0], text) for text in TEXTS],
        [{"question": ASKED[0], "answer": text, "label": 0.5} for text in TEXTS],
        iter(pairs),
        tuple(pairs),
        pyarrow.table({"query": [ASKED[0]] * 5, "text": TEXTS}),
    ):
        np.testing.assert_array_equal(matcher.score(form), expected)
    assert matcher.score([pair._replace(label=-1.0) for pair in pairs]).shape == (5,)  # nobody looks at labels
    assert [matcher.score(ASKED[0], text) for text in TEXTS] == pytest.approx(expected.tolist(), abs=1e-6)
    bm25 = BM25.fit(iter(TEXTS))
    assert bm25.score(ASKED[0], TEXTS[0]) == bm25.score([(ASKED[0], TEXTS[0])])[0] == bm25.score(pairs)[0]


def test_rankings_of_many_queries(matcher: Matcher, fitted: Fitted) -> None:
    single = [matcher.rank(asked, TEXTS, top=2) for asked in ASKED]
    assert matcher.rank(ASKED, TEXTS, top=2) == single
    assert matcher.rank(iter(ASKED), iter(TEXTS), top=2) == single
    assert matcher.rank(ASKED, matcher.encode(iter(TEXTS)), top=2) == single
    assert matcher.rank([], TEXTS) == []
    questions = ["how do I print", "invoice"]
    assert fitted.rank(questions, top=2) == [fitted.rank(one, top=2) for one in questions]
    assert fitted.search(iter(questions), top=2) == fitted.rank(questions, top=2)
    one = fitted.score([Pair("how do I print", "x")])
    assert fitted.score("how do I print", "x") == pytest.approx(float(one[0]))
    assert fitted.score([("how do I print", "x")])[0] == one[0]


def test_a_matcher_is_loaded_onto_a_device(matcher: Matcher, tmp_path: Path) -> None:
    matcher.save(tmp_path / "m")
    assert Matcher.load(tmp_path / "m", device="cpu").device.type == "cpu"
    assert Matcher.load(str(tmp_path / "m"), device="meta").device.type == "meta"
    for device in ("klingon", 3.5):
        with refused("bad_value", "device"):
            Matcher.load(tmp_path / "m", device=device)  # type: ignore[arg-type]


def test_every_repr_is_one_short_line(matcher: Matcher, fitted: Fitted, tmp_path: Path) -> None:
    bm25 = BM25.fit(TEXTS)
    vectors = WordVectors(["a", "b"], np.zeros((2, 3), np.float32))
    pairs = [Pair("a", "b", 1, "q"), Pair("a", "c", 0, "q")]
    index = LanceCollection.create(tmp_path / "a")
    for shown, start in (
        (matcher, "Matcher(lstm_rnn, hidden=6; "),
        (matcher.encode(TEXTS), "Candidates(5 texts)"),
        (fitted, "Fitted("),
        (fitted.report, "FitReport("),
        (fitted.collection, "Collection(2 answers, searched by answer_ranker)"),
        (fitted.scorer.entries, "Entries("),  # type: ignore[attr-defined]
        (index, "LanceCollection("),
        (bm25, "BM25(WordStatistics(5 texts, "),
        (Overlap.fit(TEXTS), "Overlap(WordStatistics(5 texts, "),
        (SoftCoverage.fit(TEXTS, vectors), "SoftCoverage("),
        (TransLM.fit(TEXTS, made_pairs(5)), "TransLM("),
        (Vocab.build([["a"]] * 500), "Vocab(1 words of 500 texts)"),
        (vectors, "WordVectors(2 words, 3 dimensions)"),
        (evaluate("bm25", pairs), "Report(bm25: AP "),
        (compare(pairs, pairs, systems=["bm25"]), "Comparison(P@1: bm25 "),
    ):
        assert repr(shown).startswith(start)
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 160


WRONG: list[Any] = [None, 7, b"red", object()]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_wrong_types_are_told_in_one_line(matcher: Matcher, fitted: Fitted, wrong: Any) -> None:
    good = [("a", "b", 1), ("a", "c", 0)]
    calls: dict[str, Callable[[], object]] = {
        "query": lambda: matcher.rank(wrong, TEXTS),
        "candidates": lambda: matcher.rank("a", wrong),
        "candidates, item 2": lambda: matcher.rank("a", ["x", wrong]),
        "texts": lambda: matcher.encode(wrong),
        "text": lambda: matcher.score("a", wrong or 0),
        "pairs": lambda: matcher.score(wrong),
        "pairs, item 1": lambda: matcher.score([wrong]),
        "folder": lambda: Matcher.load(wrong),
        "folder ": lambda: Fitted.load(wrong),
        "folder  ": lambda: LanceCollection.open(wrong),
        "path": lambda: list(read_pairs(wrong)),
        "the question": lambda: fitted.rank(wrong),
        "the question ": lambda: fitted.search(wrong),
        "texts ": lambda: BM25.fit(wrong),
        "texts, item 1": lambda: BM25.fit([wrong]),
        "pairs ": lambda: BM25.fit(TEXTS).score(wrong),
        "scorer": lambda: evaluate(wrong, good),
        "pairs  ": lambda: evaluate("bm25", wrong),
        "pairs   ": lambda: compare(wrong, good),
        "a system": lambda: compare(good, good, systems=[wrong]),
        "query ": lambda: explain(BM25.fit(TEXTS), wrong, "x"),
    }
    for told, call in calls.items():
        with pytest.raises(MatchloomError) as caught:
            call()
        assert str(caught.value).startswith(told.strip()), (told, str(caught.value))
        assert "\n" not in str(caught.value)


def test_one_text_where_many_are_wanted(matcher: Matcher) -> None:
    for call in (
        lambda: matcher.rank("a", "x"),
        lambda: matcher.encode("x"),
        lambda: BM25.fit("x"),
    ):
        with refused("wrong_type", "'x'"):
            call()
    with refused("wrong_type", "'x'"):
        matcher.score("x")
    for top in (0, -1, 2.5, True):
        with refused("bad_value", "top", "1"):
            matcher.rank("a", TEXTS, top=top)  # type: ignore[call-overload]
    with refused("wrong_type", "scorer", "'bm25'"):
        explain("bm25", "a", "b")


def test_lists_of_pairs_are_not_copied() -> None:
    pairs = made_pairs(3)
    assert scorable(pairs) is pairs
    assert isinstance(made_matcher(), Scorer)
