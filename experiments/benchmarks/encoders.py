"""Matchers over a pretrained encoder beside one from scratch: speed, bytes and quality in one table, from one run.

    python -m experiments.benchmarks.encoders --data ../shared/data              # to experiments/results/encoders.json
    python -m experiments.benchmarks.encoders --data ... --tuned runs/trec runs/wiki --cross runs/trec-x runs/wiki-x

All on one thread, in CPU seconds, whatever else the machine does. Candidates are 1,000 answers of InsuranceQA, the
first 50 words of each; queries are questions of TREC-QA. A ranking includes reading and encoding its query; "matched"
is what is left without. Bytes are those of an encoded candidate in memory. AP and RR are of TREC-QA (clean TEST) and
WikiQA (TEST, questions with both labels); "blind" is the AP of the same scorer when each list has another list's query,
which would be that of random orders if lists gave nothing away.

The matcher from scratch is MV-LSTM with its defaults, trained here on TRAIN of either corpus unless folders are given.
128 numbers are the principal directions of the texts of the same TRAIN. Fine-tuned matchers and cross-encoders are
folders that `matchloom train` made of TRAIN, one for each corpus. The encoder in eight bits is what `matchloom export
--int8` writes, by onnxruntime, with positions in single precision.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from experiments import places
from experiments.corpora.subsets import both_labels
from experiments.corpora.trecqa import read_trecqa
from experiments.corpora.wikiqa import read_wikiqa
from experiments.reproduction.provenance import commit
from matchloom import MODELS, Matcher, Pair, evaluate, train
from matchloom.basics.files import atomic_write
from matchloom.batches import Pieces
from matchloom.data.tokenized import deduplicate
from matchloom.encoders.library import find_encoder
from matchloom.encoders.transformer import Transformer
from matchloom.export import GraphReader, export_onnx
from matchloom.export.running import Session
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Scores

RESULTS = places.RESULTS / "encoders.json"
CORPORA = ("TREC-QA", "WikiQA")
CANDIDATES, WORDS, QUERIES = 1000, 50, 12
CUT = Tokenizer("english", max_words=WORDS)


class Contender(Protocol):
    """What the table compares: candidates are encoded once, then a query is matched with all of them."""

    def encode(self, texts: list[str]) -> Any:
        """Texts, to be matched with many queries."""
        ...

    def query(self, query: str) -> object:
        """What a ranking does with its query before it matches."""
        ...

    def match(self, query: str, encoded: Any) -> Scores:
        """The score of each text that was encoded."""
        ...

    def size(self, encoded: Any) -> int:
        """Bytes."""
        ...


class OfMatcher:
    """Any matcher."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def encode(self, texts: list[str]) -> Any:
        """Texts, to be matched with many queries."""
        return self.matcher.encode(texts)

    def query(self, query: str) -> object:
        """What a ranking does with its query before it matches."""
        return self.matcher.encode([query])

    def match(self, query: str, encoded: Any) -> Scores:
        """The score of each text that was encoded."""
        return self.matcher.query_scores(query, encoded)

    def size(self, encoded: Any) -> int:
        """Bytes."""
        return sum(block.encoded.numel() * block.encoded.element_size() for block in encoded.blocks)


class OfPieces:
    """The encoder by itself, in single precision: one mean vector a text (`mean`), or MaxSim over its pieces."""

    def __init__(self, encoder: Transformer, *, mean: bool) -> None:
        self.encoder, self.mean = encoder, mean

    def encode(self, texts: list[str]) -> Any:
        """Texts, to be matched with many queries."""
        read = [self.encoder.word_pieces(text, CUT.spans(text)).ids for text in texts]
        order, found = np.argsort([len(ids) for ids in read], kind="stable"), {}
        for start in range(0, len(order), 32):
            cut = order[start : start + 32]
            lengths = torch.tensor([len(read[n]) for n in cut])
            ids = torch.zeros(len(cut), int(lengths.max()), dtype=torch.int64)
            for row, n in enumerate(cut):
                ids[row, : len(read[n])] = torch.tensor(read[n])
            with torch.inference_mode():
                x = self.encoder.positions(Pieces(ids, torch.zeros_like(ids), lengths))
            for row, n in enumerate(cut):
                own = x[row, : lengths[row]].numpy()
                # A mean takes the marks with it, as its authors have it; MaxSim does without.
                found[int(n)] = _unit(own.mean(0, keepdims=True) if self.mean else own[1:-1])
        return [found[n] for n in range(len(texts))]

    def query(self, query: str) -> object:
        """What a ranking does with its query before it matches."""
        return self.encode([query])

    def match(self, query: str, encoded: Any) -> Scores:
        """The score of each text that was encoded."""
        own = self.encode([query])[0]
        starts = np.cumsum([0, *(len(one) for one in encoded[:-1])])
        cosines = own @ np.concatenate(encoded).T
        return np.asarray(np.maximum.reduceat(cosines, starts, axis=1).mean(0), np.float32)

    def size(self, encoded: Any) -> int:
        """Bytes."""
        return sum(one.nbytes for one in encoded)


class OfGraphs:
    """An exported matcher whose encoder is in eight bits."""

    def __init__(self, matcher: Matcher, texts: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "graphs"
            export_onnx(matcher, home, int8=True, texts=texts)
            self.reader = GraphReader.load(home)
            self.graphs = {name: Session((home / f"{name}.onnx").read_bytes()) for name in ("encode", "match")}

    def encode(self, texts: list[str]) -> Any:
        """Texts, to be matched with many queries."""
        order, found = np.argsort([len(text) for text in texts], kind="stable"), []
        for start in range(0, len(order), 32):
            cut = order[start : start + 32]
            read = self.reader.read("", [texts[n] for n in cut.tolist()])
            found.append((cut, {**read.pairs, "right": self.graphs["encode"].run(read.right)}))
        return found

    def query(self, query: str) -> dict[str, NDArray[Any]]:
        """What a ranking does with its query before it matches."""
        read = self.reader.read(query, [query])
        own = {name: x for name, x in read.pairs.items() if name.startswith("left_") and name != "left_rows"}
        return {**own, "left": self.graphs["encode"].run(read.left)}

    def match(self, query: str, encoded: Any) -> Scores:
        """The score of each text that was encoded."""
        own, scores = self.query(query), np.empty(sum(len(cut) for cut, _ in encoded), np.float32)
        for cut, some in encoded:
            scores[cut] = self.graphs["match"].run({**some, **own})
        return scores

    def size(self, encoded: Any) -> int:
        """Bytes."""
        return sum(int(some["right"].nbytes) for _, some in encoded)


def _unit(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12), np.float32)


class OnLists:
    """A contender as a scorer: every different text is encoded once, and each query matched with all of its list."""

    def __init__(self, name: str, contender: Contender) -> None:
        self.name, self.contender = name, contender
        self._encoded: dict[tuple[str, ...], Any] = {}

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """The score of each pair."""
        scores = np.empty(len(pairs), np.float32)
        queries, rows = deduplicate([pair.query for pair in pairs])
        lists = [np.flatnonzero(rows == n) for n in range(len(queries))]
        for query, own in zip(queries, lists, strict=True):
            texts = [pairs[n].text for n in own.tolist()]
            key = tuple(texts)
            if key not in self._encoded:  # the blind probe asks for the same lists
                self._encoded[key] = self.contender.encode(texts)
            scores[own] = self.contender.match(query, self._encoded[key])
        return scores


def seconds(work: Callable[[], object]) -> float:
    """CPU time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def speed(contender: Contender, texts: list[str], queries: list[str]) -> dict[str, float]:
    """Texts encoded a second, pairs ranked a second, and bytes a text."""
    start = time.process_time()
    encoded = contender.encode(texts)
    took = time.process_time() - start
    contender.match(queries[0], encoded)
    turns = [
        (seconds(lambda: contender.match(query, encoded)), seconds(lambda: contender.query(query)))  # noqa: B023
        for query in queries
    ]
    ranking, reading = (float(np.median(side)) for side in zip(*turns, strict=True))
    return {
        "texts encoded a second": len(texts) / took,
        "pairs ranked a second": len(texts) / ranking,
        "pairs matched a second": len(texts) / max(ranking - reading, 1e-9),
        "milliseconds to encode a query": 1e3 * reading,
        "bytes a text": contender.size(encoded) / len(texts),
    }


def quality(name: str, contender: Contender, pairs: list[Pair]) -> dict[str, float]:
    """AP and RR, with the blind probes beside."""
    report = evaluate(OnLists(name, contender), pairs, measures=("AP", "RR"), tokenizer=Tokenizer())
    found = {"AP": report.measured.values["AP"], "RR": report.measured.values["RR"]}
    found |= {f"AP, {probe.name}": probe.measured.values["AP"] for probe in report.probes}
    chance = next(one for one in report.baselines if one.name == "random")
    return {**found, "AP, random": chance.measured.values["AP"]}


class Material:
    """What is read once."""

    def __init__(self, data: Path) -> None:
        wiki = data / "wikiqa"
        self.train = {
            "TREC-QA": read_trecqa(data / "trecqa" / "TRAIN.tsv"),
            "WikiQA": read_wikiqa(wiki / "WikiQASent-train.txt"),
        }
        self.test = {
            "TREC-QA": read_trecqa(data / "trecqa" / "TEST.tsv", "clean"),
            "WikiQA": both_labels(read_wikiqa(wiki / "WikiQASent-test.txt")),
        }
        self.queries = list(dict.fromkeys(pair.query for pair in self.test["TREC-QA"]))[:QUERIES]
        self.candidates: list[str] = []
        with gzip.open(data / "insuranceqa" / "answers.en.tsv.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                words = CUT(line.partition("\t")[2])
                if len(words) == WORDS and len(self.candidates) < CANDIDATES:
                    self.candidates.append(" ".join(words))

    def texts(self, corpus: str) -> list[str]:
        """The texts that TRAIN of a corpus has."""
        return sorted({text for pair in self.train[corpus] for text in (pair.query, pair.text)})


def contenders(given: argparse.Namespace, material: Material) -> list[tuple[str, Callable[[str], Contender | None]]]:
    """Each row of the table, and what makes its contender for a corpus; None where there is nothing to measure."""
    encoder = Transformer.load(find_encoder(given.encoder)).eval()

    def of_folders(folders: list[Path] | None) -> Callable[[str], Contender | None]:
        return lambda corpus: OfMatcher(Matcher.load(folders[CORPORA.index(corpus)])) if folders else None

    def from_scratch(corpus: str) -> Contender:
        return OfMatcher(train(material.train[corpus]))

    rows: list[tuple[str, Callable[[str], Contender | None]]] = [
        ("MV-LSTM from scratch", of_folders(given.scratch) if given.scratch else from_scratch),
        ("cosine of mean vectors", lambda _: OfPieces(encoder, mean=True)),
        ("MaxSim over pieces", lambda _: OfPieces(encoder, mean=False)),
        ("late interaction, 384 in double", lambda _: OfMatcher(Matcher.untrained(given.encoder, bits=32))),
        ("late interaction, 384 int8", lambda _: OfMatcher(Matcher.untrained(given.encoder))),
        (
            "late interaction, 128 int8",
            lambda corpus: OfMatcher(Matcher.untrained(given.encoder, size=128, texts=material.texts(corpus))),
        ),
        (
            "late interaction, encoder in int8",
            lambda corpus: OfGraphs(Matcher.untrained(given.encoder), material.texts(corpus)[:64]),
        ),
        ("late interaction, fine-tuned", of_folders(given.tuned)),
    ]
    if "cross_encoder" in MODELS:
        rows.append(("cross-encoder", of_folders(given.cross)))
    return [row for row in rows if not given.only or row[0] in given.only]


def show(rows: dict[str, Any]) -> None:
    """The table."""
    names = ("texts encoded a second", "pairs ranked a second", "pairs matched a second", "bytes a text")
    table = Table("", "texts/s", "ranked/s", "matched/s", "bytes", *(f"{one} AP RR (blind)" for one in CORPORA))
    for name, row in rows.items():
        cells = [f"{row['speed'][one]:,.0f}" for one in names]
        for corpus in CORPORA:
            one = row[corpus]
            cells.append(f"{one['AP']:.3f} {one['RR']:.3f} ({one['AP, queries shuffled']:.3f})")
        table.add_row(name, *cells)
    Console(width=140).print(table)
    one = next(iter(rows.values()))
    for corpus in CORPORA:
        by_chance, by_length = one[corpus]["AP, random"], one[corpus]["AP, text length"]
        print(f"{corpus}: AP of random orders {by_chance:.3f}, by length alone {by_length:.3f}")


def main() -> None:
    """Measure every contender in turn; what was found so far is kept if it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    for name in ("scratch", "tuned", "cross"):
        parser.add_argument(f"--{name}", type=Path, nargs=2, metavar=("TREC", "WIKI"))
    parser.add_argument("--only", nargs="+", help="rows of the table; the others keep their figures")
    given = parser.parse_args()
    torch.set_num_threads(1)
    material = Material(given.data)
    found: dict[str, Any] = json.loads(RESULTS.read_text())["rows"] if given.only and RESULTS.exists() else {}
    for name, make in contenders(given, material):
        row: dict[str, Any] = {"commit": commit()}
        for corpus in CORPORA:
            contender = make(corpus)
            if contender is None:
                break
            row.setdefault("speed", None)
            row["speed"] = row["speed"] or speed(contender, material.candidates, material.queries)
            row[corpus] = quality(name, contender, material.test[corpus])
            print(json.dumps({"row": name, "corpus": corpus, **row["speed"], **row[corpus]}), flush=True)
        else:
            found[name] = row
    about = {"encoder": given.encoder, "torch": str(torch.__version__), "python": platform.python_version()}
    with atomic_write(RESULTS) as file:
        file.write(json.dumps({**about, "rows": found}, indent=1) + "\n")
    show(found)


if __name__ == "__main__":
    main()
