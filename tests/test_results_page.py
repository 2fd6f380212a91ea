"""The page of results says what the results say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("page", ROOT / "benchmarks" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == module.results_page(), "run: make docs"
