"""Scoring, ranking, tracing, saving and loading; damaged folders are refused in one line."""

from __future__ import annotations

import errno
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from matchloom.batches import PairBatch
from matchloom.data.batching import pad_texts
from matchloom.data.reader import Reader
from matchloom.encoders.base import Encoder
from matchloom.matcher import Matcher
from matchloom.models import MODELS, build_model, model_arguments, sentence_vector_models
from matchloom.models.base import PairModel
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Explains, MatchloomError, Pair, Scorer
from tests.models.making import TEXTS, VOCAB, embedding
from tests.refusing import refused
from tests.representatives import each_model, each_variant


def make_matcher(name: str = "mv_lstm", **arguments: int | str | bool) -> Matcher:
    model = build_model(name, arguments, embedding(), seed=0).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    return Matcher(name, arguments, model, Reader(Tokenizer(max_words=30), VOCAB), {"note": "made by a test"})


PAIRS = [Pair(query, text) for query in TEXTS for text in TEXTS]


@pytest.mark.parametrize("name", each_model())
@pytest.mark.parametrize("lexical", [False, True])
def test_save_and_load_give_identical_scores(name: str, lexical: bool, tmp_path: Path) -> None:
    arguments = {"lexical": True} if lexical and name == "mv_lstm" else {}
    matcher = make_matcher(name, **arguments)
    matcher.save(tmp_path / "m")
    loaded = Matcher.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.score(PAIRS), matcher.score(PAIRS))
    assert loaded.tokenizer == matcher.tokenizer
    assert loaded.training == matcher.training
    assert loaded.vocab == matcher.vocab
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "matcher.json",
        "vocab.txt",
        "weights.safetensors",
    ]


def test_is_a_scorer_that_explains() -> None:
    assert isinstance(make_matcher(), Scorer)
    assert isinstance(make_matcher(), Explains)


@pytest.mark.parametrize("name", each_model())
def test_scores_do_not_depend_on_order_or_company(name: str) -> None:
    matcher = make_matcher(name)
    scores = matcher.score(PAIRS)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(matcher.score(PAIRS[::-1])[::-1], scores)
    np.testing.assert_array_equal([matcher.score([pair])[0] for pair in PAIRS[:10]], scores[:10])


def test_no_pairs_no_scores() -> None:
    assert make_matcher().score([]).shape == (0,)
    assert make_matcher().rank("query", []) == []


@pytest.mark.parametrize(
    ("name", "arguments"), each_variant([*((name, {}) for name in MODELS), ("mv_lstm", {"interaction": "cosine"})])
)
def test_rank_orders_by_score_with_candidates_encoded_once(name: str, arguments: dict) -> None:
    matcher = make_matcher(name, **arguments)
    candidates = matcher.encode(TEXTS)
    for query in TEXTS:
        expected = matcher.score([Pair(query, text) for text in TEXTS])
        ranking = matcher.rank(query, candidates)
        assert [r.score for r in ranking] == sorted((r.score for r in ranking), reverse=True)
        for ranked in ranking:
            assert ranked.text == TEXTS[ranked.index]
            assert ranked.score == expected[ranked.index]
        assert matcher.rank(query, candidates, top=3) == ranking[:3]
        assert [r.index for r in matcher.rank(query, TEXTS)] == [r.index for r in ranking]


@pytest.mark.parametrize("name", sentence_vector_models())
def test_sentence_vectors_of_either_side_are_what_the_model_encodes(name: str) -> None:
    matcher = make_matcher(name)
    texts = [f"{TEXTS[n % 8]} {n}" for n in range(300)]  # more than a batch
    padded = pad_texts(matcher.read(texts), np.arange(300))
    with torch.no_grad():
        left, right = matcher.model.encode(padded).numpy(), matcher.model.encode_right(padded).numpy()
    assert matcher.vectors(texts).dtype == np.float32
    np.testing.assert_allclose(matcher.vectors(texts), left, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(matcher.vectors(texts, side="right"), right, rtol=1e-5, atol=1e-5)
    assert matcher.vectors([]).shape == (0, left.shape[1])
    with refused("unknown_name", "side", "'middle'"):
        matcher.vectors(texts, side="middle")


def test_with_features_of_the_pair_there_are_no_sentence_vectors() -> None:
    matcher = Matcher(
        "lstm_rnn",
        {"features": "overlap"},
        build_model("lstm_rnn", {"features": "overlap"}, embedding(), seed=0).eval(),
        Reader(Tokenizer(), VOCAB),
    )
    with refused("not_supported", "features"):
        matcher.vectors(TEXTS)


def test_a_model_without_sentence_vectors_names_those_that_have_them() -> None:
    with refused("not_supported", "mv_lstm", "bi_lstm_rnn"):
        make_matcher().vectors(TEXTS)


def test_equal_scores_are_ranked_by_text_not_by_place() -> None:
    matcher = make_matcher()
    texts = ["same words", "Same words", "same  words"]
    forward = [r.text for r in matcher.rank("sort", texts)]
    assert forward == [r.text for r in matcher.rank("sort", texts[::-1])]


def test_more_candidates_than_a_batch() -> None:
    matcher = make_matcher()
    texts = [f"{TEXTS[n % 5]} {n}" for n in range(600)]
    scores = matcher.query_scores(TEXTS[0], matcher.encode(texts))
    np.testing.assert_allclose(scores, matcher.score([Pair(TEXTS[0], text) for text in texts]), atol=1e-6)


def test_trace_names_the_words() -> None:
    left, right, trace = make_matcher().trace(TEXTS[0], TEXTS[2])
    assert left == ["how", "do", "i", "open", "a", "file", "for", "reading"]
    assert right == ["closing", "sockets"]
    assert trace.grid.shape[1:] == (8, 2)
    assert trace.score == pytest.approx(make_matcher().score([Pair(TEXTS[0], TEXTS[2])])[0], abs=1e-6)
    assert make_matcher().trace("", "?!")[0] == ["(no words)"]


def test_long_texts_are_cut() -> None:
    matcher = make_matcher()
    long = "open the file " * 4_000
    assert matcher.score([Pair(long, long)]) == matcher.score([Pair(long[:500], long[:500])])


class TestDamage:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        make_matcher().save(tmp_path / "m")
        return tmp_path / "m"

    def refused(self, folder: Path, match: str) -> None:
        with pytest.raises(MatchloomError, match=match) as caught:
            Matcher.load(folder)
        assert "\n" not in str(caught.value)

    def test_missing_folder(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "none", "is not a folder; expected one with matcher.json")

    def test_older(self, folder: Path) -> None:
        about = json.loads((folder / "matcher.json").read_text())
        (folder / "matcher.json").write_text(json.dumps({**about, "format": 2}))
        self.refused(folder, "has format 2, this matchloom reads format 3; copy or train the matcher again")

    def test_weights_of_another_version(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def other(encoder: Encoder, *, hidden: int = 50, features: str = "") -> PairModel:
            return MODELS["lstm_rnn"](encoder, hidden=hidden, features=features)

        monkeypatch.setitem(MODELS, "mv_lstm", other)
        self.refused(folder, "mv_lstm has no argument")

    def test_weights_of_other_sizes(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        mv_lstm = MODELS["mv_lstm"]

        def other(encoder: Encoder, **arguments: Any) -> PairModel:
            return mv_lstm(encoder, **{**arguments, "hidden": 3})

        other.__signature__ = inspect.signature(mv_lstm)  # type: ignore[attr-defined]
        monkeypatch.setitem(MODELS, "mv_lstm", other)
        self.refused(folder, "do not fit this version's mv_lstm; train the matcher again")

    def test_not_json(self, folder: Path) -> None:
        (folder / "matcher.json").write_text("[1, 2]")
        self.refused(folder, "matcher.json is damaged")

    def test_a_full_disk_at_save_leaves_the_old_matcher(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        before = Matcher.load(folder).score(PAIRS)

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with refused("unwritable", "device"):
            make_matcher(hidden=3).save(folder)
        np.testing.assert_array_equal(Matcher.load(folder).score(PAIRS), before)
        assert len(list(folder.iterdir())) == 3

    def test_a_file_where_the_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("x")
        with pytest.raises(MatchloomError, match="cannot be made a folder: File exists"):
            make_matcher().save(tmp_path / "taken")


@pytest.mark.parametrize("name", each_model(name for name in MODELS if "features" in model_arguments(name)))
def test_features_are_the_same_in_scoring_ranking_and_tracing(name: str, tmp_path: Path) -> None:
    matcher = make_matcher(name, features="pair")
    query, texts = "How do I open a File ?", [*TEXTS, "Open the File of 1999 with two hands", "who opened it"]
    scores = matcher.score([Pair(query, text) for text in texts])
    ranked = sorted(matcher.rank(query, texts), key=lambda r: r.index)
    np.testing.assert_allclose([r.score for r in ranked], scores, atol=1e-5)
    matcher.save(tmp_path)
    loaded = Matcher.load(tmp_path)
    np.testing.assert_array_equal(loaded.score([Pair(query, text) for text in texts]), scores)
    for text, score in zip(texts, scores, strict=True):
        trace = loaded.trace(query, text)[2]
        assert trace.score == pytest.approx(float(score), abs=1e-4)
        assert len(trace.components) == 21


def test_batches_hold_no_more_pairs_of_words_than_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = make_matcher("match_pyramid")
    expected = matcher.score(PAIRS)
    ranked = matcher.rank("open a file", TEXTS)
    seen: list[tuple[int, ...]] = []
    model = matcher._double.of(matcher.model)  # which computes scores
    work = model.match

    def match(left: torch.Tensor, right: torch.Tensor, batch: PairBatch) -> torch.Tensor:
        seen.append((len(batch), batch.left.words.shape[1], batch.right.words.shape[1]))
        return work(left, right, batch)

    monkeypatch.setattr("matchloom.matcher._CELLS", 100)
    monkeypatch.setattr(model, "match", match)
    np.testing.assert_array_equal(matcher.score(PAIRS), expected)
    assert len(seen) > 10
    assert all(pairs == 1 or pairs * left * right <= 100 for pairs, left, right in seen)
    again = matcher.rank("open a file", TEXTS)
    assert [one.index for one in again] == [one.index for one in ranked]
