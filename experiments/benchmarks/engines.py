"""Searches a second beside the engines and pipelines that people use instead, in one run, as ratios.

    python -m experiments.benchmarks.engines 10000 100000          # to experiments/results/engines.json
    python -m experiments.benchmarks.engines --faq                 # beside scikit-learn, on CovidFAQ
    python -m experiments.benchmarks.engines --rivals tantivy --systems "not learnt" -- 1000000
    python -m experiments.benchmarks.engines --vectors 100000      # learnt fusion with vectors, beside tantivy

Pairs are made as `experiments.benchmarks.archive` makes them: words drawn by their frequencies in InsuranceQA,
questions of 5 to 15 words, answers of 10 to 50. Half of the searches ask a known question with a third of its words
replaced, half a new one. A collection gives ten hits with texts, probabilities and the nearest known question; an
engine (tantivy, bm25s where they are installed) its top 100 rows. With vectors, each text has one of
384 numbers (a sum of random ones for its words, in place of an encoder, whose time is not measured), and 100 candidates
come by words and 100 by vectors. LanceDB is the
second store of a collection. Everybody has one thread; turns are taken in rounds,
and the median round counts, so that a busy machine slows all alike. Rates by processor time stand beside: they hardly
depend on what else the machine does. "Found" is the part of the altered questions whose pair is among 100 hits.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments import places
from experiments.benchmarks.archive import Words
from experiments.reproduction.provenance import commit
from matchloom import Collection, Pair, read_pairs
from matchloom.basics.files import atomic_write
from matchloom.lexical import coded
from matchloom.search.features.dense import SentenceVectors
from matchloom.text.tokenize import Tokenizer, stems

RESULTS = places.RESULTS / "engines.json"
ROUNDS, SEARCHES = 7, 150
WITH_VECTORS = "learnt fusion with vectors"
OPTIONS: dict[str, dict[str, Any]] = {
    "words, bm25 alone": {"features": ("bm25_doc",)},
    "not learnt": {},
    "learnt fusion": {"learn_weights": True},
}
_QUESTIONS = 0  # the side of `Words` with questions
Search = Callable[[str], Any]


def made(count: int, seed: int = 0) -> tuple[list[Pair], list[str]]:
    """Pairs, and questions to ask of them."""
    words, draw = Words(), np.random.default_rng(seed)
    questions, answers = words.texts(draw, 0, count), words.texts(draw, 1, count)
    pairs = [Pair(q, a, text_id=f"a{n}") for n, (q, a) in enumerate(zip(questions, answers, strict=True))]
    known = [questions[n] for n in draw.choice(count, SEARCHES // 2, replace=False).tolist()]
    asked = [_altered(text, words, draw) for text in known] + words.texts(draw, 0, SEARCHES - len(known))
    return pairs, asked


def _altered(text: str, words: Words, draw: np.random.Generator) -> str:
    own = text.split()
    for n in draw.choice(len(own), max(1, len(own) // 3), replace=False).tolist():
        own[n] = words.words[_QUESTIONS][int(draw.integers(len(words.words[_QUESTIONS])))]
    return " ".join(own)


def rates(systems: dict[str, Callable[[Sequence[str]], Any]], asked: Sequence[str]) -> dict[str, dict[str, float]]:
    """Searches a second and a processor second of each, the median of rounds in which they take turns."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for _ in range(ROUNDS):
        for name, search in systems.items():
            start = time.perf_counter(), time.process_time()
            search(asked)
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, cpu = (
        {name: len(asked) / statistics.median(one[n] for one in own) for name, own in times.items()} for n in (0, 1)
    )
    return {"searches_a_second": wall, "searches_a_cpu_second": cpu}


def one_by_one(search: Search) -> Callable[[Sequence[str]], Any]:
    """Questions asked one at a time."""
    return lambda asked: [search(question) for question in asked]


def _finds(hits: Any, question: str) -> bool:
    """Whether the pair whose question was altered is among the hits: its question has three fifths of the words."""
    words = set(question.split())
    return any(len(words & set((hit.question or "").split())) >= len(words) * 0.6 for hit in hits)


class WordVectors:
    """In place of an encoder: the sum of a random vector for each word, L2-normalised, which costs next to nothing."""

    def __init__(self, size: int = 384) -> None:
        self.reader = SimpleNamespace(pieces=None)
        self._size, self._draw, self._known = size, np.random.default_rng(0), dict[str, np.ndarray]()

    def vectors(self, texts: Sequence[str], *, progress: bool = False) -> list[np.ndarray]:
        """One vector for each text."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> np.ndarray:
        for word in text.split():
            if word not in self._known:
                self._known[word] = self._draw.standard_normal(self._size).astype(np.float32)
        total = np.sum([self._known[word] for word in text.split()], axis=0)
        found: np.ndarray = (total / np.linalg.norm(total)).astype(np.float32)
        return found


def tantivy_search(pairs: Sequence[Pair], folder: Path) -> Search | None:
    """tantivy's top 100, over question and answer in one field, by stems as ours are."""
    try:
        import tantivy
    except ImportError:
        return None
    tokenize = Tokenizer()
    schema = tantivy.SchemaBuilder().add_text_field("body", stored=False, tokenizer_name="whitespace").build()
    folder.mkdir()
    index = tantivy.Index(schema, path=str(folder))
    writer = index.writer(300_000_000, 1)
    for pair in pairs:
        writer.add_document(tantivy.Document(body=" ".join(stems(tokenize(f"{pair.query} {pair.text}")))))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> Any:
        words = stems(tokenize(question))
        terms = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "body", word)) for word in words]
        return searcher.search(tantivy.Query.boolean_query(terms), 100).hits

    return search


def bm25s_search(pairs: Sequence[Pair]) -> Search:
    """bm25s' top 100 of the same documents."""
    import bm25s

    tokenize = Tokenizer()
    engine = bm25s.BM25(method="lucene")
    engine.index([stems(tokenize(f"{pair.query} {pair.text}")) for pair in pairs], show_progress=False)
    return lambda question: engine.retrieve([stems(tokenize(question))], k=100, show_progress=False, n_threads=0)


def large(count: int, rivals: Sequence[str], chosen: Sequence[str]) -> dict[str, Any]:
    """A collection of so many pairs beside engines."""
    pairs, asked = made(count)
    seen: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp(prefix="engines-"))
    try:
        built: dict[str, float] = {}
        systems: dict[str, Callable[[Sequence[str]], Any]] = {}
        home = folder
        for name in (one for one in OPTIONS if one in chosen):
            start = time.perf_counter()
            home = folder / name.split(",")[0].replace(" ", "-")
            made_one = Collection.create(home, pairs, **OPTIONS[name])
            built[name] = time.perf_counter() - start
            systems[f"collection, {name}"] = one_by_one(made_one.search)
            found = made_one.search(asked[: SEARCHES // 2], top=100)
            seen[name] = statistics.mean(_finds(hits, question) for hits, question in zip(found, asked, strict=False))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        if WITH_VECTORS in chosen:
            start = time.perf_counter()
            sentences = SentenceVectors(cast(Any, WordVectors()))
            with_vectors = Collection.fit(pairs, sentences=sentences, learn_weights=True)
            built[WITH_VECTORS] = time.perf_counter() - start
            systems[f"collection, {WITH_VECTORS}"] = one_by_one(with_vectors.search)
            one_by_one(with_vectors.search)(asked)  # encodes them, which is not measured
        opened = time.perf_counter()
        collection = Collection.open(home)
        opened = time.perf_counter() - opened
        start = time.perf_counter()
        engine = tantivy_search(pairs, folder / "tantivy") if "tantivy" in rivals else None
        built["tantivy"] = time.perf_counter() - start
        if engine is not None:
            systems["tantivy, top 100"] = one_by_one(engine)
        if "bm25s" in rivals:
            systems["bm25s, top 100"] = one_by_one(bm25s_search(pairs))
        if "lance" in rivals:
            start = time.perf_counter()
            archive = Collection.create(folder / "lance", pairs, store="lance")
            built["LanceDB"] = time.perf_counter() - start
            systems["collection in LanceDB, bm25"] = one_by_one(archive.search)
        measured = rates(systems, asked)
        start = time.perf_counter()
        collection.add([("a zebra in the engine", "Call the zoo.")])
        hit = collection.search("zebra engine")[0]
        added = time.perf_counter() - start
        assert hit.text == "Call the zoo."
        size = sum(path.stat().st_size for path in home.iterdir()) / 1e6
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "pairs": count,
        **measured,
        "found": seen,
        "build_seconds": built,
        "open_seconds": opened,
        "added_and_found_seconds": added,
        "megabytes": size,
        "build_peak_megabytes": peak,
    }


def vectors_alone(count: int) -> dict[str, Any]:
    """Learnt fusion with vectors beside tantivy: by a copy in eight bits, and whether a scan of all finds the same."""
    pairs, asked = made(count)
    collection = Collection.fit(pairs, sentences=SentenceVectors(cast(Any, WordVectors())), learn_weights=True)
    folder = Path(tempfile.mkdtemp(prefix="engines-"))
    try:
        systems = {"collection, learnt fusion with vectors": one_by_one(collection.search)}
        engine = tantivy_search(pairs, folder / "tantivy")
        if engine is not None:
            systems["tantivy, top 100"] = one_by_one(engine)
        found = one_by_one(collection.search)(asked)  # and encodes them, which is not measured
        measured = rates(systems, asked)
        with patch.object(coded, "library", return_value=None):
            equal = found == one_by_one(collection.search)(asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"pairs": count, **measured, "equal_to_a_scan": equal}


def faq() -> dict[str, Any]:
    """CovidFAQ: one question at a time and 200 at once, beside the pipeline one would write with scikit-learn."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    home = places.DATA / "faq"
    known = [pair for name in ("covid_faq", "covid_train") for pair in read_pairs(home / f"{name}.tsv")]
    asked = list(dict.fromkeys(pair.query for pair in read_pairs(home / "covid_test.tsv")))[:200]
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    both = make_union(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), letters)
    pipeline = make_pipeline(both, LinearSVC()).fit([pair.query for pair in known], [pair.text_id for pair in known])
    start = time.process_time()
    collection = Collection.fit(known)
    spent = time.process_time() - start
    systems: dict[str, Callable[[Sequence[str]], Any]] = {
        "collection, one at a time": one_by_one(collection.search),
        "scikit-learn, one at a time": one_by_one(lambda question: pipeline.predict([question])),
        "collection, 200 at once": collection.search,
        "scikit-learn, 200 at once": pipeline.predict,
    }
    return {**rates(systems, asked), "fit_cpu_seconds": spent}


def rival_of(system: str, found: dict[str, float]) -> str:
    """What a system is compared with."""
    faq_rival = f"scikit-learn, {system.partition(', ')[2]}"
    return faq_rival if faq_rival in found else "tantivy, top 100"


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*")
    parser.add_argument("--faq", action="store_true")
    parser.add_argument("--rivals", nargs="*", default=["tantivy", "bm25s", "lance"], help="those to measure beside")
    every = [*OPTIONS, WITH_VECTORS]
    parser.add_argument("--systems", nargs="*", default=every, choices=every, help="collections to make")
    parser.add_argument("--vectors", type=int, nargs="*", default=[], metavar="PAIRS", help="vectors alone, so many")
    arguments = parser.parse_args()
    console = Console()
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {str(size): large(size, arguments.rivals, arguments.systems) for size in arguments.sizes}
    results |= {f"vectors-{size}": vectors_alone(size) for size in arguments.vectors}
    if arguments.faq:
        results["faq"] = faq()
    for name, one in results.items():
        one |= {"commit": commit(), "load": os.getloadavg()[0]}
        own = one["searches_a_second"]
        table = Table("", "a second", "ratio", "by CPU", "ratio", title=f"{name} (load {one['load']:.1f})")
        for system, rate in own.items():
            rival = rival_of(system, own)
            beside, cpu = own.get(rival), one["searches_a_cpu_second"]
            ratios = ("", "") if beside is None else (f"{rate / beside:.2f}", f"{cpu[system] / cpu[rival]:.2f}")
            table.add_row(system, f"{rate:,.0f}", ratios[0], f"{cpu[system]:,.0f}", ratios[1])
        console.print(table, {key: value for key, value in one.items() if not key.startswith("searches")})
    with atomic_write(RESULTS) as file:
        file.write(json.dumps({**kept, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
