"""Patches against a loop over words and patches."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from matchloom.batches import Texts
from matchloom.layers.patches import Patches
from tests.drawing import examples

WORDS = st.integers(0, 9)


@examples(60)
@given(
    st.lists(st.sets(WORDS, max_size=4), min_size=1, max_size=5),
    st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=4),
)
def test_sums_the_vectors_of_the_words_in_each_patch(sets: list[set[int]], texts: list[list[int]]) -> None:
    patches = Patches(len(sets), 4, 3).double()
    torch.nn.init.uniform_(patches.L, generator=torch.Generator().manual_seed(0))
    patches.fill([sorted(words, reverse=True) for words in sets])
    lengths = [len(words) for words in texts]
    padded = torch.tensor([words + [7] * (max(lengths) - len(words)) for words in texts])  # a word, if it were read
    sums = patches(Texts(padded, torch.tensor(lengths)))
    assert sums.shape == (len(texts), len(sets), 3)
    vectors = {
        (int(word), int(home)): patches.L[n]
        for n, (word, home) in enumerate(zip(patches.words, patches.homes, strict=True))
        if word >= 0
    }
    assert vectors.keys() == {(word, home) for home, words in enumerate(sets) for word in words}
    for n, words in enumerate(texts):
        for p in range(len(sets)):
            expected = sum((vectors[w, p] for w in words if (w, p) in vectors), torch.zeros(3, dtype=torch.double))
            torch.testing.assert_close(sums[n, p], expected)


def test_what_is_held_does_not_grow_with_the_vocabulary() -> None:
    patches = Patches(2, 3, 1)
    patches.fill([[10**12, 5], [10**15]])
    assert patches.words.tolist() == [-1, -1, -1, 5, 10**12, 10**15]
    assert patches.homes[3:].tolist() == [0, 0, 1]
    assert sum(tensor.numel() for tensor in patches.state_dict().values()) == 18
