"""A scorer as sentence-transformers' CrossEncoder is called, so that its evaluators run on it. It needs no package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matchloom.integrations.sources import scorer_of
from matchloom.search.reranking import ranked
from matchloom.types import MatchloomError, Pair


class CrossEncoderLike:
    """`predict` and `rank` of a CrossEncoder with one label; scores are those of the scorer.

    >>> from matchloom import BM25
    >>> model = CrossEncoderLike(BM25.fit(["a loom weaves cloth", "a mill grinds corn"]))
    >>> model.predict([("who weaves", "a loom weaves cloth"), ("who weaves", "a mill grinds corn")])
    array([0.3150669, 0.       ], dtype=float32)
    >>> [one["corpus_id"] for one in model.rank("grind corn", ["a loom weaves cloth", "a mill grinds corn"])]
    [1, 0]
    """

    num_labels = 1

    def __init__(self, scorer: Any) -> None:
        """Over a scorer.

        Args:
            scorer: A matcher, a collection, what `fit` found, a lexical scorer, or a folder of one.
        """
        self.scorer = scorer_of(scorer)
        self.model_card_data: _ModelCard = _ModelCard()

    def predict(
        self,
        inputs: Any,
        *,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        **unused: Any,
    ) -> Any:
        """The score of each pair, or of one pair.

        Args:
            inputs: Pairs of a query and a text, or one such pair.
            show_progress_bar: Whether to show a bar.
            convert_to_numpy: An array, not a list of tensors.
            convert_to_tensor: A tensor.
            unused: What a CrossEncoder takes besides, such as batch_size: scores do not depend on it.
        """
        one = len(inputs) == 2 and all(isinstance(text, str) for text in inputs)
        pairs = [_pair(pair) for pair in ([inputs] if one else inputs)]
        scores = self.scorer.score(pairs, progress=bool(show_progress_bar))
        if convert_to_tensor or not convert_to_numpy:
            import torch

            tensor = torch.from_numpy(np.ascontiguousarray(scores))
            return tensor[0] if one else tensor if convert_to_tensor else list(tensor)
        return scores[0] if one else scores

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        **unused: Any,
    ) -> list[dict[str, Any]]:
        """The documents by falling score: `corpus_id`, `score` and, where asked for, `text` of each.

        Args:
            query: What they are ranked for.
            documents: Any texts.
            top_k: How many at most; None for all.
            return_documents: Whether to give the texts back.
            unused: What a CrossEncoder takes besides.
        """
        found = ranked(self.scorer, query, list(documents), top_k)
        rows: list[dict[str, Any]] = [{"corpus_id": one.index, "score": one.score} for one in found]
        for row in rows if return_documents else ():
            row["text"] = documents[row["corpus_id"]]
        return rows


class _ModelCard:
    """Evaluators write their figures into the card of a model; here nobody reads it."""

    def set_evaluation_metrics(self, *given: Any, **named: Any) -> None:
        """Nothing."""


def _pair(given: Any) -> Pair:
    if len(given) != 2 or not all(isinstance(text, str) for text in given):
        raise MatchloomError(f"a pair is {str(given)[:60]!r}; expected a query and a text", code="bad_row")
    return Pair(given[0], given[1])
