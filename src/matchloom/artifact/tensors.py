"""Arrays and torch tensors as the bytes of a safetensors file, and back. torch is imported for its own alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


def packed(tensors: Mapping[str, NDArray[Any]] | Mapping[str, Tensor]) -> bytes:
    """The bytes of a safetensors file; equal tensors give equal bytes."""
    if all(isinstance(x, np.ndarray) for x in tensors.values()):
        import safetensors.numpy

        return safetensors.numpy.save({name: np.asarray(x, order="C") for name, x in tensors.items()})
    import safetensors.torch

    return safetensors.torch.save({name: _contiguous(x) for name, x in tensors.items()})


def unpacked(content: bytes, framework: Literal["np", "pt"]) -> dict[str, Any]:
    """The tensors by name; what does not fit together raises as it comes."""
    if framework == "np":
        import safetensors.numpy

        return safetensors.numpy.load(content)
    import safetensors.torch

    return safetensors.torch.load(content)


def not_finite(tensors: Mapping[str, Any]) -> str | None:
    """The name of the first that holds NaN or infinity."""
    for name, x in sorted(tensors.items()):
        if isinstance(x, np.ndarray):
            whole = x.dtype.kind != "f" or bool(np.isfinite(x).all())
        else:
            whole = not x.is_floating_point() or bool(x.isfinite().all())
        if not whole:
            return name
    return None


def _contiguous(x: Any) -> Any:
    return x.detach().cpu().contiguous()
