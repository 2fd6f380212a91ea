"""The settings of an archive in an object store, as they are read while others replace them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from matchloom.search.lance import home
from matchloom.search.lance.home import ObjectHome
from matchloom.search.lance.manifest import ArchiveManifest
from matchloom.text.tokenize import Tokenizer
from tests.refusing import refused

WHOLE = ArchiveManifest("pairs-1", Tokenizer(), written=7)


class Replaced:
    """A store whose file is cut off for some readings, as one that is replaced by a longer one is."""

    def __init__(self, cut_off: int) -> None:
        self._left = cut_off
        self.put_last = b""

    def read(self, name: str, most: int) -> bytes:
        self._left -= 1
        return WHOLE.content()[: None if self._left < 0 else -9]

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        self.put_last = b"".join(pieces)


def home_with(store: Replaced) -> ObjectHome:
    made = ObjectHome("s3://bucket/name?region=here")
    made.__dict__["_store"] = store  # where the cached property is kept
    return made


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_PAUSE", 0.0)


def test_settings_that_are_replaced_meanwhile_are_read_again() -> None:
    store = Replaced(3)
    assert home_with(store).read() == WHOLE
    home_with(store).write(WHOLE)
    assert store.put_last == WHOLE.content()


def test_damaged_settings_are_told() -> None:
    with refused("damaged", "s3://bucket/name/archive.json"):
        home_with(Replaced(1000)).read()
