from __future__ import annotations

from pathlib import Path

import pytest

from experiments.corpora.wikiqa import read_wikiqa, wikiqa_files, write_wikiqa
from matchloom.types import MatchloomError

PLAIN = (
    "how is wool spun ?\tWool is spun on a wheel .\t1\n"
    'how is wool spun ?\tA " wheel turns .\t0\n'
    'how is wool spun ?\tA " wheel turns .\t0\n'
    "what is felt ?\tFelt is no cloth .\t0\n"
    "who wove ?\tAda wove .\t1\n"
)
RELEASE = (
    "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    "Q1\thow is wool spun?\tD1\tWool\tD1-0\tWool is spun on a wheel.\t1\n"
    'Q1\thow is wool spun?\tD1\tWool\tD1-1\tA " wheel turns.\t0\n'
    "Q2\twhat is felt?\tD2\tFelt\tD2-0\tFelt is no cloth.\t0\n"
)


def write(folder: Path, content: str) -> Path:
    path = folder / "wikiqa.txt"
    path.write_text(content, encoding="utf-8")
    return path


def test_plain(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN)
    pairs = read_wikiqa(path)
    assert [pair.label for pair in pairs] == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert pairs[1][:2] == ("how is wool spun ?", 'A " wheel turns .')
    assert len({pair.query_id for pair in pairs}) == 3
    assert len({pair.text_id for pair in pairs}) == 5  # the sentence listed twice too
    assert read_wikiqa(path, "answered") == [*pairs[:3], pairs[4]]
    assert read_wikiqa(path, "clean") == pairs[:3]


def test_release_keeps_its_ids(tmp_path: Path) -> None:
    pairs = read_wikiqa(write(tmp_path, RELEASE))
    assert [(pair.query_id, pair.text_id, pair.label) for pair in pairs] == [
        ("Q1", "D1-0", 1.0),
        ("Q1", "D1-1", 0.0),
        ("Q2", "D2-0", 0.0),
    ]
    assert pairs[1][:2] == ("how is wool spun?", 'A " wheel turns.')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PLAIN + "who ?\tcut off", "line 6: expected 3 columns .* found 2"),
        (PLAIN.replace("cloth .\t0", "cloth .\tno"), "line 4: expected a label of 0 or 1, found 'no'"),
        (RELEASE.replace("Label", "Score"), "line 1: expected the header"),
        (RELEASE.replace("\tFelt\t", "\t"), "line 4: expected 7 columns .* found 6"),
    ],
)
def test_malformed(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(MatchloomError, match=rf"wikiqa\.txt, {message}"):
        read_wikiqa(write(tmp_path, content))


def test_unknown_subset(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match="choose raw, answered or clean"):
        read_wikiqa(write(tmp_path, PLAIN), "all")  # type: ignore[arg-type]


def test_the_release_becomes_plain(tmp_path: Path) -> None:
    public, own = tmp_path / "public", tmp_path / "own"
    public.mkdir()
    own.mkdir()
    for part in ("train", "dev", "test"):
        (public / f"WikiQA-{part}.tsv").write_text(RELEASE, encoding="utf-8")
    (public / "WikiQA.tsv").write_text("all parts in one")
    assert {path.name: count for path, count in write_wikiqa(public, own).items()} == {
        "WikiQASent-dev.txt": 3,
        "WikiQASent-test.txt": 3,
        "WikiQASent-train.txt": 3,
    }
    parted = [pair[:3] for pair in read_wikiqa(own / "WikiQASent-dev.txt")]
    assert parted == [
        ("how is wool spun ?", "Wool is spun on a wheel .", 1.0),
        ("how is wool spun ?", "A `` wheel turns .", 0.0),
        ("what is felt ?", "Felt is no cloth .", 0.0),
    ]
    assert len(wikiqa_files(public)) == 3


@pytest.mark.parametrize(
    ("text", "parted"),
    [
        ('He said: "it\'s 1,000.5 (or so)."', "He said : `` it 's 1,000.5 ( or so ) . ''"),
        ("The U.S. didn't pay $5, or 10%.", "The U.S. did n't pay $ 5 , or 10 % ."),
        ("the weavers' looms -- all...", "the weavers ' looms -- all ..."),
        ("A partly submerged cave .", "A partly submerged cave ."),
    ],
)
def test_words_are_parted_as_in_the_plain_files(tmp_path: Path, text: str, parted: str) -> None:
    (tmp_path / "WikiQA-dev.tsv").write_text(RELEASE.replace("Felt is no cloth.", text), encoding="utf-8")
    own = tmp_path / "own"
    own.mkdir()
    write_wikiqa(tmp_path, own)
    assert read_wikiqa(own / "WikiQASent-dev.txt")[-1].text == parted


def test_plain_files_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "WikiQASent-dev.txt").write_text(PLAIN.replace("wheel .", "wheel . "), encoding="utf-8")
    own = tmp_path / "own"
    own.mkdir()
    write_wikiqa(tmp_path / "WikiQASent-dev.txt", own)
    assert (own / "WikiQASent-dev.txt").read_bytes() == (tmp_path / "WikiQASent-dev.txt").read_bytes()
    with pytest.raises(MatchloomError, match="no WikiQA-train, -dev or -test here"):
        write_wikiqa(write(tmp_path, PLAIN), own)


@pytest.mark.data
def test_the_plain_files_are_parted_already(data_dir: Path, tmp_path: Path) -> None:
    pairs = read_wikiqa(data_dir / "wikiqa" / "WikiQASent-dev.txt")
    release = "\t".join(("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label"))
    lines = [f"Q\t{pair.query}\tD\tT\t{n}\t{pair.text}\t{pair.label:.0f}" for n, pair in enumerate(pairs)]
    (tmp_path / "WikiQA-dev.tsv").write_text("\n".join([release, *lines]), encoding="utf-8")
    write_wikiqa(tmp_path / "WikiQA-dev.tsv", tmp_path)
    again = read_wikiqa(tmp_path / "WikiQASent-dev.txt")
    assert [" ".join(pair.text.split()) for pair in pairs] == [pair.text for pair in again]


@pytest.mark.data
def test_published_counts(data_dir: Path) -> None:
    counts = {}
    for split in ("train", "dev", "test"):
        pairs = read_wikiqa(data_dir / "wikiqa" / f"WikiQASent-{split}.txt")
        counts[split] = len(pairs), len({pair.query_id for pair in pairs})
    assert counts == {"train": (20360, 2118), "dev": (2733, 296), "test": (6165, 633)}


@pytest.mark.data
def test_published_subsets(data_dir: Path) -> None:
    path = data_dir / "wikiqa" / "WikiQASent-test.txt"
    assert len({pair.query_id for pair in read_wikiqa(path, "answered")}) == 243
    clean = read_wikiqa(path, "clean")
    assert len({pair.query_id for pair in clean}) == 237
    # The published qrels of the filtered test set list just these candidates.
    qrels = (path.parent / "WikiQASent-test-filtered.ref").read_text(encoding="utf-8").splitlines()
    assert len(clean) == len(qrels)
    assert sum(pair.label or 0.0 for pair in clean) == sum(line.endswith(" 1") for line in qrels)
