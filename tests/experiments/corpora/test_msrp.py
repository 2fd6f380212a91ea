from __future__ import annotations

from pathlib import Path

import pytest

from experiments.corpora.msrp import read_msrp, write_msrp
from matchloom.types import MatchloomError, Pair

CONTENT = (
    "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    '1\t11\t12\tHe called it "the loom".\tHe said "loom.\r\n'
    "0\t21\t22\tYarn costs $2.\tCloth is dear.\r\n"
)


def test_read(tmp_path: Path) -> None:
    path = tmp_path / "msr.txt"
    path.write_bytes(CONTENT.encode())
    assert read_msrp(path) == [
        Pair('He called it "the loom".', 'He said "loom.', 1.0, "11", "12"),
        Pair("Yarn costs $2.", "Cloth is dear.", 0.0, "21", "22"),
    ]


def test_written_under_its_own_name(tmp_path: Path) -> None:
    public, own = tmp_path / "public", tmp_path / "own"
    public.mkdir()
    own.mkdir()
    with pytest.raises(MatchloomError, match=r"has no msr_paraphrase_t\*\.txt"):
        write_msrp(public, own)
    (public / "msr_paraphrase_test.txt").write_bytes(CONTENT.encode())
    assert write_msrp(public, own) == {own / "msr_paraphrase_test.txt": 2}
    assert read_msrp(own / "msr_paraphrase_test.txt") == read_msrp(public / "msr_paraphrase_test.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT.replace("\tCloth is dear.", ""), "line 3: expected 5 columns .* found 4"),
        (CONTENT.replace("1\t11", "yes\t11"), "line 2: expected a label of 0 or 1, found 'yes'"),
        (CONTENT.partition("\n")[2], "line 1: expected the header"),
    ],
)
def test_malformed(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "msr.txt"
    path.write_bytes(content.encode())
    with pytest.raises(MatchloomError, match=rf"msr\.txt, {message}"):
        read_msrp(path)


@pytest.mark.data
def test_published_counts(data_dir: Path) -> None:
    train, test = (read_msrp(data_dir / "msrp" / f"msr_paraphrase_{split}.txt") for split in ("train", "test"))
    assert (len(train), len(test)) == (4076, 1725)
    assert (sum(pair.label == 1 for pair in train), sum(pair.label == 1 for pair in test)) == (2753, 1147)
