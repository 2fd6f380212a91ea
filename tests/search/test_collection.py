"""A fitted collection: rankings, probabilities, scores and explanations, the same in memory and from its folder."""

from __future__ import annotations

import os
import random
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matchloom.basics.parallel import usable_cores
from matchloom.explanation import explain
from matchloom.search.collection import Collection, asking
from matchloom.search.features.translation import Translation
from matchloom.search.reader import Reader
from matchloom.search.view import View
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Explains, Hits, Pair, Scorer
from tests.refusing import refused
from tests.search.collections import CHINESE, ENGLISH, SPARE, as_large, many, pairs_of

ASKED = ["strikethrogh in githb", "price of thing3", "surrender", "zx", "How do I close a text?", "cancel thing8"]


@pytest.fixture(scope="module")
def english() -> Collection:
    return Collection.fit(pairs_of(ENGLISH))


@pytest.fixture(scope="module")
def large() -> Collection:
    """A collection that has candidates and translations, made small."""
    with as_large():
        return Collection.fit([*many(330), *SPARE])


@pytest.fixture(scope="module")
def repeated() -> Collection:
    """A collection whose answers have questions enough for a support vector machine."""
    return Collection.fit([*many(8, questions=4), *pairs_of(ENGLISH)])


@pytest.mark.parametrize("which", ["english", "large", "repeated"])
def test_questions_on_several_threads_find_the_same(
    which: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    faq: Collection = request.getfixturevalue(which)
    asked = [f"{question} {n}" for n in range(25) for question in ASKED]
    threads: set[str] = set()
    own = asking.Asking.together

    def noted(*given: Any) -> list[Hits]:
        threads.add(threading.current_thread().name.partition("_")[0])
        return own(*given)

    monkeypatch.setattr(asking.Asking, "together", noted)
    found = {}
    with as_large() if which == "large" else nullcontext():
        for cores in (1, 2, 3):
            monkeypatch.setattr(asking, "usable_cores", lambda cores=cores: cores)
            threads.clear()
            found[cores] = faq.search(asked)
            assert ("matchloom-side" in threads) == (cores > 1 and which == "large")
        alone = [faq.search(question) for question in asked]
    for hits in found.values():
        assert hits == alone
        assert [(one.known, one.confident) for one in hits] == [(one.known, one.confident) for one in alone]


def test_cores_that_may_be_used_are_bounded_as_those_of_numpy_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = usable_cores()
    assert 1 <= cores <= (os.cpu_count() or 1)
    for told, expected in (("1", 1), ("0", 1), ("100000", cores), ("many", cores), ("", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        assert usable_cores() == expected


def test_it_scores_and_explains(english: Collection) -> None:
    assert isinstance(english, Scorer)
    assert isinstance(english, Explains)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("strikethrogh in githb", "Use two tildes around the words: ~~like this~~."),
        ("clsoing tickets", "Press the close button, or name the issue in a commit message."),
        ("forgot the pasword", "Open the settings and choose security."),
        ("second factor", "Two keys are better than one: turn on the second factor."),
    ],
)
def test_typing_errors_and_answers_without_questions(english: Collection, question: str, text: str) -> None:
    assert english.search(question)[0].text == text


def test_a_ranking_has_each_answer_once_with_its_nearest_question(english: Collection) -> None:
    ranked = english.search("crossed out", top=None)
    assert sorted(hit.index for hit in ranked) == list(range(len(english))) == list(range(6))  # type: ignore[type-var]
    assert ranked[0].question == "crossed out letters in a comment"
    assert [hit.score for hit in ranked] == sorted((hit.score for hit in ranked), reverse=True)
    assert {hit.probability for hit in ranked} == {None}  # too few questions to earn any
    assert 0 < (ranked.known or 0) < 1
    assert english.search("crossed out", top=2) == ranked[:2]
    spare = next(hit for hit in ranked if hit.text.startswith("Two keys"))
    assert spare.question is None
    assert english.entries.ids[spare.index or 0] == spare.id


def test_probabilities_add_up_to_what_is_known_of_a_question(repeated: Collection) -> None:
    assert repeated.calibration is not None
    assert repeated.calibration.shown  # learnt
    for question in ("claim my thing3", "xqz thing", "zx"):
        ranked = repeated.search(question, top=None)
        assert sum(hit.probability or 0 for hit in ranked) == pytest.approx(ranked.known)
    first = repeated.search("claim of my thing3")
    assert first.known is not None
    assert first.known > 0.9
    assert first[0].probability > 0.5  # type: ignore[operator]
    for stray in ("zx", "qwrtz pfk", "ing"):
        ranked = repeated.search(stray)
        assert ranked.known is not None
        assert ranked.known < first.known
        assert all(hit.probability < 0.5 for hit in ranked)  # type: ignore[operator]


def test_a_question_of_nothing_finds_nothing(english: Collection) -> None:
    assert english.search("?!", top=None) == english.search(["ξψω"])[0] == []
    assert english.search("?!").known == 0
    for nothing in ("", " \n"):
        with refused("no_data", "question"):
            english.search(nothing)
    with refused("bad_value", "top"):
        english.search("bold", top=0)


def test_equal_scores_are_ordered_by_id() -> None:
    pairs = [Pair("weave", f"loom {n}") for n in "cabd"] + [Pair("grind", "mill")]
    collection = Collection.fit(pairs, features=["bm25_doc"])
    ranked = collection.search("weave", top=None)
    assert len({hit.score for hit in ranked}) == 2
    assert [hit.id for hit in ranked[:4]] == sorted(hit.id for hit in ranked[:4])


def test_left_out_figures(english: Collection) -> None:
    assert english.leave_one_out is not None
    assert english.leave_one_out.questions == 11  # one answer has no question, so the only question of another counts
    assert 0 < english.leave_one_out.precision_at_1 <= english.leave_one_out.recall_at_3 <= 1


@pytest.mark.parametrize("kind", ["english", "translation", "repeated"])
def test_the_order_of_lines_changes_no_bit(kind: str) -> None:
    made = {"english": pairs_of(ENGLISH), "repeated": many(6, questions=3)}
    pairs = made.get(kind) or [*many(310), Pair("", "spare text")]
    first = Collection.fit(pairs)
    shuffled = list(pairs)
    random.Random(3).shuffle(shuffled)
    second = Collection.fit(shuffled)
    assert ("translation" in first.fusion.names) == (kind == "translation")
    assert first.fusion.weights.tolist() == second.fusion.weights.tolist()
    assert first.search(ASKED, top=None) == second.search(ASKED, top=None)


def test_chinese() -> None:
    collection = Collection.fit(pairs_of(CHINESE), tokenizer=Tokenizer("chinese"))
    assert collection.search("汽车保险的价格")[0].text.startswith("汽车")
    assert collection.search("地震能赔房屋吗")[0].text.startswith("地震")
    explain(collection, "车险多少钱", CHINESE[2][1])


def test_scores_of_pairs_are_those_of_the_ranking(english: Collection, large: Collection) -> None:
    for collection, question in ((english, "closing a ticket"), (large, "cancel thing8")):
        found = collection.search(question, top=None)
        pairs = [Pair(question, hit.text.upper()) for hit in found]
        expected = np.array([hit.score for hit in found], dtype=np.float32)
        np.testing.assert_array_equal(collection.score(pairs), expected)
        by_id = [Pair(question, "rewritten", text_id=hit.id) for hit in found]
        np.testing.assert_array_equal(collection.score(by_id), expected)
    assert english.score([]).shape == (0,)


def test_a_text_outside_the_collection(english: Collection) -> None:
    fits, not_at_all = "You close an issue with a commit message.", "Bananas are yellow."
    scores = english.score([Pair("closing an issue", fits), Pair("closing an issue", not_at_all)])
    assert scores[0] > scores[1]
    assert explain(english, "closing an issue", fits).trace.score == pytest.approx(scores[0], abs=1e-5)


@pytest.mark.parametrize("question", ["How do I strikethrogh a closed issue in text?", "cancel thing8", "zzz", ""])
def test_traces_add_up_and_have_no_residual(
    english: Collection, large: Collection, repeated: Collection, question: str
) -> None:
    for collection in (english, large, repeated):
        for text in (*collection.entries.texts[:8], "a text from elsewhere that closes issues"):
            trace = explain(collection, question, text).trace
            assert trace.score == pytest.approx(float(collection.score([Pair(question, text)])[0]), abs=1e-4)
            assert abs(trace.residual) < 1e-9


def test_a_trace_names_the_words(english: Collection) -> None:
    found = explain(english, "crosed letters", ENGLISH[0][1])
    assert found.text[:2] == ["crossed", "out"]  # the matched question comes first
    strongest = max(found.trace.signals, key=lambda signal: signal.contribution)
    assert (found.query[strongest.left], found.text[strongest.right]) in {("letters", "letters"), ("crosed", "crossed")}
    assert "centroid: a mean answer" in {component.name for component in found.trace.components}


def test_one_question_an_answer_keeps_the_prior() -> None:
    collection = Collection.fit([Pair("how do I weave?", "Use a loom."), Pair("how do I grind corn?", "Use a mill.")])
    assert collection.leave_one_out is None
    assert "prior" in collection.fusion.why
    assert collection.search("griding corn")[0].text == "Use a mill."


def test_one_answer_and_no_questions_at_all() -> None:
    alone = Collection.fit([Pair("q", "t")]).search("q")
    assert [hit.probability for hit in alone] == [None]
    collection = Collection.fit([Pair("", "Use a loom."), Pair("", "Use a mill.")])
    assert collection.search("mill")[0].text == "Use a mill."
    assert Collection.fit([Pair("?", "!"), Pair("??", "!!")]).search("...") == []


def test_translations_find_what_shares_no_word(large: Collection) -> None:
    segment = large._living.state.view.base
    table = segment.feature("translation")
    assert isinstance(table, Translation)
    terms, weights = table.stands_for(segment.reader.terms(["cancel"])[0])
    best = terms[weights.argsort()[::-1][:6]]
    assert segment.reader.terms(["surrender"])[0] in best
    with as_large():
        assert large.search("cancel thing8")[0].text.startswith("the surrender of thing8 ")
        assert len(large.search("cancel thing8", top=None)) <= 20 < len(large)  # candidates only
    assert large.leave_one_out is not None


@pytest.mark.parametrize("name", ["english", "large", "repeated"])
def test_saved_and_opened_is_the_same_to_the_bit(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    collection: Collection = request.getfixturevalue(name)
    collection.save(tmp_path / "kept")
    opened = Collection.open(tmp_path / "kept")
    assert opened.leave_one_out == collection.leave_one_out
    assert opened.fusion.why == collection.fusion.why
    assert opened.calibration == collection.calibration
    assert opened.entries.ids[:] == collection.entries.ids[:]
    with as_large() if name == "large" else pytest.MonkeyPatch.context():
        for question in ASKED:
            one, other = (kept.search(question, top=None, explain=True) for kept in (opened, collection))
            assert [hit._replace(explanation=None) for hit in one] == [hit._replace(explanation=None) for hit in other]
            assert [hit.explanation.trace.signals for hit in one] == [hit.explanation.trace.signals for hit in other]
            assert one.known == other.known


@pytest.mark.parametrize("name", ["english", "large", "repeated"])
def test_a_batch_is_its_questions_one_by_one_to_the_bit(name: str, request: pytest.FixtureRequest) -> None:
    collection: Collection = request.getfixturevalue(name)
    with as_large() if name == "large" else pytest.MonkeyPatch.context():
        single = [collection.search(question, top=None) for question in ASKED]
        assert collection.search(ASKED, top=None) == single
        assert [hits.known for hits in collection.search(iter(ASKED))] == [hits.known for hits in single]
        assert collection.search(ASKED[::-1] * 90, top=3)[-len(ASKED) :] == [hits[:3] for hits in single[::-1]]
    assert collection.search([]) == []


def test_a_question_is_read_and_compared_once_for_scores_probabilities_and_explanations(
    english: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read, scored = Reader.read, View.scored
    monkeypatch.setattr(Reader, "read", lambda self, texts: asked.append("read") or read(self, texts))
    monkeypatch.setattr(View, "scored", lambda self, *given: asked.append("scored") or scored(self, *given))
    ranked = english.search("crossed out", top=3, explain=True)
    assert asked == ["read", "scored"]
    for one in ranked:
        again = english.trace("crossed out", one.text)[2]
        assert one.explanation.trace.score == again.score == pytest.approx(one.score)
        assert one.explanation.trace.signals == again.signals


def test_a_baseline_may_rank_and_its_ties_are_answers() -> None:
    pairs = [Pair(f"mending {noun}", f"Bring the {noun}.") for noun in ("loom", "wheel", "kiln")]
    pairs += [Pair("grind corn", "Use a mill.")]
    collection = Collection.fit(pairs, baseline="nearest_question")
    assert collection.name == "nearest_question"
    tied = collection.search("mend", top=None)
    for top in (1, 2, 3):  # equal ones at the top are no reason to find nothing
        assert collection.search("mend", top=top) == tied[:top] != []
    assert collection.search("zzz", top=1) == collection.search("zzz", top=None) == []
    assert Collection.fit([Pair("q one", "t")], baseline="nearest_question").search("one")[0].text == "t"


def test_the_features_that_are_made_may_be_named() -> None:
    collection = Collection.fit(pairs_of(ENGLISH), features=["bm25_doc"], learn_weights=False)
    assert collection.fusion.names == ("bm25_doc",)
    assert collection.search("closing issues")[0].text.startswith("Press the close")
    with refused("bad_value", "nonsense"):
        Collection.fit(pairs_of(ENGLISH), features=["nonsense"])


def test_columns_are_named_in_one_short_line_whatever_they_are_called() -> None:
    names = {f"a\nb{n}" * 50: "x" for n in range(40)}
    made = Collection.fit([*pairs_of(ENGLISH), {"question": "q", "answer": "a", **names}], learn_weights=False)
    with refused("unknown_name", "topic") as error:
        made.search("bold", where={"topic": "x"})
    assert len(str(error.value)) < 1000
