"""Arrays and texts of a collection in one file, in the layout of safetensors: written as a stream, mapped when read.

Opening such a file reads its header alone; processes that map it share its pages.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np
from numpy.typing import NDArray

from matchloom.types import MatchloomError

_TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_ALIGNED = 64  # bytes; where each array begins
_LOOKED_AT = 2**24  # bytes of texts: more would be read from the disk and not mapped


class Texts(Sequence[str]):
    """Many texts as one block of UTF-8 and where each begins; a text is decoded when it is asked for."""

    def __init__(self, block: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self._block, self._starts = block, starts
        self._bytes, self._at = block.data, starts.data  # quicker to index than arrays are
        self._count = len(starts) - 1

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """From texts, none of which has half a character."""
        encoded = [text.encode() for text in texts]
        starts = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in encoded], out=starts[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), starts)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, n: int) -> str: ...

    @overload
    def __getitem__(self, n: slice) -> list[str]: ...

    def __getitem__(self, n: int | slice) -> str | list[str]:
        if isinstance(n, slice):
            return [self[one] for one in range(*n.indices(self._count))]
        if not 0 <= n < self._count:
            raise IndexError(n)
        return str(self._bytes[self._at[n] : self._at[n + 1]], "utf-8")

    def __iter__(self) -> Iterator[str]:
        block, starts = bytes(self._block), self._starts.tolist()
        return (block[begin:end].decode() for begin, end in pairwise(starts))

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """What is saved, under this name."""
        return {f"{name}.block": self._block, f"{name}.starts": self._starts}

    @classmethod
    def load(cls, arrays: Mapping[str, NDArray[Any]], name: str) -> Texts:
        """What was saved under this name; a ValueError where that is no texts."""
        block, starts = arrays[f"{name}.block"], arrays[f"{name}.starts"]
        kinds = block.dtype == np.uint8 and starts.dtype == np.int64 and block.ndim == starts.ndim == 1
        if not kinds or not len(starts) or starts[0] != 0 or starts[-1] != len(block) or (np.diff(starts) < 0).any():
            raise ValueError(f"texts of {name} that do not fit")
        if len(block) <= _LOOKED_AT:
            bytes(block).decode()
            begun = block[starts[:-1][starts[:-1] < len(block)]]
            if ((begun & 0xC0) == 0x80).any():
                raise ValueError(f"texts of {name} that begin within a character")
        return cls(block, starts)


def write_arrays(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as they stand; equal arrays give equal bytes."""
    header: dict[str, Any] = {}
    filled, offset = [], 0
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        begin, offset = offset, offset + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, offset]}
        padding = -offset % _ALIGNED
        filled.append((array, padding))
        if padding:  # safetensors allows no holes: what fills them has a name
            header[f"_{name}"] = {"dtype": "U8", "shape": [padding], "data_offsets": [offset, offset + padding]}
            offset += padding
    plain = json.dumps(header, separators=(",", ":")).encode()
    plain += b" " * (-(len(plain) + 8) % _ALIGNED)
    stream.write(len(plain).to_bytes(8, "little") + plain)
    for array, padding in filled:
        stream.write(array.data.cast("B") if array.size else b"")
        stream.write(b"\0" * padding)


def map_arrays(path: Path, remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file, mapped and not read; what does not fit together is refused in one line."""
    try:
        with path.open("rb") as file:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + size])
        return {name: _mapped(whole, 8 + size, one) for name, one in header.items() if not name.startswith("_")}
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}; {remedy}", code="unreadable") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise MatchloomError(f"{path} is damaged or cut off; {remedy}", code="damaged") from None


def _mapped(whole: mmap.mmap, base: int, one: Mapping[str, Any]) -> NDArray[Any]:
    begin, end = one["data_offsets"]
    dtype, shape = np.dtype(_TYPES[one["dtype"]]), tuple(one["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    if min((begin, end, *shape)) < 0 or end - begin != count * dtype.itemsize or base + end > len(whole):
        raise ValueError("sizes do not fit")
    return np.frombuffer(whole, dtype=dtype, count=count, offset=base + begin).reshape(shape)
