"""Answers with many questions: all are kept, an answer is found once, and it comes and goes as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom import Pair
from matchloom.search.lance.collection import LanceCollection
from matchloom.types import MatchloomError
from tests.search.lance.making import made_matcher, made_pairs

LOOM, MILL, KILN = "A loom weaves cloth.", "A mill grinds corn.", "A kiln bakes clay."
FAQ = [
    *(Pair(f"how do I {verb} cloth", LOOM, text_id="loom") for verb in ("weave", "make", "get")),
    *(Pair(f"how do I {verb} corn", MILL, text_id="mill") for verb in ("grind", "crush")),
    Pair("how do I bake clay and cloth", KILN, text_id="kiln"),
]


@pytest.fixture
def index(tmp_path: Path) -> LanceCollection:
    made = LanceCollection.create(tmp_path / "a")
    assert made.add(FAQ) == (6, 0, 0)
    return made


def test_every_question_of_an_answer_is_kept_and_the_answer_is_found_once(index: LanceCollection) -> None:
    assert len(index) == 6
    assert index.status()["answers"] == 3
    found = index.search("how do I make cloth", top=3)
    assert found[0].id == "loom"
    assert sorted({one.id for one in found}) == sorted(one.id for one in found)
    assert found[0].question == "how do I make cloth"
    assert found[0].similarity == pytest.approx(1.0, abs=1e-5)
    for verb in ("weave", "make", "get"):  # the question that matched is the one that is shown
        assert index.search(f"{verb} cloth", top=1)[0].question == f"how do I {verb} cloth"


@pytest.mark.parametrize("encoded", [False, True])
def test_one_answer_does_not_take_all_places(encoded: bool, tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", made_matcher() if encoded else None)
    others = made_pairs(5)
    index.add([Pair(f"baden kelar {n}", "baden", text_id="many") for n in range(40)] + others)
    found = index.search("baden kelar lomik", top=3, candidates=10)
    assert len({one.text for one in found}) == 3


def test_the_similarity_of_an_answer_is_its_best_questions(tmp_path: Path) -> None:
    together, apart = LanceCollection.create(tmp_path / "a"), LanceCollection.create(tmp_path / "b")
    pairs = made_pairs(12)
    together.add([pair._replace(text=f"kelar{' ' * n}", query_id="", text_id="one") for n, pair in enumerate(pairs)])
    apart.add(pairs)
    question = made_pairs(1, seed=3)[0].query
    (found,) = together.search(question)  # spaces make no other answer
    best = max(apart.search(question, top=12), key=lambda one: one.similarity)
    assert (found.similarity, found.question) == (best.similarity, best.question)


def test_texts_tell_answers_apart_where_ids_count_within_a_list(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add([Pair("weaving cloth", LOOM, 1, "q1", "1"), Pair("grinding corn or cloth", MILL, 1, "q2", "1")])
    assert {one.id for one in index.search("cloth")} == {"q1/1", "q2/1"}
    with pytest.raises(MatchloomError, match=r"text_id '1' belongs to 2 different answers; .* such as 'q1/1'"):
        index.remove(["1"])
    assert index.remove(["q1/1"]) == 1


def test_an_answer_is_replaced_by_question_and_deleted_as_a_whole(index: LanceCollection) -> None:
    assert index.add([Pair("How do I  weave cloth", "Ask a weaver.", text_id="loom")]) == (0, 1, 0)
    assert {one.text for one in index.search("cloth")} == {"Ask a weaver.", LOOM, KILN}
    assert index.add([Pair("what does cloth need", LOOM, text_id="loom")]) == (1, 0, 0)
    assert index.unknown(["loom", "nobody", "mill", "nobody"]) == ["nobody"]
    assert index.remove(["loom", "nobody"]) == 4
    assert [one.id for one in index.search("cloth")] == ["kiln"]
    index.compact()
    assert index.status()["answers"] == 2
    index.reencode(made_matcher())
    assert (len(index), index.status()["answers"]) == (3, 2)


def test_a_text_id_deletes_the_questions_that_have_ids_of_their_own(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add([pair._replace(query_id=f"q{n}") for n, pair in enumerate(FAQ)])
    assert index.search("weave cloth", top=1)[0].id == "q0/loom"
    assert index.remove(["loom"]) == 3
    assert len(index) == 3


def test_pairs_without_ids_have_their_answers_id(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    pairs = [pair._replace(text_id="") for pair in FAQ]
    assert index.add(pairs) == (6, 0, 0)
    assert index.add(pairs) == (0, 6, 0)
    assert index.remove([index.search("weave cloth", top=1)[0].id]) == 3


def test_answers_that_are_empty_are_not_one(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add([Pair("red loom", ""), Pair("blue loom", "")])
    assert len(index.search("loom")) == 2


def test_pairs_may_be_anything_that_holds_pairs(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    assert index.add([("weaving", LOOM), ("grinding", MILL, 0)]) == (1, 0, 1)
    assert index.add([{"question": "grinding", "answer": MILL, "answer_id": "mill"}]).new == 1
    (tmp_path / "more.tsv").write_text("question\tanswer\nbaking\tA kiln.\n", encoding="utf-8")
    assert index.add(tmp_path / "more.tsv").new == 1
    assert [one[0].text for one in index.search(["weaving", "grinding"], top=1)] == [LOOM, MILL]
    assert index.search(iter(["weaving"]), top=1)[0][0].text == LOOM
    assert repr(index) == f"LanceCollection({str(tmp_path / 'a')!r}, 3 pairs, searched by BM25)"
    for wrong, told in ((None, "pairs: found nothing"), (7, "pairs: found int 7"), ([b"x"], "pairs, item 1")):
        with pytest.raises(MatchloomError, match=told):
            index.add(wrong)  # type: ignore[arg-type]
    for asked in (7, None, b"weaving", ["weaving", None]):
        with pytest.raises(MatchloomError, match=r"the question is .*; expected a text"):
            index.search(asked)  # type: ignore[call-overload]


def test_alpha_is_tuned_on_answers(index: LanceCollection) -> None:
    by_id = [
        ("weave a cloth", "loom", 1),
        ("weave a cloth", "mill", 0),
        ("crush it", "mill", 1),
        ("crush it", "kiln", 0),
    ]
    tuned = index.tune([Pair(query, "", label, text_id=name) for query, name, label in by_id])
    assert (tuned.questions, tuned.ranked) == (2, "judged pairs")
    texts = {"loom": LOOM, "mill": MILL, "kiln": KILN}
    assert index.tune([Pair(query, texts[name], label) for query, name, label in by_id]) == tuned  # by the answer
    open_lists = index.tune([Pair("weave a cloth", LOOM, 1)])
    assert open_lists.ranked == "all candidates"
    assert dict(open_lists.curve)[1.0] == 1.0  # one answer, though three questions of it were judged
