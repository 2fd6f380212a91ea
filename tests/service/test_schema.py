"""schemathesis over the whole OpenAPI: every answer is as described, nothing described is refused, nothing breaks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis

from matchloom.service import create_app
from tests.drawing import examples
from tests.service.making import make_app, running

# The description is the same whatever is served.
schema = schemathesis.openapi.from_dict(create_app([]).openapi())


@pytest.fixture(scope="module")
def url(served: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("schema")
    for name in ("tickets", "faq", "mv"):
        shutil.copytree(served / name, folder / name)
    app = make_app(folder, "tickets", "faq", "mv", writable=True, feedback=folder / "thumbs.jsonl")
    with running(app) as address:
        yield address


@pytest.mark.slow
@schema.parametrize()
@examples(10)
def test_every_operation(case: schemathesis.Case, url: str) -> None:
    case.call_and_validate(base_url=url)
