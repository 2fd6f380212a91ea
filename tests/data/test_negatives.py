"""Negatives: drawn from where they should be, never a true text, and the same whatever the order of the pairs."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data import negatives
from matchloom.data.formats import read_pairs, write_pairs
from matchloom.data.identity import digest
from matchloom.data.negatives import Pool, highest, mine_negatives
from matchloom.evaluation import evaluate
from matchloom.kernels import native
from matchloom.lexical import BM25
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scores
from tests.drawing import examples
from tests.refusing import refused

WORDS = [f"word{i}" for i in range(40)]


def corpus(size: int, seed: int = 0) -> list[Pair]:
    """Questions and answers of words whose frequencies fall, as in a language."""
    draw = np.random.default_rng(seed)
    share = 1 / np.arange(1, len(WORDS) + 1)
    share /= share.sum()
    texts = [" ".join(draw.choice(WORDS, size=draw.integers(5, 12), p=share)) for _ in range(2 * size)]
    return [Pair(texts[2 * i], texts[2 * i + 1] + f" only{i}", 1.0, f"q{i}", f"t{i}", f"g{i % 3}") for i in range(size)]


def bm25_by_hand(query: list[str], texts: list[list[str]]) -> list[float]:
    """Lucene's BM25 with its k1 = 1.2, b = .75, written from its formula."""
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for word in query:
            df = sum(word in other for other in texts)
            tf = text.count(word)
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            score += idf * tf / (tf + 1.2 * (0.25 + 0.75 * len(text) / mean))
        scores.append(score)
    return scores


def by_query(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    lists = defaultdict(list)
    for pair in pairs:
        lists[pair.query_id].append(pair)
    return lists


@pytest.mark.parametrize("build", native.suitable())
@pytest.mark.parametrize("size", [3, 40, 900])
def test_a_kernel_finds_the_rows_of_all_scores_in_their_order(
    build: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = native.Library(build)
    monkeypatch.setattr(negatives, "library", lambda: loaded)
    draw = np.random.default_rng(size)
    texts = [pair.text for pair in corpus(size)] + [f"rare{n // 3} rest" for n in range(size)]
    pool = Pool(texts, Tokenizer())
    asked = [*texts[:6], "word1 word1 rare0", "rare1", "of no word here", ""]
    counts = [1, 2, 5, len(texts) // 2, len(texts) - 1, len(texts), 2 * len(texts), 4, 3, 2]
    without = [draw.integers(len(pool.texts), size=n % 4).tolist() for n in range(len(asked))]
    found = pool.nearest_each(asked, counts, without)
    for text, count, left_out, rows in zip(asked, counts, without, found, strict=True):
        assert rows.tolist() == highest(pool.scores(text), count, left_out).tolist()
        assert pool.nearest(text, count, left_out).tolist() == rows.tolist()
    monkeypatch.setattr(negatives, "library", lambda: None)
    assert [rows.tolist() for rows in pool.nearest_each(asked, counts, without)] == [rows.tolist() for rows in found]


class Shortest:
    """A scorer that likes short texts and remembers what it was asked."""

    name = "shortest"

    def __init__(self) -> None:
        self.asked: list[list[Pair]] = []

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        self.asked.append(list(pairs))
        return np.array([-len(pair.text) for pair in pairs], dtype=np.float32)


@pytest.mark.parametrize("source", ["bm25", "cosine", "query", "random", Shortest()])
def test_each_positive_stands_among_its_negatives(source: str) -> None:
    pairs = corpus(40)
    mined = list(mine_negatives(pairs, count=3, source=source, top=20))
    assert len(mined) == 160
    for i, pair in enumerate(pairs):
        found = mined[4 * i : 4 * i + 4]
        assert [p for p in found if p.label] == [pair]
        rest = [p for p in found if p.label == 0.0]
        assert len(rest) == 3
        assert {(p.query, p.query_id, p.group) for p in rest} == {(pair.query, pair.query_id, pair.group)}
        texts = {p.text for p in rest}
        assert len(texts) == len({p.text_id for p in rest}) == 3
        assert texts <= {p.text for p in pairs} - {pair.text}


def test_bm25_draws_from_the_nearest_of_the_true_text() -> None:
    pairs = corpus(60)
    texts = [pair.text.split() for pair in pairs]
    drawn = defaultdict(set)
    for seed in range(40):
        for pair in mine_negatives(pairs[:5], count=4, top=8, seed=seed, pool=[pair.text for pair in pairs]):
            if pair.label == 0:
                drawn[pair.query_id].add(pair.text)
    for i in range(5):
        scores = bm25_by_hand(texts[i], texts)
        assert max(range(60), key=scores.__getitem__) == i  # the true text itself, which is left out
        best = sorted(set(range(60)) - {i}, key=scores.__getitem__, reverse=True)[:8]
        assert drawn[f"q{i}"] == {pairs[j].text for j in best}


def test_cosine_draws_those_whose_words_are_most_like_the_true_text() -> None:
    texts = ["oil prices rose", "oil prices fell", "gold prices rose", "the match was lost", "rain all day"]
    pairs = [Pair(f"first {n}", text, 1.0, f"q{n}") for n, text in enumerate(texts)]
    words = sorted({word for text in texts for word in text.split()})
    idf = {w: math.log((1 + len(texts)) / (1 + sum(w in t.split() for t in texts))) + 1 for w in words}
    vectors = [[(word in text.split()) * idf[word] for word in words] for text in texts]

    def cosine(u: list[float], v: list[float]) -> float:
        return sum(a * b for a, b in zip(u, v, strict=True)) / (math.hypot(*u) * math.hypot(*v))

    found = Pool(texts, Tokenizer())
    by_hand = [cosine(vectors[texts.index(text)], vectors[0]) for text in found.texts]
    np.testing.assert_allclose(found.cosines(texts[0]), by_hand, rtol=1e-6)
    mined = mine_negatives(pairs[:1], count=2, source="cosine", top=2, pool=texts)
    assert {pair.text for pair in mined if not pair.label} == {"oil prices fell", "gold prices rose"}


def test_query_draws_those_that_bm25_finds_for_the_query() -> None:
    texts = ["oil prices rose", "oil prices fell", "gold prices rose", "the match was lost", "rain all day"]
    mined = mine_negatives([("who lost in the rain", texts[0], 1)], count=2, source="query", top=2, pool=texts)
    assert {pair.text for pair in mined if not pair.label} == set(texts[3:])


def test_all_of_the_top_are_drawn_equally_often() -> None:
    pairs = corpus(30)
    counts: Counter[str] = Counter()
    for seed in range(400):
        mined = mine_negatives(pairs[:1], count=2, top=5, seed=seed, pool=[pair.text for pair in pairs])
        counts.update(pair.text for pair in mined if pair.label == 0)
    assert len(counts) == 5
    # 400 draws of 2 in 5: mean 160, standard deviation 9.8.
    assert all(abs(n - 160) < 5 * 9.8 for n in counts.values())


def test_random_draws_from_the_whole_pool() -> None:
    pairs = corpus(12)
    counts: Counter[str] = Counter()
    for seed in range(300):
        counts.update(
            p.text
            for p in mine_negatives(pairs[:1], count=3, source="random", seed=seed, pool=[p.text for p in pairs])
            if not p.label
        )
    assert set(counts) == {pair.text for pair in pairs[1:]}
    # 300 draws of 3 in 11: mean 81.8, standard deviation 7.7.
    assert all(abs(n - 81.8) < 5 * 7.7 for n in counts.values())


def test_a_scorer_draws_from_what_it_ranks_highest_for_the_query() -> None:
    pairs = corpus(30)
    lengths = sorted(len(pair.text) for pair in pairs[1:])
    scorer = Shortest()
    for seed in range(20):
        mined = list(mine_negatives(pairs[:1], count=2, source=scorer, top=4, seed=seed, pool=[p.text for p in pairs]))
        assert all(len(pair.text) <= lengths[3] for pair in mined if not pair.label)
    assert all(pair.query == pairs[0].query for pair in scorer.asked[0])
    assert len(scorer.asked[0]) == 29  # no more than ten times the top, so all but the true text


def test_a_scorer_sees_what_bm25_finds_for_the_query() -> None:
    pairs = corpus(60)
    scorer = Shortest()
    list(mine_negatives(pairs[:1], count=1, source=scorer, top=1, pool=[p.text for p in pairs]))
    scores = bm25_by_hand(pairs[0].query.split(), [pair.text.split() for pair in pairs])
    best = sorted(range(1, 60), key=scores.__getitem__, reverse=True)[:10]
    assert {pair.text for pair in scorer.asked[0]} == {pairs[j].text for j in best}


# ---- never a true text

few = st.sampled_from(["a", "A", "a  b", "A B", "b", "c", "d d", "D  d", "e"])


@examples(200)
@given(
    positives=st.lists(st.builds(Pair, few, few, st.none(), st.sampled_from(["", "q1", "q2"])), min_size=1, max_size=6),
    source=st.sampled_from(["bm25", "cosine", "query", "random"]),
    seed=st.integers(0, 3),
)
def test_no_negative_is_true_and_none_comes_twice(positives: list[Pair], source: str, seed: int) -> None:
    pool = [f"other {i}" for i in range(12)] + [pair.text for pair in positives]
    mined = list(mine_negatives(positives, count=2, source=source, top=12, seed=seed, pool=pool))

    def same(text: str) -> str:
        return " ".join(text.lower().split())

    true = {(key, same(p.text)) for p in mined if p.label == 1 for key in (p.query_id, same(p.query))}
    for pair in mined:
        if pair.label == 0:
            assert (pair.query_id, same(pair.text)) not in true
            assert (same(pair.query), same(pair.text)) not in true
    names = [(pair.query_id, pair.text_id) for pair in mined]
    assert len(set(names)) == len(names)
    for pairs in by_query(mined).values():
        negatives = [same(pair.text) for pair in pairs if pair.label == 0]
        assert len(set(negatives)) == len(negatives) == 2 * sum(pair.label == 1 for pair in pairs)


def test_texts_of_the_same_question_are_never_its_negatives() -> None:
    pairs = [
        Pair("How to knit?", "needles one", 1.0, "q1"),
        Pair("How to knit?", "needles two", 1.0, "q1"),
        Pair("how to  KNIT?", "needles three", 1.0, "q2"),
        Pair("How to weave?", "a loom", 1.0, "q3"),
        Pair("How to sew?", "a needle", 1.0, "q4"),
    ]
    pool = [*(pair.text for pair in pairs), "NEEDLES  one", "a hook", "thread"]
    for seed in range(20):
        for pair in mine_negatives(pairs, count=1, top=3, seed=seed, pool=pool):
            if pair.label == 0 and pair.query_id in ("q1", "q2"):
                assert pair.text in {"a loom", "a needle", "a hook", "thread"}


# ---- seeds and order


@pytest.mark.parametrize("source", ["bm25", "cosine", "query", "random"])
def test_the_order_of_pairs_and_pool_does_not_show(source: str) -> None:
    pairs = corpus(40)
    pairs += [pair._replace(text=pair.text + " too", text_id=pair.text_id + "b") for pair in pairs[:10]]
    once = by_query(list(mine_negatives(pairs, source=source, top=10)))
    random.Random(1).shuffle(pairs)
    assert by_query(list(mine_negatives(pairs, source=source, top=10))) == once
    other = by_query(list(mine_negatives(pairs, source=source, top=10, seed=1)))
    assert other != once


@pytest.mark.parametrize("source", ["bm25", "cosine", "query", "random"])
def test_every_query_has_a_draw_of_its_own(source: str) -> None:
    positives = [Pair(f"question {i}", "thread", 1.0) for i in range(20)]
    mined = by_query(list(mine_negatives(positives, source=source, pool=[f"thread {word}" for word in WORDS])))
    assert len({frozenset(pair.text for pair in pairs) for pairs in mined.values()}) == 20


def test_equally_near_texts_are_cut_the_same_way_in_any_order() -> None:
    pool = [f"thread {word}" for word in WORDS]  # all equally near, so that the cut falls among equals
    drawn = set()
    for order in range(5):
        random.Random(order).shuffle(pool)
        mined = list(mine_negatives([Pair("q", "thread", 1.0)], count=6, top=6, pool=pool))
        drawn.add(frozenset(pair.text for pair in mined if pair.label == 0))
    assert len(drawn) == 1
    assert drawn != {frozenset(sorted(pool)[:6])}  # and not by the alphabet


@given(
    scores=st.lists(st.integers(0, 5), min_size=1, max_size=30),
    count=st.integers(1, 35),
    without=st.sets(st.integers(0, 29)),
)
def test_the_highest_scores(scores: list[int], count: int, without: set[int]) -> None:
    without = {i for i in without if i < len(scores)}
    found = highest(np.array(scores, dtype=np.float32), count, without)
    kept = [i for i in range(len(scores)) if i not in without]
    assert sorted(found) == sorted(sorted(kept, key=lambda i: (-scores[i], i))[:count])


# ---- ids, and the place in a list


def test_a_text_has_one_id_throughout() -> None:
    pairs = corpus(20)
    pairs[3] = pairs[3]._replace(text_id="")  # none of its own
    pairs[5] = pairs[5]._replace(text_id=pairs[4].text_id)  # that of another text
    pairs.append(Pair("again", pairs[6].text, 1.0, "q20", "second id of t6"))
    pairs.append(pairs[7]._replace(text_id="second id of t7"))  # the same pair twice
    mined = list(mine_negatives(pairs, top=15))
    ids: dict[str, set[str]] = defaultdict(set)
    for pair in mined:
        ids[pair.text].add(pair.text_id)
    assert all(len(found) == 1 for found in ids.values())
    assert len({min(found) for found in ids.values()}) == len(ids)
    for n, pair in enumerate(pairs[:20]):
        expected = digest(pair.text) if n in (3, 4, 5) else {6: "second id of t6", 7: "second id of t7"}.get(n, f"t{n}")
        assert ids[pair.text] == {expected}
    assert len(mined) == 21 * 5


@pytest.mark.parametrize("pool", [None, [f"{word} {other}" for word in WORDS[:9] for other in WORDS]])
def test_the_place_in_a_list_tells_nothing(pool: list[str] | None) -> None:
    mined = list(mine_negatives(corpus(500), count=4, source="random", pool=pool))
    places = Counter(n % 5 for n, pair in enumerate(mined) if pair.label)
    # 500 positives on 5 places: mean 100, standard deviation 8.9.
    assert all(abs(places[place] - 100) < 5 * 8.9 for place in range(5))
    assert not evaluate(np.zeros(len(mined)), mined).warnings[-1].startswith("the input lists positives first")


def test_positives_may_be_tuples_dicts_a_table_or_a_file(tmp_path: Path) -> None:
    pairs = [pair._replace(query_id="", text_id="", group="") for pair in corpus(12)]
    expected = list(mine_negatives(pairs, top=8))
    write_pairs(tmp_path / "p.csv", pairs)
    rows = [{"question": pair.query, "answer": pair.text} for pair in pairs]
    for source in (
        ((pair.query, pair.text) for pair in pairs),
        rows,
        pyarrow.Table.from_pylist(rows),
        tmp_path / "p.csv",
    ):
        assert list(mine_negatives(source, top=8)) == expected
    with refused("bad_row", "item 1", "'a question'"):
        mine_negatives(["a question"])  # type: ignore[list-item]


# ---- what can go wrong


def test_too_few_candidates_are_told() -> None:
    with refused("no_data", "query", "'q0'", "3", "4"):
        list(mine_negatives(corpus(4)))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"positives": []}, "there are no pairs"),
        ({"positives": [Pair("a", "b", 0.0)]}, "has a pair with label 0.0; give positive pairs only"),
        ({"source": "tfidf"}, "source 'tfidf' is unknown; use bm25, cosine, query, random or a scorer"),
        ({"count": 0}, "cannot draw 0 negatives"),
        ({"count": 5, "top": 4}, "cannot draw 5 negatives from the top 4"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], expected: str) -> None:
    with pytest.raises(MatchloomError, match=expected):
        mine_negatives(**{"positives": corpus(9), **arguments})


def test_a_pool_without_words_is_told() -> None:
    with refused("no_data", "holds"):
        list(mine_negatives([Pair("a", "?", 1.0)], count=1, pool=["!", ".", ""]))


def test_a_scorer_that_gives_no_number_is_told() -> None:
    class Broken(Shortest):
        def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
            return np.full(len(pairs), np.nan, dtype=np.float32)

    with refused("bad_value", "scorer", "'shortest'", "'q0'"):
        list(mine_negatives(corpus(9), source=Broken()))


def test_empty_and_unknown_texts_still_get_negatives() -> None:
    pairs = [*corpus(9), Pair("empty", "", 1.0), Pair("unknown", "zebra", 1.0)]
    pool = [pair.text for pair in corpus(9)]
    mined = by_query(list(mine_negatives(pairs, pool=pool)))
    assert all(len(found) == 5 for found in mined.values())
    assert len(mined) == 11


def test_chinese_texts() -> None:
    texts = ["我爱北京天安门", "北京天安门很大", "苹果很好吃", "香蕉很好吃"]
    mined = list(
        mine_negatives([Pair("问", texts[0], 1.0)], count=1, top=1, pool=texts, tokenizer=Tokenizer("chinese"))
    )
    assert [pair.text for pair in mined if not pair.label] == [texts[1]]


def test_pairs_come_as_a_stream() -> None:
    scorer = Shortest()
    mined = mine_negatives(corpus(30), source=scorer, count=1, top=5)
    for _ in range(4):
        next(mined)
    assert len(scorer.asked) == 2


def test_mined_pairs_survive_a_file(tmp_path: Path) -> None:
    pairs = corpus(20)
    pairs += [pair._replace(text="more " + pair.text, text_id="") for pair in pairs[:5]]
    mined = list(mine_negatives(pairs, top=10))
    write_pairs(tmp_path / "p.tsv", mined)
    assert list(read_pairs(tmp_path / "p.tsv")) == mined


def test_the_pools_bm25_is_the_scorers() -> None:
    pairs = corpus(30)
    pool = Pool([pair.text for pair in pairs], Tokenizer())
    scorer = BM25.fit(pool.texts, tokenizer=Tokenizer())
    for pair in pairs[:5]:
        expected = scorer.score([Pair(pair.query, text) for text in pool.texts])
        np.testing.assert_allclose(pool.scores(pair.query), expected, rtol=1e-5, atol=1e-6)
