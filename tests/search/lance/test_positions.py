"""Archives of a late-interaction matcher: stored positions match as texts do, whatever became of the archive."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from matchloom import Pair
from matchloom.lexical import BM25
from matchloom.matcher import Matcher
from matchloom.search.lance.collection import LanceCollection
from matchloom.search.lance.positions import POSITIONS, differ, pooled
from matchloom.types import MatchloomError
from tests.killed import add_forever, run_and_kill
from tests.search.lance.making import made_matcher, made_pairs

PAIRS = [*made_pairs(40), Pair("", "!", query_id="nothing"), Pair("unheard of", "baden unheard", query_id="unknown")]
QUESTIONS = [*(pair.query for pair in made_pairs(3, seed=9)), "?", "unheard"]


def late(seed: int = 0) -> Matcher:
    return made_matcher("late_interaction", seed)


def check_search(index: LanceCollection, matcher: Matcher, pairs: list[Pair]) -> None:
    """Every answer of every search has the scores that its texts have."""
    by_id = {pair.query_id: pair for pair in pairs}
    for question in QUESTIONS:
        found = index.search(question, top=len(pairs), candidates=len(pairs), alpha=0.4)
        asked = [by_id[one.id] for one in found]
        assert {pair.query_id for pair in asked} == by_id.keys()
        assert [one.similarity for one in found] == matcher.score(
            [Pair(question, pair.query) for pair in asked]
        ).tolist()
        assert [one.match for one in found] == matcher.score([Pair(question, pair.text) for pair in asked]).tolist()
        for one in found:
            assert one.score == pytest.approx(0.4 * one.similarity + 0.6 * one.match, abs=1e-5)


def test_stored_positions_match_as_texts_do() -> None:
    matcher = late()
    texts = [pair.text for pair in PAIRS]
    stored = [np.frombuffer(one.tobytes(), np.int8).reshape(-1, 12) for one in matcher.positions(texts, side="right")]
    for question in QUESTIONS:
        found = matcher.match_positions(matcher.positions([question])[0], stored)
        assert found.tolist() == matcher.score([Pair(question, text) for text in texts]).tolist()
    assert matcher.match_positions(matcher.positions(["baden"])[0], []).tolist() == []
    with pytest.raises(MatchloomError, match="this mv_lstm has no positions that can be stored; late_interaction has"):
        made_matcher("mv_lstm").positions(["baden"])


def test_an_archive_is_added_to_compacted_and_encoded_again(tmp_path: Path) -> None:
    late().save(tmp_path / "m")
    index = LanceCollection.create(tmp_path / "a", tmp_path / "m")
    index.add(PAIRS[:20])
    index.add(PAIRS[20:])
    check_search(index, late(), PAIRS)
    status = index.status()
    assert (status["vector_size"], status["position_size"]) == (8, 8)
    index.remove(["q0"])
    index.compact()
    check_search(LanceCollection.open(tmp_path / "a"), late(), PAIRS[1:])
    late(1).save(tmp_path / "m")
    with pytest.raises(MatchloomError, match="holds vectors of another matcher"):
        LanceCollection.open(tmp_path / "a").search("baden")
    index.reencode(tmp_path / "m")
    check_search(index, late(1), PAIRS[1:])
    assert LanceCollection.check(tmp_path / "a").whole
    index.reencode(made_matcher())
    assert index.status()["position_size"] is None
    index.reencode(tmp_path / "m")
    check_search(index, late(1), PAIRS[1:])


def test_the_format_is_that_of_what_is_stored(tmp_path: Path) -> None:
    for name, matcher, expected in (("a", late(), 5), ("b", made_matcher(), 4), ("c", None, 4)):
        LanceCollection.create(tmp_path / name, matcher)
        settings = json.loads((tmp_path / name / "archive.json").read_text())
        assert settings["format"] == expected
        assert ("position_size" in settings) == (expected == 5)


@pytest.mark.parametrize("arguments", [{"bits": 32}, {"lexical": True}], ids=str)
def test_what_asks_for_the_words_is_matched_at_every_search(arguments: dict, tmp_path: Path) -> None:
    plain = late()
    matcher = made_matcher("late_interaction", arguments=arguments)
    assert not matcher.model.stored_positions
    index = LanceCollection.create(tmp_path / "a", matcher)
    index.add(PAIRS[:9])
    assert index.status()["position_size"] is None
    one = index.search(PAIRS[3].query, top=1)[0]
    assert one.match == matcher.score([Pair(PAIRS[3].query, one.text)])[0]
    assert plain.model.stored_positions


def test_another_scorer_reranks(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", late())
    index.add(PAIRS[:9])
    scorer = BM25.fit([pair.text for pair in PAIRS])
    for one in index.search(QUESTIONS[0], rerank=scorer, alpha=0.5):
        assert one.similarity == late().score([Pair(QUESTIONS[0], one.question)])[0]
        assert one.match == scorer.score([Pair(QUESTIONS[0], one.text)])[0]


@pytest.mark.slow
def test_what_was_confirmed_survives_a_kill(tmp_path: Path) -> None:
    late().save(tmp_path / "m")
    LanceCollection.create(tmp_path / "a", tmp_path / "m")
    lines = run_and_kill(add_forever, tmp_path / "report", tmp_path / "a", 0, after=0.3, lines=2)
    index = LanceCollection.open(tmp_path / "a")
    ids = [f"{n}-{i}" for n in range(len(lines)) for i in range(3)]
    assert index.snapshot().store.find("id", ids).keys() == set(ids)
    assert LanceCollection.check(tmp_path / "a").whole
    index.add(PAIRS)
    assert LanceCollection.check(tmp_path / "a").whole


@pytest.mark.slow
def test_damaged_positions_are_found_and_mended(tmp_path: Path) -> None:
    late().save(tmp_path / "m")
    LanceCollection.create(tmp_path / "a", tmp_path / "m").add(PAIRS)
    for column in POSITIONS:
        for change, told in (
            (lambda x: x[::-1], "1 of 43 differ"),
            (lambda x: x[:-1], "have positions that are cut off"),
        ):
            copy = Path(shutil.copytree(tmp_path / "a", tmp_path / "b"))
            index = LanceCollection.open(copy)
            with index._archive.changing(["by hand"]) as store:
                rows = store.take(store.find("id", ["q1"])["q1"], store.columns)
                plain = {**rows.to_pylist()[0], "key": "by hand", "id": "by hand"}
                plain[column] = change(plain[column])
                schema = rows.schema.remove(rows.schema.get_field_index("_rowid"))
                store.append(pa.Table.from_pylist([{name: plain[name] for name in store.columns}], schema))
            found = LanceCollection.check(copy)
            assert told in str(found)
            assert {finding.what for finding in found.findings if not finding.whole} == {"vectors"}
            if "cut off" in told:
                with pytest.raises(MatchloomError, match="positions are cut off"):
                    index.search("baden", candidates=100)
            assert LanceCollection.repair(copy).pairs == 42
            check_search(LanceCollection.open(copy), late(), PAIRS)
            shutil.rmtree(copy)


def test_pooled_vectors_have_a_length_of_one() -> None:
    found = pooled(late().positions([pair.query for pair in PAIRS]))
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_a_number_at_the_border_may_be_rounded_to_either() -> None:
    one = late().positions(["baden kelar"])[0]
    other = one.copy()
    other[0, 0] -= 1
    assert not differ(one, other)
    other[0, 0] -= 1
    assert differ(one, other)
    assert differ(one, one[:1])
