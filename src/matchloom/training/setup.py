"""What a run starts from: words, vectors, model and examples, each text cut into words once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.data.ids import both_sides
from matchloom.encoders import WordEmbedding
from matchloom.matcher import Matcher, ReadPairs
from matchloom.models import Argument, build_model
from matchloom.progress import track
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, first_vectors, initial_matrix
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.examples import TrainingExamples, group_pairs
from matchloom.types import MatchloomError, Pair


class Ready(NamedTuple):
    """A run that has not moved yet. `settings` is what a resumed run must have in common with it."""

    matcher: Matcher
    examples: TrainingExamples
    development: tuple[list[Pair], ReadPairs] | None
    settings: dict[str, Any]


def set_up(
    pairs: list[Pair],
    development: list[Pair] | None,
    *,
    model: str,
    arguments: dict[str, Argument],
    config: TrainConfig,
    tokenizer: Tokenizer,
    vectors: WordVectors | Path | str | None,
    dimensions: int,
    min_count: int,
    device: str,
    progress: bool,
) -> Ready:
    """Read the texts, find the words and their first vectors, and build the model. See `train` for the arguments."""
    groups = group_pairs(pairs, config)  # refuses pairs that teach nothing, before any work
    texts = both_sides(pairs)
    cut = {
        text: tokenizer.cut(text)
        for text in track(dict.fromkeys([*texts, *both_sides(development or [])]), "reading texts", show=progress)
    }
    words = [tokenizer.folded(cut[text]) for text in texts]
    found = first_vectors(
        vectors, words, dimensions=dimensions, min_count=min_count, seed=config.seed, progress=progress
    )
    # Every side counts a text that stands on both, as it will meet it.
    sides = ({pair.query for pair in pairs}, {pair.text for pair in pairs})
    vocab = Vocab.build((tokenizer.folded(cut[text]) for side in sides for text in side), min_count)
    if not vocab.words:
        raise MatchloomError(f"the training texts hold no word for the {tokenizer.kind} tokenizer; try another one")
    vocab, matrix = _with_vectors(vocab, found, dimensions, config.seed)
    encoder = WordEmbedding(len(vocab), matrix.shape[1], matrix)
    network = build_model(model, arguments, encoder, seed=config.seed).to(device)
    about = {
        "config": config.as_dict(),
        "pairs": len(pairs),
        "development_pairs": None if development is None else len(development),
        "queries_left_out": groups.left_out,
    }
    matcher = Matcher(model, arguments, network, encoder.reader(tokenizer, vocab), about)
    settings = {
        "model": model,
        "arguments": arguments,
        "tokenizer": tokenizer._asdict(),
        "min_count": min_count,
        "config": config.as_dict(),
        "data": _digest(pairs, development, matrix),
    }
    read = matcher.read_pairs(pairs, cut=cut.__getitem__)
    # A batch that is coupled, or whose step draws at random, is not split; statistics of batches with texts of one
    # length would not be those that scores are later taken with.
    workers = 1 if network.batch_coupled or network.draws_at_random else config.workers
    examples = TrainingExamples(groups, read, config, workers=workers, by_length=not network.batch_coupled)
    if read.features is not None:
        network.fit_features(torch.from_numpy(read.features))
    looked_at = None if development is None else (development, matcher.read_pairs(development, cut=cut.__getitem__))
    return Ready(matcher, examples, looked_at, settings)


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


def _digest(pairs: Sequence[Pair], development: Sequence[Pair] | None, matrix: NDArray[np.float32]) -> str:
    digest = hashlib.sha256(matrix.tobytes())
    for pair in (*pairs, *(development or ())):
        digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
