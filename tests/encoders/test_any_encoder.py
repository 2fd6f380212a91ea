"""Models, matcher and training take an encoder that knows nothing of words' ids: the contract, with pieces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

import matchloom.encoders.kinds
from matchloom import Pair
from matchloom.batches import Pieces, Texts
from matchloom.matcher import Matcher
from matchloom.models import build_model
from matchloom.models.base import PairModel
from matchloom.training.config import TrainConfig
from matchloom.training.step import make_optimizer
from matchloom.types import MatchloomError
from tests.encoders.random_transformer import RandomTransformer
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, make_model, make_pairs
from tests.refusing import refused
from tests.representatives import each_variant

CASES = [
    ("mv_lstm", {}),
    ("mv_lstm", {"interaction": "cosine", "lexical": True, "features": "pair"}),
    ("match_srnn", {}),
    ("bi_match_srnn", {"interaction": "cosine"}),
    ("m2s_net", {}),
    ("m2s_net", {"features": "pair", "frame": 24, "blocks": 1}),
    ("lstm_rnn", {}),
    ("bi_lstm_rnn", {"features": "pair"}),
    ("knrm", {}),
    ("arc_i", {}),
    ("arc_ii", {"maps": 4}),
    ("match_pyramid", {}),
    ("multi_gran_cnn", {"maps": 4}),
    ("cntn", {}),
    ("nbow_mlp", {}),
    ("cnn_mlp", {}),
    ("rae", {}),
    ("late_interaction", {}),
    ("late_interaction", {"k": 1, "size": 4, "lexical": True}),
    ("sentence_bert", {}),
    ("cross_encoder", {}),
]
each_case = pytest.mark.parametrize(("name", "arguments"), each_variant(CASES))


def make(name: str, arguments: dict) -> PairModel:
    return make_model(name, encoder=RandomTransformer(), **arguments)


def more_padding(texts: Texts, extra: int) -> Texts:
    pieces = texts.pieces
    assert pieces is not None
    wider = Pieces(pad(pieces.ids, (0, extra), value=3), pad(pieces.words, (0, extra), value=-1), pieces.lengths)
    lexical = texts.lexical
    if lexical is not None:
        lexical = replace(
            lexical, keys=pad(lexical.keys, (0, extra), value=1), idf=pad(lexical.idf, (0, extra), value=1.0)
        )
    return Texts(pad(texts.words, (0, extra), value=3), texts.lengths, lexical, wider)


@each_case
def test_a_score_depends_on_its_pair_alone(name: str, arguments: dict) -> None:
    model = make(name, arguments)
    batch = make_pairs(model)
    together = model(batch)
    assert torch.isfinite(together).all()
    assert len({round(s, 9) for s in together.tolist()}) > len(PAIRS) / 2
    padded = replace(batch, left=more_padding(batch.left, 5), right=more_padding(batch.right, 3))
    alone = torch.cat([model(make_pairs(model, [pair])) for pair in PAIRS])
    turned = model(make_pairs(model, PAIRS[::-1])).flip(0)
    for other in (model(padded), alone, turned):
        torch.testing.assert_close(other, together, rtol=0, atol=1e-11)


@each_case
def test_the_encoder_and_every_parameter_get_a_gradient(name: str, arguments: dict) -> None:
    model = make(name, arguments)
    scores = model(make_pairs(model))
    (scores * torch.linspace(-1, 2, len(scores), dtype=scores.dtype)).sum().backward()
    for parameter_name, parameter in model.named_parameters():
        if not parameter.requires_grad or (parameter_name.startswith("encoder.") and not model.trains_embedding):
            continue
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name


@each_case
def test_traces_speak_of_words_and_add_up(name: str, arguments: dict) -> None:
    model = make(name, arguments)
    batch = make_pairs(model)
    for n, trace in enumerate(model.trace(batch)):
        words = [max(1, len(TOKENIZER(TEXTS[side]))) for side in PAIRS[n]]
        assert trace.grid.shape == (len(trace.channels), *words)
        added = sum(one.contribution for one in (*trace.signals, *trace.components))
        assert trace.residual + added == pytest.approx(trace.score, abs=1e-6)
        with torch.no_grad():
            assert trace.score == pytest.approx(float(model(batch)[n]), abs=1e-6)


@pytest.mark.parametrize("name", ["mv_lstm", "match_srnn", "m2s_net", "lstm_rnn"])
def test_a_matcher_scores_ranks_saves_and_loads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = RandomTransformer()
    model = build_model(name, {}, encoder, seed=0).eval()
    matcher = Matcher(name, {}, model, encoder.reader(TOKENIZER, VOCAB))
    pairs = [Pair(query, text) for query in TEXTS for text in TEXTS]
    scores = matcher.score(pairs)
    ranked = matcher.rank(TEXTS[0], TEXTS)
    expected = dict(zip(TEXTS, scores[: len(TEXTS)], strict=True))
    assert [one.score for one in ranked] == pytest.approx([expected[one.text] for one in ranked], abs=1e-5)
    matcher.save(tmp_path)
    with pytest.raises(MatchloomError, match="encoder 'random_transformer' is unknown to this matchloom"):
        Matcher.load(tmp_path)
    known = {
        **matchloom.encoders.kinds.ENCODERS,
        "random_transformer": lambda settings, _: RandomTransformer(settings["size"], 5),
    }
    monkeypatch.setattr(matchloom.encoders.kinds, "ENCODERS", known)
    np.testing.assert_array_equal(Matcher.load(tmp_path).score(pairs), scores)


@pytest.mark.parametrize("name", ["mv_lstm", "match_srnn", "m2s_net", "lstm_rnn"])
def test_training_moves_it_or_leaves_it_alone(name: str) -> None:
    for freeze in (False, True):
        model = build_model(name, {}, RandomTransformer(), seed=0)
        config = TrainConfig(freeze_vectors=freeze)
        learning = {id(p) for group in make_optimizer(model, config).param_groups for p in group["params"]}
        assert any(id(p) in learning for p in model.encoder.parameters()) != freeze
        assert all(id(p) in learning for p in model.own_parameters())
        assert not {id(p) for p in model.decayed()} & {id(p) for p in model.encoder.parameters()}


def test_what_needs_the_ids_of_words_says_so() -> None:
    with refused("not_supported", "deep_match"):
        build_model("deep_match", {}, RandomTransformer(), seed=0)
