from __future__ import annotations

from matchloom import MODELS
from matchloom.cli.models import LEXICAL_ABOUT, written
from matchloom.lexical import LEXICAL
from matchloom.models import model_arguments
from tests.cli.conftest import Run


def test_every_model_and_lexical_scorer_is_listed_with_its_arguments(run: Run) -> None:
    result = run("models")
    assert result.code == 0
    words = result.out.split()
    for name in MODELS:
        assert name in words
        for argument, default in model_arguments(name).items():
            assert f"{argument}={written(default)}" in words
    assert set(LEXICAL) == set(LEXICAL_ABOUT)
    assert set(LEXICAL) <= set(words)
    assert max(map(len, result.out.splitlines())) <= 100
