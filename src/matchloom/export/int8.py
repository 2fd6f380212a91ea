"""An encode graph in eight bits: onnxruntime's dynamic quantisation, a scale for each output of a matrix."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.export.checking import encode
from matchloom.export.inputs import at_least
from matchloom.export.running import Session
from matchloom.matcher import Matcher

_TEXTS = 8  # encoded at a time, as long as each other


class Int8(NamedTuple):
    """What a graph in eight bits costs and brings, on some texts; each graph on one thread, in turn."""

    texts: int
    least_cosine: float  # of a word's vector and that of the float graph
    mean_cosine: float
    float_speed: float  # texts a second
    int8_speed: float
    float_bytes: int
    int8_bytes: int


def quantized(graph: bytes) -> bytes:
    """The same graph with matrices in eight bits; tables of pieces stay as they are, for they are only looked up."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        before.write_bytes(graph)
        logging.disable(logging.WARNING)  # it asks for a preparation that changes nothing here
        try:
            quantize_dynamic(
                before, after, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"]
            )
        finally:
            logging.disable(logging.NOTSET)
        return after.read_bytes()


def compare(matcher: Matcher, graph: bytes, small: bytes, texts: Sequence[str]) -> Int8:
    """How near the small graph comes to the other, and how fast either is."""
    table = matcher.read(texts)
    order = np.argsort(table.lengths, kind="stable")
    blocks = [
        at_least(table.pad(order[n : n + _TEXTS]), matcher.model.least_words) for n in range(0, len(order), _TEXTS)
    ]
    sessions = Session(graph), Session(small)
    seconds, cosines = [0.0, 0.0], []
    for block in blocks:
        found = []
        for n, session in enumerate(sessions):
            encode(session, block)  # once for the memory that it needs
            start = time.perf_counter()
            found.append(encode(session, block))
            seconds[n] += time.perf_counter() - start
        cosines.append(_cosines(found[0], found[1], matcher.model.encoder.seen(block).numpy()))
    every = np.concatenate(cosines)
    return Int8(
        len(texts),
        float(every.min()),
        float(every.mean()),
        len(texts) / seconds[0],
        len(texts) / seconds[1],
        len(graph),
        len(small),
    )


def _cosines(first: NDArray[Any], second: NDArray[Any], seen: NDArray[Any]) -> NDArray[Any]:
    """Of the vectors of each word that was read, or of each text where it has one vector."""
    if first.ndim == 3 and first.shape[:2] == seen.shape:
        first, second = first[seen], second[seen]
    first, second = (x.reshape(-1, x.shape[-1]) for x in (first, second))
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines: NDArray[Any] = (first * second).sum(1) / lengths.clip(1e-12)
    return cosines
