"""What an encoder that does not learn makes of texts, computed once: epochs over it then take seconds.

Every text is read by itself, so that its numbers depend on nothing else. Those of all its pieces behind the last layer
go to a file of the user's cache, in single precision. The file is named by the digest of the encoder and of the pieces:
another run over the same texts, by another model or with another seed, takes it as it is. It is read by memory mapping;
where all such files take more than MOST bytes, those that were not asked for longest are removed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from matchloom.basics.files import atomic_write, make_folder, sweep_leftovers
from matchloom.basics.parallel import thread_pool
from matchloom.basics.progress import track
from matchloom.batches import Pieces
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders.library import cache
from matchloom.encoders.text_by_text import TextByText
from matchloom.encoders.transformer import Transformer
from matchloom.kernels.native import status
from matchloom.types import MatchloomError

MOST = 8 * 2**30
_TEXTS_AT_ONCE = 256
_SEAL = 4  # bytes behind the numbers, CRC-32

_log = logging.getLogger("matchloom")


class KeptPositions:
    """The vectors of all pieces of some texts, by the texts' pieces."""

    def __init__(self, vectors: NDArray[np.float32], starts: dict[bytes, int]) -> None:
        self.vectors = vectors
        self.starts = starts

    def __call__(self, pieces: Pieces) -> Tensor | None:
        """(N, P, D), 0 behind a text; None where one of the texts is not among them."""
        N, P = pieces.ids.shape
        ids, lengths = pieces.ids.cpu().numpy(), pieces.lengths.tolist()
        x = np.zeros((N, P, self.vectors.shape[1]), np.float32)
        for n, length in enumerate(lengths):
            start = self.starts.get(ids[n, :length].tobytes())
            if start is None:
                return None
            x[n, :length] = self.vectors[start : start + length]
        return torch.from_numpy(x).to(pieces.ids.device)


@contextmanager
def kept_positions(
    encoder: Transformer, tables: Sequence[TokenizedTexts], *, workers: int, progress: bool = False
) -> Iterator[None]:
    """As long as it lasts, the encoder, which must not learn, looks up what it has read once.

    Where nothing can be kept it reads as ever, and says why.
    """
    try:
        encoder.kept = _kept(encoder, tables, workers, progress)
    except MatchloomError as error:
        _log.warning("texts are read anew in every epoch: %s", error)
    try:
        yield
    finally:
        encoder.kept = None


def _kept(encoder: Transformer, tables: Sequence[TokenizedTexts], workers: int, progress: bool) -> KeptPositions:
    texts = sorted({text for table in tables for text in _pieces(table)})
    lengths = [len(text) // np.dtype(np.int64).itemsize for text in texts]
    path = cache().parent / "positions" / f"{_digest(encoder, texts)}.npy"
    shape = (sum(lengths), encoder.size)
    make_folder(path.parent)
    sweep_leftovers(path.parent)
    if not _is_whole(path):
        wanted, free = 4 * shape[0] * shape[1], shutil.disk_usage(path.parent).free
        if wanted > min(MOST, free / 2):
            raise MatchloomError(
                f"their positions take {wanted / 1e9:.1f} GB, more than {path.parent} may hold", code="too_large"
            )
        _write(path, shape, _read(encoder, texts, workers, progress))
    with suppress(OSError):
        os.utime(path)
    _remove_oldest(path)
    vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    return KeptPositions(vectors, dict(zip(texts, accumulate(lengths, initial=0), strict=False)))


def _pieces(table: TokenizedTexts) -> Iterator[bytes]:
    assert table.pieces is not None, "the texts were read without pieces"
    ids = table.pieces[0]
    for start, length in zip(ids.starts, ids.lengths, strict=True):
        yield ids.flat[start : start + length].tobytes()


def _digest(encoder: Transformer, texts: Sequence[bytes]) -> str:
    """Of what the numbers depend on, down to the last digit."""
    made = hashlib.sha256(encoder.digest())
    made.update(f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()} {encoder.device.type}".encode())
    made.update(status().encode())
    for text in texts:
        made.update(len(text).to_bytes(8, "little") + text)
    return made.hexdigest()


def _read(encoder: Transformer, texts: Sequence[bytes], workers: int, progress: bool) -> Iterator[NDArray[np.float32]]:
    """The vectors of each text's pieces, in the texts' order."""

    by_text = TextByText(encoder)

    @torch.no_grad()  # of each thread
    def read(some: Sequence[bytes]) -> Sequence[NDArray[np.float32]]:
        ids = [torch.from_numpy(np.frombuffer(text, np.int64).copy()) for text in some]
        lengths = torch.tensor([len(one) for one in ids])
        padded = pad_sequence(ids, batch_first=True)
        pieces = Pieces(padded, torch.full_like(padded, -1), lengths).to(encoder.device)
        x = by_text.positions(pieces).cpu().numpy()
        return [own[:length] for own, length in zip(x, lengths.tolist(), strict=True)]

    with thread_pool(workers) as pool:
        for start in track(range(0, len(texts), _TEXTS_AT_ONCE), "reading texts once", show=progress):
            some = texts[start : start + _TEXTS_AT_ONCE]
            step = -(-len(some) // workers)
            for found in pool.map(read, [some[n : n + step] for n in range(0, len(some), step)]):
                yield from found


def _write(path: Path, shape: tuple[int, int], found: Iterator[NDArray[np.float32]]) -> None:
    with atomic_write(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        seal = 0
        for x in found:
            numbers = np.ascontiguousarray(x, "<f4").tobytes()
            seal = zlib.crc32(numbers, seal)
            file.write(numbers)
        file.write(seal.to_bytes(_SEAL, "little"))


def _is_whole(path: Path) -> bool:
    """Whether it is there and as it was written; what is cut off or damaged is made anew."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, _, _ = np.lib.format.read_array_header_1_0(file)
            left, seal = 4 * shape[0] * shape[1], 0
            while left and (some := file.read(min(left, 1 << 20))):
                seal, left = zlib.crc32(some, seal), left - len(some)
            return not left and file.read() == seal.to_bytes(_SEAL, "little")
    except (OSError, ValueError, IndexError):
        return False


def _remove_oldest(kept: Path) -> None:
    """Make room; a file that another run has mapped stays readable for it."""
    with suppress(OSError):
        files = sorted(((file.stat().st_mtime, file) for file in kept.parent.glob("*.npy")), reverse=True)
        room = MOST
        for _, file in files:
            room -= file.stat().st_size
            if room < 0 and file != kept:
                file.unlink()
