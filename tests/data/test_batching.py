"""Padding, rows and lexical fields of batches."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.batching import make_batch
from matchloom.data.reader import Reader
from matchloom.data.tokenized import deduplicate
from matchloom.text.tokenize import Tokenizer, stem, word_hash
from matchloom.text.vocab import PADDING, UNKNOWN, Vocab

TOKENIZER = Tokenizer("whitespace")
VOCAB = Vocab.build([["a", "b", "c"], ["a", "b"], ["a"]])
texts = st.lists(st.text("abcxy ", max_size=12), min_size=1, max_size=8)


@given(texts, st.data())
def test_every_pair_holds_its_own_words(texts: list[str], data: st.DataObject) -> None:
    table = Reader(TOKENIZER, VOCAB).read(texts, lexical=True)
    rows = st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=10)
    left = data.draw(rows)
    right = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=len(left), max_size=len(left)))
    batch = make_batch(table, table, np.array(left), np.array(right))
    assert len(batch) == len(left)
    for side, index, wanted in ((batch.left, batch.left_rows, left), (batch.right, batch.right_rows, right)):
        assert side.words.shape[0] == len(set(wanted))
        for b, n in enumerate(wanted):
            words = TOKENIZER(texts[n])
            row, length = side.words[index[b]], int(side.lengths[index[b]])
            assert row[:length].tolist() == (VOCAB.ids(words) or [UNKNOWN])
            assert row[length:].tolist() == [PADDING] * (len(row) - length)
            assert side.mask[index[b]].sum() == length
            assert side.lexical is not None
            if words:
                faces = [[w, stem(w), w[:4]] for w in words]
                keys = side.lexical.keys[index[b], :, :length].T.tolist()
                assert keys == [[word_hash(face) for face in word] for word in faces]
                idf = np.float32([[VOCAB.idf(w), VOCAB.stem_idf(stem(w)), VOCAB.stem_idf(stem(w))] for w in words])
                np.testing.assert_array_equal(side.lexical.idf[index[b], :, :length].T.numpy(), idf)
            else:
                assert (side.lexical.keys[index[b], :, :1] < 0).all()


@given(texts)
def test_cells_are_where_both_sides_have_a_word(texts: list[str]) -> None:
    table = Reader(TOKENIZER, VOCAB).read(texts)
    places = np.arange(len(texts))
    batch = make_batch(table, table, places, places[::-1].copy())
    cells = batch.cells
    for b in range(len(texts)):
        L, R = int(table.lengths[b]), int(table.lengths[len(texts) - 1 - b])
        expected = torch.zeros(cells.shape[1:], dtype=torch.bool)
        expected[:L, :R] = True
        assert torch.equal(cells[b], expected)


def test_distinct_keeps_the_first_of_each() -> None:
    kept, rows = deduplicate(["b", "a", "b", "c", "a"])
    assert kept == ["b", "a", "c"]
    assert rows.tolist() == [0, 1, 0, 2, 1]


def test_word_hash_is_the_same_everywhere() -> None:
    assert word_hash("loom") == 313427879238302477
    assert word_hash("loom") != word_hash("Loom")
