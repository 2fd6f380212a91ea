from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from experiments.corpora.cqa import read_cqa, write_cqa
from matchloom.data.identity import normalize_text
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


def public(folder: Path) -> None:
    """The public layouts, with texts that are too short or too long among them."""
    shop = [
        {"asin": "B1", "question": "Is this loom very heavy?", "answer": "It takes two people to lift it."},
        {"asin": "B2", "question": "Is this loom very heavy?", "answer": "It takes two people to lift it."},
        {"asin": "B3", "question": "Is it  oak?", "answer": "It is made of oak and ash."},
        {"asin": "B4", "question": "Does it come with a bench?", "answer": "no " * 51},
    ]
    (folder / "qa_Looms.json.gz").write_bytes(gzip.compress("".join(f"{row!r}\n" for row in shop).encode()))
    several = {"asin": "B5", "questions": [{"questionText": "Will it fit a small room?"}]}
    several["questions"][0]["answers"] = [{"answerText": "It will if the room is empty."}]  # type: ignore[index]
    (folder / "QA_Wool.json").write_text(json.dumps(several))
    forum = [
        {"url": "http://x/1", "tags": [], "question": "does wool itch on skin?", "answer": "only coarse wool does so"}
    ]
    (folder / "weaversQAs.json").write_text(json.dumps(forum))
    page = '<Document id="7"><QAPairs><QAPair><Question>What are the kinds of looms ?</Question>'
    page += "<Answer>There are floor looms and table looms.</Answer></QAPair></QAPairs></Document>"
    (folder / "3_Guild_QA").mkdir()
    (folder / "3_Guild_QA" / "0007.xml").write_text(page)
    (folder / "README.md").write_text("not for us")


def test_public_files_give_the_pairs_of_the_table(tmp_path: Path) -> None:
    folder, own = tmp_path / "public", tmp_path / "own"
    folder.mkdir()
    own.mkdir()
    public(folder)
    assert write_cqa(folder, own) == {own / "cqa_5_50.tsv.gz": 4}
    pairs = read_cqa(folder)
    assert read_cqa(own / "cqa_5_50.tsv.gz") == pairs
    assert [(pair.query, pair.group) for pair in pairs] == [
        ("does wool itch on skin?", "lasseregin:weaversQAs/http://x/1"),
        ("Is this loom very heavy?", "amazon:Looms/B1"),
        ("What are the kinds of looms ?", "medquad:3_Guild_QA/7"),
        ("Will it fit a small room?", "amazon:Wool_multi/B5"),
    ]
    assert [pair.query for pair in read_cqa(folder / "weaversQAs.json")] == ["does wool itch on skin?"]


def test_a_folder_of_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("hello")
    with pytest.raises(MatchloomError, match=r"has no file of community questions; expected qa_\*\.json\.gz"):
        read_cqa(tmp_path)


@pytest.mark.data
def test_real_counts(data_dir: Path) -> None:
    path = data_dir / "cqa" / "cqa_5_50.tsv.gz"
    with gzip.open(path) as stream:
        assert sum(1 for _ in stream) - 1 == 24939
    pairs = read_cqa(path)
    texts = [normalize_text(text) for pair in pairs for text in pair[:2]]
    assert len(pairs) == 21585
    assert len(set(texts)) == len(texts)
