"""Docstrings of colons: time grows with their length, and not with its square."""

from __future__ import annotations

import time

from matchloom.data.docstrings import summary_and_rest


def test_colons_take_no_quadratic_time() -> None:
    def cost(text: str) -> float:
        start = time.process_time()
        summary_and_rest(text)
        return time.process_time() - start

    usual = cost("plain words of prose. " * 3000)
    for text in (":" * 64_000, ":a" * 32_000):
        assert cost(text) < 100 * (usual + 0.01)
