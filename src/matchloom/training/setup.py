"""What a run starts from: words, vectors, model and examples, each text tokenized once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.data.batching import features_of
from matchloom.data.identity import both_sides
from matchloom.data.kinds import positives_only
from matchloom.encoders.base import Encoder
from matchloom.encoders.transformer import Transformer
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.matcher import Matcher, ReadPairs, Tokenize
from matchloom.models import Argument, Kind, build_model, model_name
from matchloom.models.base import PairModel
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, first_vectors, initial_matrix
from matchloom.text.vocab import Vocab
from matchloom.training.collection import Collection, CollectionExamples, collect
from matchloom.training.config import COMPARING, TrainConfig
from matchloom.training.development import ranked
from matchloom.training.examples import Examples, TrainingExamples, group_pairs
from matchloom.training.lists import ListExamples
from matchloom.training.step import draws_at_random
from matchloom.types import MatchloomError, Pair

PAIRS_AT_A_TIME = 12  # whose encoded texts a pretrained encoder keeps for one gradient


class Ready(NamedTuple):
    """A run that has not moved yet. `settings` is what a resumed run must have in common with it."""

    matcher: Matcher
    examples: Examples
    development: tuple[list[Pair], ReadPairs] | None
    settings: dict[str, Any]


def set_up(
    pairs: list[Pair],
    development: list[Pair] | None,
    *,
    model: Kind,
    arguments: dict[str, Argument],
    config: TrainConfig,
    tokenizer: Tokenizer,
    vectors: WordVectors | Path | str,
    dimensions: int,
    min_count: int,
    device: str,
    progress: bool,
    pretrained: Transformer | None = None,
) -> Ready:
    """Read the texts, find the words and their first vectors, and build the model. See `train` for the arguments."""
    if pretrained is None and (config.layers or config.layer_decay < 1):
        raise MatchloomError(
            "layers and layer_decay are for a pretrained encoder, and there is none; leave them out", code="conflict"
        )
    alone = config.loss in COMPARING and positives_only(pairs)
    if config.in_batch and not alone:
        raise MatchloomError(
            "in_batch is for positives alone, and these are labelled or not compared; leave it out", code="conflict"
        )
    # What teaches nothing is refused before any work.
    groups = None if alone else group_pairs(pairs, config)
    collection = collect(pairs, tokenizer, questions=config.questions, progress=progress) if alone else None
    if collection is not None and len(collection.texts) < 2:
        raise MatchloomError(
            "every pair has the same text: there is nothing to learn; give more answers", code="no_data"
        )
    if collection is not None and all(
        (own < collection.answers).sum() == collection.answers for own in collection.relevant
    ):
        raise MatchloomError(
            "every text is right for every question: there is nothing to learn; give more answers", code="no_data"
        )
    if development is not None:
        development = ranked(development, pairs, tokenizer, config.seed)
    texts = [*both_sides(pairs), *(() if collection is None else collection.questions)]
    words_of = {
        text: tokenizer.tokenize(text)
        for text in track(dict.fromkeys([*texts, *both_sides(development or [])]), "reading texts", show=progress)
    }
    # Every side counts a text that stands on both, as it will meet it.
    sides = ({pair.query for pair in pairs}, {pair.text for pair in pairs})
    vocab = Vocab.build((tokenizer.lowercase(words_of[text]) for side in sides for text in sorted(side)), min_count)
    if not vocab.words:
        raise MatchloomError(
            f"the training texts hold no word for the {tokenizer.kind} tokenizer; try another one", code="no_data"
        )
    encoder: Encoder
    if pretrained is not None:
        encoder, first = pretrained, pretrained.digest()
    else:
        words = [tokenizer.lowercase(words_of[text]) for text in dict.fromkeys(texts)]
        found = first_vectors(
            vectors, words, dimensions=dimensions, min_count=min_count, seed=config.seed, progress=progress
        )
        vocab, matrix = _with_vectors(vocab, found, dimensions, config.seed)
        encoder, first = WordEmbedding(len(vocab), matrix.shape[1], matrix), matrix.tobytes()
    network = build_model(model, arguments, encoder, seed=config.seed).to(device)
    about = {
        "config": config.as_dict(),
        "pairs": len(pairs),
        "development_pairs": None if development is None else len(development),
        "queries_left_out": 0 if groups is None else groups.left_out,
    }
    matcher = Matcher(model_name(model), arguments, network, encoder.reader(tokenizer, vocab), about)
    settings = {
        "model": matcher.name,
        "arguments": arguments,
        "tokenizer": tokenizer._asdict(),
        "min_count": min_count,
        "config": config.as_dict(),
        "data": _digest(pairs, development, first),
    }
    # Statistics of batches with texts of one length would not be those that scores are later taken with.
    shards, by_length = _shards(network, config), not network.batch_coupled
    examples: Examples
    if collection is not None:
        read = _read_collection(matcher, collection, words_of.__getitem__)
        drawn = CollectionExamples(collection, read, config, shards=shards, by_length=by_length)
        examples, features = drawn, drawn.features()
    else:
        assert groups is not None
        read = matcher.read_pairs(pairs, tokenize=words_of.__getitem__)
        kind = ListExamples if config.positives and groups.negatives is not None else TrainingExamples
        examples = kind(groups, read, config, shards=shards, by_length=by_length)
        features = read.features
    if features is not None:
        network.fit_features(torch.from_numpy(features))
    looked_at = (
        None if development is None else (development, matcher.read_pairs(development, tokenize=words_of.__getitem__))
    )
    return Ready(matcher, examples, looked_at, settings)


def _shards(model: PairModel, config: TrainConfig) -> int:
    """Into how many shards a batch is split: one where it is coupled, else one for each worker.

    Where a step draws at random its shards are worked on in turn. Those of a pretrained encoder are small, because
    what it keeps of a text for its gradient takes by far the most memory.
    """
    if model.batch_coupled or config.in_batch:
        return 1
    if draws_at_random(model, config):
        return max(1, config.batch // PAIRS_AT_A_TIME) if model.encoder.draws_at_random else 1
    return config.workers


def _read_collection(matcher: Matcher, collection: Collection, tokenize: Tokenize) -> ReadPairs:
    """Questions and texts of a collection as tables, and the positive pairs of questions and answers."""
    left, right = (
        matcher.read(collection.questions, tokenize=tokenize),
        matcher.read(collection.texts, tokenize=tokenize),
    )
    rows = np.array(
        [(q, text) for q, own in collection.positives for text in own if text < collection.answers], dtype=np.int64
    )
    return ReadPairs(left, right, rows[:, 0], rows[:, 1], features_of(left, right, rows[:, 0], rows[:, 1]))


def _with_vectors(
    vocab: Vocab, vectors: WordVectors | None, dimensions: int, seed: int
) -> tuple[Vocab, NDArray[np.float32]]:
    """The vocabulary with every word that has a vector, and the first vectors of all of them."""
    if vectors is None:
        return vocab, initial_matrix(vocab, None, dimensions=dimensions, seed=seed)
    matrix = initial_matrix(vocab, vectors, dimensions=vectors.dimensions, seed=seed)
    extended = vocab.extended(vectors.words)
    more = [vectors.index[word] for word in extended.words[len(vocab.words) :]]
    return extended, np.concatenate([matrix, vectors.matrix[more]]) if more else matrix


def _digest(pairs: Sequence[Pair], development: Sequence[Pair] | None, first: bytes) -> str:
    digest = hashlib.sha256(first)
    for pair in (*pairs, *(development or ())):
        digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
