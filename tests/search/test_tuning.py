"""alpha on the grid, against average precision counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom import Pair
from matchloom.search.lance.collection import LanceCollection
from matchloom.search.tuning import Tuned, draw_curve
from matchloom.types import MatchloomError
from tests.search.lance.making import made_matcher, made_pairs

PAIRS = made_pairs(40)


def judged(both: bool) -> list[Pair]:
    """Questions that repeat half of an archived one; it is right, and three others are wrong."""
    pairs = []
    for n in range(0, 40, 4):
        question = " ".join(PAIRS[n].query.split()[:2])
        pairs.append(Pair(question, "", 1, text_id=f"q{n}"))
        if both:
            pairs += [Pair(question, "", 0, text_id=f"q{(n + k) % 40}") for k in (7, 11, 19)]
    return pairs


def average_precision(index: LanceCollection, pairs: list[Pair], alpha: float, candidates: int | None) -> float:
    values = []
    for question in dict.fromkeys(pair.query for pair in pairs):
        labels = {pair.text_id: pair.label for pair in pairs if pair.query == question}
        found = index.search(question, top=100, candidates=candidates or 100, alpha=alpha)
        ranked = [one.id for one in found if candidates or one.id in labels]
        right = [n for n, one in enumerate(ranked, start=1) if labels.get(one)]
        values.append(sum(k / n for k, n in enumerate(right, start=1)) / sum(map(bool, labels.values())))
    return sum(values) / len(values)


@pytest.mark.parametrize("both", [True, False])
def test_the_curve_is_mean_average_precision(both: bool, tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a", made_matcher())
    index.add(PAIRS)
    tuned = index.tune(judged(both), candidates=100 if both else 80)
    assert [alpha for alpha, _ in tuned.curve] == pytest.approx([n * 0.05 for n in range(21)])
    assert (tuned.questions, tuned.ranked) == (10, "judged pairs" if both else "all candidates")
    for alpha, value in tuned.curve[::5]:
        assert value == pytest.approx(average_precision(index, judged(both), alpha, None if both else 80), abs=1e-6)
    assert dict(tuned.curve)[tuned.alpha] == max(value for _, value in tuned.curve)
    assert index.alpha == tuned.alpha
    assert LanceCollection.open(tmp_path / "a", made_matcher()).alpha == tuned.alpha
    top = index.search("baden", top=1)[0]
    assert top.score == pytest.approx(tuned.alpha * top.similarity + (1 - tuned.alpha) * top.match, abs=1e-6)


def test_of_equals_the_papers_alpha(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add([Pair("red loom", "red yarn", query_id="r"), Pair("blue loom", "blue yarn", query_id="b")])
    tuned = index.tune([Pair("red", "red loom", 1), Pair("red", "blue loom", 0)])  # judged by question
    assert {value for _, value in tuned.curve} == {1.0}
    assert tuned.alpha == 0.7


def test_a_reranker_is_tuned_but_not_kept(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(PAIRS)
    index.tune(judged(True), rerank=made_matcher("mv_lstm"))
    assert json.loads((tmp_path / "a" / "archive.json").read_text())["alpha"] == 0.7


def test_what_cannot_be_tuned_is_told(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(PAIRS)
    with pytest.raises(MatchloomError, match="is not in the archive, neither by that id nor as a question"):
        index.tune([Pair("red", "unknown", 1, text_id="nobody")])
    with pytest.raises(MatchloomError, match="no question has a right pair"):
        index.tune([Pair("red", "", 0, text_id="q1")])
    with pytest.raises(MatchloomError, match="is judged twice, as 1 and as 0; keep one"):
        index.tune([Pair("red", "", 1, text_id="q1"), Pair("red", "", 0, text_id="q1")])
    with pytest.raises(MatchloomError, match="label None is no whole number"):
        index.tune([Pair("red", "", None, text_id="q1")])


def test_negative_labels_are_refused(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(PAIRS)
    pairs = [pair if pair.label else pair._replace(label=-1) for pair in judged(True)]
    with pytest.raises(MatchloomError, match="label is -1; labels start at 0"):
        index.tune(pairs)


def test_an_alpha_of_other_vectors_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_matcher(seed=1).save(tmp_path / "m")
    index = LanceCollection.create(tmp_path / "a", made_matcher())
    index.add(PAIRS)

    def measured(*given: object) -> Tuned:
        LanceCollection.open(tmp_path / "a").reencode(tmp_path / "m")
        return Tuned(0.05, [], 1, "judged pairs")

    monkeypatch.setattr("matchloom.search.lance.collection.tune_alpha", measured)
    with pytest.raises(MatchloomError, match="was encoded anew meanwhile; tune it again"):
        index.tune(judged(True))
    assert index.alpha == 0.7


def test_the_picture(tmp_path: Path) -> None:
    tuned = Tuned(0.7, [(n / 20, 0.5 + n / 100) for n in range(21)], 3, "judged pairs")
    draw_curve(tuned, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    draw_curve(tuned, tmp_path / "c.svg")
    assert "MAP" in (tmp_path / "c.svg").read_text() or "<svg" in (tmp_path / "c.svg").read_text()
    with pytest.raises(MatchloomError, match=r"must end in \.png, \.svg or \.pdf"):
        draw_curve(tuned, tmp_path / "c.txt")
    with pytest.raises(MatchloomError, match="its folder is not there"):
        draw_curve(tuned, tmp_path / "none" / "c.png")
