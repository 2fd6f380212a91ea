"""How far test questions are from a file, and what a report says of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from matchloom import fit
from matchloom.fitting.distance import distance
from matchloom.fitting.page import render
from matchloom.fitting.report import Distance, FitReport, Likeness
from matchloom.fitting.verdict import verdict
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.fitting.samples import small_report

THINGS = ["card", "coin", "cheque", "voucher", "invoice", "transfer", "mobile", "cash", "token", "credit"]
LETTERS = ["letter", "parcel", "crate", "box", "packet", "tube", "postcard", "pallet", "bag", "sack"]


def faq() -> list[Pair]:
    """Two answers, each asked for in one phrasing, and in another where every third question is concerned."""
    pairs = []
    for answer, things in (("Cards are taken.", THINGS), ("Within three days.", LETTERS)):
        for n, thing in enumerate(things):
            pairs.append(Pair(f"could I please settle the whole bill with a {thing}" if n % 3 else thing, answer))
            pairs.append(
                Pair(f"could I please settle the whole bill with {thing}s" if n % 3 else f"any {thing}", answer)
            )
    return pairs


def test_distance_is_that_of_the_slow_formula() -> None:
    known = [Pair(f"{a} {b}", "x") for a, b in zip(THINGS, THINGS[1:] + THINGS[:1], strict=True)]
    asked = [Pair(f"{thing} {other}", "x") for thing, other in zip(THINGS, LETTERS, strict=True)]
    found = distance(known, asked, Tokenizer())
    assert found is not None
    assert (found.questions, found.compared) == (10, 10)
    assert found.unknown_words == 0.5
    assert found.unknown_words_of_file == 0.0
    assert found.is_far
    alike = distance(known, known[::-1], Tokenizer())
    assert alike is not None
    assert alike.nearest == [1.0, 1.0, 1.0]
    assert alike.farther == 0.0
    assert not alike.is_far
    assert distance(known[:9], asked, Tokenizer()) is None


def test_the_nearest_cosine_is_that_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    known = [f"{a} with {b}" for a in THINGS[:4] for b in LETTERS[:4]]
    asked = [f"{a} without any {b}" for a in THINGS[:4] for b in LETTERS[4:8]]
    found = distance([Pair(q, "x") for q in known], [Pair(q, "x") for q in asked], Tokenizer())
    assert found is not None
    texts = [*known, *asked]
    cosines = np.zeros((len(asked), len(known)))
    for options in ({"token_pattern": r"\w+"}, {"analyzer": "char_wb", "ngram_range": (2, 4)}):
        vectors = TfidfVectorizer(sublinear_tf=True, **options).fit_transform(texts)
        cosines += (vectors[len(known) :] @ vectors[: len(known)].T).toarray() / 2
    np.testing.assert_allclose(found.nearest, np.quantile(cosines.max(axis=1), [0.1, 0.5, 0.9]), atol=1e-4)


@pytest.fixture(scope="module")
def report() -> FitReport:
    return fit(faq(), encoder=None).report


def test_a_fit_asks_both_ways_and_says_so(report: FitReport) -> None:
    like = report.likeness
    assert like is not None
    assert like.questions == 40
    assert like.similar >= like.copies > 0.2
    assert like.asked == 0 or 0 <= (like.by_cluster or 0) <= 1
    assert any("like those in the file" in line for line in report.verdict)
    assert FitReport.from_dict(report.to_dict()) == report


def test_own_test_questions_are_compared_with_the_file() -> None:
    asked = [Pair(f"zounds quoth {n} knave", "Cards are taken.") for n in "abcdefghijkl"]
    found = fit(faq(), test=asked, encoder=None).report
    assert found.distance is not None
    assert found.distance.is_far
    assert any("differ much from the file" in line for line in found.verdict)


def test_page_and_verdict_have_both_figures_and_the_warning() -> None:
    like = Likeness(120, 0.2, 0.55, 40, 0.85, 0.725)
    far = Distance(30, 120, 0.25, 0.1, [0.2, 0.4, 0.7], [0.4, 0.6, 0.9], 0.8)
    report = replace(small_report(), likeness=like, distance=far)
    page, lines = render(report), " ".join(verdict(report))
    for shown in ("0.85", "0.725", "55%", "far from the file", "25%"):
        assert shown in page
    for figure in ("0.850", "0.725", "55%", "differ much from the file", "25%"):
        assert figure in lines
    near = replace(report, distance=replace(far, farther=0.5))
    assert "far from the file" not in render(near)
    assert "differ much" not in " ".join(verdict(near))
    alone = replace(small_report(), likeness=None)
    assert "For which questions" not in render(alone)
    assert any("like those in the file" in line for line in verdict(alone))
