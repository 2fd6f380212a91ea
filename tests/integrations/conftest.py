from __future__ import annotations

import os
from pathlib import Path

import pytest

from matchloom.search.collection import Collection
from tests.service.making import PAIRS

# Frameworks that would report home are told not to, before they are imported.
os.environ |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="session")
def faq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small collection whose answers have a column of their own."""
    folder = tmp_path_factory.mktemp("integrations") / "faq"
    rows = [{**pair._asdict(), "url": f"/{pair.text_id}"} for pair in PAIRS]
    Collection.create(folder, rows, learn_weights=True)
    return folder
