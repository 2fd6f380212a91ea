"""gensim's skip-gram with its inner loop by a native kernel: the same draws in the same order, several times as fast.

gensim counts the words, draws the first vectors, cuts the texts into jobs and lowers the rate; a job is done here. Its
vectors are gensim's but for rounding, so that with the same seed they are the same vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchloom.kernels.native import Library, address, library

_MOST_WORDS = 10_000  # of a job, as gensim has it
Text = NDArray[np.int32]  # the place of each word's vector, -1 where it has none


def places(model: Any, texts: Sequence[Sequence[str]]) -> list[Any]:
    """The texts as a job of `native` takes them; themselves where there is no kernel."""
    if library() is None:
        return list(texts)
    known = model.wv.key_to_index
    return [np.array([known.get(word, -1) for word in text], dtype=np.int32) for text in texts]


def native(word2vec: type[Any]) -> type[Any]:
    """gensim's Word2Vec for skip-gram with negative samples, whose texts are made by `places`."""
    found = library()
    if found is None:
        return word2vec
    loaded: Library = found

    class Native(word2vec):  # type: ignore[misc]
        """Does a job by the kernel."""

        def _do_train_job(self, sentences: list[Text], alpha: float, inits: Any) -> tuple[int, int]:
            return _job(loaded, self, sentences, alpha), self._raw_word_count(sentences)

    return Native


def _job(loaded: Library, model: Any, texts: list[Text], rate: float) -> int:
    """One job of `train_batch_sg` in gensim's word2vec_inner.pyx."""
    draw = model.random
    random = np.array([2**24 * draw.randint(0, 2**24) + draw.randint(0, 2**24)], dtype=np.uint64)
    ids, lengths = np.concatenate(texts), np.array([len(text) for text in texts], dtype=np.int64)
    words, starts = np.empty(_MOST_WORDS, np.uint32), np.empty(len(texts) + 1, np.int64)
    sample = model.wv.expandos["sample_int"] if model.sample else None
    left: int = loaded.skip_gram_words(
        address(ids), address(lengths), len(texts), None if sample is None else address(sample), address(random),
        address(words), address(starts),
    )  # fmt: skip
    count = int(starts[left])
    narrower = np.ascontiguousarray(draw.randint(0, model.window, count), dtype=np.int64)
    vectors, outputs, sums = model.wv.vectors, model.syn1neg, model.cum_table
    if loaded.skip_gram(
        address(words), address(starts), left, address(narrower), model.window, model.negative,
        address(sums), len(sums), vectors.shape[1], address(vectors), address(outputs), rate, int(random[0]),
    ):  # fmt: skip
        raise MemoryError("the native skip-gram ran out of memory")
    return count
