"""An encode graph in eight bits: every product with a matrix of weights in whole numbers, scaled row by row.

    x  ~ s q + m        a position's numbers: m the smallest, q from 0 to 255, s its own
    W  ~ W' c           the weights: W' from -63 to 63, a scale c for each output
    xW ~ s c (q W') + m (1 W)

onnxruntime's own dynamic quantisation has one scale for a whole batch, which one outlier makes coarse for all: on 400
answers of TREC-QA's DEV words of all-MiniLM-L6-v2 fell to a cosine of .954 with what they were (mean .990), and to .995
(.998) here, where every position has scales of its own; it was faster by a sixth. And here a text's numbers do not
depend on its batch. Weights have seven bits, not eight: processors without VNNI add two products in sixteen bits, which
would overflow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.data.batching import pad_texts
from matchloom.export.checking import encode
from matchloom.export.inputs import at_least
from matchloom.export.running import Session
from matchloom.matcher import Matcher

_TEXTS = 8  # encoded at a time, as long as each other
_LARGEST = 63  # of a weight
_PART = 384  # numbers of a position that have one scale: an outlier makes no more of them coarse


class Int8(NamedTuple):
    """What a graph in eight bits costs and brings, on some texts; each graph on one thread, in turn."""

    texts: int
    least_cosine: float  # of a word's vector and that of the float graph
    mean_cosine: float
    float_speed: float  # texts a second of the processor's time
    int8_speed: float
    float_bytes: int
    int8_bytes: int


def quantized(graph: bytes) -> bytes:
    """The same graph with matrices in eight bits; tables of pieces stay as they are, for they are only looked up."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(graph)
    weights = {one.name: one for one in model.graph.initializer}
    nodes, used = [], set()
    for node in model.graph.node:
        matrix = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if matrix is None:
            nodes.append(node)
            continue
        used.add(matrix.name)
        made, constants = _product(node.input[0], numpy_helper.to_array(matrix), node.output[0])
        nodes += made
        model.graph.initializer.extend(numpy_helper.from_array(x, name) for name, x in constants.items())
    kept = [one for one in model.graph.initializer if one.name not in used]
    for field, now in ((model.graph.node, nodes), (model.graph.initializer, kept)):
        del field[:]
        field.extend(now)
    content: bytes = model.SerializeToString()
    return content


def _product(x: str, W: NDArray[np.float32], output: str) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """The nodes that make `output` of x and the weights, and the constants that they need."""
    from onnx.helper import make_node

    K = len(W)
    parts = next(n for n in range(-(-K // _PART), K + 1) if K % n == 0)
    given, made = [x], [output]
    nodes: list[Any] = []
    constants: dict[str, NDArray[Any]] = {}
    if parts > 1:
        given, made = ([f"{output}/int8/{n}/{key}" for n in range(parts)] for key in ("x", "xW"))
        nodes.append(make_node("Split", [x], given, axis=-1))
    for one, rows, sum_ in zip(given, np.split(W, parts), made, strict=True):
        more, needed = _part_of_product(one, rows, sum_)
        nodes += more
        constants |= needed
    if parts > 1:
        nodes.append(make_node("Sum", made, [output]))
    return nodes, constants


def _part_of_product(x: str, W: NDArray[np.float32], output: str) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """The same for as many numbers of a position as have one scale."""
    from onnx import TensorProto
    from onnx.helper import make_node

    c = np.maximum(np.abs(W).max(0), np.finfo(np.float32).tiny) / _LARGEST
    whole = np.round(W / c)

    def own(key: str) -> str:
        return f"{output}/int8/{key}"

    nodes = [
        make_node("ReduceMax", [x], [own("high")], axes=[-1], keepdims=1),
        make_node("ReduceMin", [x], [own("m")], axes=[-1], keepdims=1),
        make_node("Sub", [own("high"), own("m")], [own("range")]),
        make_node("Div", [own("range"), own("255")], [own("step")]),
        make_node("Max", [own("step"), own("tiny")], [own("s")]),
        make_node("Sub", [x, own("m")], [own("above")]),
        make_node("Div", [own("above"), own("s")], [own("steps")]),
        make_node("Round", [own("steps")], [own("rounded")]),
        make_node("Cast", [own("rounded")], [own("q")], to=TensorProto.UINT8),
        make_node("MatMulInteger", [own("q"), own("W")], [own("qW")]),
        make_node("Cast", [own("qW")], [own("float")], to=TensorProto.FLOAT),
        # In this order: onnxruntime takes s * c, multiplied first, for the one scale of a batch.
        make_node("Mul", [own("float"), own("c")], [own("c_qW")]),
        make_node("Mul", [own("c_qW"), own("s")], [own("y")]),
        make_node("Mul", [own("m"), own("1W")], [own("mW")]),
        make_node("Add", [own("y"), own("mW")], [output]),
    ]
    return nodes, {
        own("W"): whole.astype(np.int8),
        own("c"): c.astype(np.float32),
        own("1W"): (whole.sum(0) * c).astype(np.float32),
        own("255"): np.array(255, dtype=np.float32),
        own("tiny"): np.array(1e-12, dtype=np.float32),
    }


def compare(matcher: Matcher, graph: bytes, small: bytes, texts: Sequence[str]) -> Int8:
    """How near the small graph comes to the other, and how fast either is."""
    table = matcher.read(texts)
    order, least = np.argsort(table.lengths, kind="stable"), matcher.model.least_words
    sessions = Session(graph), Session(small)
    seconds, cosines = [0.0, 0.0], []
    for start in range(0, len(order), _TEXTS):
        block = at_least(pad_texts(table, order[start : start + _TEXTS]), least)
        found = []
        for n, session in enumerate(sessions):
            encode(session, block)  # once for the memory that it needs
            begun = time.thread_time()  # of this thread alone, on which both run, whatever else is on the machine
            found.append(encode(session, block))
            seconds[n] += time.thread_time() - begun
        cosines.append(_cosines(found[0], found[1], matcher.model.encoder.seen(block).numpy()))
    every = np.concatenate(cosines)
    before, now = (len(texts) / max(spent, 1e-9) for spent in seconds)
    return Int8(len(texts), float(every.min()), float(every.mean()), before, now, len(graph), len(small))


def _cosines(first: NDArray[Any], second: NDArray[Any], seen: NDArray[Any]) -> NDArray[Any]:
    """Of the vectors of each word that was read, or of each text where it has one vector."""
    if first.ndim == 3 and first.shape[:2] == seen.shape:
        first, second = first[seen], second[seen]
    first, second = (x.reshape(-1, x.shape[-1]) for x in (first, second))
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines: NDArray[Any] = (first * second).sum(1) / lengths.clip(1e-12)
    return cosines
