"""Graphs against the model that they were made of, on texts and batches of many sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.batches import PairBatch, Texts
from matchloom.data.batching import make_batch
from matchloom.export.graphs import ENCODE, ENCODE_RIGHT, MATCH
from matchloom.export.inputs import at_least, fields, pair_fields
from matchloom.export.running import Session
from matchloom.matcher import Matcher
from matchloom.types import MatchloomError

SIZES = (1, 2, 3, 5, 9, 17, 40, 120)  # words of a text
TEXTS = ((1, 1), (1, 5), (4, 3), (2, 4), (3, 1), (1, 3), (2, 2))  # left and right ones, of one size up to the next
ALLOWED = 1e-3  # of a score, or of 1: single precision is well below, a graph that froze a size well above
# For a matcher that knows no words, as one that was never trained.
WORDS = "how do i open the file and read lines of text sorted by name into lists without closing it".split()  # noqa: SIM905


class Check(NamedTuple):
    """How many pairs were compared, and the largest difference of a score."""

    pairs: int
    difference: float


def some_batch(matcher: Matcher, draw: np.random.Generator, lefts: int, rights: int, words: Sequence[int]) -> PairBatch:
    """A batch over texts of these numbers of words, in which every text is in a pair, more or less at random."""
    known = matcher.vocab.words or WORDS
    texts = [" ".join(draw.choice(known, size=n).tolist()) for n in draw.choice(words, lefts + rights)]
    if lefts > 2:
        texts[0] = texts[-1] = ""  # a text without words, on either side
    table = matcher.read(texts)
    first = np.concatenate([draw.permutation(lefts), draw.integers(0, lefts, rights)])
    second = lefts + np.concatenate([draw.integers(0, rights, lefts), draw.permutation(rights)])
    batch = make_batch(table, table, first, second)
    least = matcher.model.least_words
    sides = at_least(batch.left, least), at_least(batch.right, least)
    return PairBatch(*sides, batch.left_rows, batch.right_rows, batch.features)


def check_graphs(matcher: Matcher, graphs: Mapping[str, bytes]) -> Check:
    """Score batches of many sizes by the graphs and by the model; graphs that differ are refused."""
    draw, sessions = np.random.default_rng(0), {name: Session(graph) for name, graph in graphs.items()}
    most, pairs = 0.0, 0
    for words, (lefts, rights) in zip(pairwise(SIZES), TEXTS, strict=True):
        batch = some_batch(matcher, draw, lefts, rights, words)
        with torch.inference_mode():
            expected = matcher.model(batch).numpy()
        found = run_graphs(sessions, batch)
        if found.shape != expected.shape or not np.isfinite(found).all():
            raise MatchloomError(
                f"the graph of this {matcher.name} gives no scores for {len(batch)} pairs: a bug", code="failed"
            )
        most = max(most, float((np.abs(found - expected) / np.abs(expected).clip(1)).max()))
        pairs += len(batch)
    if most > ALLOWED:
        raise MatchloomError(
            f"the graph of this {matcher.name} differs from it by {most:.2g} of a score: a bug, nothing was kept",
            code="failed",
        )
    return Check(pairs, most)


def run_graphs(sessions: Mapping[str, Session], batch: PairBatch) -> NDArray[np.float32]:
    """The scores of a batch by the graphs alone."""
    given = {name: x.numpy() for name, x in pair_fields(batch).items()}
    if ENCODE in sessions:
        given["left"] = encode(sessions[ENCODE], batch.left)
        given["right"] = encode(sessions.get(ENCODE_RIGHT, sessions[ENCODE]), batch.right)
    scores: NDArray[np.float32] = sessions[MATCH].run(given)
    return scores


def encode(session: Session, texts: Texts) -> NDArray[np.float32]:
    """Encoded texts by a graph."""
    return session.run({name: x.numpy() for name, x in fields(texts).items()})
