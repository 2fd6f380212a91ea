"""Sentence-BERT against the slow reference, and its mean over pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from matchloom import Matcher
from matchloom.data.batching import pad_texts
from matchloom.encoders.transformer import Transformer
from tests.encoders.making import write_folder
from tests.models.comparing import assert_same_gradients, assert_same_scores
from tests.models.making import make_model
from tests.reference.sentence_bert import sentence_bert
from tests.refusing import refused

TEXTS = ["how do I open a file?", "open!", "", "reading, sorting: the list of files"]


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    pytest.importorskip("tokenizers")
    return Matcher.untrained(write_folder(tmp_path_factory.mktemp("encoder") / "small"), model="sentence_bert")


def test_equals_its_sums_word_by_word() -> None:
    assert_same_scores(make_model("sentence_bert"), sentence_bert)


def test_gradients_equal_the_reference() -> None:
    assert_same_gradients(make_model("sentence_bert"), sentence_bert)


def test_a_text_is_the_mean_of_all_its_pieces(matcher: Matcher) -> None:
    encoder = matcher.model.encoder
    assert isinstance(encoder, Transformer)
    for text, vector in zip(TEXTS, matcher.vectors(TEXTS), strict=True):
        pieces = pad_texts(matcher.read([text]), np.array([0])).pieces
        assert pieces is not None
        mean = encoder.positions(pieces)[0].mean(0).detach()
        np.testing.assert_allclose(vector, mean / mean.norm(), atol=1e-6)


def test_a_trace_tells_what_belongs_to_no_word(matcher: Matcher) -> None:
    for text in TEXTS:
        trace = matcher.trace(TEXTS[0], text)[2]
        (rest,) = trace.components
        assert rest.name == "marks and punctuation"
        assert trace.score == matcher.score(TEXTS[0], text)
        assert sum(signal.contribution for signal in trace.signals) + rest.contribution == pytest.approx(trace.score)


def test_vectors_depend_on_the_text_alone(matcher: Matcher) -> None:
    together = matcher.vectors(TEXTS)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            alone = np.concatenate([matcher.vectors([text]) for text in TEXTS])
            assert np.array_equal(together, alone)
    finally:
        torch.set_num_threads(threads)


def test_a_model_that_needs_training_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    with refused("unknown_name", "late_interaction", "sentence_bert"):
        Matcher.untrained(write_folder(tmp_path / "small"), model="mv_lstm")
