from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from matchloom.data.corpora.cqa import read_cqa
from matchloom.data.ids import fold
from matchloom.types import MatchloomError

HEADER = "source\tgroup\tquestion\tanswer\n"
LINES = [
    "shop:looms\tB1\tIs it heavy?\tTwo people lift it.\n",
    "shop:looms\tB2\tis  it heavy?\tTwo people lift it.\n",
    "shop:looms\tB3\tIs it heavy?\tNot at all.\n",
    "forum\tB1\tDoes wool shrink?\tIn hot water it does.\n",
]


def write(folder: Path, content: str) -> Path:
    path = folder / "cqa.tsv.gz"
    path.write_bytes(gzip.compress(content.encode()))
    return path


def test_each_text_once_in_any_order(tmp_path: Path) -> None:
    for seed in range(5):
        pairs = read_cqa(write(tmp_path, HEADER + "".join(random.Random(seed).sample(LINES, 4))))
        assert [(pair[:3], pair.group) for pair in pairs] == [
            (("Does wool shrink?", "In hot water it does.", 1.0), "forum/B1"),
            (("Is it heavy?", "Not at all.", 1.0), "shop:looms/B3"),
        ]
        assert all(pair.query_id and pair.text_id for pair in pairs)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + LINES[0] + "shop\tB1\tcut o", "line 3: expected 4 columns .* found 3"),
        ("".join(LINES), "line 1: expected the header"),
    ],
)
def test_malformed(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(MatchloomError, match=rf"cqa\.tsv\.gz, {message}"):
        read_cqa(write(tmp_path, content))


@pytest.mark.data
def test_real_counts(data_dir: Path) -> None:
    path = data_dir / "cqa" / "cqa_5_50.tsv.gz"
    with gzip.open(path) as stream:
        assert sum(1 for _ in stream) - 1 == 24939
    pairs = read_cqa(path)
    texts = [fold(text) for pair in pairs for text in pair[:2]]
    assert len(pairs) == 21585
    assert len(set(texts)) == len(texts)
