from __future__ import annotations

from pathlib import Path

import pytest

from experiments.corpora.trecqa import read_trecqa, trecqa_files, trecqa_questions, write_trecqa
from matchloom.types import MatchloomError

QUESTION = "<QApairs id='{}'>\n<question>\n{}\nWP\tVBZ\n2\t0\n</question>\n"
XML = (
    QUESTION.format("1.1", "Who\twove\t``\tBlue\t&\tGold\t''\t?")
    + "<positive>\nAda\twove\tit\t.\nNNP\tVBD\tPRP\t.\nAda\t\n1\t\n</positive>\n"
    + "<negative>\nIt\tis\t<\tblue\t.\nPRP\tVBZ\t<\tJJ\t.\n</negative>\n</QApairs>\n"
    + QUESTION.format("1.2", "Who\tasked\t?")
    + "</QApairs>\n"
    + QUESTION.format("1.3", "Where\t?")
    + "<positive>\nIn\tBath\t.\nIN\tNNP\t.\n</positive>\n</QApairs>\n"
)
TSV = (
    "qid\tquestion\tanswer\tlabel\n"
    "1.1\tWho wove `` Blue & Gold '' ?\tAda wove it .\t1\n"
    "1.1\tWho wove `` Blue & Gold '' ?\tIt is < blue .\t0\n"
    "1.3\tWhere ?\tIn Bath .\t1\n"
)


def write(folder: Path, content: str) -> Path:
    path = folder / "data.txt"
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("content", [XML, TSV, XML.replace("'1.1'", '"1.1"')])
def test_both_formats_give_the_same_pairs(tmp_path: Path, content: str) -> None:
    path = write(tmp_path, content)
    pairs = read_trecqa(path)
    question = "Who wove `` Blue & Gold '' ?"
    assert [pair[:4] for pair in pairs] == [
        (question, "Ada wove it .", 1.0, "1.1"),
        (question, "It is < blue .", 0.0, "1.1"),
        ("Where ?", "In Bath .", 1.0, "1.3"),
    ]
    assert len({pair.text_id for pair in pairs}) == 3
    assert read_trecqa(path, "clean") == pairs[:2]


def test_questions_without_candidates_are_counted(tmp_path: Path) -> None:
    assert list(trecqa_questions(write(tmp_path, XML))) == ["1.1", "1.2", "1.3"]
    assert list(trecqa_questions(write(tmp_path, TSV))) == ["1.1", "1.3"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (XML[:-12], r"line 34: the file ends within question 1\.3"),
        (XML.replace("</positive>\n<negative>", "<negative>"), "line 12: expected </positive> before <negative>"),
        (XML.replace("Ada\twove\tit\t.\n", "\n"), "line 8: expected words, separated by tabs, after <positive>"),
        (XML.replace("1.3", "1.1"), r"line 25: question 1\.1 was there before"),
        (XML.replace("<question>", "<answer>", 1), "line 2: expected <QApairs .* found '<answer>'"),
        ("<question>\nWho\t?\n</question>\n", "line 1: expected <QApairs"),
        ("<QApairs id='1'>\n<positive>\nYes\n</positive>\n</QApairs>", "line 3: a candidate before the words"),
        (TSV.replace("blue .\t0", "blue ."), r"line 3: expected 4 columns .* found 3"),
        (TSV.replace("Bath .\t1", "Bath .\t"), "line 4: expected a label of 0 or 1, found ''"),
        (TSV.replace("1.3\t", "1.1\t"), r"line 4: question 1\.1 had another text before"),
        (TSV.replace("qid", "id"), "line 1: expected the header"),
        ("", "empty file"),
    ],
)
def test_malformed(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(MatchloomError, match=rf"data\.txt(, |: ){message}"):
        read_trecqa(write(tmp_path, content))


def test_unknown_subset(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match="subset 'dirty' of TREC-QA is unknown"):
        read_trecqa(write(tmp_path, TSV), "dirty")  # type: ignore[arg-type]


def test_the_names_of_the_release(tmp_path: Path) -> None:
    public, own = tmp_path / "public", tmp_path / "own"
    public.mkdir()
    own.mkdir()
    names = ("train2393.cleanup", *(f"{part}-less-than-40.manual-edit" for part in ("train", "dev", "test")))
    for name in names:
        (public / f"{name}.xml").write_text(XML, encoding="utf-8")
    assert list(trecqa_files(public)) == ["DEV", "TEST", "TRAIN", "TRAIN-ALL"]
    written = {path.stem: count for path, count in write_trecqa(public, own).items()}
    assert written == {"TRAIN-ALL": 3, "TRAIN": 3, "DEV": 3, "TEST": 3, "DEV.clean": 2, "TEST.clean": 2}
    pairs = read_trecqa(public / "train2393.cleanup.xml")
    assert read_trecqa(own / "TRAIN-ALL.tsv") == read_trecqa(own / "TEST.tsv") == pairs
    assert read_trecqa(own / "TEST.clean.tsv") == pairs[:2]
    assert (own / "TEST.tsv").read_text(encoding="utf-8") == TSV


@pytest.mark.data
@pytest.mark.parametrize("name", ["TRAIN", "DEV", "TEST"])
def test_the_conversion_is_the_file_that_is_there(data_dir: Path, tmp_path: Path, name: str) -> None:
    write_trecqa(data_dir / "trecqa" / "xml" / f"{name}.xml", tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (data_dir / "trecqa" / path.name).read_bytes()


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "questions", "pairs"),
    [
        ("TRAIN-ALL.tsv", 1229, 53417),
        ("TRAIN.tsv", 93, 4718),
        ("DEV.tsv", 81, 1148),
        ("TEST.tsv", 95, 1517),
        ("xml/TRAIN.xml", 94, 4718),
        ("xml/DEV.xml", 82, 1148),
        ("xml/TEST.xml", 100, 1517),
        ("DEV.clean.tsv", 65, 1117),
        ("TEST.clean.tsv", 68, 1442),
    ],
)
def test_published_counts(data_dir: Path, name: str, questions: int, pairs: int) -> None:
    path = data_dir / "trecqa" / name
    assert len(trecqa_questions(path)) == questions
    assert len(read_trecqa(path)) == pairs


@pytest.mark.data
@pytest.mark.parametrize("name", ["DEV", "TEST"])
def test_clean_by_rule_is_the_clean_file(data_dir: Path, name: str) -> None:
    folder = data_dir / "trecqa"
    clean = set(read_trecqa(folder / f"{name}.clean.tsv"))
    assert set(read_trecqa(folder / f"{name}.tsv", "clean")) == clean
    assert set(read_trecqa(folder / "xml" / f"{name}.xml", "clean")) == clean
