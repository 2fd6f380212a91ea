"""k-max pooling: over the valid cells of an interaction grid, and over a sequence, whose order it keeps."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.onnx import is_in_onnx_export

from matchloom.kernels import k_max as native


def k_max(grid: Tensor, cells: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each channel in descending order, and their flat places l * R + r.

    grid (B, C, L, R), cells (B, L, R) True where valid -> values (B, C, k), places (B, C, k). Where a pair has fewer
    than k valid cells the missing values are 0 and their places -1.
    """
    L, R = grid.shape[2:]
    grid = grid.masked_fill(~cells[:, None], -torch.inf)
    # The k largest cells lie in the k columns with the largest maxima: a cell outside them is no larger than k others.
    # Two small selections replace one over all L * R cells.
    columns = grid.amax(2).topk(min(k, R), dim=2).indices  # (B, C, K)
    candidates = grid.gather(3, columns[:, :, None, :].expand(-1, -1, L, -1))  # (B, C, L, K)
    values, inside = candidates.flatten(2).topk(min(k, L * columns.shape[2]), dim=2)
    places = inside // columns.shape[2] * R + columns.gather(2, inside % columns.shape[2])
    missing = values == -torch.inf
    values, places = values.masked_fill(missing, 0.0), places.masked_fill(missing, -1)
    short = k - values.shape[2]
    if short > 0:
        values = torch.nn.functional.pad(values, (0, short))
        places = torch.nn.functional.pad(places, (0, short), value=-1)
    return values, places


def ordered_k_max(x: Tensor, lengths: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """k-max pooling of sequences: the k largest values of each channel, in the order in which they stand there.

    x (N, P, C), of which text n has lengths[n] positions, and k (N,), its own for each text -> values (N, K, C) for the
    largest k, and how many of them each text has, min(k, lengths) (N,). What lies behind is meaningless. Of equal
    values the first ones are kept, so that neither padding nor a batch decides. Values are compared in single
    precision: in double, what should be equal (windows of the same words) often differs in its last bits.
    """
    counts = torch.minimum(k, lengths)  # (N,)
    compared = x.detach().float()
    find = native.places if native.serves(compared) and not is_in_onnx_export() else ordered_places
    return x.gather(1, find(compared, lengths, counts)), counts


def ordered_places(x: Tensor, lengths: Tensor, counts: Tensor) -> Tensor:
    """The places of these values, (N, K, C), in torch for any device; the native kernel finds the same."""
    x = x.transpose(1, 2)  # (N, C, P)
    P = x.shape[2]
    outside = torch.arange(P, device=x.device) >= lengths[:, None]  # (N, P)
    found = x.masked_fill(outside[:, None], -torch.inf).contiguous()
    smallest = _sorted(found).gather(2, (P - counts)[:, None, None].expand(-1, x.shape[1], 1))  # the k-th largest
    kept = found >= smallest  # (N, C, P)
    in_graph = is_in_onnx_export()  # where nothing may depend on the values that it was made with
    if in_graph or int(kept.sum()) != int(counts.sum()) * x.shape[1]:  # values that equal the k-th largest
        above, equal = found > smallest, found == smallest
        kept = above | (equal & (equal.long().cumsum(2) <= counts[:, None, None] - above.sum(2, keepdim=True)))
    from_end = P - torch.arange(P, dtype=torch.int32, device=x.device)
    positions = P - kept * from_end  # P where a value is dropped
    most = counts.max() if in_graph else int(counts.max())
    return _sorted(positions)[:, :, :most].clamp_max(P - 1).long().transpose(1, 2)


def _sorted(x: Tensor) -> Tensor:
    """Rows in ascending order. numpy sorts short rows many times faster than torch does on the CPU."""
    in_torch = x.device.type != "cpu" or is_in_onnx_export()
    return x.sort().values if in_torch else torch.from_numpy(np.sort(x.numpy()))
