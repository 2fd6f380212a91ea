"""A search never misses what was confirmed, also while another thread is reading what another process wrote."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from matchloom import Collection
from matchloom.search.view import View

PAIRS = [("how do I weave?", "Use a loom."), ("how do I grind corn?", "Use a mill.")]


def test_who_asks_while_another_follows_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = Collection.create(tmp_path / "faq", PAIRS), Collection.open(tmp_path / "faq")
    writer.add([("where is bread baked?", "In an oven.")])
    reached, go_on = threading.Event(), threading.Event()
    inner = View.changed

    def slow(view: View, change: object) -> View:
        reached.set()  # the journal is read, and the state does not hold it yet
        assert go_on.wait(30)
        return inner(view, change)  # type: ignore[arg-type]

    monkeypatch.setattr(View, "changed", slow)
    follower = threading.Thread(target=lambda: reader.search("bread", top=1))
    follower.start()
    assert reached.wait(30)
    assert not reader.is_quick, "whoever asks now must wait"
    found: list[str] = []
    asking = threading.Thread(target=lambda: found.append(reader.search("bread baked", top=1)[0].text))
    asking.start()
    go_on.set()
    follower.join()
    asking.join()
    assert found == ["In an oven."]
    assert reader.is_quick
