"""Small archives for the tests of retrieval."""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch

from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.matcher import Matcher
from matchloom.models import Argument, build_model
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.types import Pair

WORDS = [f"{a}{b}" for a in ("ba", "ke", "lo", "mi", "nu", "po", "ra", "se", "ti", "vu") for b in ("den", "lar", "mik")]


def made_pairs(count: int, seed: int = 0, prefix: str = "q") -> list[Pair]:
    """Pairs whose answers share some words with their questions."""
    rng = random.Random(seed)
    pairs = []
    for n in range(count):
        question = rng.sample(WORDS, rng.randint(3, 7))
        answer = rng.sample(question, 2) + rng.sample(WORDS, rng.randint(3, 10))
        pairs.append(Pair(" ".join(question), " ".join(answer), query_id=f"{prefix}{n}"))
    return pairs


def made_matcher(name: str = "lstm_rnn", seed: int = 0, arguments: Mapping[str, Argument] | None = None) -> Matcher:
    """A matcher with drawn weights, large enough for its scores to differ."""
    tokenizer = Tokenizer()
    vocab = Vocab.build([WORDS])
    embedding = WordEmbedding(len(vocab), 8)
    with torch.no_grad():
        embedding.embedding.weight.copy_(torch.randn(len(vocab), 8, generator=torch.Generator().manual_seed(seed)))
    if arguments is None:
        arguments = {"hidden": 6} if "lstm" in name else {"dimensions": 3} if name == "match_srnn" else {}
    model = build_model(name, arguments, embedding, seed=seed).eval()
    with torch.no_grad():
        for parameter in model.own_parameters():
            parameter.mul_(5)
    return Matcher(name, dict(arguments), model, embedding.reader(tokenizer, vocab))
