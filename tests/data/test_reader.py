"""What exact matching knows of words: faces that are equal are one."""

from __future__ import annotations

import numpy as np
import torch

from matchloom.data.batching import make_batch
from matchloom.data.reader import Reader
from matchloom.layers.lexical import exact_matches
from matchloom.text.tokenize import Tokenizer, stem, word_hash
from matchloom.text.vocab import Vocab


def _matches(tokenizer: Tokenizer, query: str, text: str) -> torch.Tensor:
    vocab = Vocab.build([tokenizer(query), tokenizer(text), ["x"], ["y"]])
    table = Reader(tokenizer, vocab).read([query, text], lexical=True)
    return exact_matches(make_batch(table, table, np.array([0]), np.array([1])))[0].sum((1, 2))


def test_a_chinese_word_that_meets_itself_counts_once() -> None:
    word, stemmed, start = _matches(Tokenizer("chinese"), "保险 多少 钱", "保险").tolist()
    assert word > 0
    assert stemmed == start == 0


def test_a_long_chinese_word_keeps_its_start() -> None:
    word, stemmed, start = _matches(Tokenizer("whitespace"), "人寿保险公司", "人寿保险单据").tolist()
    assert (word, stemmed) == (0, 0)
    assert start > 0


def test_english_words_keep_all_faces() -> None:
    words = ["loom", "looms", "weaving", "1999", "a"]
    vocab = Vocab.build([words, ["loom"]])
    table = Reader(Tokenizer(), vocab).read([" ".join(words)], lexical=True)
    assert table.lexical is not None
    keys, idf = table.lexical
    assert keys.tolist() == [[word_hash(w), word_hash(stem(w)), word_hash(w[:4])] for w in words]
    expected = [[vocab.idf(w), vocab.stem_idf(stem(w)), vocab.stem_idf(stem(w))] for w in words]
    np.testing.assert_array_equal(idf, np.float32(expected))
