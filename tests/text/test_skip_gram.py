"""Skip-gram by the native kernel, every build that this processor runs, gives gensim's own vectors."""

from __future__ import annotations

import random
from unittest import mock

import numpy as np
import pytest

from matchloom.kernels import native
from matchloom.text import skip_gram
from matchloom.text.vectors import train_vectors

pytest.importorskip("gensim")
pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")


def made() -> list[list[str]]:
    """Texts of frequent and rare words, one of them long, one empty."""
    rng = random.Random(0)
    lengths = [*(rng.randint(1, 40) for _ in range(300)), 12_000, 0]
    return [[f"w{int(400 ** rng.random())}" for _ in range(length)] for length in lengths]


@pytest.mark.parametrize("build", native.suitable())
@pytest.mark.parametrize("settings", [{"dimensions": 50}, {"dimensions": 17, "min_count": 3, "window": 2}], ids=str)
def test_vectors_are_gensims(build: str, settings: dict[str, int]) -> None:
    texts = made()
    with mock.patch.object(skip_gram, "library", return_value=None):
        theirs = train_vectors(texts, epochs=2, **settings)
    with mock.patch.object(skip_gram, "library", return_value=native.Library(build)):
        ours = train_vectors(texts, epochs=2, **settings)
        again = train_vectors(texts, epochs=2, **settings)
    assert ours.words == theirs.words
    np.testing.assert_allclose(ours.matrix, theirs.matrix, atol=1e-3 * float(abs(theirs.matrix).max()))
    assert np.array_equal(ours.matrix, again.matrix)


def test_without_kernels_gensim_trains() -> None:
    with mock.patch.object(skip_gram, "library", return_value=None):
        assert skip_gram.native(dict) is dict
        assert skip_gram.places(None, [["a"], []]) == [["a"], []]
