"""What exact matching knows of words: faces that are equal are one."""

from __future__ import annotations

import copy

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


def test_words_that_were_seen_before_and_other_spellings_of_them_have_the_same_faces() -> None:
    tokenizer, vocab = Tokenizer(), Vocab.build([["the", "loom", "weaves"]])
    reader, texts = Reader(tokenizer, vocab), ["The the THE loom", "", "weaves Weaving looms the new loom"]
    first, again = reader.read(texts, lexical=True), reader.read(texts[::-1], lexical=True)
    alone = [Reader(tokenizer, vocab).read([text], lexical=True) for text in texts]
    for n, one in enumerate(alone):
        for table, row in ((first, n), (again, len(texts) - 1 - n)):
            at = slice(int(table.words.starts[row]), int(table.words.starts[row] + table.lengths[row]))
            assert table.word_ids(row).tolist() == one.word_ids(0).tolist()
            assert table.lexical is not None
            assert one.lexical is not None
            for own, expected in zip(table.lexical, one.lexical, strict=True):
                assert own[at].tolist() == expected.tolist()
    assert len(copy.deepcopy(reader).read(texts)) == 3
