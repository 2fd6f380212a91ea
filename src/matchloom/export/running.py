"""A graph that runs, by onnxruntime on one thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from matchloom.basics.extras import need


def require_onnx() -> None:
    """Refuse in one line where a package is missing, before any work."""
    for name in ("onnx", "onnxruntime"):
        need(name, "an ONNX graph")


class Session:
    """One graph; it takes by name what it needs of what it is given."""

    def __init__(self, graph: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self.inputs = {one.name: one.type for one in self._session.get_inputs()}
        self.output: Any = self._session.get_outputs()[0].name

    def run(self, given: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """What it makes of these inputs."""
        found: NDArray[Any] = self._session.run(None, {name: given[name] for name in self.inputs})[0]
        return found
