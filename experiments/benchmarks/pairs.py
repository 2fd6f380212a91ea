"""Do two texts match? The classifier beside scikit-learn's logistic regression on TF-IDF, on development data.

    python -m experiments.benchmarks.pairs [--encoder NAME [--tune]] [NAME ...]     # to experiments/results/pairs.json

Average precision over three folds of the training parts of `pair_tasks`; test parts are not read. Where the encoder was
tuned, the figure is that of what held-out pairs kept, which may be the encoder as it came.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from experiments import places
from experiments.benchmarks.pair_tasks import TASKS
from experiments.reproduction.provenance import commit
from matchloom import Pair
from matchloom.basics.files import atomic_write
from matchloom.calibration import labels
from matchloom.evaluation.labelled import measure_labelled
from matchloom.fitting.encoder import Encoded
from matchloom.fitting.pair_classifier import PairClassifier
from matchloom.fitting.run import tokenizer_for
from matchloom.search.features.dense import SentenceVectors
from matchloom.text.tokenize import Tokenizer

RESULTS = places.RESULTS / "pairs.json"
Score = Callable[[Sequence[Pair], Sequence[Pair]], NDArray[np.float64]]


def rival(train: Sequence[Pair], asked: Sequence[Pair], *, chinese: bool) -> NDArray[np.float64]:
    """Logistic regression on |a - b|, a * b and the cosine, of words and of character n-grams."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts = [text for pair in train for text in pair[:2]]
    words = {"analyzer": "char", "ngram_range": (1, 3)} if chinese else {"ngram_range": (1, 2)}
    grams = {"analyzer": "char_wb", "ngram_range": (1, 2) if chinese else (2, 5), "min_df": 2}
    made = [TfidfVectorizer(sublinear_tf=True, **options).fit(texts) for options in (words, grams)]

    def columns(pairs: Sequence[Pair]) -> sp.csr_matrix:
        parts = []
        for one in made:
            a, b = one.transform([p.query for p in pairs]), one.transform([p.text for p in pairs])
            both = a.multiply(b)
            parts += [abs(a - b), both, sp.csr_matrix(both.sum(axis=1))]
        return sp.hstack(parts, format="csr")

    learnt = LogisticRegression(C=1.0, solver="liblinear").fit(columns(train), labels(train))
    return np.asarray(learnt.decision_function(columns(asked)), np.float64)


def ours(
    tokenizer: Tokenizer,
    sentences: SentenceVectors | None,
    train: Sequence[Pair],
    asked: Sequence[Pair],
    *,
    tune: bool = False,
) -> NDArray[np.float64]:
    """As `matchloom fit` makes it."""
    made = PairClassifier.fit(train, tokenizer, sentences=sentences, tune=tune)
    if made.tuning is not None:
        print(made.tuning)
    return made.score(asked).astype(np.float64)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TASKS), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--encoder", default="", help="a name of 'matchloom encoders'")
    parser.add_argument("--tune", action="store_true", help="with the encoder tuned on the pairs, too")
    options = parser.parse_args()
    table = Table("pairs", "count", "system", "AP", "seconds a fold (CPU)")
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.names:
        _, pairs, folds = TASKS[name]()
        tokenizer = tokenizer_for(pairs)
        systems: dict[str, Score] = {
            "LR on TF-IDF": partial(rival, chinese=name == "atec"),
            "pair_classifier": partial(ours, tokenizer, None),
        }
        if options.encoder:
            from matchloom.encoders.library import find_encoder

            sentences = Encoded(find_encoder(options.encoder), tokenizer).sentences
            systems["encoder_classifier"] = partial(ours, tokenizer, sentences)
            if options.tune:
                systems["encoder_classifier, tuned"] = partial(ours, tokenizer, sentences, tune=True)
        for system, score in systems.items():
            found, begun = [], time.process_time()
            for fold in range(int(folds.max()) + 1):
                train = [pair for pair, home in zip(pairs, folds, strict=True) if home != fold]
                asked = [pair for pair, home in zip(pairs, folds, strict=True) if home == fold]
                found.append(measure_labelled(score(train, asked), labels(asked), None).values["AP"])
            seconds = (time.process_time() - begun) / len(found)
            table.add_row(name, f"{len(pairs):,}", system, f"{np.mean(found):.3f}", f"{seconds:.1f}")
            row = {"AP": float(np.mean(found)), "CPU seconds": seconds, "commit": commit()}
            kept.setdefault(name, {})[system] = {"pairs": len(pairs), **row}
            with atomic_write(RESULTS) as file:
                file.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    Console().print(table)


if __name__ == "__main__":
    main()
