"""DeepMatch: a deep architecture for matching short texts (Lu and Li, NIPS 2013).

Symbols      x, y -> left, right;  p -> a topic's patch: words of x and words of y that the topic makes likely
             x_p, y_p -> how often each word of the patch stands in x and in y;  o -> one of a topic's `units`
Topics       LDA on the matching pairs of the training set, each pair one document, at `levels` resolutions: `topics` of
             them in the finest, `coarser` times fewer in each next one.
Local        z_po = x_p' A_po y_p + b_po, A_po = L_x L_y' of rank `rank`;  h_po = sigmoid(z_po): a decision on the word
             pairs of one topic of the finest resolution alone. A weight is that of a pair of words in a topic.
Hierarchy    h'_qo = sigmoid(sum of W h_p over the topics p linked to q + b_qo): each topic is linked to the `links`
             topics of the next coarser resolution with which it shares most word pairs. A unit so only ever sees
             word pairs of related topics.
Score        w' h + b at the top: the log odds of the logistic output, which ranks as the output itself does; the loss
             cross_entropy is then the logistic one.
Source       later descriptions of the paper and its public reviews; its text was not at hand. That A_po is of low rank
             and has no terms of x or y alone, and how patches and links are chosen, is our reading.
Departures   All sizes are ours, for thousands of pairs. A patch has the `words` likeliest words of either side, none
             less likely than a term drawn at random; in a coarser resolution as many times more as there are fewer
             topics, so that all resolutions cover as much text. In LDA a term is weighted by its rarity: without that,
             words such as "the" are among the likeliest of many topics.
             Two topics share the word pairs of which both hold both words; among equals the first topic is
             linked. Links go from each finer topic, so that no local decision is lost. Words that no patch holds,
             unknown ones among them, take no part. In place of plain gradient descent there is this package's AdaGrad;
             nothing but early stopping keeps weights small. A margin, where the loss has one, is on the log odds.

Word vectors take no part; other encoders, which have no ids of words, are refused. Until it has seen texts
(`pretrain`) a model has patches of words drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import linear_sigmoid
from matchloom.layers.heads import init_uniform_
from matchloom.layers.interactions import gather_rows
from matchloom.layers.patches import Patches
from matchloom.models.base import PairModel
from matchloom.text.topics import Topic, paired_topics
from matchloom.text.vocab import UNKNOWN
from matchloom.traces import grid_trace
from matchloom.types import MatchloomError, Trace


class DeepMatch(PairModel):
    """Decisions on the word pairs of single topics are combined along a hierarchy of topics.

    Args:
        topics: Topics of the finest resolution.
        levels: Resolutions of topics, from fine to coarse.
        coarser: How many times fewer topics each next resolution has.
        words: Words of either side that belong to a topic of the finest resolution.
        rank: Rank of the weights of a topic's word pairs.
        units: Decisions for each topic.
        links: Topics of the next coarser resolution to which a topic is linked.
        iterations: Passes of LDA over the matching pairs.
    """

    trains_embedding = False
    b: Tensor

    def __init__(
        self,
        encoder: Encoder,
        *,
        topics: int = 100,
        levels: int = 3,
        coarser: int = 4,
        words: int = 50,
        rank: int = 10,
        units: int = 1,
        links: int = 2,
        iterations: int = 100,
    ) -> None:
        super().__init__()
        if encoder.vocabulary is None:
            raise MatchloomError(
                "deep_match counts words by their ids and takes word vectors only, no other encoder",
                code="not_supported",
            )
        self.encoder, self.words, self.rank, self.units, self.iterations = encoder, words, rank, units, iterations
        self.counts = [max(1, topics // coarser**n) for n in range(levels)]
        self.x_patches, self.y_patches = (Patches(topics, words, units * rank) for _ in range(2))
        self.b = nn.Parameter(torch.empty(topics, units))
        self.layers = nn.ModuleList(Links(p, q, units, links) for p, q in pairwise(self.counts))
        self.output = nn.Linear(self.counts[-1] * units, 1)
        init_uniform_(self)
        for side in (self.x_patches, self.y_patches):
            known = UNKNOWN + 1 + torch.randperm(encoder.vocabulary - UNKNOWN - 1)
            side.fill([known.roll(-n * words)[:words].tolist() for n in range(topics)])

    def encode(self, texts: Texts) -> Tensor:
        """L_x' x_p of each text, topic and unit. (N, topics, units, rank)"""
        return self.x_patches(texts).view(-1, *self.b.shape, self.rank)  # type: ignore[no-any-return]

    def encode_right(self, texts: Texts) -> Tensor:
        """L_y' y_p of each text, topic and unit. (N, topics, units, rank)"""
        return self.y_patches(texts).view(-1, *self.b.shape, self.rank)  # type: ignore[no-any-return]

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        return self.decide(self.local(gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)))

    def local(self, left: Tensor, right: Tensor) -> Tensor:
        """x_p' A_po y_p. (B, topics, units)"""
        return (left * right).sum(3)

    def decide(self, local: Tensor, sigmoid: Callable[[Tensor], Tensor] = torch.sigmoid) -> Tensor:
        """From the sums over word pairs up the hierarchy to the scores (B,)."""
        h = sigmoid(local + self.b)  # (B, topics, units)
        for layer in self.layers:
            h = sigmoid(layer(h))  # (B, fewer topics, units)
        score: Tensor = self.output(h.flatten(1))[:, 0]
        return score

    def pretrain(
        self, left: TokenizedTexts, right: TokenizedTexts, pairs: NDArray[np.int64], seed: int, progress: bool
    ) -> None:
        """Learn the topics from the matching pairs: patches of the finest ones, and links between resolutions."""
        documents = [(known_words(left, x), known_words(right, y)) for x, y, match in pairs.tolist() if match]
        if not any(len(x) or len(y) for x, y in documents):
            raise MatchloomError(
                "deep_match learns topics from matching pairs, but no pair with a label above 0 has a word; add some",
                code="no_data",
            )
        resolutions = []
        for count in self.counts:
            words = self.words * self.counts[0] // count
            found = paired_topics(documents, count, words, iterations=self.iterations, seed=seed, progress=progress)
            resolutions.append(found)
        self.x_patches.fill([topic.left for topic in resolutions[0]])
        self.y_patches.fill([topic.right for topic in resolutions[0]])
        for layer, finer, coarser in zip(self.layers, resolutions, resolutions[1:], strict=False):
            assert isinstance(layer, Links)
            layer.connect(finer, coarser)

    def trace(self, batch: PairBatch) -> list[Trace]:
        """What each pair of words adds to the units of each topic that holds both: grid[c, i, j] = L_x,i' L_y,j.

        Its contribution is that value times the slopes of all units above, each taken from where the unit is without
        any word pair to where it is now: so contributions are exact, and the residual is the score of two texts that
        share no topic. A channel is a unit of a topic; those in which no two words meet are left out.
        """
        traces = []
        with torch.no_grad():
            local = self.local(
                gather_rows(self.encode(batch.left), batch.left_rows),
                gather_rows(self.encode_right(batch.right), batch.right_rows),
            )
        local = torch.cat([local, torch.zeros_like(local[:1])]).requires_grad_()  # the last: no word pairs
        with torch.enable_grad():
            scores = self.decide(local, linear_sigmoid)
        slopes = torch.autograd.grad(scores[:-1].sum(), local)[0]  # (B + 1, topics, units)
        for b, (x, y) in enumerate(zip(batch.left_rows.tolist(), batch.right_rows.tolist(), strict=True)):
            with torch.no_grad():
                u, v = self.encode(word_by_word(batch.left, x)), self.encode_right(word_by_word(batch.right, y))
                whole = torch.einsum("ipor,jpor->poij", u, v).flatten(0, 1)  # (topics * units, words, words)
            active = whole.flatten(1).any(1)
            active[0] |= not active.any()  # so that there is a map
            grid = whole[active]
            contributions = grid * slopes[b].flatten()[active][:, None, None]
            channels = [self.channel(n) for n in active.nonzero()[:, 0].tolist()]
            traces.append(grid_trace(float(scores[b].detach()), grid, contributions, channels))
        return traces

    def channel(self, n: int) -> str:
        """The name of a unit of the finest topics."""
        topic, unit = divmod(n, self.units)
        return f"topic {topic + 1}" + (f", unit {unit + 1}" if self.units > 1 else "")


class Links(nn.Module):
    """From the units of the topics of one resolution to those of the next coarser one, along links."""

    targets: Tensor  # (finer, links) the coarser topics that each finer one is linked to

    def __init__(self, finer: int, coarser: int, units: int, links: int) -> None:
        super().__init__()
        links = min(links, coarser)
        near = torch.arange(finer)[:, None] * coarser // finer + torch.arange(links)
        self.register_buffer("targets", near % coarser)
        self.W = nn.Parameter(torch.empty(finer, links, units, units))
        self.b = nn.Parameter(torch.empty(coarser, units))

    def connect(self, finer: Sequence[Topic], coarser: Sequence[Topic]) -> None:
        """Link each finer topic to those with which it shares most word pairs."""
        sets = [(frozenset(q.left), frozenset(q.right)) for q in coarser]
        shared = np.array(
            [[len(x.intersection(p.left)) * len(y.intersection(p.right)) for x, y in sets] for p in finer]
        )
        best = np.argsort(-shared, axis=1, kind="stable")[:, : self.targets.shape[1]]
        self.targets.copy_(torch.from_numpy(best))

    def forward(self, h: Tensor) -> Tensor:
        """(B, finer, units) -> (B, coarser, units)"""
        components = torch.einsum("bpo,plou->bplu", h, self.W).flatten(1, 2)  # (B, finer * links, units)
        return self.b.expand(h.shape[0], -1, -1).index_add(1, self.targets.flatten(), components)


def known_words(table: TokenizedTexts, row: int) -> NDArray[np.int64]:
    """The words of a text that the vocabulary knows."""
    words = table.word_ids(row)
    return words[words > UNKNOWN]


def word_by_word(texts: Texts, row: int) -> Texts:
    """Each word of a text as a text of its own."""
    words = texts.words[row, : texts.lengths[row], None]
    return Texts(words, torch.ones_like(words[:, 0]))
