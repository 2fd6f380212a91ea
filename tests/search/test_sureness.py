"""A stated coverage, and how sure a collection is of texts that it is given to rank."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from matchloom.search.calibration import WORDS, Calibration
from matchloom.search.collection import Collection
from matchloom.types import MatchloomError
from tests.search.collections import many

QUESTION = "about thing3 claim number 1"
FOREIGN = "a text that is no answer of the collection"


@pytest.fixture(scope="module")
def collection() -> Collection:
    return Collection.fit(many(12, 3))


def probabilities(collection: Collection, question: str) -> dict[str, float | None]:
    return {hit.text: hit.probability for hit in collection.search(question, top=None)}


@pytest.mark.parametrize("coverage", [0.01, 0.25, 0.5, 0.8, 0.9, 0.97])
def test_so_many_held_out_questions_have_the_probability_that_a_coverage_asks_for(coverage: float) -> None:
    shown = np.linspace(1, 0.02, 49)
    found = Calibration(1.0, WORDS.raw, shown=tuple(shown.tolist())).threshold_for(coverage)
    assert found is not None
    assert int((shown >= found).sum()) == ceil(50 * coverage)
    assert (shown >= found).mean() >= coverage


def test_a_coverage_that_needs_more_questions_than_there_are_shows_everything() -> None:
    calibration = Calibration(1.0, WORDS.raw, shown=(0.9, 0.8, 0.7))
    assert calibration.threshold_for(0.99) == 0.0
    assert Calibration(1.0, WORDS.raw).threshold_for(0.5) is None


def test_a_search_answers_the_surest_questions(collection: Collection) -> None:
    least = collection.threshold(coverage=0.5)
    for question in (QUESTION, "about nothing that is known here"):
        found = collection.search(question, coverage=0.5)
        first = found[0].probability if found else None
        assert found.answered is ((first or 0.0) >= least)
        assert len(found) <= (10 if found.answered else 3)


def test_texts_are_as_likely_right_as_a_search_says(collection: Collection) -> None:
    expected = probabilities(collection, QUESTION)
    texts = [*list(expected)[:5], FOREIGN]
    found = collection.rank(QUESTION, reversed(texts))
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.text for one in found} == set(texts)
    assert [list(reversed(texts))[one.index] for one in found] == [one.text for one in found]
    assert found.sureness is not None
    told = dict(zip((one.text for one in found), found.sureness.probabilities, strict=True))
    assert told == {**{text: expected[text] for text in texts[:5]}, FOREIGN: None}
    searched = collection.search(QUESTION)
    assert (found.sureness.known, found.sureness.confident) == (searched.known, searched.confident)
    assert found.sureness.answered is None
    assert collection.rank(QUESTION, reversed(texts), top=2) == found[:2]


def test_a_ranking_is_answered_where_its_first_text_is_sure_enough(collection: Collection) -> None:
    best, *others = probabilities(collection, QUESTION)
    for texts in ([best, *others[:3]], others[:3], [FOREIGN], []):
        found = collection.rank(QUESTION, texts, coverage=0.9)
        assert found.sureness is not None
        first = found.sureness.probabilities[0] if texts else None
        assert found.sureness.answered is ((first or 0.0) >= collection.threshold(coverage=0.9))
    assert not collection.rank(QUESTION, [FOREIGN], coverage=0.9).sureness.answered  # type: ignore[union-attr]


def test_what_cannot_be_stated_is_refused(collection: Collection) -> None:
    unlearnt = Collection.fit(many(3))
    for system, stated, code in (
        (collection, {"precision": 0.9, "coverage": 0.9}, "conflict"),
        (collection, {"coverage": 0.0}, "bad_value"),
        (collection, {"coverage": 1.0}, "bad_value"),
        (collection, {"precision": 1.5}, "bad_value"),
        (unlearnt, {"coverage": 0.5}, "not_supported"),
    ):
        for ask in (system.search, lambda question, **own: system.rank(question, [FOREIGN], **own)):  # noqa: B023
            with pytest.raises(MatchloomError) as refused:
                ask(QUESTION, **stated)
            assert refused.value.code == code
    with pytest.raises(MatchloomError) as refused:
        collection.threshold()
    assert refused.value.code == "bad_value"


def test_a_baseline_knows_no_probabilities() -> None:
    found = Collection.fit(many(4, 2), baseline="bm25_stemmed").rank(QUESTION, [FOREIGN])
    assert found.sureness is not None
    assert (found.sureness.probabilities, found.sureness.known, found.sureness.answered) == ((None,), None, None)
