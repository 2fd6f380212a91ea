"""What a run starts from: words, vectors, model and examples, each text tokenized once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.data.identity import both_sides
from matchloom.data.kinds import positives_only
from matchloom.data.token_cache import TokenCache
from matchloom.encoders.base import Encoder
from matchloom.encoders.transformer import Transformer
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.matcher import Matcher, ReadPairs, Tokenize
from matchloom.models import Argument, Kind, build_model, model_name
from matchloom.models.base import PairModel
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, first_vectors, initial_matrix
from matchloom.text.vocab import Vocab
from matchloom.training.collection import Collected, CollectionExamples, collect, collection_pairs
from matchloom.training.config import COMPARING, TrainConfig
from matchloom.training.development import ranked
from matchloom.training.examples import Examples, TrainingExamples, group_pairs
from matchloom.training.lists import ListExamples
from matchloom.training.mining import CANDIDATES
from matchloom.training.step import draws_at_random
from matchloom.training.stream import OneWindow, StreamWindows, Windows
from matchloom.types import MatchloomError, Pair

PAIRS_AT_A_TIME = 12  # whose encoded texts a pretrained encoder keeps for one gradient


class Ready(NamedTuple):
    """A run that has not moved yet. `settings` is what a resumed run must have in common with it."""

    matcher: Matcher
    windows: Windows
    development: tuple[list[Pair], ReadPairs] | None
    settings: dict[str, Any]

    def first_window(self) -> tuple[int, Examples]:
        """The first window with anything to learn from, and its number."""
        for number in range(self.windows.count):
            examples = self.windows.window(0, number)
            if examples is not None:
                return number, examples
        raise MatchloomError(
            "no window of the shards has anything to learn from: pairs of a query must follow each other in a "
            "shard, and answers must differ",
            code="no_data",
        )


class Wanted(NamedTuple):
    """What a run is asked to make, whatever its pairs."""

    model: Kind
    arguments: dict[str, Argument]
    config: TrainConfig
    tokenizer: Tokenizer
    vectors: WordVectors | Path | str
    dimensions: int
    min_count: int
    device: str
    progress: bool
    pretrained: Transformer | None
    processes: int


def set_up(
    pairs: list[Pair] | TokenCache,
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
    processes: int = 1,
) -> Ready:
    """Read the texts, find the words and their first vectors, and build the model. See `train` for the arguments."""
    alone = config.loss in COMPARING and (
        pairs.positives_only if isinstance(pairs, TokenCache) else positives_only(pairs)
    )
    _refuse(config, alone, pretrained)
    wanted = Wanted(
        model, arguments, config, tokenizer, vectors, dimensions, min_count, device, progress, pretrained, processes
    )
    if isinstance(pairs, TokenCache):
        return _set_up_stream(pairs, development, alone, wanted)
    return _set_up(pairs, development, alone, wanted)


def _refuse(config: TrainConfig, alone: bool, pretrained: Transformer | None) -> None:
    """Refuse settings that exclude each other."""
    if pretrained is None and (config.layers or config.layer_decay < 1):
        raise MatchloomError(
            "layers and layer_decay are for a pretrained encoder, and there is none; leave them out", code="conflict"
        )
    for name in ("in_batch", "mine_every"):
        if getattr(config, name) and not alone:
            raise MatchloomError(
                f"{name} is for positives alone, and these are labelled or not compared; leave it out", code="conflict"
            )


def _set_up(
    pairs: list[Pair],
    development: list[Pair] | None,
    alone: bool,
    wanted: Wanted,
) -> Ready:
    config, tokenizer, min_count, progress = wanted.config, wanted.tokenizer, wanted.min_count, wanted.progress
    # What teaches nothing is refused before any work.
    groups = None if alone else group_pairs(pairs, config)
    wide = CANDIDATES if config.mine_every else 0
    collected = (
        collect(pairs, tokenizer, questions=config.questions, candidates=wide, progress=progress) if alone else None
    )
    collection = None if collected is None else collected.collection
    if collection is not None and collection.texts < 2:
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
    texts = [*both_sides(pairs), *(() if collected is None else collected.questions)]
    words_of = {
        text: tokenizer.tokenize(text)
        for text in track(dict.fromkeys([*texts, *both_sides(development or [])]), "reading texts", show=progress)
    }
    # Every side counts a text that stands on both, as it will meet it.
    sides = ({pair.query for pair in pairs}, {pair.text for pair in pairs})
    vocab = Vocab.build((tokenizer.lowercase(words_of[text]) for side in sides for text in sorted(side)), min_count)
    words = [tokenizer.lowercase(words_of[text]) for text in dict.fromkeys(texts)]
    matcher, first = _matcher(vocab, words, wanted)
    network = matcher.model
    matcher.training = _about(config, pairs, development, 0 if groups is None else groups.left_out)
    data = _digest((*pairs, *(development or ())), first)
    settings = _settings(matcher, wanted, data)
    # Statistics of batches with texts of one length would not be those that scores are later taken with.
    shards, by_length = _shards(network, config, wanted.processes), not network.batch_coupled
    examples: Examples
    if collected is not None and collection is not None:
        read = _read_collection(matcher, collected, words_of.__getitem__)
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
    return Ready(matcher, OneWindow(examples), looked_at, settings)


def _set_up_stream(
    cache: TokenCache,
    development: list[Pair] | None,
    alone: bool,
    wanted: Wanted,
) -> Ready:
    """The same for a token cache. Skip-gram vectors are trained on its sample of texts."""
    config, tokenizer = wanted.config, wanted.tokenizer
    _refuse_labels(cache, config, alone)
    if development is not None:
        development = ranked(development, cache.sample, tokenizer, config.seed)
    vocab = cache.vocab(tokenizer.lowercase, wanted.min_count)
    skip_gram = wanted.pretrained is None and isinstance(wanted.vectors, str) and wanted.vectors == "skip-gram"
    words = [tokenizer.lowercase(tokenizer.tokenize(text)) for text in both_sides(cache.sample)] if skip_gram else []
    matcher, first = _matcher(vocab, words, wanted)
    left_out = cache.counted.lists - cache.counted.lists_with_both if config.loss in COMPARING and not alone else 0
    matcher.training = _about(config, cache, development, left_out)
    data = _digest(development or (), first + cache.digest.encode())
    settings = _settings(matcher, wanted, data)
    shards, by_length = _shards(matcher.model, config, wanted.processes), not matcher.model.batch_coupled
    windows = StreamWindows(cache, matcher, config, alone=alone, shards=shards, by_length=by_length)
    if matcher.model.needs_features:
        some = windows.window(0, 0)
        features = some.features() if isinstance(some, CollectionExamples) else some and some.read.features
        if features is not None:
            matcher.model.fit_features(torch.from_numpy(features))
    looked_at = None if development is None else (development, matcher.read_pairs(development))
    return Ready(matcher, windows, looked_at, settings)


def _refuse_labels(cache: TokenCache, config: TrainConfig, alone: bool) -> None:
    """Refuse pairs that teach nothing, as those in memory are refused."""
    counted = cache.counted
    if alone:
        return
    if counted.unlabelled:
        raise MatchloomError(
            f"{counted.unlabelled} of {counted.pairs} training pairs have no label; label every one, or none where all "
            "are positive",
            code="bad_labels",
        )
    if config.loss in COMPARING and not counted.lists_with_both:
        raise MatchloomError(
            f"no query of the {counted.lists} has both a positive and a negative text; the pairs of a query must "
            "follow each other in their shard, or train independent pairs with the loss cross_entropy",
            code="bad_labels",
        )
    if counted.positives in (0, counted.pairs):
        raise MatchloomError(
            f"all training labels are equal: there is nothing to learn by {config.loss}; use hinge or softmax, which "
            "draw negatives from the other texts, or add pairs with label 0",
            code="bad_labels",
        )


def _matcher(
    vocab: Vocab,
    words: Sequence[Sequence[str]],
    wanted: Wanted,
) -> tuple[Matcher, bytes]:
    """An untrained matcher of these words, and the bytes that its encoder starts from."""
    model, arguments, config, tokenizer, vectors, dimensions, min_count, device, progress, pretrained, _ = wanted
    if not vocab.words:
        raise MatchloomError(
            f"the training texts hold no word for the {tokenizer.kind} tokenizer; try another one", code="no_data"
        )
    encoder: Encoder
    if pretrained is not None:
        encoder, first = pretrained, pretrained.digest()
    else:
        found = first_vectors(
            vectors, words, dimensions=dimensions, min_count=min_count, seed=config.seed, progress=progress
        )
        vocab, matrix = _with_vectors(vocab, found, dimensions, config.seed)
        encoder, first = WordEmbedding(len(vocab), matrix.shape[1], matrix), matrix.tobytes()
    network = build_model(model, arguments, encoder, seed=config.seed).to(device)
    return Matcher(model_name(model), arguments, network, encoder.reader(tokenizer, vocab), {}), first


def _about(config: TrainConfig, pairs: Sized, development: Sized | None, left_out: int) -> dict[str, Any]:
    return {
        "config": config.as_dict(),
        "pairs": len(pairs),
        "development_pairs": None if development is None else len(development),
        "queries_left_out": left_out,
    }


def _settings(matcher: Matcher, wanted: Wanted, data: str) -> dict[str, Any]:
    return {
        "model": matcher.name,
        "arguments": wanted.arguments,
        "tokenizer": wanted.tokenizer._asdict(),
        "min_count": wanted.min_count,
        "config": wanted.config.as_dict(),
        "data": data,
    }


def _shards(model: PairModel, config: TrainConfig, processes: int) -> int:
    """Into how many shards a batch is split: one where it is coupled, else one for each worker.

    Where a step draws at random its shards are worked on in turn. Those of a pretrained encoder are small, because
    what it keeps of a text for its gradient takes by far the most memory.
    """
    if model.batch_coupled or config.in_batch:
        if processes > 1:
            raise MatchloomError(
                f"{'in_batch' if config.in_batch else 'this model'} looks at a batch as a whole, which {processes} "
                "processes cannot share; train it in one",
                code="not_supported",
            )
        return 1
    if draws_at_random(model, config):
        few = max(1, config.batch // PAIRS_AT_A_TIME) if model.encoder.draws_at_random else 1
        return max(few, processes)
    return config.workers


def _read_collection(matcher: Matcher, collected: Collected, tokenize: Tokenize) -> ReadPairs:
    """Questions and texts of a collection as tables, and the positive pairs of questions and answers."""
    left = matcher.read(collected.questions, tokenize=tokenize)
    return collection_pairs(collected.collection, left, matcher.read(collected.texts, tokenize=tokenize))


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


def _digest(pairs: Iterable[Pair], first: bytes) -> str:
    digest = hashlib.sha256(first)
    for pair in pairs:
        digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
