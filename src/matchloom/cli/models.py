"""`matchloom models`: what can be trained, from which paper, how large and how fast; and what needs no training."""

from __future__ import annotations

import random
import re
import sys
import time
from typing import Annotated

import numpy as np
import torch
import typer

from matchloom import MODELS
from matchloom.cli.docstrings import documented
from matchloom.cli.printing import console, note, table
from matchloom.data.batching import features_of, make_batch
from matchloom.encoders import WordEmbedding
from matchloom.lexical import LEXICAL
from matchloom.matcher import Matcher
from matchloom.models import MEMBERS, all_arguments, build_model, model_training, sentence_vector_models
from matchloom.parallel import inline_pool
from matchloom.progress import track
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab

LEXICAL_ABOUT = {
    "random": "A number drawn from the seed and the pair: the lowest baseline.",
    "overlap": "The share of the query's words that the text holds, rare words weighing more.",
    "bm25": "BM25 on the words as they are.",
    "bm25_stemmed": "BM25 on stems, without function words.",
    "soft_coverage": "For each query word its nearest word of the text; needs word vectors.",
    "trans_lm": "How likely the query is by the text's words and their translations; 'matchloom trans-lm' learns them.",
}
DIMENSIONS, WORDS, PAIRS, SECONDS = 50, 20, 128, 0.1  # of what is measured
HURRIED = {"deep_match": {"iterations": 10}, "rae": {"passes": 1}}  # what is learnt from the texts, for speed alone


def command(
    name: Annotated[str, typer.Argument(metavar="[MODEL]", help="Describe this model.", show_default=False)] = "",
) -> None:
    """List models and lexical scorers, or describe one model.

    The list has each model's paper; its kind, which is 'vectors' if each text becomes one vector, so that a large
    archive can be searched, and 'interaction' if the words of both texts are compared; its number of parameters
    without the word vectors; and its speed, measured on this machine: pairs scored per second on one thread, with 20
    words in each text.

    With a name, it prints the arguments for --set, and the training settings that differ from the defaults of
    'matchloom train'.

    \b
    Examples:
      matchloom models
      matchloom models mv_lstm
      matchloom train faq.tsv --out runs/faq --model mv_lstm --set interaction=cosine --set k=10
    """
    if name:
        _tell(name)
        return
    with_vectors = sentence_vector_models()
    columns = ("parameters", "pairs/s")
    trained = table("model", "paper", "kind", *columns, "what it does", right=columns)
    trained.columns[1].no_wrap = True
    for model, make in track(MODELS.items(), "measuring"):
        size, speed = _measured(model)
        trained.add_row(
            model,
            paper(model),
            "vectors" if model in with_vectors else "interaction",
            f"{size:,}",
            f"{speed:,.0f}",
            _first_line(make.__doc__),
        )
    untrained = table("lexical", "what it does")
    for scorer in LEXICAL:
        untrained.add_row(scorer, LEXICAL_ABOUT[scorer])
    printer = console()
    printer.print(trained)
    printer.print()
    printer.print(untrained)
    note("\n'matchloom models MODEL' lists its arguments.")


def paper(name: str) -> str:
    """Who described the model, and when: the brackets in the first line of its file."""
    line = _first_line(sys.modules[MODELS[name].__module__].__doc__)
    found = re.search(r"\((?:a baseline of )?([^()]+) (\d{4})\)", line)
    assert found is not None, f"the first line of {name}'s file ends with (authors, year)"
    return f"{found[1].split(',')[0]} {found[2]}"


def written(value: object) -> str:
    """A value as `--set` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tell(name: str) -> None:
    arguments = all_arguments(name)
    print((sys.modules[MODELS[name].__module__].__doc__ or "").strip())
    meanings = {**documented(MODELS[name]).arguments, MEMBERS: "Networks whose scores are averaged, each trained."}
    shown = table("argument (--set NAME=VALUE)", "default", "")
    for key, value in arguments.items():
        shown.add_row(key, written(value) or "(none)", meanings.get(key, ""))
    print()
    console().print(shown)
    if theirs := model_training(name):
        settings = " ".join(f"{key}={written(value)}" for key, value in theirs.items())
        print(f"\nTrained, unless options say otherwise, with {settings}.")


def _measured(name: str) -> tuple[int, float]:
    """Parameters, and pairs a second of texts that all differ, the best of a few rounds."""
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
    return model.size(), best


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]
