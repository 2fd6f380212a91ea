"""MultiGranCNN: general matching of text chunks on multiple levels of granularity (Yin and Schuetze, ACL 2015).

Symbols      g-phrases -> units: words, short phrases, long phrases and the sentence, all of the word vectors' size
             gpCNN -> units();  k_l -> counts();  F^ -> features();  mfCNN -> recognise()
gpCNN        block l of L = 3: tanh(C x + b) over a wide convolution, then the k_l largest of each dimension in their
             order, k_l = max(alpha, ceil((L - l) / L * |S|)), k_L = 1. Both texts share it.
match        "direct"    exp(-|u - v|^2 / (2 beta)), beta = 2
             "indirect"  sigmoid(u' M v + b)
             "concat"    sigmoid(w' [u ; v] + b)
Source       later descriptions of the paper; its text was not at hand. The three formulas and beta are our reading.
Departures   the paper first trains gpCNN as a language model on raw text; here it learns with the task, from word
             vectors that were trained so. A text too short for k_l units has as many as its convolution gives. The
             paper's mfCNN is two blocks of convolution and pooling here, with ReLU, which makes contributions exact, on
             F^ pooled to `grid` x `grid` before the first convolution, whose windows may span two levels; its sizes and
             that of the MLP follow the task there: they are arguments. beta is that of the authors' Bi-CNN-MI.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d
from torch.onnx import is_in_onnx_export

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import linear_contributions
from matchloom.layers.dynamic_pooling import dynamic_max
from matchloom.layers.heads import MLP
from matchloom.layers.interactions import Bilinear, dot, gather_rows
from matchloom.layers.pooling import ordered_k_max
from matchloom.layers.recurrence import take_positions
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import Component, MatchloomError, Trace

MATCHES = ("direct", "indirect", "concat")
LEVELS = ("words", "short phrases", "long phrases", "sentence")
BLOCKS = len(LEVELS) - 1
BETA = 2.0


class MultiGranCNN(PairModel):
    """Words, phrases and sentence of one text meet those of the other; a 2-D CNN and an MLP read the feature map.

    Args:
        match: How two units meet: direct (by distance), indirect (bilinear) or concat (by the sum of what each brings).
        width: Units that a convolution over a text reads at a time.
        alpha: The fewest phrases that a level keeps.
        grid: Rows and columns that dynamic pooling leaves of the feature map.
        maps: Feature maps of each convolution over it.
        kernel: Side of their windows.
        units: Hidden units of the MLP.
    """

    trained_with = ADAM

    def __init__(
        self,
        encoder: Encoder,
        *,
        match: str = "indirect",
        width: int = 3,
        alpha: int = 4,
        grid: int = 20,
        maps: int = 50,
        kernel: int = 3,
        units: int = 50,
    ) -> None:
        super().__init__()
        if match not in MATCHES:
            raise MatchloomError(f"match {match!r} is unknown; choose one of {', '.join(MATCHES)}", code="unknown_name")
        D = encoder.size
        self.encoder, self.kind, self.width, self.alpha, self.grid = encoder, match, width, alpha, grid
        self.blocks = nn.ModuleList(nn.Conv1d(D, D, width, padding=width - 1) for _ in range(BLOCKS))
        if match == "indirect":
            self.M = Bilinear(D)
            for parameter in self.M.parameters():
                nn.init.uniform_(parameter, -0.1, 0.1)
        elif match == "concat":
            self.w_u = nn.Linear(D, 1)
            self.w_v = nn.Linear(D, 1, bias=False)
        self.conv_1 = nn.Conv2d(1, maps, kernel, padding=kernel // 2)
        self.conv_2 = nn.Conv2d(maps, maps, kernel, padding=kernel // 2)
        self.head = MLP(maps * (-(-grid // 4)) ** 2, units)

    def counts(self, words: Tensor) -> Tensor:
        """How many units of each level texts of so many words have. (N, 4)"""
        counts = [words]
        for n in range(1, BLOCKS + 1):
            part = ((BLOCKS - n) * words + BLOCKS - 1) // BLOCKS  # rounded up
            k = torch.ones_like(words) if n == BLOCKS else part.clamp_min(self.alpha)
            counts.append(torch.minimum(k, counts[-1] + self.width - 1))
        return torch.stack(counts, 1)

    def encode(self, texts: Texts) -> Tensor:
        """The units of each text, level after level and without gaps. (N, S, D)"""
        counts = self.counts(texts.lengths)
        x = (self.encoder(texts) * texts.mask[:, :, None]).transpose(1, 2)  # (N, D, L)
        levels, inside = [x], [texts.mask]
        for block, before, k in zip(self.blocks, counts.T, counts.T[1:], strict=False):
            c = block(x)  # (N, D, columns + width - 1)
            # tanh never falls: it may wait for the largest
            p, _ = ordered_k_max(c.transpose(1, 2), before + self.width - 1, k)  # (N, columns, D)
            inside.append(torch.arange(p.shape[1], device=x.device) < k[:, None])
            x = (torch.tanh(p) * inside[-1][:, :, None]).transpose(1, 2)  # (N, D, columns)
            levels.append(x)
        filled = torch.cat(inside, 1)
        S, places = filled.shape[1], torch.arange(filled.shape[1], device=x.device)
        order = torch.where(filled, places, places + S).argsort(dim=1) % S  # gaps to the end
        most = counts.sum(1).max()
        units = take_positions(torch.cat(levels, 2).transpose(1, 2), order)
        return units[:, : most if is_in_onnx_export() else int(most)]  # a graph must not keep today's number

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        return self.recognise(self.features(left, right, batch), batch)

    def features(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """F^ of all units of each pair. (B, 1, S_l, S_r)"""
        if self.kind == "indirect":
            return torch.sigmoid(self.M(left, right, batch))
        if self.kind == "concat":
            u, v = gather_rows(self.w_u(left), batch.left_rows), gather_rows(self.w_v(right), batch.right_rows)
            return torch.sigmoid(u + v.transpose(1, 2))[:, None]
        squares = [
            gather_rows(x.square().sum(2), rows) for x, rows in ((left, batch.left_rows), (right, batch.right_rows))
        ]
        distances = squares[0][:, :, None] + squares[1][:, None] - 2 * dot(left, right, batch)
        return torch.exp(-distances.clamp_min(0) / (2 * BETA))[:, None]

    def recognise(self, F: Tensor, batch: PairBatch) -> Tensor:
        """mfCNN and MLP: from F^ (B, 1, S_l, S_r) to the scores (B,)."""
        rows, columns = self.sizes(batch)
        z = dynamic_max(F, rows.sum(1), columns.sum(1), self.grid)  # (B, 1, grid, grid)
        for conv in (self.conv_1, self.conv_2):
            n = z.shape[2]
            z = torch.relu(max_pool2d(conv(z)[:, :, :n, :n], 2, ceil_mode=True))  # (B, maps, n / 2, n / 2)
        score: Tensor = self.head(z.flatten(1))
        return score

    def sizes(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """The units of each pair's left and right text, level by level. (B, 4) each"""
        left, right = self.counts(batch.left.lengths), self.counts(batch.right.lengths)
        return left[batch.left_rows], right[batch.right_rows]

    def trace(self, batch: PairBatch) -> list[Trace]:
        """Words that met words as signals; what phrases and sentences brought, level by level, as components.

        The network is linear around each pair's F^: contributions are value times slope, exactly, and the residual is
        biases. A phrase takes each of its dimensions from other words, so that it stands for no span of the text. Equal
        features of one pooling cell, as where a word stands twice, split its contribution evenly.
        """
        with torch.no_grad():
            F = self.features(self.encode(batch.left), self.encode(batch.right), batch)
        scores, contributions = linear_contributions(lambda F: self.recognise(F, batch), F)
        traces = []
        left, right = self.sizes(batch)
        for b, score in enumerate(scores.tolist()):
            rows, columns = left[b].tolist(), right[b].tolist()
            components = []
            for level, i, height in zip(LEVELS, starts(rows), rows, strict=True):
                for other, j, width in zip(LEVELS, starts(columns), columns, strict=True):
                    if (level, other) != ("words", "words"):
                        value, added = (x[b, 0, i : i + height, j : j + width].sum() for x in (F, contributions))
                        components.append(Component(f"{level} x {other}", float(value), float(added)))
            words, added = (x[b, :, : rows[0], : columns[0]] for x in (F, contributions))
            traces.append(grid_trace(score, words, added, ["words"], components))
        return traces


def starts(counts: list[int]) -> list[int]:
    """Where each level begins among the units."""
    return [sum(counts[:n]) for n in range(len(counts))]
