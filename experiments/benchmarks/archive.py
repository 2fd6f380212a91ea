"""How an archive of questions grows: building, appending, searching, and what the candidate stage misses.

    python -m experiments.benchmarks.archive 10000 100000 1000000      # to experiments/results/archive.json
    python -m experiments.benchmarks.archive --by-shards 10000000 --folder DIR     # some 30 GB of disk meanwhile

The pairs are made: words drawn by their frequencies in the questions and the answers of InsuranceQA (the folder
MATCHLOOM_DATA, or ../shared/data beside the project), questions of 5 to 15 words, answers of 10 to 50. The matcher is
trained for one epoch on InsuranceQA, so that its vectors are no noise; CNTN where this version has it, else LSTM-RNN.
Half of the searches ask an archived question with a third of its words replaced, half a new one.

Recall asks how often the pair that comes first when every pair of 10,000 is scored is among the 100 candidates: for
real questions (InsuranceQA's valid) over 10,000 real pairs (its train), and for made ones over made pairs. For each
size it is measured again, with the alpha of the archive, where the vector index comes into play.

Every size is built and searched in processes of their own, so that the peak of memory belongs to it. With --by-shards
the pairs are Parquet files first (which is not measured), of which `index --engine local` builds the archive: one
process makes the rows of all shards, another puts them into the table by one commit. With --folder what is finished
(shards, rows, figures of a stage) is kept there, and a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from experiments import places
from experiments.corpora.insuranceqa import read_insuranceqa
from experiments.reproduction.provenance import commit
from matchloom import MODELS, Matcher, Pair, TrainConfig, mine_negatives, train
from matchloom.basics.files import atomic_write
from matchloom.batch.indexing import IndexWork, index_shards
from matchloom.batch.run import run_batch
from matchloom.models import build_model
from matchloom.search.lance.collection import LanceCollection
from matchloom.search.lance.table import VECTORS, unit, vectors_of
from matchloom.text.tokenize import Tokenizer

DATA = places.DATA / "insuranceqa"
RESULTS = places.RESULTS / "archive.json"
TOKENIZER = Tokenizer("english", max_words=50)
SEARCHES = 300
CANDIDATES = 100
REAL = 10_000
SHARD = 100_000  # pairs of a file


class Words:
    """Texts drawn word by word, each by how often InsuranceQA has it."""

    def __init__(self) -> None:
        counts: list[Counter[str]] = [Counter(), Counter()]
        with gzip.open(DATA / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                counts[0].update(TOKENIZER(json.loads(line)["en"]))
        with gzip.open(DATA / "answers.en.tsv.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                counts[1].update(TOKENIZER(line.partition("\t")[2]))
        self.words = [sorted(count) for count in counts]
        self.shares = []
        for count, words in zip(counts, self.words, strict=True):
            numbers = np.array([count[word] for word in words], float)
            self.shares.append(numbers / numbers.sum())

    def texts(self, draw: np.random.Generator, side: int, count: int) -> list[str]:
        """Questions (side 0) or answers (side 1)."""
        lengths = draw.integers(*((5, 16), (10, 51))[side], size=count)
        drawn = iter(draw.choice(len(self.words[side]), int(lengths.sum()), p=self.shares[side]).tolist())
        return [" ".join(self.words[side][next(drawn)] for _ in range(length)) for length in lengths.tolist()]

    def pairs(self, first: int, last: int) -> Iterator[Pair]:
        """The pairs with these numbers, a thousand in memory; the same whatever is asked for around them."""
        for start in range(first, last, 1000):
            draw = np.random.default_rng(start)
            questions, answers = self.texts(draw, 0, 1000), self.texts(draw, 1, 1000)
            for n in range(min(1000, last - start)):
                yield Pair(questions[n], answers[n], query_id=f"p{start + n}")

    def asked(self, size: int, count: int) -> list[str]:
        """Questions to search for: archived ones with a third of the words replaced, and new ones, in turns."""
        draw = np.random.default_rng(10**9)
        new = self.texts(draw, 0, count)
        for n in range(0, count, 2):
            start = int(draw.integers(size // 1000)) * 1000
            words = next(iter(self.pairs(start, start + 1))).query.split()
            places = draw.choice(len(words), max(1, len(words) // 3), replace=False)
            for place, word in zip(places, draw.choice(self.words[0], len(places), p=self.shares[0]), strict=True):
                words[place] = str(word)
            new[n] = " ".join(words)
        return new


def encoder(folder: Path) -> None:
    """Train the matcher that encodes, for one epoch."""
    positives = read_insuranceqa(DATA, "train", truncate=TOKENIZER)
    pairs = mine_negatives(positives, source="random", count=2)
    model = "cntn" if "cntn" in MODELS else "lstm_rnn"
    train(
        pairs,
        hold_out=0,
        vectors="random",
        model=model,
        config=TrainConfig(epochs=1, negatives=2, margin=0.1),
        tokenizer=TOKENIZER,
    ).save(folder)


def peak() -> float:
    """MB that this process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def write_shards(folder: Path, words: Words, size: int) -> Path:
    """The pairs as Parquet files of 100,000."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, size, SHARD):
        path = folder / f"part-{start // SHARD:05}.parquet"
        if not path.exists():
            pairs = [pair._asdict() for pair in words.pairs(start, min(size, start + SHARD))]
            with atomic_write(path, "wb") as file:
                pq.write_table(pa.Table.from_pylist(pairs).select(["query", "text", "query_id"]), file)
    return folder


def rows_of_shards(archive: Path, matcher: Path, size: int) -> dict[str, Any]:
    """The rows of an archive, shard by shard; those that are there are not made again.

    Seconds are those of all shards, as of the ones that were made now.
    """
    shards = write_shards(archive.with_name("shards"), Words(), size)
    start, cpu = time.perf_counter(), time.process_time()
    done = run_batch(IndexWork(str(matcher)), shards, archive.with_name("rows"))
    part = done.rows / size
    figures = {"rows_seconds": time.perf_counter() - start, "rows_cpu_seconds": time.process_time() - cpu}
    carried = {name: seconds / part for name, seconds in figures.items()} if part else figures
    return {**carried, "rows_peak_mb": peak(), "rows_now": done.rows}


def build_of_shards(archive: Path, matcher: Path, size: int) -> dict[str, Any]:
    """The archive of rows that are there, then as `build`."""
    words, before = Words(), peak()
    shards, rows = archive.with_name("shards"), archive.with_name("rows")
    start, cpu = time.perf_counter(), time.process_time()
    index_shards(archive, IndexWork(str(matcher)), shards, rows)
    figures = {"table_seconds": time.perf_counter() - start, "table_cpu_seconds": time.process_time() - cpu}
    shutil.rmtree(shards)
    return {**figures, **appended(LanceCollection.open(archive), words, size), "of_which_before_mb": before}


def build(archive: Path, matcher: Path, size: int) -> dict[str, Any]:
    """Build an archive, then append to it."""
    words, before = Words(), peak()
    index = LanceCollection.create(archive, matcher)
    start = time.perf_counter()
    index.add(words.pairs(0, size))
    figures = {"build_seconds": time.perf_counter() - start}
    return {**figures, **appended(index, words, size), "of_which_before_mb": before}


def appended(index: LanceCollection, words: Words, size: int) -> dict[str, Any]:
    """What an archive takes, and how long three additions take, and one after which the indices are up to date."""
    disk, held, appends, first = index.status()["bytes"] / 1e6, peak(), [], size
    for count in (1000, 1000, 1000, 1 + max(2_500, size // 1000)):
        pairs = list(words.pairs(first, first + count))
        start = time.perf_counter()
        index.add(pairs)
        appends.append(time.perf_counter() - start)
        first += count
    return {
        "disk_mb": disk,
        "build_peak_mb": held,
        "append_1000_seconds": sorted(appends[:3])[1],
        "append_and_index_seconds": appends[3],
        "append_peak_mb": peak(),
        "indexed_after_appends": index.status()["words_indexed"],
    }


def search(archive: Path, matcher: Path, size: int) -> dict[str, Any]:
    """Latency one by one, searches a second on two threads, and reranking by a network that reads both texts."""
    words = Words()
    asked = words.asked(size, SEARCHES)
    index = LanceCollection.open(archive)
    loaded = Matcher.load(matcher)
    model = build_model("mv_lstm", {"lexical": False}, loaded.model.encoder, seed=0).eval()
    reader = Matcher("mv_lstm", {"lexical": False}, model, loaded.reader)
    figures: dict[str, Any] = {}
    scorers = (("stored vectors", None, SEARCHES), ("mv_lstm, read at every search", reader, 50))
    for name, scorer, count in scorers:

        def one(question: str, scorer: Matcher | None = scorer) -> None:
            assert len(index.search(question, top=10, candidates=CANDIDATES, rerank=scorer)) == 10

        figures[name] = latency(one, asked[:count])
    figures_peak = peak()
    plain = archive.with_name("plain")
    if size <= 100_000:  # BM25 alone, from an archive without a matcher
        index = LanceCollection.create(plain)
        index.add(words.pairs(0, size))
        figures["bm25 alone"] = latency(lambda question: index.search(question, candidates=CANDIDATES), asked[:200])
        shutil.rmtree(plain)
    return {"searches": figures, "search_peak_mb": figures_peak}


def found_first(archive: Path, matcher: Path, size: int) -> dict[str, Any]:
    """How often what is best of all is a candidate, of 100 questions; every pair is scored, which may take minutes."""
    asked = Words().asked(size, SEARCHES)[:100]
    return {"recall": recall_here(LanceCollection.open(archive), Matcher.load(matcher), asked)}


def recall_here(index: LanceCollection, matcher: Matcher, asked: list[str]) -> float:
    """How often what is best among all pairs of this archive is among the candidates."""
    best = np.full(len(asked), -np.inf)
    vectors = [matcher.vectors([question])[0] for question in asked]
    for batch in index.snapshot().store.batches(10_000, [VECTORS]):
        v_q, v_a = vectors_of(pa.table([batch.column(VECTORS)], [VECTORS]))
        for n, v_t in enumerate(vectors):
            scores = index.alpha * (v_q @ unit(v_t)) + (1 - index.alpha) * matcher.match_vectors(v_t, v_a)
            best[n] = max(best[n], float(scores.max()))
    found = [index.search(question, top=1, candidates=CANDIDATES)[0].score for question in asked]
    return float(np.mean(found >= best - 1e-5 * np.maximum(1, np.abs(best))))


def latency(one: Callable[[str], object], asked: list[str]) -> dict[str, float]:
    for question in asked[:20]:  # fills what is kept in memory
        one(question)
    times = []
    for question in asked:
        start = time.perf_counter()
        one(question)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, asked))
    speed = len(asked) / (time.perf_counter() - start)
    median, high = np.percentile(times, [50, 99]) * 1000
    return {"median_ms": float(median), "p99_ms": float(high), "searches_a_second": speed}


def recall(archive: Path, matcher: Path, size: int) -> dict[str, Any]:
    """How often what is best among all is among the candidates."""
    words = Words()
    loaded = Matcher.load(matcher)
    real = read_insuranceqa(DATA, "train", truncate=TOKENIZER)[:REAL]
    questions = [pair.query for pair in read_insuranceqa(DATA, "valid", truncate=TOKENIZER)[:SEARCHES]]
    made = list(words.pairs(0, size))
    found: dict[str, Any] = {}
    for name, pairs, asked in (("real", real, questions), ("made", made, words.asked(size, SEARCHES))):
        folder = archive.with_name(f"recall-{name}")
        index = LanceCollection.create(folder, matcher)
        index.add(pairs)
        found[name] = {"pairs": len(index), **among(index, loaded, pairs, asked)}
        shutil.rmtree(folder)
    return found


def among(index: LanceCollection, matcher: Matcher, pairs: list[Pair], asked: list[str]) -> dict[str, float]:
    v_q = unit(matcher.vectors([pair.query for pair in pairs]))
    v_a = matcher.vectors([pair.text for pair in pairs], side="right")
    hits: dict[str, list[bool]] = {}
    for question in asked:
        v_t: NDArray[np.float32] = matcher.vectors([question])[0]
        similarity, match = v_q @ unit(v_t), matcher.match_vectors(v_t, v_a)
        for alpha in (0.3, 0.5, 0.7, 0.9):
            best = float((alpha * similarity + (1 - alpha) * match).max())
            first = index.search(question, top=1, candidates=CANDIDATES, alpha=alpha)[0].score
            hits.setdefault(f"alpha {alpha}", []).append(first >= best - 1e-5 * max(1, abs(best)))
    return {name: float(np.mean(values)) for name, values in hits.items()}


STAGES = {
    "rows": rows_of_shards,
    "table": build_of_shards,
    "build": build,
    "search": search,
    "first": found_first,
    "recall": recall,
}


def stage(name: str, archive: Path, matcher: Path, size: int) -> Any:
    """The figures of a stage, from a process of its own, or from the run before that finished it."""
    kept = archive.with_name(f"{archive.name}-{name}.json")
    if not kept.exists():
        given = [sys.executable, "-m", "experiments.benchmarks.archive", "--stage", name]
        load, run = os.getloadavg()[0], [*given, *map(str, (archive, matcher, size))]
        done = subprocess.run(run, cwd=places.ROOT, check=True, stdout=subprocess.PIPE, text=True)
        with atomic_write(kept) as file:
            file.write(json.dumps({"load": load, "figures": json.loads(done.stdout.splitlines()[-1])}))
    row = json.loads(kept.read_text(encoding="utf-8"))
    print(archive.name, name, json.dumps(row), flush=True)
    return row["figures"]


def measured(archive: Path, matcher: Path, size: int, by_shards: bool) -> dict[str, Any]:
    """The row of one size."""
    row: dict[str, Any] = {"commit": commit(), "load_before": os.getloadavg()[0]}
    if by_shards:
        row |= {**stage("rows", archive, matcher, size), **stage("table", archive, matcher, size)}
        row["build_seconds"] = row["rows_seconds"] + row["table_seconds"]
        row["build_peak_mb"] = max(row["rows_peak_mb"], row["build_peak_mb"])
    else:
        row |= stage("build", archive, matcher, size)
    row |= {**stage("search", archive, matcher, size), **stage("first", archive, matcher, size)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=["10000", "100000"], help="pairs")
    parser.add_argument("--by-shards", action="store_true", help="build of Parquet shards")
    parser.add_argument("--folder", type=Path, help="where parts are kept; without, nothing is")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.stage:
        archive, matcher, size = options.sizes
        print(json.dumps(STAGES[options.stage](Path(archive), Path(matcher), int(size))))
        return
    with nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        matcher = home / "matcher"
        if not matcher.exists():
            encoder(matcher)
        for size in options.sizes:
            archive = home / size / "archive"
            archive.parent.mkdir(parents=True, exist_ok=True)
            row = measured(archive, matcher, int(size), options.by_shards)
            shutil.rmtree(archive.parent)
            save(options.out, matcher, {size: row})
        found = stage("recall", home / "small", matcher, REAL)
        manifest = save(options.out, matcher, {}, recall=found)
    show(manifest)


def save(path: Path, matcher: Path, rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Put rows in their places; others stay."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    sizes = {**kept.get("sizes", {}), **rows}
    manifest: dict[str, Any] = {
        **kept,
        "commit": commit(),
        "encoder": Matcher.load(matcher).name,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "candidates": CANDIDATES,
        "sizes": dict(sorted(sizes.items(), key=lambda row: int(row[0]))),
        **more,
    }
    with atomic_write(path) as file:
        json.dump(manifest, file, indent=1)
        file.write("\n")
    return manifest


def show(about: dict[str, Any]) -> None:
    grid = Table("", *(f"{int(size):,}" for size in about["sizes"]))
    for key in ("build_seconds", "disk_mb", "build_peak_mb", "append_1000_seconds", "search_peak_mb", "recall"):
        grid.add_row(key, *(f"{row[key]:,.2f}" for row in about["sizes"].values()))
    for name in ("stored vectors", "mv_lstm, read at every search", "bm25 alone"):
        for key in ("median_ms", "p99_ms", "searches_a_second"):
            figures = [row["searches"].get(name, {}).get(key) for row in about["sizes"].values()]
            grid.add_row(f"{name}: {key}", *("-" if value is None else f"{value:,.1f}" for value in figures))
    Console(width=110).print(grid, about["recall"])


if __name__ == "__main__":
    main()
