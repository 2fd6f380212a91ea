"""`matchloom models`: what can be trained, from which paper, how large and how fast; and what needs no training."""

from __future__ import annotations

import random
import sys
import time
from typing import Annotated

import typer

from matchloom.basics.progress import track
from matchloom.cli.docstrings import documented, written
from matchloom.cli.model_sources import model_sources
from matchloom.cli.printing import console, note, table

LEXICAL_ABOUT = {
    "random": "A random number, made from the seed and the pair: the lowest baseline.",
    "overlap": "The share of the query's words that are in the text; rare words count more.",
    "bm25": "BM25 on the words as they are.",
    "bm25_stemmed": "BM25 on stems, without function words.",
    "soft_coverage": "For each query word its most similar word of the text; needs word vectors.",
    "trans_lm": "The query's probability by the text's words and their translations; see 'matchloom trans-lm'.",
}
DIMENSIONS, WORDS, PAIRS, SECONDS = 50, 20, 128, 0.1  # of what is measured
HURRIED = {
    "deep_match": {"iterations": 10},
    "rae": {"autoencoder_epochs": 1},
}  # what is learnt from the texts, for speed alone


def command(
    name: Annotated[str, typer.Argument(metavar="[MODEL]", help="Describe this model.", show_default=False)] = "",
    measure: Annotated[
        bool, typer.Option("--measure", help="Also count the parameters of each model and measure its speed.")
    ] = False,
) -> None:
    """List models and lexical scorers, or describe one model.

    The list has each model's paper and its kind: 'vectors' if each text becomes one vector, so that a large archive can
    be searched, or 'interaction' if the words of both texts are compared. --measure adds the number of parameters
    without the word vectors, and the speed on this machine: pairs scored per second on one thread, with 20 words in
    each text.

    With a name, the command prints the arguments for --set, and the training settings that differ from the defaults of
    'matchloom train'.

    \b
    Examples:
      matchloom models
      matchloom models --measure
      matchloom models mv_lstm
      matchloom train faq.tsv --out runs/faq --model mv_lstm --set interaction=cosine --set k=10
    """
    if name:
        _tell(name)
        return
    columns = ("parameters", "pairs/s") if measure else ()
    trained = table("model", "paper", "kind", *columns, "what it does", right=columns)
    trained.columns[1].no_wrap = True
    listed = model_sources().items()
    for model, source in track(listed, "measuring") if measure else listed:
        kind = "vectors" if source.makes_vectors else "interaction"
        trained.add_row(model, source.paper, kind, *(_measured(model) if measure else ()), source.about)
    untrained = table("lexical", "what it does")
    for scorer, about in LEXICAL_ABOUT.items():
        untrained.add_row(scorer, about)
    printer = console()
    printer.print(trained)
    printer.print()
    printer.print(untrained)
    note("\n'matchloom models MODEL' lists its arguments.")


def _tell(name: str) -> None:
    from matchloom.models import ENSEMBLE_SIZE, MODELS, all_arguments, model_training

    arguments = all_arguments(name)
    print((sys.modules[MODELS[name].__module__].__doc__ or "").strip())
    meanings = {
        **documented(MODELS[name]).arguments,
        ENSEMBLE_SIZE: "Number of networks; each is trained, and their scores are averaged.",
    }
    shown = table("argument (--set NAME=VALUE)", "default", "")
    for key, value in arguments.items():
        shown.add_row(key, written(value) or "(none)", meanings.get(key, ""))
    print()
    console().print(shown)
    if theirs := model_training(name):
        settings = " ".join(f"{key}={written(value)}" for key, value in theirs.items())
        print(f"\nDefault training settings: {settings}.")


def _measured(name: str) -> tuple[str, str]:
    """Parameters, and pairs a second of texts that all differ, the best of a few rounds."""
    import numpy as np
    import torch

    from matchloom.basics.parallel import inline_pool
    from matchloom.data.batching import features_of, make_batch
    from matchloom.encoders.word_embedding import WordEmbedding
    from matchloom.matcher import Matcher
    from matchloom.models import build_model
    from matchloom.text.tokenize import Tokenizer
    from matchloom.text.vocab import Vocab

    known, rng = [f"w{n}" for n in range(2 * PAIRS * WORDS)], random.Random(0)
    rarity = [1 / (n + 10) for n in range(len(known))]  # few words are frequent, as in any language
    texts = [" ".join(rng.choices(known, rarity, k=WORDS)) for _ in range(2 * PAIRS)]
    vocab = Vocab.build([known])
    encoder = WordEmbedding(len(vocab), DIMENSIONS)
    with torch.no_grad():
        encoder.embedding.weight.normal_(generator=torch.Generator().manual_seed(0))
    model = build_model(name, HURRIED.get(name, {}), encoder, seed=0).eval()
    table = Matcher(name, {}, model, encoder.reader(Tokenizer("whitespace"), vocab)).read(texts)
    left = np.arange(PAIRS)
    batch = make_batch(table, table, left, left + PAIRS, features_of(table, table, left, left + PAIRS))
    best, end = 0.0, time.perf_counter() + SECONDS
    with inline_pool(1):
        model.pretrain(table, table, np.stack([left, left + PAIRS, np.ones_like(left)], axis=1), 0, False)
        with torch.inference_mode():
            model(batch)  # the first call sets things up
            while best == 0.0 or time.perf_counter() < end:
                start = time.perf_counter()
                model(batch)
                best = max(best, PAIRS / (time.perf_counter() - start))
    return f"{model.size():,}", f"{best:,.0f}"
