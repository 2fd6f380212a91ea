"""For Haystack: a retriever over a collection, and a ranker. Needs `haystack-ai`.

Both are made from a folder, so that a pipeline can be written down and read again.
"""

# Haystack looks at the types themselves: no `from __future__ import annotations` here.
from dataclasses import replace
from typing import Any

from matchloom.basics.extras import missing
from matchloom.integrations.sources import metadata_of, scorer_of, searchable
from matchloom.search.reranking import rerank

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError:
    raise missing("haystack", "matchloom.integrations.haystack") from None


@component
class MatchloomRetriever:
    """Finds the answers of a collection; `meta` has id, score, probability, question and your own columns."""

    def __init__(self, folder: str, top_k: int = 10) -> None:
        """Answers of a collection.

        Args:
            folder: Of the collection.
            top_k: How many answers at most.
        """
        self.folder: str = str(folder)
        self.top_k = top_k
        self._collection: Any = None

    def warm_up(self) -> None:
        """Open the folder."""
        if self._collection is None:
            self._collection = searchable(self.folder)

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """The answers that fit best.

        Args:
            query: The question.
            top_k: How many at most, where it differs.
        """
        self.warm_up()
        found = self._collection.search(query, top=top_k or self.top_k) if query.strip() else []
        return {
            "documents": [
                Document(id=hit.id, content=hit.text, meta=metadata_of(hit), score=hit.score) for hit in found
            ]
        }

    def to_dict(self) -> dict[str, Any]:
        """As a pipeline writes it down."""
        return dict(default_to_dict(self, folder=self.folder, top_k=self.top_k))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "MatchloomRetriever":
        """As it was written down."""
        made: MatchloomRetriever = default_from_dict(cls, data)
        return made


@component
class MatchloomRanker:
    """Reorders documents, the most relevant first; their scores are then between 0 and 1."""

    def __init__(self, folder: str, top_k: int | None = None) -> None:
        """A reranker.

        Args:
            folder: What `fit`, `train` or `index` wrote.
            top_k: How many documents are kept at most; None for all.
        """
        self.folder: str = str(folder)
        self.top_k = top_k
        self._scorer: Any = None

    def warm_up(self) -> None:
        """Open the folder."""
        if self._scorer is None:
            self._scorer = scorer_of(self.folder)

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, list[Document]]:
        """The documents by falling relevance.

        Args:
            query: What they are to be relevant to.
            documents: Any documents with texts.
            top_k: How many are kept at most, where it differs.
        """
        self.warm_up()
        found = rerank(self._scorer, query, [one.content or "" for one in documents], top=top_k or self.top_k)
        return {"documents": [replace(documents[one.index], score=one.relevance) for one in found]}

    def to_dict(self) -> dict[str, Any]:
        """As a pipeline writes it down."""
        return dict(default_to_dict(self, folder=self.folder, top_k=self.top_k))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "MatchloomRanker":
        """As it was written down."""
        made: MatchloomRanker = default_from_dict(cls, data)
        return made
