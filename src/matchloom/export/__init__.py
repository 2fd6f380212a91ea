"""A matcher as ONNX graphs, which run without torch: making, checking and reading them."""

from matchloom.export.making import Exported, export_onnx
from matchloom.export.reader import GraphReader

__all__ = ["Exported", "GraphReader", "export_onnx"]
