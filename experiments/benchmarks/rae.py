"""How fast RAE's autoencoder learns: one pass over 20,000 sentences of 5 to 50 words, and how far the error falls.

    python -m experiments.benchmarks.rae DATA [--sentences 20000] [--threads 2]

The sentences are questions and answers of the cqa corpus, the vectors 50-dimensional skip-gram of the same sentences.
Results go to experiments/results/rae.json. Fewer sentences are for a quick look: their time is extrapolated.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch

from experiments import places
from experiments.corpora import read_cqa
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.data.batching import pad_texts
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.layers.autoencoder_training import BATCH, train_autoencoder
from matchloom.models import build_model
from matchloom.models.rae import RAE
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import initial_matrix, train_vectors
from matchloom.text.vocab import Vocab

RESULTS = places.RESULTS / "rae.json"
WHOLE, DIMENSIONS = 20_000, 50


def error(model: RAE, table: TokenizedTexts) -> float:
    """The mean unfolding error of every tenth text."""
    total, order = 0.0, np.argsort(table.lengths, kind="stable")[::10]
    with torch.no_grad():
        for start in range(0, len(order), BATCH):
            texts = pad_texts(table, order[start : start + BATCH])
            total += float(model.autoencoder.unfolding_error(model.encoder(texts), texts.lengths))
    return total / len(order)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sentences", type=int, default=WHOLE)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)

    pairs = read_cqa(given.data / "cqa" / "cqa_5_50.tsv.gz")
    sentences = sorted({text for pair in pairs for text in (pair.query, pair.text)})
    sentences = random.Random(0).sample(sentences, given.sentences)
    tokenizer = Tokenizer()
    words = [tokenizer(sentence) for sentence in sentences]
    vocab = Vocab.build(words)
    matrix = initial_matrix(vocab, train_vectors(words, dimensions=DIMENSIONS), dimensions=DIMENSIONS, seed=0)
    encoder = WordEmbedding(len(vocab), DIMENSIONS, matrix)
    model = build_model("rae", {"autoencoder_epochs": 1}, encoder, seed=0)
    assert isinstance(model, RAE)
    table = encoder.reader(tokenizer, vocab).read(sentences)

    before = error(model, table)
    start = time.perf_counter()
    train_autoencoder(
        model.autoencoder,
        encoder,
        (table,),
        np.random.default_rng(0),
        epochs=1,
        learning_rate=model.learning_rate,
        decay=model.decay,
        progress=True,
    )
    seconds = time.perf_counter() - start
    found = {
        "commit": commit(),
        "sentences": given.sentences,
        "words": float(table.lengths.mean()),
        "threads": given.threads,
        "seconds": round(seconds, 1),
        "sentences_per_second": round(given.sentences / seconds, 1),
        f"seconds_for_{WHOLE}": round(seconds * WHOLE / given.sentences, 1),
        "error_before": round(before, 2),
        "error_after": round(error(model, table), 2),
    }
    print(json.dumps(found))
    with atomic_write(RESULTS) as file:
        json.dump(found, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
