"""How the last layers of an encoder should learn: P@1 of a logistic regression over its vectors, on development parts.

    python -m experiments.benchmarks.tuned_encoder                     # HWU64 and StackOverflow, 10 questions an answer
    python -m experiments.benchmarks.tuned_encoder --sizes 10 50 --layers 2 3 6 --rates 2e-4 4e-4 8e-4 --epochs 5 10

Known questions come from training parts, those asked from development parts; no test file is opened. Minutes for each
setting, in CPU seconds of this process. To experiments/results/tuned_encoder.json; `training/encoder_tuning.py` and
`search/features/tuned.py` have what was chosen.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console

from experiments import places
from experiments.benchmarks.quality import Corpus, corpora, encoder_vectors, some
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.search.entries import Entries
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.features.linear import examples_of
from matchloom.search.features.softmax import learn_softmax
from matchloom.training.encoder_tuning import LAYERS, RATE, LowerOutputs, tuned_layers

RESULTS = places.RESULTS / "tuned_encoder.json"
_REGULAR, _STEPS = 30.0, 100  # as `dense_softmax` learns


def right_at_first(
    corpus: Corpus, size: int, sentences: SentenceVectors, layers: int, rate: float, epochs: int
) -> dict[str, float]:
    """P@1 with as many layers tuned; as the encoder comes with no epochs."""
    entries = Entries.of(some(corpus.train, size))
    questions, member = entries.known
    texts = [*questions, *entries.texts, *(question for question, _ in corpus.asked)]
    known = len(questions) + len(entries)
    read = sentences.matcher.reader.text_pieces
    begun = time.process_time()
    lower = LowerOutputs(sentences.matcher.model.encoder, [read(text).ids for text in texts], layers)  # type: ignore[arg-type]
    answers = sp.vstack([member, sp.eye_array(len(entries))], format="csr")
    top = tuned_layers(lower, np.arange(known), answers, epochs, rate=rate) if epochs else lower.top
    vectors = lower.vectors(top)
    seconds = time.process_time() - begun
    rows, classes = examples_of(member)
    weights, bias = learn_softmax(vectors[rows], classes, _REGULAR, _STEPS)
    found = (vectors[known:] @ weights + bias).argmax(axis=1)
    right = [entries.ids[row] == name for row, (_, name) in zip(found, corpus.asked, strict=True)]
    return {"P@1": float(np.mean(right)), "seconds": seconds}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["hwu64", "stackoverflow"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[10])
    parser.add_argument("--layers", type=int, nargs="*", default=[LAYERS])
    parser.add_argument("--rates", type=float, nargs="*", default=[RATE / 2, RATE, 2 * RATE])
    parser.add_argument("--epochs", type=int, nargs="*", default=[0, 5])
    arguments = parser.parse_args()
    console, sentences = Console(width=160), encoder_vectors()
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, size in product(arguments.only, arguments.sizes):
        corpus = corpora(development=True)[name]
        settings = [(LAYERS, RATE, 0)] if 0 in arguments.epochs else []
        settings += product(arguments.layers, arguments.rates, [epochs for epochs in arguments.epochs if epochs])
        for layers, rate, epochs in settings:
            found = right_at_first(corpus, size, sentences, layers, rate, epochs)
            key = f"{name}, {size or 'all'}, " + (f"{layers} layers, {rate:g}, {epochs} epochs" if epochs else "plain")
            kept[key] = {**found, "commit": commit()}
            console.print(key, {measure: round(value, 4) for measure, value in found.items()})
            with atomic_write(RESULTS) as file:
                file.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
