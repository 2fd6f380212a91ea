"""What a search gives, against every pair scored by itself."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from matchloom import Pair
from matchloom.explanation import Explanation
from matchloom.lexical import BM25, RandomScorer
from matchloom.matcher import Matcher
from matchloom.search.lance import table
from matchloom.search.lance.collection import LanceCollection
from matchloom.search.lance.rows import pair_id
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError
from tests.search.lance.making import made_matcher, made_pairs

PAIRS = made_pairs(60)
QUESTIONS = [pair.query for pair in made_pairs(8, seed=9)]


def printed(explanation: Explanation) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(explanation)
    return console.file.getvalue()  # type: ignore[attr-defined]


def one_by_one(matcher: Matcher, question: str) -> list[tuple[str, float, float]]:
    """id, similarity and match of every pair."""
    v_t = matcher.vectors([question])[0]
    rows = []
    for pair in PAIRS:
        similarity = float(np.dot(v_t.astype(float), matcher.vectors([pair.query])[0].astype(float)))
        rows.append((pair.query_id, similarity, float(matcher.score([Pair(question, pair.text)])[0])))
    return rows


@pytest.mark.parametrize("name", ["lstm_rnn", "bi_lstm_rnn"])
def test_a_search_is_the_mixture_over_all_pairs(name: str, tmp_path: Path) -> None:
    matcher = made_matcher(name)
    index = LanceCollection.create(tmp_path / "a", matcher)
    assert index.add(PAIRS) == (60, 0, 0)
    texts = {pair.query_id: (pair.query, pair.text) for pair in PAIRS}
    for question in QUESTIONS[:4]:
        rows = one_by_one(matcher, question)
        for alpha in (0.0, 0.35, 1.0):
            by_id = {key: (alpha * s + (1 - alpha) * m, s, m) for key, s, m in rows}
            found = index.search(question, top=60, candidates=60, alpha=alpha)
            assert {one.id for one in found} == by_id.keys()
            for one in found:
                assert (one.score, one.similarity, one.match) == pytest.approx(by_id[one.id], abs=1e-5)
            assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
            best = index.search(question, top=1, candidates=60, alpha=alpha)[0]
            assert best.score == pytest.approx(max(score for score, _, _ in by_id.values()), abs=1e-5)
            assert (best.question, best.text) == texts[best.id]


def test_more_partitions_are_looked_into_where_there_are_more_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [table.probes_of(rows) for rows in (0, 10**6, 4 * 10**6, 10**8)] == [32, 34, 67, 334]
    asked: list[int] = []
    monkeypatch.setattr(table, "probes_of", lambda rows: asked.append(rows) or 1)
    index = LanceCollection.create(tmp_path / "a", made_matcher("lstm_rnn"))
    index.add(PAIRS)
    store = index.snapshot().store
    towards = np.ones(2 * made_matcher("lstm_rnn").vectors([""]).shape[1], np.float32)
    rows = [store.nearest([], towards, 5)[1] for _ in range(2)]
    assert rows[0] == rows[1] != []
    assert asked == [60]  # counted once for a version


@pytest.mark.parametrize("name", ["cntn", "nbow_mlp", "cnn_mlp", "arc_i", "lstm_rnn"])
def test_an_archived_question_finds_itself_first(name: str, tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", made_matcher(name))
    longer = [pair._replace(query=f"{pair.query} {pair.query} kelar") for pair in PAIRS[:20]]
    index.add([*longer, Pair("baden", "kelar", query_id="short")])
    found = index.search("baden", top=1, alpha=1.0)[0]
    assert (found.id, found.similarity) == ("short", pytest.approx(1.0, abs=1e-5))


@pytest.mark.parametrize("name", ["lstm_rnn", "bi_lstm_rnn"])
def test_stored_vectors_match_as_texts_do(name: str) -> None:
    matcher = made_matcher(name)
    answers = [pair.text for pair in PAIRS]
    expected = matcher.score([Pair(QUESTIONS[0], answer) for answer in answers])
    stored = matcher.vectors(answers, side="right")
    np.testing.assert_allclose(matcher.match_vectors(matcher.vectors([QUESTIONS[0]])[0], stored), expected, atol=1e-6)


def test_without_a_matcher_both_parts_are_shares_of_bm25(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(PAIRS)
    questions = BM25.fit([pair.query for pair in PAIRS])
    answers = BM25.fit([pair.text for pair in PAIRS])
    texts = {pair.query_id: pair for pair in PAIRS}
    for asked in QUESTIONS:
        for one in index.search(asked, top=20, alpha=0.6):
            pair = texts[one.id]
            similarity, whole_q = questions.score([Pair(asked, pair.query), Pair(asked, asked)]).tolist()
            match, whole_a = answers.score([Pair(asked, pair.text), Pair(asked, asked)]).tolist()
            assert one.similarity == pytest.approx(similarity / whole_q, rel=1e-5)
            assert one.match == pytest.approx(match / whole_a, rel=1e-5)
            assert one.score == pytest.approx(0.6 * one.similarity + 0.4 * one.match, rel=1e-5)
    same = index.search(PAIRS[7].query, top=1, alpha=1.0)[0]
    assert (same.id, same.similarity) == ("q7", pytest.approx(1.0, rel=1e-5))


def test_a_matcher_without_sentence_vectors_matches_and_bm25_compares_questions(tmp_path: Path) -> None:
    matcher = made_matcher("mv_lstm")
    index = LanceCollection.create(tmp_path / "a", matcher)
    index.add(PAIRS)
    plain = LanceCollection.create(tmp_path / "b")
    plain.add(PAIRS)
    found = {one.id: one for one in index.search(QUESTIONS[0], top=60)}
    similarities = {one.id: one.similarity for one in plain.search(QUESTIONS[0], top=60)}
    assert {key: one.similarity for key, one in found.items()} == pytest.approx(similarities)
    texts = {pair.query_id: pair.text for pair in PAIRS}
    expected = matcher.score([Pair(QUESTIONS[0], texts[key]) for key in found])
    assert [one.match for one in found.values()] == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize("encoded", [False, True])
def test_any_scorer_can_rerank(encoded: bool, tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", made_matcher() if encoded else None)
    index.add(PAIRS)
    for scorer in (made_matcher("match_srnn"), BM25.fit([pair.text for pair in PAIRS])):
        own = {one.id: one.similarity for one in index.search(QUESTIONS[1], top=60, candidates=60)}
        found = index.search(QUESTIONS[1], top=60, candidates=60, rerank=scorer, alpha=0.5)
        for one in found:
            assert one.similarity == pytest.approx(own[one.id], abs=1e-6)
            assert one.match == pytest.approx(float(scorer.score([Pair(QUESTIONS[1], one.text)])[0]), abs=1e-5)
            assert one.score == pytest.approx((one.similarity + one.match) / 2, abs=1e-5)


@pytest.mark.parametrize("name", [None, "lstm_rnn", "cntn", "match_srnn", "late_interaction"])
@pytest.mark.parametrize("alpha", [0.0, 0.35, 1.0])
def test_explanations_add_up_to_the_mixture(name: str | None, alpha: float, tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", made_matcher(name) if name else None)
    index.add(PAIRS)
    for one in index.search(QUESTIONS[2], top=5, alpha=alpha, explain=True):
        why = one.explanation
        assert why is not None
        assert why.trace.score == one.score
        assert why.query == QUESTIONS[2].split()
        assert why.text == one.question.split() + one.text.split()
        assert why.sections == (("question", 0), ("answer", len(one.question.split())))
        added = {"question": 0.0, "answer": 0.0}
        for signal in why.trace.signals:
            side = "question" if signal.right < len(one.question.split()) else "answer"
            assert why.trace.channels[signal.channel].startswith(f"{side}: ")
            added[side] += signal.contribution
        for component in why.trace.components:
            added[component.name.split(":")[0]] += component.contribution
        assert added["question"] == pytest.approx(alpha * one.similarity, abs=1e-5)
        assert added["answer"] + why.trace.residual == pytest.approx((1 - alpha) * one.match, abs=1e-4)
    assert all(one.explanation is None for one in index.search(QUESTIONS[2]))


def test_a_scorer_that_cannot_say_why_is_a_component(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", made_matcher())
    index.add(PAIRS)
    one = index.search(QUESTIONS[2], top=1, alpha=0.5, rerank=RandomScorer(1), explain=True)[0]
    assert one.explanation is not None
    assert {component.name: component.contribution for component in one.explanation.trace.components} == {
        "question: similarity of sentence vectors": pytest.approx(one.similarity / 2, abs=1e-6),
        "answer: score by random": one.match / 2,
    }
    assert "no score was taken apart by words" in printed(one.explanation)
    assert "No score was taken apart by words" in one.explanation.to_html()


def test_chinese_is_found_by_its_words(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", tokenizer=Tokenizer("chinese"))
    index.add(
        [
            Pair("退休以后还需要人寿保险吗？", "看情况。", query_id="life"),
            Pair("汽车保险包括被盗吗？", "全险包括。", query_id="car"),
            Pair("怎样买房屋保险？", "先比较价格。", query_id="house"),
        ]
    )
    assert index.search("我的汽车被盗了", top=1)[0].id == "car"
    assert LanceCollection.open(tmp_path / "a").search("房屋", top=3)[0].id == "house"


def test_few_candidates_come_from_both_sides(tmp_path: Path) -> None:
    matcher = made_matcher()
    index = LanceCollection.create(tmp_path / "a", matcher)
    index.add(PAIRS)
    question = "baden unheard words"
    rows = one_by_one(matcher, question)
    for alpha in (0.0, 0.3, 1.0):  # five by vectors are the best five there are: a cosine is linear
        best = sorted((alpha * s + (1 - alpha) * m for _, s, m in rows), reverse=True)[:5]
        found = index.search(question, top=10, candidates=10, alpha=alpha)
        assert len(found) == 10
        assert [one.score for one in found[:5]] == pytest.approx(best, abs=1e-5)
    assert any("baden" in f"{one.question} {one.text}".split() for one in found)


def test_questions_without_words_or_pairs(tmp_path: Path) -> None:
    for name, matcher in (("a", None), ("b", made_matcher())):
        index = LanceCollection.create(tmp_path / name, matcher)
        assert index.search("anything") == []
        assert len(index) == 0
        index.add(PAIRS[:5])
        assert len(index.search("?!")) == (0 if matcher is None else 5)
        assert len(index.search('baden\'; DROP "quotes" ~ AND (')) <= 5


def test_ids(tmp_path: Path) -> None:
    assert pair_id(Pair("q", "a", query_id="1", text_id="2")) == "1/2"
    assert pair_id(Pair("q", "a", text_id="2")) == "2"
    assert pair_id(Pair("q", "a")) == pair_id(Pair("q", "a", 1.0)) != pair_id(Pair("q a", ""))
    index = LanceCollection.create(tmp_path / "a")
    assert index.add([Pair("one", "first"), Pair("one", "first"), Pair("two", "x", query_id="it's")]) == (2, 1, 0)
    assert index.add([Pair("three", "y", query_id="it's"), Pair("four", "no", label=0.0)]) == (0, 1, 1)
    assert len(index) == 2
    assert index.search("three", top=1)[0].question == "three"
    assert index.search("two") == []
    assert index.remove(["it's", "nobody"]) == 1
    assert [one.question for one in index.search("one three")] == ["one"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"alpha": 1.5}, r"alpha is 1\.5; expected a number from 0 to 1"),
        ({"alpha": "0.5"}, r"alpha is '0\.5'"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"top": 0}, "top is 0; expected a number of at least 1"),
        ({"top": -1}, "top is -1"),
        ({"candidates": 0}, "candidates is 0"),
        ({"candidates": 2**63}, "candidates is 9223372036854775808"),
        ({"question": " "}, "the question is ' '; expected a text"),
        ({"rerank": "bm25"}, "rerank is 'bm25'; expected a scorer"),
    ],
)
def test_a_search_that_makes_no_sense_is_told(arguments: dict[str, object], told: str, tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(PAIRS[:3])
    with pytest.raises(MatchloomError, match=told):
        index.search(**{"question": "x", **arguments})  # type: ignore[arg-type]


def test_scores_that_are_no_numbers_are_told(tmp_path: Path) -> None:
    class Broken:
        name = "broken"

        def score(self, pairs: list[Pair], *, progress: bool = False) -> np.ndarray:
            return np.full(len(pairs), np.nan, np.float32)

    index = LanceCollection.create(tmp_path / "a")
    index.add(PAIRS)
    with pytest.raises(MatchloomError, match="broken gave a score that is no number"):
        index.search(PAIRS[0].query, rerank=Broken())


def test_wrong_arguments_are_told(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    with pytest.raises(MatchloomError, match="half a character"):
        index.add([Pair("\ud800", "x")])
    with pytest.raises(MatchloomError, match="tokenizer 'klingon' is unknown"):
        LanceCollection.create(tmp_path / "b", tokenizer=Tokenizer("klingon"))
    with pytest.raises(MatchloomError, match=r"tokenizer is 'chinese'; expected Tokenizer\('chinese'\)"):
        LanceCollection.create(tmp_path / "c", tokenizer="chinese")  # type: ignore[arg-type]
    assert not (tmp_path / "c").exists()
    index.add([Pair(one, "x", query_id=one) for one in ("a", "b", "ab")])
    with pytest.raises(MatchloomError, match=r"ids is 'ab'; expected a list of ids, such as \['ab'\]"):
        index.remove("ab")
    for broken in (7, "\ud800"):
        with pytest.raises(MatchloomError, match="is no text; expected ids"):
            index.remove(["a", broken])  # type: ignore[list-item]
    assert index.remove(one for one in ("ab", "nobody")) == 1
    with pytest.raises(MatchloomError, match="side is 'nope'; expected 'question' or 'answer'"):
        index.texts("nope")


def test_half_characters_are_asked_for_without_harm(tmp_path: Path) -> None:
    for kind in ("chinese", "whitespace"):
        index = LanceCollection.create(tmp_path / kind, tokenizer=Tokenizer(kind))
        index.add([Pair("汽车 保险", "yes", query_id="car")])
        assert index.search("\udcff 汽车", top=1)[0].id == "car"
        with pytest.raises(MatchloomError, match="half a character"):
            index.add([Pair("你\ud800好", "x")])


def test_what_searches_freed_does_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = LanceCollection.create(tmp_path / "archive")
    index.add(PAIRS)
    looked: list[int] = []
    monkeypatch.setattr("matchloom.basics.memory.resident", lambda: looked.append(1) or len(looked) * (200 << 20))
    given: list[int] = []
    monkeypatch.setattr("matchloom.basics.memory.give_back", lambda: given.append(1) or True)
    reader = LanceCollection.open(tmp_path / "archive")
    for question in QUESTIONS[:4]:
        assert reader.search(question)
    assert len(given) == 2  # it had grown by 400 MB twice
