"""Data sets of ir_datasets as pairs to learn and measure with, and their documents as entries. Needs `ir-datasets`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from matchloom.basics.extras import missing
from matchloom.data.entries import Entry
from matchloom.types import MatchloomError, Pair

_TOGETHER = 1000  # judgements whose documents are fetched at a time


def pairs_of(dataset: Any) -> Iterator[Pair]:
    """The judged queries and documents of a data set, with label 1 or 0, as `train`, `evaluate` and `fit` take them.

    Args:
        dataset: An id, such as "vaswani", or what `ir_datasets.load` gave. It is downloaded where it is not there yet.
    """
    opened = _opened(dataset)
    if not (opened.has_qrels() and opened.has_queries() and opened.has_docs()):
        raise MatchloomError(f"{dataset} has no queries with judged documents; entries_of reads documents alone")
    queries = {query.query_id: text_of(query) for query in opened.queries_iter()}
    store, judged = opened.docs_store(), iter(opened.qrels_iter())
    while block := list(islice(judged, _TOGETHER)):
        documents = store.get_many({one.doc_id for one in block})
        for one in block:
            if one.query_id in queries and one.doc_id in documents:
                label, text = float(one.relevance > 0), text_of(documents[one.doc_id])
                yield Pair(queries[one.query_id], text, label, one.query_id, one.doc_id)


def entries_of(dataset: Any) -> Iterator[Entry]:
    """The documents of a data set as entries that nobody asked for yet, for `Collection.replace`.

    Args:
        dataset: As for `pairs_of`.
    """
    opened = _opened(dataset)
    if not opened.has_docs():
        raise MatchloomError(f"{dataset} has no documents", code="no_data")
    return (Entry(one.doc_id, text_of(one), (), {}) for one in opened.docs_iter())


def text_of(record: Any) -> str:
    """The text that stands for a document or a query: as ir_datasets says, or all its texts but the id."""
    if hasattr(record, "default_text"):
        return str(record.default_text())
    return " ".join(value for name, value in record._asdict().items() if isinstance(value, str) and name[-3:] != "_id")


def _opened(dataset: Any) -> Any:
    if not isinstance(dataset, str):
        return dataset
    try:
        import ir_datasets
    except ImportError:
        raise missing("ir_datasets", "matchloom.integrations.ir_datasets") from None
    try:
        return ir_datasets.load(dataset)
    except KeyError:
        raise MatchloomError(f"ir_datasets has no data set {dataset!r}", code="unknown_name") from None
