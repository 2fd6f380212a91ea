"""Kills at random moments of a process that adds, removes and fits anew: what was confirmed is there, all is whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from matchloom.search.collection import Collection
from tests.killed import change_forever, run_and_kill
from tests.search.collections import ENGLISH, pairs_of


def batches_of(collection: Collection) -> dict[int, set[str]]:
    """Which answers of each batch are there."""
    found: dict[int, set[str]] = {}
    for name in collection.entries.ids:
        number, _, own = name.partition("-")
        if own:
            found.setdefault(int(number), set()).add(own)
    return found


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_nothing_confirmed_is_lost_and_nothing_is_half_there(tmp_path: Path, kills: int) -> None:
    folder = tmp_path / "kept"
    Collection.fit(pairs_of(ENGLISH), learn_weights=False).save(folder)
    reader = Collection.open(folder)  # which lives through all of it
    draw = random.Random(kills)
    added, removed, first = set(), set(), 0
    for kill in range(kills):
        said = run_and_kill(
            change_forever, tmp_path / "report", folder, first, kill % 2 == 1, after=draw.uniform(0, 0.25), lines=2
        )
        for line in said:
            what, _, number = line.strip().partition(" ")
            if what == "add":
                added.add(int(number))
            elif what == "remove":
                removed.add(int(number))
        opened = Collection.open(folder)
        checked = Collection.check(folder)
        assert checked, checked
        found = batches_of(opened)
        assert found == batches_of(reader)
        assert added <= found.keys()
        # One more may have been on its way, and is there whole.
        assert len(found.keys() - added) <= 1 + kill
        for number, own in found.items():
            assert own == {"1", "2"} or (own == {"0", "1", "2"} and number not in removed), (number, own)
        added |= found.keys()
        removed |= {number for number, own in found.items() if "0" not in own}
        asked = f"question 1 of batch{max(added)}"
        assert opened.search(asked, top=1)[0].text == f"answer 1 of {max(added)}"
        assert opened.search(asked, top=3) == reader.search(asked, top=3)
        first = max(added) + 1
    reader.add([("the end", "It is the end.")])
    assert Collection.open(folder).search("the end", top=1)[0].text == "It is the end."
    assert reader.refit().entries == len(reader)
    left = sorted(path.name.partition("-")[0] for path in folder.iterdir())
    assert left == ["changes", "changes", "collection.json", "index"], "what the dead left is swept by the next fit"
