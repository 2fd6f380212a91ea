"""The cross-encoder: its own layers and a pretrained encoder's against slow references, links, ranking, the cut."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch

from matchloom import Matcher, Pair
from matchloom.batches import Texts
from matchloom.data.batching import pad_texts
from matchloom.encoders.transformer import Transformer
from matchloom.layers.links import attention_mask
from matchloom.models import build_model
from tests.encoders.making import FAMILIES, POSITIONS, config_json, tensors_of, write_folder
from tests.models.comparing import assert_same_gradients, assert_same_scores
from tests.models.making import TEXTS, TOKENIZER, VOCAB, embedding, make_model, make_pairs
from tests.reference.cross_encoder import cross_encoder
from tests.reference.transformer import transformer

QUERY, TEXT = "how do I OPENED files?", "sort the list, read 3.5"
SHORT = [("I open?", "sort"), ("do", "(read) the"), ("", "")]  # RoBERTa's pieces are single letters


@pytest.mark.parametrize("layers", [1, 2])
def test_its_own_layers_equal_the_sums_position_by_position(layers: int) -> None:
    model = make_model("cross_encoder", layers=layers)
    assert_same_scores(model, cross_encoder)
    assert_same_gradients(model, cross_encoder)


def test_many_pairs_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model("cross_encoder")
    batch = make_pairs(model)
    with torch.no_grad():
        together = model(batch)
        traces = model.trace(batch)
        monkeypatch.setattr("matchloom.models.cross_encoder.WORDS", 60)
        monkeypatch.setattr("matchloom.models.cross_encoder.CELLS", 3000)
        torch.testing.assert_close(model(batch), together, rtol=0, atol=1e-12)
        for one, other in zip(model.trace(batch), traces, strict=True):
            np.testing.assert_allclose(one.grid, other.grid, rtol=0, atol=1e-9)


def matcher_over(folder: Path, family: str = "bert") -> Matcher:
    pytest.importorskip("tokenizers")
    encoder = Transformer.load(write_folder(folder, family))
    model = build_model("cross_encoder", {}, encoder, seed=0).eval()
    return Matcher("cross_encoder", {}, model, encoder.reader(TOKENIZER, VOCAB))


def texts(encoder: Transformer, *found: str) -> Texts:
    return pad_texts(encoder.reader(TOKENIZER, VOCAB).read(found), np.arange(len(found)))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pair_is_read_as_its_encoder_learnt_to(family: str, tmp_path: Path) -> None:
    encoder = matcher_over(tmp_path, family).model.encoder.double()
    found = encoder.together(*(texts(encoder, *side) for side in zip(*SHORT, strict=True)))
    for n, (left, right) in enumerate(SHORT):
        pair = encoder.tokenizer._tokenizer.encode(left, right)
        config = config_json(family)
        expected = transformer(config, tensors_of(config), pair.ids, pair.type_ids)[0]
        # But for types and places, which are added up in single precision, all is in double.
        torch.testing.assert_close(found[n], expected, rtol=0, atol=1e-10 if family == "distilbert" else 1e-5)


def test_scores_ranks_and_explains_as_other_matchers_do(tmp_path: Path) -> None:
    matcher = matcher_over(tmp_path / "small")
    scores = matcher.score([Pair(TEXTS[0], text) for text in TEXTS])
    assert len(set(scores.tolist())) == len(TEXTS)
    candidates = matcher.encode(TEXTS)
    for query in TEXTS[:2]:
        ranked = matcher.rank(query, candidates)
        expected = matcher.score([Pair(query, one.text) for one in ranked])
        assert [one.score for one in ranked] == expected.tolist()
    matcher.save(tmp_path / "saved")
    assert matcher.score(TEXTS[0], TEXTS[1]) == Matcher.load(tmp_path / "saved").score(TEXTS[0], TEXTS[1])
    left, right, trace = matcher.trace(QUERY, TEXT)
    assert trace.grid.shape == (1, len(left), len(right))
    assert trace.score == matcher.score(QUERY, TEXT)
    assert trace.components[0].name == "each text alone"


@pytest.mark.parametrize("pretrained", [False, True])
def test_links_add_up_to_what_they_change(pretrained: bool, tmp_path: Path) -> None:
    own = build_model("cross_encoder", {"layers": 2}, embedding(), seed=0)
    model = (matcher_over(tmp_path).model if pretrained else own).double()
    batch = make_pairs(model, [(0, 1), (2, 4)])
    B, L, R = 2, batch.left.words.shape[1], batch.right.words.shape[1]
    with torch.no_grad():
        open_, closed = (model.head(model.first(batch, torch.full((B, L, R), x).double()))[:, 0] for x in (1.0, 0.0))
        torch.testing.assert_close(open_, model(batch), rtol=0, atol=1e-12)
    for n, trace in enumerate(model.trace(batch)):
        assert trace.components[0].value == pytest.approx(float(closed[n]), abs=1e-9)
        gained = sum(signal.contribution for signal in trace.signals)
        assert gained == pytest.approx(float(open_[n] - closed[n]), abs=2e-3 * abs(trace.score))
        assert len(trace.signals) > trace.grid.size / 2  # not where a text was cut


def test_a_link_is_of_its_two_words() -> None:
    L, R = 4, 5
    closed = torch.zeros(1, L, R, dtype=torch.double)
    words = torch.arange(-1, L + R).expand(1, -1)
    mask = torch.ones(1, 1 + L + R, dtype=torch.bool)
    one = closed.clone()
    one[0, 2, 3] = 0.25
    changed = attention_mask(words, mask, one) != attention_mask(words, mask, closed)
    assert changed[0, 0].nonzero().tolist() == [[3, 1 + L + 3], [1 + L + 3, 3]]
    assert attention_mask(words, mask, one)[0, 0, 3, 1 + L + 3] == np.log(0.25)


def test_a_long_pair_is_cut_and_that_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder = matcher_over(tmp_path).model.encoder
    long, half = "how " * 30, POSITIONS // 2
    with caplog.at_level(logging.WARNING, "matchloom"), torch.no_grad():
        found = encoder.together(texts(encoder, long), texts(encoder, "do " * 30))
        encoder.together(texts(encoder, long), texts(encoder, "do " * 31))
        shorter = encoder.together(texts(encoder, "how " * (half - 2)), texts(encoder, "do " * (half - 1)))
    torch.testing.assert_close(found, shorter)
    assert [record.getMessage() for record in caplog.records] == [
        f"a pair of {half + 31} pieces was cut to its first {POSITIONS}, and so are all longer pairs"
    ]


def test_a_matcher_saved_before_there_were_types_is_still_read(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    encoder = Transformer.load(write_folder(tmp_path))
    weights = encoder.state_dict()
    del weights["second"]
    encoder.load_state_dict(weights)
    assert not encoder.second.any()
