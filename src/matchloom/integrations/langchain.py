"""For LangChain: a retriever over a collection, and a compressor that reorders documents. Needs `langchain-core`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matchloom.basics.extras import missing
from matchloom.integrations.sources import metadata_of, scorer_of, searchable
from matchloom.search.reranking import rerank

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field, field_validator
except ImportError:
    raise missing("langchain_core", "matchloom.integrations.langchain") from None


class MatchloomRetriever(BaseRetriever):
    """Finds the answers of a collection. `metadata` has id, score, probability, question and your own columns.

    Args:
        collection: A Collection, what `fit` found, or its folder.
        k: How many answers at most.
        search_kwargs: Further arguments of `Collection.search`, such as {"where": {"language": "en"}}.
    """

    collection: Any
    k: int = 4
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    @field_validator("collection", mode="before")
    @classmethod
    def _opened(cls, given: Any) -> Any:
        return searchable(given)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        found = self.collection.search(query, top=self.k, **self.search_kwargs) if query.strip() else []
        return [Document(page_content=hit.text, metadata=metadata_of(hit), id=hit.id) for hit in found]


class MatchloomCompressor(BaseDocumentCompressor):
    """Reorders documents, the most relevant first; `metadata["relevance_score"]` is between 0 and 1.

    Args:
        scorer: A matcher, a collection, what `fit` found, a lexical scorer, or a folder of one.
        top_n: How many documents are kept at most; None for all.
    """

    scorer: Any
    top_n: int | None = None

    @field_validator("scorer", mode="before")
    @classmethod
    def _opened(cls, given: Any) -> Any:
        return scorer_of(given)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents by falling relevance; those that were given are left as they are."""
        made = []
        for one in rerank(self.scorer, query, [document.page_content for document in documents], top=self.top_n):
            document = documents[one.index]
            fields = {**document.metadata, "relevance_score": one.relevance}
            made.append(document.model_copy(update={"metadata": fields}))
        return made
