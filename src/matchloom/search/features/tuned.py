"""An encoder whose last layers have learnt from a collection's questions, and what it says of those it has not seen.

Questions are parted into three folds by their digests. For each fold that is left out an encoder is tuned without it,
beside the one that learns from all: what features, weights and probabilities are told of a question then comes from an
encoder that has not seen it. A collection's folder keeps the encoder as it came, and the layers that were tuned: a
refit begins with the former.

    untuned   the highest cosine with a known question of the entry, by the encoder as it came

Tuning moves all texts towards the answers that it knows, foreign ones too. Whether there is an answer at all is
therefore asked of the encoder as it came, too (`calibration.signals_of`); in the ranking this cosine starts with no
weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.basics.parallel import thread_pool, usable_cores
from matchloom.search.features.dense import DenseNearest, KnownVectors, SentenceVectors
from matchloom.search.features.linear import folds_of

if TYPE_CHECKING:
    from torch import nn


FOLDS = 3
TUNED, UNTUNED = "tuned", "untuned"  # the names of what is saved
MODEL = "sentence_bert"  # whose vectors the tuned layers make
_EPOCHS, _LEAST_EPOCHS, _PASSES = 5, 2, 15_000  # epochs; of however many texts; texts that are read in all epochs
_A_TEXT, _A_CHARACTER, _LONGEST = 0.001, 8e-5, 200  # seconds of a pass, about; characters of a text that are read
_START = 4.0  # seconds before the first pass, and of what is learnt again from the new vectors
_LEAST = 100  # questions that are left out, to tell whether tuning pays
_FEWEST = 2.0  # questions an answer on the mean: of a single one there is nothing to learn what they have in common


class DenseUntuned(DenseNearest):
    """Nearness to the best known question of an entry, by the encoder before it was tuned."""

    name = "dense_untuned"


def tuning_pays(questions: int, questions_per_answer: float) -> bool:
    """Whether there is something to learn, and questions enough to see whether it helped."""
    return questions >= _LEAST and questions_per_answer >= _FEWEST


def can_be_tuned(sentences: SentenceVectors | None) -> bool:
    """Whether these are vectors of a transformer."""
    if sentences is None:
        return False
    matcher = sentences.matcher
    return matcher.name == MODEL and matcher.model.encoder.settings()["kind"] == "transformer"


def epochs_of(texts: int) -> int:
    """How often so many texts are gone through."""
    return min(_EPOCHS, max(_LEAST_EPOCHS, _PASSES // max(1, texts)))


def tuning_seconds(texts: Sequence[str], questions: int) -> float:
    """A guess of how long tuning a small encoder takes, on all questions and, side by side, without each fold."""
    others = folds_of(questions, FOLDS) * (1 - 1 / FOLDS)
    times = epochs_of(len(texts)) * max(1.0, (1 + others) / usable_cores())
    return _START + times * sum(map(pass_seconds, texts))


def pass_seconds(text: str) -> float:
    """A guess of how long the last layers of a small encoder take to learn from a text once, on one core."""
    return _A_TEXT + _A_CHARACTER * min(len(text), _LONGEST)


def tune(
    sentences: SentenceVectors, questions: Sequence[str], texts: Sequence[str], member: sp.csr_array
) -> KnownVectors:
    """The vectors of questions and texts by an encoder that was tuned on them; `member` is (questions, entries)."""
    from matchloom.training.encoder_tuning import MOST, LowerOutputs, tuned_layers

    count = len(questions)
    read = sentences.matcher.reader.text_pieces
    lower = LowerOutputs(transformer_of(sentences), [read(text).ids for text in (*questions, *texts)])
    answers = sp.vstack([member, sp.eye_array(len(texts))], format="csr")
    rows = np.arange(len(lower.lengths))
    known = np.bincount(member.indices, minlength=len(texts)) > 0
    # A long answer tells less of how it is asked for than its questions do.
    rows = rows[np.concatenate([np.ones(count, dtype=bool), ~known | (lower.lengths[count:] <= MOST)])]

    def work(n: int, stopped: Callable[[], bool]) -> nn.ModuleList:
        own = rows if n < 0 else rows[(rows >= count) | (rows % FOLDS != n)]
        return tuned_layers(lower, own, answers[own], epochs_of(len(rows)), stopped=stopped)

    top, *others = tuned_side_by_side(work, folds_of(count, FOLDS))
    without = [(own[:count], own[count:]) for own in map(lower.vectors, others)]
    made, untuned = with_layers(sentences, top), KnownVectors.of(sentences, questions, texts)
    return KnownVectors(made, *_split(made.of([*questions, *texts]), count), without, FOLDS, untuned)


def tuned_side_by_side(work: Callable[[int, Callable[[], bool]], nn.ModuleList], folds: int) -> list[nn.ModuleList]:
    """The layers that learn from all (fold -1), and those that learn without each of so many folds."""
    stopped = Event()
    with thread_pool() as pool:
        try:
            return list(pool.map(lambda n: work(n, stopped.is_set), range(-1, folds)))
        finally:  # also where Ctrl-C ends it, which waits for those that are at work
            stopped.set()


def with_layers(sentences: SentenceVectors, top: nn.ModuleList) -> SentenceVectors:
    """Sentence vectors by an encoder with these last layers."""
    from matchloom.matcher import Matcher
    from matchloom.models import build_model
    from matchloom.training.encoder_tuning import with_layers

    own = sentences.matcher
    encoder = with_layers(transformer_of(sentences), top)
    model = build_model(own.name, own.arguments, encoder, seed=0).eval()
    others = {name: x for name, x in own.model.state_dict().items() if not name.startswith("encoder.")}
    model.load_state_dict(others, strict=False)
    return SentenceVectors(Matcher(own.name, own.arguments, model, own.reader, own.training), untuned=sentences)


def layers_of(sentences: SentenceVectors) -> dict[str, NDArray[Any]]:
    """What is saved of a tuned encoder: its last layers; nothing of one that was not tuned."""
    if sentences.untuned is None:
        return {}
    own, before = (transformer_of(one).layers for one in (sentences, sentences.untuned))
    tuned = [n for n, (one, other) in enumerate(zip(own, before, strict=True)) if one is not other]
    return {f"{n}.{name}": x.numpy() for n in tuned for name, x in own[n].state_dict().items()}


def sentences_of(sentences: SentenceVectors, arrays: Mapping[str, NDArray[Any]]) -> SentenceVectors:
    """The vectors of a collection: by its encoder as it came, or with the layers that were saved.

    A ValueError where they do not fit. `sentences` are taken as they are where they have these layers.
    """
    untuned = sentences.untuned or sentences
    if not arrays:
        return untuned
    known = layers_of(sentences)
    if known.keys() == arrays.keys() and all(np.array_equal(known[name], x) for name, x in arrays.items()):
        return sentences
    return _with_saved(untuned, arrays)


def _with_saved(sentences: SentenceVectors, arrays: Mapping[str, NDArray[Any]]) -> SentenceVectors:
    import copy

    import torch

    layers = transformer_of(sentences).layers
    numbers = sorted({int(name.split(".")[0]) for name in arrays})
    if numbers != list(range(numbers[0], len(layers))):
        raise ValueError(f"tuned layers {numbers} of an encoder with {len(layers)}")
    top = copy.deepcopy(layers[numbers[0] :])
    for n, layer in zip(numbers, top, strict=True):
        own = {name.split(".", 1)[1]: torch.tensor(x) for name, x in arrays.items() if name.startswith(f"{n}.")}
        try:
            layer.load_state_dict(own)
        except RuntimeError:
            raise ValueError("tuned layers of another shape than the encoder's") from None
    return with_layers(sentences, top.requires_grad_(False))


def transformer_of(sentences: SentenceVectors) -> Any:
    """The encoder of these vectors."""
    return sentences.matcher.model.encoder


def _split(x: NDArray[np.float32], count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return x[:count], x[count:]
