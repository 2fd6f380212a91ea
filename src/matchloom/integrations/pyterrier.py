"""For PyTerrier: transformers with the columns qid, query, docno, text, score, rank. Needs `python-terrier`."""

from __future__ import annotations

from typing import Any

from matchloom.basics.extras import missing
from matchloom.integrations.sources import scorer_of, searchable
from matchloom.types import MatchloomError, Pair

try:
    import pandas as pd
    import pyterrier as pt
except ImportError:
    raise missing("pyterrier", "matchloom.integrations.pyterrier") from None


class MatchloomRetriever(pt.Transformer):
    """From qid, query to the best answers of a collection: docno, text, score, rank."""

    def __init__(self, collection: Any, *, num_results: int = 1000) -> None:
        """A retriever.

        Args:
            collection: A Collection, what `fit` found, or its folder.
            num_results: How many answers for each query at most.
        """
        super().__init__()
        self.collection: Any = searchable(collection)
        self.num_results = num_results

    def transform(self, inp: Any) -> Any:
        """The answers to each query."""
        _check(inp, "qid", "query")
        queries = [str(query) for query in inp["query"]]
        asked = [query for query in queries if query.strip()]
        found = iter(self.collection.search(asked, top=self.num_results) if asked else [])
        own = [next(found) if query.strip() else [] for query in queries]
        rows = [
            {**dict(zip(inp.columns, row, strict=True)), "docno": hit.id, "text": hit.text, "score": hit.score}
            for row, hits in zip(inp.itertuples(index=False), own, strict=True)
            for hit in hits
        ]
        columns = list(dict.fromkeys([*inp.columns, "docno", "text", "score"]))
        return _with_ranks(pd.DataFrame(rows, columns=columns))


class MatchloomReranker(pt.Transformer):
    """From qid, query, docno, text to new scores and ranks."""

    def __init__(self, scorer: Any) -> None:
        """A reranker.

        Args:
            scorer: A matcher, a collection, what `fit` found, a lexical scorer, or a folder of one.
        """
        super().__init__()
        self.scorer = scorer_of(scorer)

    def transform(self, inp: Any) -> Any:
        """The same documents with the scores of the scorer."""
        _check(inp, "qid", "query", "docno", "text")
        pairs = [
            Pair(str(query), str(text), query_id=str(qid), text_id=str(docno))
            for qid, query, docno, text in zip(inp["qid"], inp["query"], inp["docno"], inp["text"], strict=True)
        ]
        return _with_ranks(inp.assign(score=self.scorer.score(pairs).astype(float)))


def _with_ranks(frame: Any) -> Any:
    if not len(frame):  # the types of its columns are those of a frame with rows
        frame = frame.astype({"score": "float64"})
    return pt.model.add_ranks(frame).sort_values(["qid", "rank"]).reset_index(drop=True)


def _check(frame: Any, *columns: str) -> None:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        message = f"the frame has no column {missing[0]!r}; expected {', '.join(columns)}"
        raise MatchloomError(
            message + ("; pt.text.get_text adds texts" if "text" in missing else ""), code="bad_columns"
        )
