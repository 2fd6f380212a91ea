from __future__ import annotations

import re

import pytest

from matchloom import MODELS
from matchloom.cli.docstrings import written
from matchloom.cli.model_sources import model_sources
from matchloom.cli.models import LEXICAL_ABOUT
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.lexical import LEXICAL
from matchloom.models import build_model, model_arguments, model_training, sentence_vector_models
from tests.cli.conftest import Run


@pytest.mark.slow
def test_every_model_and_lexical_scorer_is_listed_with_size_and_speed(run: Run) -> None:
    result = run("models", "--measure")
    assert result.code == 0
    sources = model_sources()
    lines = {line.split()[0]: line for line in result.out.splitlines() if line[:1].strip()}
    for name in MODELS:
        assert sources[name].paper in lines[name]
        kind, parameters, speed = re.search(r"(vectors|interaction) +([\d,]+) +([\d,]+) ", lines[name]).groups()  # type: ignore[union-attr]
        model = build_model(name, {}, WordEmbedding(10, 50), seed=0)
        assert int(parameters.replace(",", "")) == sum(x.numel() for x in model.parameters()) - 10 * 50
        assert int(speed.replace(",", "")) > 0
        vectors = ("cntn", "nbow_mlp", "cnn_mlp", "lstm_rnn", "bi_lstm_rnn", "arc_i", "sentence_bert")
        assert (kind == "vectors") == (name in vectors)
    assert set(LEXICAL) == set(LEXICAL_ABOUT)
    assert set(LEXICAL) <= set(lines)
    assert max(map(len, result.out.splitlines())) <= 100


def test_the_list_says_what_the_models_themselves_say(run: Run) -> None:
    result = run("models")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines() if line[:1].strip()}
    sources = model_sources()
    assert list(sources) == list(MODELS)
    assert [name for name, source in sources.items() if source.makes_vectors] == sentence_vector_models()
    for name, source in sources.items():
        assert source.about == (MODELS[name].__doc__ or "").partition("\n")[0]
        assert re.search(r"^\w.* (19|20)\d\d$", source.paper)
        assert f"{source.paper} " in lines[name]
    assert set(LEXICAL) <= set(lines)
    assert max(map(len, result.out.splitlines())) <= 100


@pytest.mark.parametrize("name", MODELS)
def test_one_model_is_told_with_its_arguments_and_departures(name: str, run: Run) -> None:
    result = run("models", name)
    assert result.code == 0
    rows = [line.split() for line in result.out.splitlines()]
    for argument, default in model_arguments(name).items():
        assert any(row[:2] == [argument, written(default) or "(none)"] and len(row) > 2 for row in rows)
    assert "Departures" in result.out
    assert all(f"{key}={written(value)}" in result.out for key, value in model_training(name).items())


def test_an_unknown_model_is_refused_in_one_line(run: Run) -> None:
    result = run("models", "mvlstm")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "'mvlstm' is unknown; choose one of mv_lstm" in result.err
