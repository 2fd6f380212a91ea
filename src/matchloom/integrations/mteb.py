"""For MTEB: a searcher that its retrieval and reranking tasks measure (SearchProtocol). Needs `mteb`.

A corpus becomes a collection in memory, whose texts have no questions; nothing is learnt from the task.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from matchloom.basics.extras import missing
from matchloom.data.entries import Entry
from matchloom.integrations.sources import scorer_of
from matchloom.search.collection import Collection
from matchloom.search.entries import Entries
from matchloom.types import MatchloomError, Pair, Scorer

try:
    from mteb.models.model_meta import ModelMeta
except ImportError:
    raise missing("mteb", "matchloom.integrations.mteb") from None


class MatchloomSearch:
    """Ranks a task's corpus by words and characters; a scorer, if there is one, reranks what a task gives.

    Args:
        scorer: What scores given candidates: a matcher, a lexical scorer, or its folder; None for the collection.
        name: What MTEB calls it.
    """

    def __init__(self, scorer: Any = None, *, name: str = "matchloom/collection") -> None:
        self._scorer: Scorer | None = None if scorer is None else scorer_of(scorer)
        self._name = name
        self._collection: Collection | None = None
        self._texts: dict[str, str] = {}

    @property
    def mteb_model_meta(self) -> Any:
        """What MTEB wants to know of a model."""
        return ModelMeta.create_empty({"name": self._name, "revision": version("matchloom"), "languages": None})

    def index(self, corpus: Any, **unused: Any) -> None:
        """Take up a corpus.

        Args:
            corpus: Rows with id, text and perhaps title.
            unused: What MTEB says of the task.
        """
        self._texts = {str(row["id"]): _text(row) for row in corpus}
        entries = [Entry(name, text, (), {}) for name, text in sorted(self._texts.items())]
        self._collection = Collection.fit(Entries.listed(entries), learn_weights=False)

    def search(
        self, queries: Any, *, top_k: int, top_ranked: dict[str, list[str]] | None = None, **unused: Any
    ) -> dict[str, dict[str, float]]:
        """The best documents of each query, or of the candidates that the task gives.

        Args:
            queries: Rows with id and text.
            top_k: How many at most.
            top_ranked: The ids of the candidates of each query.
            unused: What MTEB says of the task.
        """
        if self._collection is None:
            raise MatchloomError("a corpus must be indexed before it is searched", code="missing")
        asked = {str(row["id"]): _text(row) for row in queries}
        if top_ranked is not None:
            return {name: self._reranked(text, top_ranked.get(name, []), top_k) for name, text in asked.items()}
        worded = {name: text for name, text in asked.items() if text.strip()}
        found = self._collection.search(list(worded.values()), top=top_k)
        made = {name: {hit.id: hit.score for hit in hits} for name, hits in zip(worded, found, strict=True)}
        return {name: made.get(name, {}) for name in asked}

    def _reranked(self, query: str, names: list[str], top: int) -> dict[str, float]:
        assert self._collection is not None
        scorer = self._scorer or self._collection
        pairs = [Pair(query, self._texts[name], text_id=name) for name in names]
        scores = dict(zip(names, scorer.score(pairs).tolist(), strict=True))
        return {name: scores[name] for name in sorted(names, key=lambda name: (-scores[name], name))[:top]}


def _text(row: Any) -> str:
    parts = [row.get(name) for name in ("title", "text")]
    return " ".join(part for part in parts if isinstance(part, str) and part) or str(row["id"])
