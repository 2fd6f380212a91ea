"""From a matcher to a folder of graphs: made, checked, saved as one artifact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchloom.artifact import holds, write
from matchloom.basics.validation import one_path
from matchloom.encoders.transformer import Transformer
from matchloom.export.checking import Check, check_graphs, some_batch
from matchloom.export.graphs import ENCODE, ENCODE_RIGHT, MATCH, OPSET, make_graphs
from matchloom.export.inputs import MEANINGS
from matchloom.export.int8 import Int8, compare, quantized
from matchloom.export.reader import FORMAT, PIECES, VOCAB
from matchloom.export.running import Session, require_onnx
from matchloom.matcher import Matcher
from matchloom.models import model_arguments
from matchloom.types import MatchloomError


class Exported(NamedTuple):
    """What was written, how far its scores are from the matcher's, and how the encoder in eight bits compares."""

    folder: Path
    files: list[str]
    check: Check
    int8: Int8 | None = None


def export_onnx(
    matcher: Matcher, folder: Path | str, *, int8: bool = False, texts: Sequence[str] | None = None
) -> Exported:
    """Write a matcher as ONNX graphs: encode.onnx (encode_right.onnx where sides differ), match.onnx, export.json.

    Every size of every input is open. The graphs are compared with the matcher on batches of many sizes before anything
    is written; what a text becomes is in export.json, and `GraphReader` does it. Positions of late interaction are
    exported as they are and not in whole numbers, so that its scores differ from the matcher's own in the third digit.
    It needs the extras `networks` and `onnx`.

    Args:
        matcher: Any matcher but one whose model says that it cannot be exported.
        folder: Where; it is made if it is new. One that holds an export is refused.
        int8: Write the encode graph in eight bits, for a pretrained encoder.
        texts: On which the encoder in eight bits is compared with the other; needed with `int8`.
    """
    require_onnx()
    target = one_path("folder", folder)
    if holds(target, "export"):
        raise MatchloomError(f"{target} already holds an export; choose another folder", code="exists")
    if int8 and not isinstance(matcher.model.encoder, Transformer):
        raise MatchloomError(
            "eight bits are for pretrained encoders, and this matcher has word vectors", code="not_supported"
        )
    if int8 and not texts:
        raise MatchloomError(
            "eight bits need some texts to be compared on, such as those of your pairs", code="no_data"
        )
    matcher = replace(matcher, model=matcher.model.unrounded())  # what is rounded for a ranking's sake is not here
    batch = some_batch(matcher, np.random.default_rng(1), 2, 3, (4, 7))
    graphs = make_graphs(matcher.model, batch)
    check, compared = check_graphs(matcher, graphs), None
    if int8:
        if ENCODE not in graphs:
            raise MatchloomError(
                f"{matcher.name} encodes no text alone: there is no encoder to write in eight bits",
                code="not_supported",
            )
        small = {name: quantized(graph) for name, graph in graphs.items() if name != MATCH}
        compared = compare(matcher, graphs[ENCODE], small[ENCODE], list(texts or ()))
        graphs |= small
    encoder = matcher.model.encoder.settings()
    files: dict[str, bytes] = {**graphs, VOCAB: matcher.vocab.dumps().encode()}
    if PIECES in encoder:
        files[PIECES] = encoder.pop(PIECES).encode()
    settings = {
        "model": matcher.name,
        "arguments": {**model_arguments(matcher.kind), **matcher.arguments},
        "matcher": matcher.digest,
        "opset": OPSET,
        "int8": int8,
        "largest_difference": check.difference,
        "tokenizer": matcher.tokenizer._asdict(),
        "encoder": encoder,
        "lexical": matcher.model.needs_lexical,
        "features": matcher.model.needs_features,
        "least_words": matcher.model.least_words,
        "encode": {"left": ENCODE, "right": ENCODE_RIGHT if ENCODE_RIGHT in graphs else ENCODE}
        if ENCODE in graphs
        else None,
        "match": MATCH,
        "graphs": {name: _told(graph) for name, graph in graphs.items()},
    }
    write(target, "export", FORMAT, settings, files)
    return Exported(target, [*files, "export.json"], check, compared)


def _told(graph: bytes) -> dict[str, Any]:
    """The inputs and the output of a graph, in words."""
    session = Session(graph)
    sides = ("left_", "right_")
    inputs = {
        name: {
            "type": kind,
            "meaning": MEANINGS.get(name) or MEANINGS[name.removeprefix(next(filter(name.startswith, sides)))],
        }
        for name, kind in session.inputs.items()
    }
    return {"inputs": inputs, "output": session.output}
