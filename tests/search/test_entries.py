from __future__ import annotations

import random

import numpy as np
import pytest

from matchloom.data.identity import digest, normalize_text
from matchloom.search.entries import Entries, best_first
from matchloom.types import MatchloomError, Pair


def test_pairs_of_one_text_or_one_id_are_one_answer() -> None:
    pairs = [
        Pair("a?", "First  answer"),
        Pair("b?", "other", text_id="x"),
        Pair("c?", "first answer", text_id="y"),
        Pair("d?", "other, rewritten", text_id="x"),
        Pair("e?", "OTHER", text_id="z"),
    ]
    entries = Entries.of(pairs)
    assert list(entries.ids) == ["x", "y"]
    assert [list(own) for own in entries.questions] == [["b?", "d?", "e?"], ["a?", "c?"]]
    assert entries.find("nothing", "z") == entries.find("other") == entries.find("Other, rewritten") == 0
    assert entries.find("nothing") is None


def test_an_answer_without_id_has_the_digest_of_its_normalized_text() -> None:
    assert list(Entries.of([Pair("q", "An  Answer")]).ids) == [digest(normalize_text("an answer"))]


def test_equal_questions_count_once_and_wrong_pairs_not_at_all() -> None:
    pairs = [Pair("Why?", "so"), Pair("why? ", "so", 2.0), Pair("how", "so", 0.0), Pair("how", "never", 0.0)]
    entries = Entries.of(pairs)
    assert len(entries) == 1
    assert list(entries.questions[0]) == ["Why?"]


def test_an_empty_question_is_none() -> None:
    assert list(Entries.of([Pair("  ", "so"), Pair("", "thus")]).questions) == [(), ()]


def test_nothing_follows_the_order_of_lines() -> None:
    pairs = [Pair(f"question {n % 7}", f"Text {n % 5}", text_id=f"t{n % 3}" if n % 2 else "") for n in range(30)]
    first = Entries.of(pairs)
    random.Random(1).shuffle(pairs)
    second = Entries.of(pairs)
    assert first == second
    assert list(first.ids) == sorted(first.ids)


def test_ids_that_start_anew_for_each_question_are_no_entries() -> None:
    topics = ["reset the password", "send an invoice", "deliver a parcel", "close this account", "运费是多少"]
    local = [Pair(f"question {n}", text, text_id=str(n % 2)) for n, text in enumerate(topics)]
    entries = Entries.of(local)
    assert sorted(entries.texts) == sorted(topics)
    assert "text_id is not used to identify answers: 2 of them (such as '0')" in entries.note
    assert entries.find("elsewhere", "0") is None
    assert Entries.of(local[::-1]) == entries


def test_an_answer_that_was_written_anew_keeps_its_id() -> None:
    pairs = [Pair(f"q{n}", f"text number {n // 2} {'now' * (n % 2)}", text_id=str(n // 2)) for n in range(10)]
    rewritten = Pair("q", "nothing of it was left", text_id="1")
    entries = Entries.of([*pairs, rewritten, rewritten._replace(text="all new")])
    assert (len(entries), entries.note) == (5, "")
    assert entries.find("all new") == entries.find("text number 1")
    one = [Pair("a", "a loom", text_id="x"), Pair("b", "the mill", text_id="x")]
    assert len(Entries.of(one)) == 1  # too little to tell


def test_no_right_pair_is_told() -> None:
    with pytest.raises(MatchloomError, match="label 1 or none and a text"):
        Entries.of([Pair("q", "t", 0.0)])


@pytest.mark.parametrize("top", [0, 1, 2, 3, 4, 9, None])
def test_best_first_is_a_stable_sort(top: int | None) -> None:
    scores = np.array([1.0, 3.0, 1.0, 3.0, 2.0, 1.0])
    assert best_first(scores, top).tolist() == [1, 3, 4, 0, 2, 5][:top]
