"""The programs in docs/integrations.md run, where what they import is installed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from matchloom.types import MatchloomError
from tests.service.making import make_app, running
from tests.test_documents import Block, blocks

ROOT = Path(__file__).parents[2]
SHOWN = [block for block in blocks(ROOT / "docs" / "integrations.md") if block.language == "python"]


@pytest.fixture(scope="module")
def url(faq: Path) -> Iterator[str]:
    with running(make_app(faq.parent, "faq")) as address:
        yield address


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: f"line {block.line}")
def test_programs(
    block: Block,
    faq: Path,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in re.findall(r"^(?:from|import) (\w+)", block.source, re.MULTILINE):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    shutil.copytree(faq, tmp_path / "faq")
    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(block.source.replace("http://127.0.0.1:8000", url), "integrations.md", "exec"), {})
    except MatchloomError as error:
        if error.code == "needs_extra":
            pytest.skip(str(error))
        raise
    assert capsys.readouterr().out.strip()
