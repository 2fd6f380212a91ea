"""For LlamaIndex: a retriever over a collection, and a postprocessor that reorders nodes. Needs `llama-index-core`."""

from __future__ import annotations

from typing import Any

from matchloom.basics.extras import missing
from matchloom.integrations.sources import metadata_of, scorer_of, searchable
from matchloom.search.reranking import rerank

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
except ImportError:
    raise missing("llama_index", "matchloom.integrations.llama_index") from None


class MatchloomRetriever(BaseRetriever):
    """Finds the answers of a collection as nodes; a node's metadata has what `metadata_of` tells."""

    def __init__(
        self, collection: Any, *, similarity_top_k: int = 2, search_kwargs: dict[str, Any] | None = None, **given: Any
    ) -> None:
        """Answers of a collection.

        Args:
            collection: A Collection, what `fit` found, or its folder.
            similarity_top_k: How many answers at most.
            search_kwargs: Further arguments of `Collection.search`.
            given: Arguments of every LlamaIndex retriever, such as callback_manager.
        """
        self._collection, self._top = searchable(collection), similarity_top_k
        self._search_kwargs = search_kwargs or {}
        super().__init__(**given)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        found = self._collection.search(query, top=self._top, **self._search_kwargs) if query.strip() else []
        return [
            NodeWithScore(node=TextNode(text=hit.text, id_=hit.id, metadata=metadata_of(hit)), score=hit.score)
            for hit in found
        ]


class MatchloomPostprocessor(BaseNodePostprocessor):
    """Reorders nodes, the most relevant first; their scores are then between 0 and 1."""

    top_n: int | None = None
    _scorer: Any = PrivateAttr()

    def __init__(self, scorer: Any, *, top_n: int | None = None, **given: Any) -> None:
        """A reranker.

        Args:
            scorer: A matcher, a collection, what `fit` found, a lexical scorer, or a folder of one.
            top_n: How many nodes are kept at most; None for all.
            given: Arguments of every postprocessor, such as callback_manager.
        """
        super().__init__(top_n=top_n, **given)
        self._scorer = scorer_of(scorer)

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex writes it down."""
        return "MatchloomPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("nodes can be reordered for a query only; pass query_bundle or query_str")
        texts = [node.node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]
        found = rerank(self._scorer, query_bundle.query_str, texts, top=self.top_n)
        return [NodeWithScore(node=nodes[one.index].node, score=one.relevance) for one in found]
