"""RAE: dynamic pooling and unfolding recursive autoencoders for paraphrase detection (Socher et al., NIPS 2011).

Symbols      x_i -> word vectors;  p = f(W_e [c1 ; c2] + b_e), [c1' ; c2'] = f(W_d p + b_d), E_rec -> autoencoder;
             S -> distances;  S_pooled, n_p -> pooled, grid
Stages       1. the autoencoder learns from the training texts, without labels: the mean over texts of the E_rec of all
                inner nodes, the squared distance between the words below a node and what is unfolded from it; plus
                lambda / 2 |theta|^2 (`decay`). It is then fixed, and so are the word vectors, all the time.
             2. S holds the Euclidean distances among all 2n - 1 nodes of one tree and all of the other: the words in
                their order, then inner nodes depth-first from right to left. The smallest distance of each cell makes
                S_pooled; texts with fewer nodes than cells have every node doubled until there are enough.
             3. mean 0 and deviation 1: one of each, of all values of S_pooled of the training pairs.
             4. a softmax classifier over these and the features `paraphrase`.
Score        the two logits of the softmax, match less no match: log p / (1 - p). Cross-entropy is the paper's loss.
Source       the paper's text was not at hand. The order of the nodes, n_p = 15, lambda = 1e-5 and the classifier's .05
             are from memory, unchecked. The doubling of nodes, the one scale and the absolute difference of lengths are
             those of the authors' published run, read in somebody's modified copy of it.
Departures   Trees are greedy, as in the comparisons of the MV-LSTM and Match-SRNN papers, not those of a parser: the
             neighbours with the lowest one-level error |[c1 ; c2] - [c1' ; c2']|^2 merge first, and the trees grow anew
             in every epoch. The text is that of the task, not a newspaper archive; the vectors are the run's, of any
             size and unscaled: numbers beyond 1 in them are out of tanh's reach when they are unfolded. Mini-batches
             with Adam in place of L-BFGS, for `autoencoder_epochs`. The classifier learns by any loss of this package,
             hinge by default: the cells vary together, and small steps are slow to find the minimum of the
             cross-entropy, which the authors' solver did. No extra hidden layer within a node, which the paper tries
             too. A pair is not also learnt with its sides exchanged: in answering, sides differ. Mean and deviation
             come from 10,000 pairs at most; the published run also cuts at 3 deviations. Features come from the texts
             alone: phrases are word pairs, not nodes; numbers include number words; frequent words count, which that
             run leaves out. `features` takes other sets of this package, or none.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from matchloom.basics.parallel import thread_pool
from matchloom.basics.progress import track
from matchloom.batches import PairBatch, Texts
from matchloom.data.batching import make_batch
from matchloom.data.tokenized import Rows, TokenizedTexts
from matchloom.encoders.base import Encoder
from matchloom.layers.autoencoder_training import BATCH, train_autoencoder
from matchloom.layers.dynamic_pooling import dynamic_min
from matchloom.layers.features import PairFeatures
from matchloom.layers.interactions import gather_rows
from matchloom.layers.recurrence import take_positions
from matchloom.layers.recursive_autoencoder import RecursiveAutoencoder, reading_order
from matchloom.models.base import PairModel, Settings
from matchloom.traces import grid_trace
from matchloom.types import MatchloomError, Trace

SCALED_BY = 10_000  # pairs


class RAE(PairModel):
    """Phrases by a recursive autoencoder; distances among all words and phrases, pooled, and a linear classifier.

    Args:
        grid: Rows and columns that dynamic pooling leaves of the distances, n_p in the paper.
        features: Features of the pair beside them: paraphrase, overlap or pair; empty for none.
        autoencoder_epochs: Epochs of the autoencoder over the training texts.
        autoencoder_learning_rate: Learning rate of the autoencoder.
        decay: L2 penalty on the autoencoder's weights, lambda in the paper.
    """

    trains_embedding = False
    not_exported = "each text grows a tree of its own, whose steps depend on its words"
    trained_with: ClassVar[Settings] = {"weight_decay": 0.05}
    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        encoder: Encoder,
        *,
        grid: int = 15,
        features: str = "paraphrase",
        autoencoder_epochs: int = 5,
        autoencoder_learning_rate: float = 0.003,
        decay: float = 1e-5,
    ) -> None:
        super().__init__()
        if not (autoencoder_learning_rate > 0 and decay >= 0):
            raise MatchloomError(
                "autoencoder_learning_rate of rae must be above 0 and decay not below, "
                f"found {autoencoder_learning_rate} and {decay}",
                code="bad_value",
            )
        self.encoder, self.grid, self.needs_features = encoder, grid, features
        self.epochs, self.learning_rate, self.decay = autoencoder_epochs, autoencoder_learning_rate, decay
        self.features = PairFeatures(features, encoder)
        self.needs_lexical = self.features.needs_lexical
        self.autoencoder = RecursiveAutoencoder(encoder.size).requires_grad_(False)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("deviation", torch.ones(()))
        self.classifier = nn.Linear(grid**2 + len(self.features.names), 1)
        nn.init.zeros_(self.classifier.weight)  # it has one minimum, wherever it starts
        nn.init.zeros_(self.classifier.bias)

    def encode(self, texts: Texts) -> Tensor:
        """The nodes of each text's tree, words first; text n has 2 * lengths[n] - 1. (N, 2L - 1, D)"""
        return self.trees(texts)[0]

    def trees(self, texts: Texts) -> tuple[Tensor, Tensor]:
        """The nodes of each text, and of which words each one is: the first, and the one behind the last."""
        trees = self.autoencoder.grow(self.encoder(texts).detach(), texts.lengths)
        order = reading_order(trees)
        return take_positions(trees.nodes, order), take_positions(trees.spans, order)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        return self.classify(self.distances(left, right, batch), self.scaled_features(batch), batch)

    def distances(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """S of each pair, whose own part are its first 2n - 1 rows and 2m - 1 columns. (B, 2L - 1, 2R - 1)"""
        u, v = gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)
        # By differences, not by products: two equal nodes must be at distance 0, not at the root of a rounding error.
        return torch.cdist(u, v, compute_mode="donot_use_mm_for_euclid_dist")

    def pooled(self, S: Tensor, batch: PairBatch) -> Tensor:
        """S_pooled. (B, n_p, n_p)"""
        n, m = batch.sizes
        return dynamic_min(S[:, None], 2 * n - 1, 2 * m - 1, self.grid)[:, 0]

    def classify(self, S: Tensor, features: Tensor, batch: PairBatch) -> Tensor:
        """From distances (B, 2L - 1, 2R - 1) and features (B, F) to scores (B,)."""
        z = (self.pooled(S, batch) - self.mean) / self.deviation
        return self.classifier(torch.cat([z.flatten(1), features], 1))[:, 0]  # type: ignore[no-any-return]

    def scaled_features(self, batch: PairBatch) -> Tensor:
        """(B, F)"""
        features: Tensor = self.features(batch) if self.needs_features else self.mean.new_zeros(len(batch), 0)
        return features

    def pretrain(
        self, left: TokenizedTexts, right: TokenizedTexts, pairs: NDArray[np.int64], seed: int, progress: bool
    ) -> None:
        """Stages 1 and 3: train the autoencoder on all texts, then take the scale of S_pooled from the pairs."""
        rng = np.random.default_rng(seed)
        train_autoencoder(
            self.autoencoder,
            self.encoder,
            (left, right),
            rng,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            decay=self.decay,
            progress=progress,
        )
        rows = pairs[rng.permutation(len(pairs))[:SCALED_BY], :2]
        rows = rows[np.lexsort((left.lengths[rows[:, 0]], right.lengths[rows[:, 1]]))]
        cuts = [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]

        def work(cut: Rows) -> Tensor:
            batch = make_batch(left, right, *cut.T).to(self.mean.device)
            with torch.no_grad():
                return self.pooled(self.distances(self.encode(batch.left), self.encode(batch.right), batch), batch)

        with thread_pool() as pool:
            found = list(track(pool.map(work, cuts), "distances", total=len(cuts), show=progress))
        deviation, mean = torch.std_mean(torch.cat(found).double(), correction=0)
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))

    def trace(self, batch: PairBatch) -> list[Trace]:
        """Words and phrases whose distance was the smallest of a cell, and the features.

        The score is linear in the distances: a contribution is how far a distance is from the mean, in deviations,
        times its weight, exactly; equal distances of one cell split it. In the map of words stands that distance. What
        a phrase has part in is spread evenly over the words of both nodes, the distances of all cells and their
        contributions alike. The rest is the classifier's bias.
        """
        (left, left_spans), (right, right_spans) = self.trees(batch.left), self.trees(batch.right)
        features = self.scaled_features(batch)
        S = self.distances(left, right, batch).requires_grad_()
        with torch.enable_grad():
            scores = self.classify(S, features, batch)
            slopes = torch.autograd.grad(scores.sum(), S)[0]
            cells = torch.autograd.grad(self.pooled(S, batch).sum(), S)[0]  # how many of them a distance fills
        z = (S.detach() - self.mean) / self.deviation
        contributions = z * slopes * self.deviation
        weights = self.classifier.weight[:, self.grid**2 :].detach().expand(len(batch), -1)
        components = self.features.components(batch, features, weights) if self.needs_features else None
        traces = []
        for b, (x, y) in enumerate(zip(batch.left_rows.tolist(), batch.right_rows.tolist(), strict=True)):
            n, m = int(batch.left.lengths[x]), int(batch.right.lengths[y])
            A, B = _evenly(left_spans[x, : 2 * n - 1]).to(z), _evenly(right_spans[y, : 2 * m - 1]).to(z)
            meet = torch.ones_like(z[b, : 2 * n - 1, : 2 * m - 1])
            meet[:n, :m] = 0  # 1 where a phrase meets a word or a phrase
            of_phrases, their_contributions = (
                A.T @ (values[b, : 2 * n - 1, : 2 * m - 1] * meet) @ B for values in (cells * z, contributions)
            )
            grid = torch.stack([z[b, :n, :m], of_phrases])
            added = torch.stack([contributions[b, :n, :m], their_contributions])
            of_pair = () if components is None else components[b]
            traces.append(grid_trace(float(scores[b].detach()), grid, added, ["words", "phrases"], of_pair))
        return traces


def _evenly(spans: Tensor) -> Tensor:
    """1 for each node, split evenly among its words. (nodes, words)"""
    words = torch.arange(int(spans.max()), device=spans.device)
    inside = (words >= spans[:, :1]) & (words < spans[:, 1:])
    return inside.double() / inside.sum(1, keepdim=True)
