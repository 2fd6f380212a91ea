from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from matchloom.explanation import explain
from matchloom.search import memory as collection
from matchloom.search.features.translation import Translation
from matchloom.search.memory import AskedCollection
from matchloom.search.ranker import AnswerRanker
from matchloom.search.reader import Reader
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Explains, Pair, Scorer
from tests.search.collections import CHINESE, ENGLISH, many, pairs_of


@pytest.fixture(scope="module")
def english() -> AnswerRanker:
    return AnswerRanker.fit(pairs_of(ENGLISH))


@pytest.fixture(scope="module")
def large() -> AnswerRanker:
    """A collection that has candidates and translations, made small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collection, "WHOLE", 100)
        patch.setattr(collection, "CANDIDATES", 20)
        return AnswerRanker.fit([*many(330), *(Pair("", f"spare text {n}") for n in range(20))])


@pytest.fixture(scope="module")
def repeated() -> AnswerRanker:
    """A collection whose answers have questions enough for a support vector machine."""
    return AnswerRanker.fit([*many(8, questions=4), *pairs_of(ENGLISH)])


def test_it_scores_and_explains(english: AnswerRanker) -> None:
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
def test_typing_errors_and_answers_without_questions(english: AnswerRanker, question: str, text: str) -> None:
    assert english.rank(question)[0].text == text


def test_a_ranking_has_each_answer_once_with_its_nearest_question(english: AnswerRanker) -> None:
    ranked = english.rank("crossed out", top=None)
    assert sorted(answer.index for answer in ranked) == list(range(len(english.answers))) == list(range(6))
    assert ranked[0].question == "crossed out letters in a comment"
    assert [answer.score for answer in ranked] == sorted((answer.score for answer in ranked), reverse=True)
    assert sum(answer.probability or 0 for answer in ranked) == pytest.approx(1)
    assert english.rank("crossed out", 2) == ranked[:2]
    spare = next(answer for answer in ranked if answer.text.startswith("Two keys"))
    assert spare.question is None
    assert english.answers.ids[spare.index] == spare.id


def test_probabilities_add_up_to_what_is_known_of_a_question(repeated: AnswerRanker) -> None:
    assert repeated.certainty.temperature != 1  # learnt
    for question in ("claim my thing3", "xqz thing", "zx"):
        ranked = repeated.rank(question, top=None)
        assert sum(answer.probability or 0 for answer in ranked) == pytest.approx(ranked.known)
    assert repeated.rank("claim of my thing3").known == 1
    assert repeated.rank("claim of my thing3")[0].probability > 0.5  # type: ignore[operator]
    for stray in ("zx", "qwrtz pfk", "ing", "?!"):
        known = repeated.rank(stray).known
        assert known is not None
        assert known < 0.5
        assert repeated.rank(stray)[0].probability < 0.5  # type: ignore[operator]


def test_equal_scores_are_ordered_by_id(english: AnswerRanker) -> None:
    ranked = english.rank("", top=None)
    assert [answer.id for answer in ranked] == sorted(english.answers.ids)


def test_left_out_figures(english: AnswerRanker) -> None:
    assert english.left_out is not None
    assert english.left_out.questions == 11  # one answer has no question, so the only question of another counts
    assert 0 < english.left_out.precision_at_1 <= english.left_out.recall_at_3 <= 1


@pytest.mark.parametrize("kind", ["english", "translation", "repeated"])
def test_the_order_of_lines_changes_no_bit(kind: str) -> None:
    made = {"english": pairs_of(ENGLISH), "repeated": many(6, questions=3)}
    pairs = made.get(kind) or [*many(310), Pair("", "spare text")]
    questions = ["strikethrogh in githb", "price of thing3", "surrender"]
    first = AnswerRanker.fit(pairs)
    shuffled = list(pairs)
    random.Random(3).shuffle(shuffled)
    second = AnswerRanker.fit(shuffled)
    assert (first.collection.translation is not None) == (kind == "translation")
    assert first.mixture.weights.tolist() == second.mixture.weights.tolist()
    for question in questions:
        one, other = first.rank(question, None), second.rank(question, None)
        assert [answer[:5] for answer in one] == [answer[:5] for answer in other]
        assert [first.scores(question)[answer.index] for answer in one] == [answer.score for answer in one]


def test_chinese() -> None:
    ranker = AnswerRanker.fit(pairs_of(CHINESE), tokenizer=Tokenizer("chinese"))
    assert ranker.rank("汽车保险的价格")[0].text.startswith("汽车")
    assert ranker.rank("地震能赔房屋吗")[0].text.startswith("地震")
    explain(ranker, "车险多少钱", CHINESE[2][1])


def test_scores_of_pairs_are_those_of_the_ranking(english: AnswerRanker) -> None:
    question = "closing a ticket"
    pairs = [Pair(question, text.upper()) for text in english.answers.texts]
    np.testing.assert_array_equal(english.score(pairs), english.scores(question).astype(np.float32))
    by_id = [Pair(question, "rewritten", text_id=name) for name in english.answers.ids]
    np.testing.assert_array_equal(english.score(by_id), english.score(pairs))
    assert english.score([]).shape == (0,)


def test_a_text_outside_the_collection(english: AnswerRanker) -> None:
    fits, not_at_all = "You close an issue with a commit message.", "Bananas are yellow."
    scores = english.score([Pair("closing an issue", fits), Pair("closing an issue", not_at_all)])
    assert scores[0] > scores[1]
    assert explain(english, "closing an issue", fits).trace.score == pytest.approx(scores[0], abs=1e-5)


@pytest.mark.parametrize("question", ["How do I strikethrogh a closed issue in text?", "zzz", ""])
def test_traces_add_up_and_have_no_residual(
    english: AnswerRanker, large: AnswerRanker, repeated: AnswerRanker, question: str
) -> None:
    for ranker in (english, large, repeated):
        for text in (*ranker.answers.texts[:8], "a text from elsewhere that closes issues"):
            trace = explain(ranker, question, text).trace
            assert trace.score == pytest.approx(float(ranker.score([Pair(question, text)])[0]), abs=1e-4)
            assert abs(trace.residual) < 1e-9


def test_a_trace_names_the_words(english: AnswerRanker) -> None:
    found = explain(english, "crosed letters", ENGLISH[0][1])
    assert found.text[:2] == ["crossed", "out"]  # the matched question comes first
    strongest = max(found.trace.signals, key=lambda signal: signal.contribution)
    assert (found.query[strongest.left], found.text[strongest.right]) in {("letters", "letters"), ("crosed", "crossed")}
    assert "centroid: a mean answer" in {component.name for component in found.trace.components}


def test_one_question_an_answer_keeps_the_prior() -> None:
    ranker = AnswerRanker.fit([Pair("how do I weave?", "Use a loom."), Pair("how do I grind corn?", "Use a mill.")])
    assert ranker.left_out is None
    assert "prior" in ranker.mixture.why
    assert ranker.rank("griding corn")[0].text == "Use a mill."


def test_one_answer_and_no_questions_at_all() -> None:
    assert [answer.probability for answer in AnswerRanker.fit([Pair("q", "t")]).rank("q")] == [1.0]
    ranker = AnswerRanker.fit([Pair("", "Use a loom."), Pair("", "Use a mill.")])
    assert ranker.rank("mill")[0].text == "Use a mill."
    assert len(AnswerRanker.fit([Pair("?", "!"), Pair("??", "!!")]).rank("...")) == 2


def test_translations_find_what_shares_no_word(large: AnswerRanker) -> None:
    table = large.collection.translation
    assert isinstance(table, Translation)
    terms, weights = table.stands_for(large.collection.reading.terms(["cancel"])[0])
    best = terms[weights.argsort()[::-1][:6]]
    assert large.collection.reading.terms(["surrender"])[0] in best
    assert large.rank("cancel thing8")[0].text.startswith("the surrender of thing8 ")
    assert len(large.rank("cancel thing8", top=None)) < len(large.answers)  # candidates only
    assert large.left_out is not None


@pytest.mark.parametrize("name", ["english", "large", "repeated"])
def test_saved_and_loaded_is_the_same_to_the_bit(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    ranker: AnswerRanker = request.getfixturevalue(name)
    ranker.save(tmp_path / "ranker")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collection, "WHOLE", (ranker.collection._whole and 5000) or 100)
        patch.setattr(collection, "CANDIDATES", 20)
        loaded = AnswerRanker.load(tmp_path / "ranker")
    assert loaded.left_out == ranker.left_out
    assert loaded.mixture.why == ranker.mixture.why
    for question in ("strikethrogh in githb", "price of thing3", ""):
        assert loaded.rank(question, None) == ranker.rank(question, None)
        assert loaded.scores(question).tolist() == ranker.scores(question).tolist()


def test_many_examples_take_the_primal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = many(12, questions=3)
    monkeypatch.setattr(collection, "CLASSIFIED", 0)
    dual = AnswerRanker.fit(pairs)
    monkeypatch.setattr(collection, "LARGEST", 10)
    primal = AnswerRanker.fit(pairs)
    assert [type(ranker.collection.evidence[0]).__name__ for ranker in (dual, primal)] == ["Ridge", "PrimalRidge"]
    np.testing.assert_allclose(primal.scores("claim thing3"), dual.scores("claim thing3"), atol=1e-4)
    assert "ridge" not in AnswerRanker.fit(many(12)).mixture.names


def test_a_question_is_read_and_compared_once_for_scores_probabilities_and_explanations(
    english: AnswerRanker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read, weigh = Reader.read, AskedCollection.weigh
    monkeypatch.setattr(Reader, "read", lambda self, question: asked.append("read") or read(self, question))
    monkeypatch.setattr(AskedCollection, "weigh", lambda self, query: asked.append("weigh") or weigh(self, query))
    ranked = english.rank("crossed out", 3, explain=True)
    assert asked == ["read", "weigh"]
    for one in ranked:
        again = english.trace("crossed out", one.text)[2]
        assert one.explanation.trace.score == again.score == pytest.approx(one.score)
        assert one.explanation.trace.signals == again.signals
