from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchloom.data import pydocs
from matchloom.data.identity import digest, normalize_text
from matchloom.data.pydocs import python_version, read_pydocs
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

MODULE = '''
"""Weave cloth of many colours here.

The cloth comes out of the loom in rolls.
"""
import nothing_that_exists

raise SystemExit("sources are read, never run")

if True:
    def wind(yarn):
        """Wind the yarn onto a bobbin.

        It must not be wet or it will shrink.
        """
        def inner():
            """Turn the bobbin just once around. The handle is on the left hand side."""
else:
    class Loom:
        """A machine that weaves by hand.

        Its frame is made of ash wood."""

        async def weave(self):
            """Pass the shuttle from side to side.  Each pass is called a pick by weavers."""

        def again(self):
            """Weave cloth of many colours here.

            This one has a summary that was seen before.
            """
        def __init__(self): "\\d"
'''


@pytest.fixture(scope="module")
def corpus() -> list[Pair]:
    return read_pydocs()


def write(folder: Path) -> Path:
    (folder / "shed").mkdir(parents=True)
    (folder / "shed" / "__init__.py").write_text(MODULE, encoding="utf-8")
    (folder / "shed" / "broken.py").write_text("def (:", encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_shed.py").write_text(MODULE.replace("cloth", "tests"), encoding="utf-8")
    return folder


def test_sources_of_a_folder(tmp_path: Path) -> None:
    pairs = read_pydocs(write(tmp_path))
    assert {pair.query_id: pair[:2] for pair in pairs} == {
        "shed": ("Weave cloth of many colours here.", "The cloth comes out of the loom in rolls."),
        "shed.wind": ("Wind the yarn onto a bobbin.", "It must not be wet or it will shrink."),
        "shed.wind.inner": ("Turn the bobbin just once around.", "The handle is on the left hand side."),
        "shed.Loom": ("A machine that weaves by hand.", "Its frame is made of ash wood."),
        "shed.Loom.weave": ("Pass the shuttle from side to side.", "Each pass is called a pick by weavers."),
    }
    assert all(pair[2:] == (1.0, pair.query_id, pair.query_id, pair.query_id) for pair in pairs)


def test_order_of_the_file_system_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path)
    (folder / "shed" / "more.py").write_text(MODULE.replace("bobbin", "spool"), encoding="utf-8")
    before = read_pydocs(folder)
    walk = os.walk

    def backwards(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for place, folders, files in walk(top):
            folders.reverse()
            yield place, folders, files[::-1]

    monkeypatch.setattr(os, "walk", backwards)
    assert read_pydocs(folder) == before


def test_twins_count_once() -> None:
    names = ["_io.open", "_pyio.open", "io.open", "_pyio.close", "_thread.start"]
    assert set(pydocs._one_of_twins(dict.fromkeys(names, ""))) == {"io.open", "_pyio.close", "_thread.start"}


def test_no_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = r"no Python sources here \(a zipped library\?\); use a Python whose library is installed as files"
    with pytest.raises(MatchloomError, match=message):
        read_pydocs(tmp_path)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "python311.zip"))
    with pytest.raises(MatchloomError, match=rf"python311\.zip: {message}"):
        read_pydocs()
    assert gc.isenabled()


@pytest.mark.slow
def test_standard_library(corpus: list[Pair]) -> None:
    words = Tokenizer("english")
    texts = [normalize_text(text) for pair in corpus for text in pair[:2]]
    # Without tkinter, as some systems leave it out, there are a few hundred less.
    assert 2400 <= len(corpus) <= 3300
    assert len(texts) == len(set(texts))
    assert all(5 <= len(words(text)) <= 50 for text in texts)
    assert not any(">>> " in text or ":param" in text for text in texts)
    names = [pair.query_id for pair in corpus]
    assert names == sorted(set(names))
    assert {"json.dump", "math.prod", "functools.lru_cache"} <= set(names)  # two of Python, one of C
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert not any(name.startswith(("test.", "idlelib.", "antigravity", "this")) for name in names)


def test_version() -> None:
    assert python_version() == platform.python_version()


CODE = """
import sys
from matchloom.data.pydocs import read_pydocs
from matchloom.data.identity import digest
raise SystemExit(digest(repr(read_pydocs())) != sys.argv[1])
"""


@pytest.mark.slow
def test_another_process_reads_the_same_and_says_nothing(corpus: list[Pair]) -> None:
    # There the C modules are imported for the first time, and sets have another order.
    command = [sys.executable, "-c", CODE, digest(repr(corpus))]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
