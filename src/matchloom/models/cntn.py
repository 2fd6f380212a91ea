"""CNTN: convolutional neural tensor network for question answering (Qiu and Huang, IJCAI 2015).

Symbols      q, a -> left, right;  v_q, v_a -> sentence vectors;  M, V = [V_q V_a], b, u -> the same;  r -> slices
             d -> depth;  m -> width;  n_s -> sentence
Variants     I    r = 1, M = I, V = 0, b = 0, f = identity: the dot product
             II   r = 1, V = 0, b = 0, f = identity: bilinear
             III  r = 1, M = 0: a single layer. Its score u f(V_q v_q + V_a v_a + b) rises or falls with V_a v_a alone,
                  whatever the question is: it ranks the answers of every question alike
             IV   r = 1
             V    r = 5
Departures   Sentence vectors are L2-normalised: the paper calls variant I "a cosine similarity", which it only is for
             such vectors, and training is steadier (`normalize=False` leaves them as they are). f is relu: the paper
             says "a standard nonlinearity", and tanh learnt less on InsuranceQA's development lists (with other first
             weights). b starts at 1, so that no slice is shut before it has learnt anything: the layer starts as a
             bilinear one. Other weights start by Glorot's rule and biases at 0, not in (-0.01, 0.01), where three
             layers leave nothing of the words; in (-0.1, 0.1) the biases still outweighed them, all texts began with
             almost the same vector, and far less was learnt. The fully connected layer is linear.
             A filter spans all rows of the layer below, and each layer has `filters` of them: the paper has no number
             and shows no folding. The paper sets k_top = n_s; k_top is 4 here, as in Kalchbrenner et al., because 50
             columns keep every word of a text of 50 words and nothing is pooled. A text with fewer columns than k_top
             has zeros in the missing ones. The word vectors are not decayed in training.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import factor
from matchloom.layers.heads import xavier_uniform_
from matchloom.layers.interactions import gather_rows
from matchloom.layers.sentence_cnn import SentenceCNN
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import Component, MatchloomError, Trace

VARIANTS = {"I": 1, "II": 1, "III": 1, "IV": 1, "V": 5}  # and their slices r


class CNTN(PairModel):
    """A CNN for each side makes sentence vectors, and a tensor layer scores the two.

    Args:
        variant: I to V, from a dot product of the sentence vectors (I) to a tensor layer with five slices (V).
        filters: Filters of each convolution.
        depth: Convolutions, one above the other.
        width: Words, and then columns, that a filter reads at a time.
        k_top: Columns that the last pooling keeps.
        sentence: Size of a sentence vector, n_s in the paper.
        normalize: Whether sentence vectors are L2-normalised.
    """

    sentence_vectors = True
    trained_with = ADAM
    single_precision = True

    M: Tensor  # (r, n_s, n_s)
    V_q: Tensor  # (r, n_s)
    V_a: Tensor  # (r, n_s)
    b: Tensor  # (r,)

    def __init__(
        self,
        encoder: Encoder,
        *,
        variant: str = "V",
        filters: int = 50,
        depth: int = 3,
        width: int = 3,
        k_top: int = 4,
        sentence: int = 50,
        normalize: bool = True,
    ) -> None:
        super().__init__()
        if variant not in VARIANTS:
            raise MatchloomError(
                f"variant {variant!r} of cntn is unknown; choose one of {', '.join(VARIANTS)}", code="unknown_name"
            )
        self.encoder, self.variant = encoder, variant
        r, n_s = VARIANTS[variant], sentence
        self.query_cnn, self.text_cnn = (
            SentenceCNN(
                encoder.size, filters=filters, depth=depth, width=width, k_top=k_top, n_s=n_s, normalize=normalize
            )
            for _ in range(2)
        )
        self.u = nn.Parameter(torch.empty(r))
        self._tensor("M", torch.eye(n_s)[None] if variant == "I" else torch.zeros(r, n_s, n_s), "II IV V")
        self._tensor("V_q", torch.zeros(r, n_s), "III IV V")
        self._tensor("V_a", torch.zeros(r, n_s), "III IV V")
        self._tensor("b", torch.zeros(r), "III IV V")
        xavier_uniform_(self.u, r, 1)
        for weights, outputs in ((self.M, n_s), (self.V_q, 1), (self.V_a, 1)):
            if isinstance(weights, nn.Parameter):
                xavier_uniform_(weights, n_s, outputs)
        if isinstance(self.b, nn.Parameter):
            nn.init.ones_(self.b)

    def _tensor(self, name: str, value: Tensor, learnt_in: str) -> None:
        """A parameter of Eq. 1 in the variants that learn it, and the value that it has in the others."""
        if self.variant in learnt_in.split():
            self.register_parameter(name, nn.Parameter(value))
        else:
            self.register_buffer(name, value, persistent=False)

    def f(self, x: Tensor) -> Tensor:
        """relu; the identity in I and II."""
        return x if self.variant in ("I", "II") else torch.relu(x)

    def encode(self, texts: Texts) -> Tensor:
        """v_q of each text as a question, (N, n_s)."""
        return self.query_cnn(self.encoder(texts), texts)  # type: ignore[no-any-return]

    def encode_right(self, texts: Texts) -> Tensor:
        """v_a of each text as an answer, (N, n_s)."""
        return self.text_cnn(self.encoder(texts), texts)  # type: ignore[no-any-return]

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        return self.f(self.slices(left, right, batch)) @ self.u  # (B,)   Eq. 1

    def slices(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """v_q' M[1:r] v_a + V [v_q ; v_a] + b. (B, r)"""
        q = torch.einsum("nx,kxy->nky", left, self.M)  # (N, r, n_s), once for each question
        if len(q) == 1:  # one question against many stored answers, as an archive asks
            h = gather_rows(right @ q[0].T, batch.right_rows)  # (B, r)
        else:
            h = (gather_rows(q, batch.left_rows) @ gather_rows(right, batch.right_rows)[:, :, None])[:, :, 0]
        return (
            h
            + gather_rows(left @ self.V_q.T, batch.left_rows)
            + gather_rows(right @ self.V_a.T, batch.right_rows)
            + self.b
        )

    def trace(self, batch: PairBatch) -> list[Trace]:
        """How words meet in each slice of the tensor: grid[k, i, j] = c_i' M_k c_j, where v_q and v_a are sums of c.

        c_i is the part of a sentence vector that word i made by way of the values that survived pooling (see
        layers/contributions.py); a word of which nothing survived has none. What one side adds to a slice whatever the
        other says (V, and its words against the other side's biases) is a part of its own, and so is what biases alone
        add. A slice's contribution to the score is u_k f(x_k), split as x_k is; a slice that relu shuts has none. The
        contributions of the slices are the score, but for what the kernels that score round off.
        """
        left, c_q = self.query_cnn.components(self.encoder(batch.left), batch.left)
        right, c_a = self.text_cnn.components(self.encoder(batch.right), batch.right)
        e_q, e_a = left - c_q.sum(1), right - c_a.sum(1)  # what the biases of either CNN add
        channels = [f"slice {k + 1}" for k in range(len(self.u))]
        traces = []
        with torch.no_grad():
            x = self.slices(left, right, batch)  # (B, r)
            scores = self.match(self.encode(batch.left), self.encode_right(batch.right), batch)
            weights = self.u * factor(self.f(x), x)  # (B, r)
            for n, (i, j) in enumerate(zip(batch.left_rows.tolist(), batch.right_rows.tolist(), strict=True)):
                words_q, words_a = c_q[i, : int(batch.left.lengths[i])], c_a[j, : int(batch.right.lengths[j])]
                grid = torch.einsum("lx,kxy,ry->klr", words_q, self.M, words_a)  # (r, L, R)
                alone_q = (self.V_q + self.M @ e_a[j]) @ words_q.sum(0)  # (r,)
                alone_a = (self.V_a + e_q[i] @ self.M) @ words_a.sum(0)  # (r,)
                biases = x[n] - grid.sum((1, 2)) - alone_q - alone_a  # (r,)
                alone = {"query alone": alone_q, "text alone": alone_a, "biases": biases}
                components = [
                    Component(f"{channels[k]}, {name}", float(values[k]), float(values[k] * weights[n, k]), k)
                    for name, values in alone.items()
                    for k in range(len(channels))
                ]
                contributions = grid * weights[n, :, None, None]
                traces.append(grid_trace(float(scores[n]), grid, contributions, channels, components))
        return traces
