"""A text into one vector by wide convolutions and dynamic k-max pooling (Kalchbrenner et al., ACL 2014).

Layer l of d has for each of its filters w_f and the columns x_1 ... x_n of the layer below (the words at first):

    c_f,t = sum over j = 0 ... m - 1 of w_f,j . x_{t - j}       t = 1 ... n + m - 1: a window may start before the
                                                                first column and end behind the last one
    p_f   = the k_l largest of c_f, in their order              k_l = max(k_top, ceil((d - l) / d * words)), k_d = k_top
    y_f   = tanh(p_f + b_f)

and at the top a fully connected layer gives z = W y + b of all y_f together, and v = z / |z|, or z without `normalize`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad

from matchloom.batches import Texts
from matchloom.kernels import products
from matchloom.layers.contributions import linear_tanh, word_contributions
from matchloom.layers.heads import init_linear_, xavier_uniform_
from matchloom.layers.pooling import ordered_k_max


class WideConvolution(nn.Module):
    """c_f for all filters of one layer, and the bias that is added after pooling."""

    def __init__(self, size: int, filters: int, width: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.empty(width, size, filters))  # w[j] meets x_{t - j}
        self.b = nn.Parameter(torch.zeros(filters))
        xavier_uniform_(self.w, width * size, filters)

    def forward(self, x: Tensor) -> Tensor:
        """Columns (N, n, size) to (N, n + m - 1, filters). What lies behind a text must be 0.

        One matrix product for each place in the window. It is as fast as torch's own convolution and, unlike it, gives
        windows of the same words the same bits wherever they stand, so that pooling can tell that they are equal.
        """
        m = len(self.w)
        c = (pad(self.product(x, j), (0, 0, j, m - 1 - j)) for j in range(m))
        return reduce(torch.add, c)

    def product(self, x: Tensor, j: int) -> Tensor:
        """x w_j; in the copy of a model that scores, x of float32 by the kernel, row by row alike."""
        kernel = x.dtype != self.w.dtype and products.serves(x)
        return products.product(x, self.w[j].float()) if kernel else x @ self.w[j]


class SentenceCNN(nn.Module):
    """v for each text. A text too short to fill its k_top columns has zeros in the missing ones."""

    single = False  # set in the copy that scores

    def __init__(
        self, size: int, *, filters: int, depth: int, width: int, k_top: int, n_s: int, normalize: bool = True
    ) -> None:
        super().__init__()
        self.depth, self.k_top, self.normalize = depth, k_top, normalize
        sizes = [size] + [filters] * (depth - 1)
        self.layers = nn.ModuleList(WideConvolution(sizes[n], filters, width) for n in range(depth))
        self.W = nn.Linear(filters * k_top, n_s)
        init_linear_(self.W)

    def forward(self, x: Tensor, texts: Texts) -> Tensor:
        """Word vectors (N, L, size) of these texts to sentence vectors (N, n_s)."""
        z = self.z(x, texts)
        return normalize(z) if self.normalize else z

    def z(self, x: Tensor, texts: Texts, f: Callable[[Tensor], Tensor] = torch.tanh) -> Tensor:
        """The sentence vectors before they get their length. (N, n_s)"""
        x = x * texts.mask[:, :, None]  # (N, L, size)
        kernel = self.single and f is torch.tanh  # whoever asks with another f wants gradients
        if kernel:
            x, f = x.float(), products.tanh
        lengths = texts.lengths
        for n, layer in enumerate(self.layers, start=1):
            assert isinstance(layer, WideConvolution)
            c = layer(x)  # (N, columns + m - 1, filters)
            k = dynamic_k(texts.lengths, n, self.depth, self.k_top)
            p, lengths = ordered_k_max(c, lengths + c.shape[1] - x.shape[1], k)  # (N, k, filters)
            inside = torch.arange(p.shape[1], device=x.device) < lengths[:, None]  # (N, k)
            x = f(p + layer.b.to(p.dtype)) * inside[:, :, None]  # (N, k, filters)
        x = pad(x, (0, 0, 0, self.k_top - x.shape[1]))
        z: Tensor = self.W(x.flatten(1).to(self.W.weight.dtype))
        return z

    @torch.no_grad()
    def spread(self, x: Tensor, texts: Texts) -> None:
        """Change W and b so that each number of z has mean 0 and variance 1 over these texts. One that is the same for
        all of them stays as it is."""
        deviation, mean = torch.std_mean(self.z(x, texts), dim=0, correction=0)
        varies = deviation > 1e-6
        deviation, mean = torch.where(varies, deviation, 1.0), torch.where(varies, mean, 0.0)
        self.W.weight /= deviation[:, None]
        self.W.bias.sub_(mean).div_(deviation)

    def components(self, x: Tensor, texts: Texts) -> tuple[Tensor, Tensor]:
        """The same v (N, n_s), and the part of it that each word made by way of what survived pooling (N, L, n_s)."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            z = self.z(x, texts, linear_tanh)
            v = z / z.detach().norm(dim=1, keepdim=True).clamp_min(1e-12) if self.normalize else z
        return v.detach(), word_contributions(v, x)


def dynamic_k(words: Tensor, layer: int, depth: int, k_top: int) -> Tensor:
    """k_l of each text, exactly: the ceiling is taken in whole numbers, none below 0, which ONNX divides otherwise."""
    return (((depth - layer) * words + depth - 1) // depth).clamp_min(k_top)
