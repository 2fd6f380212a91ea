"""What the tests of several kernels share."""

from __future__ import annotations

import pytest

from matchloom.kernels import int8_cosines, k_max, lstm, native, products


@pytest.fixture(params=native.suitable())
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernels of one build."""
    loaded = native.Library(request.param)
    for kernel in (int8_cosines, k_max, lstm, products):
        monkeypatch.setattr(kernel, "library", lambda: loaded)
    return str(request.param)
