"""Some entries made ready to be asked: read, and compared with questions in several ways.

A collection is one segment that was fitted, and small ones of what was added since. These are read with the words and
the counts of the first; what has to be learnt from questions (classifiers) they do not have until the next fit.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.data.identity import digest, normalize_text
from matchloom.lexical.columns import Floats, Ids, Rows, products
from matchloom.lexical.ranking import Owned, nearest_of
from matchloom.search.arrays import Texts
from matchloom.search.entries import Entries
from matchloom.search.features.base import Feature, Known, inside, prefixed
from matchloom.search.features.bm25 import BM25Feature
from matchloom.search.features.centroid import Centroid
from matchloom.search.features.dense import (
    DenseClassifier,
    DenseFinder,
    DenseNearest,
    DenseText,
    KnownVectors,
    SentenceVectors,
)
from matchloom.search.features.linear import LinearFeature
from matchloom.search.features.ridge import Ridge
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.features.translation import Translation
from matchloom.search.features.tuned import TUNED, UNTUNED, DenseUntuned, layers_of
from matchloom.search.queries import Queries
from matchloom.search.reader import Reader
from matchloom.search.saved import check_arrays, check_lines

WHOLE = 5_000  # entries that are compared one and all; of more, candidates are


class _OwnQuestions(Sequence[Sequence[str]]):
    """The questions of each entry, from the table of different ones."""

    def __init__(self, questions: Sequence[str], starts: Ids, rows: NDArray[np.int32]) -> None:
        self._questions, self._starts, self._rows = questions, starts, rows

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, n: int) -> tuple[str, ...]: ...

    @overload
    def __getitem__(self, n: slice) -> list[tuple[str, ...]]: ...

    def __getitem__(self, n: int | slice) -> tuple[str, ...] | list[tuple[str, ...]]:
        if isinstance(n, slice):
            return [self[one] for one in range(*n.indices(len(self)))]
        own = self._rows[self._starts[n] : self._starts[n + 1]].tolist()
        return tuple(sorted(self._questions[row] for row in own))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self[n] for n in range(len(self)))


class _Json(Sequence[Any]):
    """What was saved as one line of JSON for each entry; an empty line is nothing."""

    def __init__(self, lines: Sequence[str], nothing: Any) -> None:
        self._lines, self._nothing = lines, nothing

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, n: Any) -> Any:
        return json.loads(self._lines[n]) if self._lines[n] else self._nothing


@dataclass(eq=False)
class Segment:
    """Entries with features. A feature that has to be learnt is None in a segment that was added."""

    entries: Entries
    questions: Sequence[str]  # the different ones
    member: sp.csr_array  # (questions, entries)
    vectors: Rows  # of the questions
    reader: Reader
    names: tuple[str, ...]
    features: Sequence[Feature | None]
    dense: KnownVectors | None = None

    @property
    def whole(self) -> bool:
        """Whether all of its entries are compared with a question."""
        return len(self.entries) <= WHOLE

    def scores(self, queries: Queries) -> Floats:
        """What every feature says of every entry; NaN where a feature was not learnt. (N, E, A)"""
        found = np.full((len(queries), len(self.features), len(self.entries)), np.nan)
        for e, feature in enumerate(self.features):
            if feature is not None:
                found[:, e] = feature.scores(queries)
        return found

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The same of these entries, for one question. (E, C)"""
        found = np.full((len(self.features), len(rows)), np.nan)
        for e, feature in enumerate(self.features):
            if feature is not None:
                found[e] = feature.some(query, rows)
        return found

    def feature(self, name: str) -> Feature | None:
        """The feature of this name, if it is there."""
        return self.features[self.names.index(name)] if name in self.names else None

    def nearest(self, queries: Queries, asked: Sequence[int], rows: Sequence[int]) -> list[str | None]:
        """For pairs of a question (ascending) and an entry: the entry's known question that is nearest.

        Equal ones are told apart by their text.
        """
        if self.dense is not None:
            return self._dense_nearest(queries, asked, rows)
        best, ties = nearest_of(self.vectors, self._owned, queries.vectors, (asked, rows), self.reader.scratch())
        questions = self.questions
        found = [None if one < 0 else questions[one] for one in best]
        for n in (n for n, count in enumerate(ties) if count > 1):
            own = self._owned[rows[n]]
            with self.reader.dense(*queries.vectors[asked[n]]) as vector:
                found[n] = self._first(own, self.vectors.dot(vector, own))
        return found

    def _dense_nearest(self, queries: Queries, asked: Sequence[int], rows: Sequence[int]) -> list[str | None]:
        assert self.dense is not None
        vectors, found = self.dense.sentences.asked(queries), []
        for question, row in zip(asked, rows, strict=True):
            own = self._owned[row]
            found.append(self._first(own, products(self.dense.questions, vectors[question], own)))
        return found

    def _first(self, rows: Ids, similar: Floats) -> str | None:
        best = np.flatnonzero(similar == similar.max(initial=-np.inf))
        return min((self.questions[int(row)] for row in rows[best]), default=None)

    def having(self, question: str) -> list[int]:
        """The entries that have a question, case and spaces apart."""
        own = normalize_text(question)
        key = digest(own)
        found: set[int] = set()
        # Questions are in the order of their digests, see `Entries.known`.
        first = bisect_left(self.questions, key, key=lambda one: digest(normalize_text(one)))
        for n in range(first, len(self.questions)):
            if normalize_text(self.questions[n]) != own:
                break
            found |= set(self.member.indices[self.member.indptr[n] : self.member.indptr[n + 1]].tolist())
        return sorted(found)

    @cached_property
    def _owned(self) -> Owned:
        columns = self.member.tocsc()
        return Owned(columns.indptr, columns.indices)

    # ---- more entries

    def extended(self, entries: Entries) -> Segment:
        """New entries, read and compared as those of this segment are."""
        questions, member = entries.known
        known = Known(*self.reader.extend(questions, list(entries.texts)), member)
        dense = None
        if self.dense is not None:
            dense = KnownVectors.of(self.dense.sentences, questions, list(entries.texts))
            if self.dense.untuned is not None:
                dense.untuned = KnownVectors.of(self.dense.untuned.sentences, questions, list(entries.texts))
        features = [None if one is None else _extended(one, known, self.reader, dense) for one in self.features]
        vectors = known.questions.vector_rows
        return Segment(entries, questions, member, vectors, self.reader, self.names, features, dense)

    # ---- saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        entries = self.entries
        lines = {
            "columns": [json.dumps(dict(own), ensure_ascii=False) if own else "" for own in entries.columns],
            "other_ids": [json.dumps(list(own), ensure_ascii=False) if own else "" for own in entries.other_ids],
            "other_texts": [json.dumps(list(own), ensure_ascii=False) if own else "" for own in entries.other_texts],
        }
        found: dict[str, NDArray[Any]] = {
            **Texts.of(entries.ids).arrays("ids"),
            **Texts.of(entries.texts).arrays("texts"),
            **Texts.of(self.questions).arrays("questions"),
            "owned.starts": self._owned.starts,
            "owned.places": self._owned.places,
            "text_keys": entries.text_keys[0],
            "text_rows": entries.text_keys[1],
            **prefixed("vectors", self.vectors.arrays()),
            **prefixed("reader", self.reader.arrays()),
        }
        for name, own in lines.items():
            if any(own):
                found |= Texts.of(own).arrays(name)
        if self.dense is not None:
            found |= {"dense.questions": self.dense.questions, "dense.texts": self.dense.texts}
            found |= prefixed(TUNED, layers_of(self.dense.sentences))
            if self.dense.untuned is not None:
                found[f"{UNTUNED}.questions"] = self.dense.untuned.questions
        for feature in self.features:
            if feature is not None:
                found |= prefixed(f"feature.{feature.name}", feature.arrays())
            if isinstance(feature, LinearFeature):
                found |= prefixed("tfidf", feature.seen.arrays())
        return found

    @classmethod
    def load(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        reader: Reader,
        names: Sequence[str],
        sentences: SentenceVectors | None,
        note: str = "",
    ) -> Segment:
        """From what was saved; a ValueError where that does not fit together."""
        check_arrays(arrays, reader.size)
        ids, texts, questions = (Texts.load(arrays, name) for name in ("ids", "texts", "questions"))
        starts, places = arrays["owned.starts"], arrays["owned.places"]
        more: dict[str, Any] = {}
        for name in ("columns", "other_ids", "other_texts"):
            if f"{name}.block" in arrays:
                lines = Texts.load(arrays, name)
                if len(lines) <= WHOLE:
                    check_lines(lines, dict[str, str] if name == "columns" else list[str])
                more[name] = _Json(lines, {} if name == "columns" else ())
        entries = Entries(ids, texts, _OwnQuestions(questions, starts, places), **more, note=note)
        entries.__dict__["text_keys"] = (arrays["text_keys"], arrays["text_rows"])
        shape = (len(questions), len(ids))
        member = sp.csc_array((np.ones(len(places)), places, starts), shape=shape).tocsr()
        dense = None
        if sentences is not None:
            dense = KnownVectors(sentences, arrays["dense.questions"], arrays["dense.texts"])
            if sentences.untuned is not None and f"{UNTUNED}.questions" in arrays:
                dense.untuned = KnownVectors(sentences.untuned, arrays[f"{UNTUNED}.questions"], dense.texts[:0])
        seen = TfIdf.load(inside("tfidf", arrays)) if "tfidf.word_idf" in arrays else None
        features = [_loaded(name, inside(f"feature.{name}", arrays), reader, member, dense, seen) for name in names]
        vectors = Rows(inside("vectors", arrays), reader.size)
        made = cls(entries, questions, member, vectors, reader, tuple(names), features, dense)
        made._owned = Owned(starts, places)
        return made


def _extended(feature: Feature, known: Known, reader: Reader, dense: KnownVectors | None) -> Feature | None:
    """The same feature for new entries; None for one that has to be learnt."""
    if isinstance(feature, BM25Feature):
        documents = feature.name == "bm25_doc"
        return BM25Feature.fit(known, documents=documents, table=None, statistics=feature.statistics)
    if isinstance(feature, Centroid):
        return Centroid.fit(known, reader.dense, questions=feature.name == "centroid", large=True)
    if isinstance(feature, Translation):
        return feature.of(known)
    if isinstance(feature, DenseUntuned):
        return None if dense is None or dense.untuned is None else DenseUntuned(dense.untuned, known.member)
    if dense is not None and isinstance(feature, DenseNearest):
        return DenseNearest(dense, known.member)
    if dense is not None and isinstance(feature, DenseText):
        return DenseText(dense)
    return None


def _loaded(
    name: str,
    arrays: Mapping[str, NDArray[Any]],
    reader: Reader,
    member: sp.csr_array,
    dense: KnownVectors | None,
    seen: TfIdf | None,
) -> Feature:
    """A feature by its name."""
    if name in ("bm25_doc", "bm25_ans"):
        return BM25Feature.load(name, arrays)
    if name in ("centroid", "text"):
        return Centroid.load(name, arrays, reader.dense, reader.size)
    if name == Ridge.name:
        return Ridge.load(arrays)
    if seen is not None and name in ("svm", "softmax", "joint"):
        return LinearFeature.load(name, arrays, seen, dense)
    if name == Translation.name:
        return Translation.load(arrays, reader.dense)
    if dense is not None:
        if name == DenseNearest.name:
            return _coded(DenseNearest(dense, member), arrays)
        if name == DenseUntuned.name and dense.untuned is not None:
            return DenseUntuned(dense.untuned, member)
        if name == DenseText.name:
            return _coded(DenseText(dense), arrays)
        if name == DenseClassifier.name:
            return DenseClassifier.load(arrays, dense)
    raise KeyError(f"no feature is named {name!r}")


def _coded(feature: DenseFinder, arrays: Mapping[str, NDArray[Any]]) -> DenseFinder:
    feature.load_codes(arrays)
    return feature
