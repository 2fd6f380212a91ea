"""The public layouts of InsuranceQA, from a few lines in each, against this project's own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from experiments.corpora.insuranceqa import (
    insuranceqa_answers,
    insuranceqa_lists,
    read_insuranceqa,
    write_insuranceqa,
)
from matchloom.types import MatchloomError, Pair

WORDS = ["Yes,", "it", "is.", "Ask", "your", "agent.", "Is", "law?", "Whom", "to", "ask?"]
ANSWERS = {"7": "Yes, it is.", "8": "Ask your agent.", "9": "it is. it is."}
QUESTIONS = [("auto", "Is it law?", ["8", "7"], ["9"]), ("home", "Whom to ask?", ["9"], ["8", "7"])]


def encoded(text: str) -> str:
    return " ".join(f"idx_{WORDS.index(word)}" for word in text.split())


def write(path: Path, content: str) -> None:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())


def vocabulary(path: Path) -> None:
    write(path, "".join(f"idx_{n}\t{word}\n" for n, word in enumerate(WORDS)))


def v1(folder: Path) -> None:
    vocabulary(folder / "vocabulary")
    write(folder / "answers.label.token_idx", "".join(f"{n}\t{encoded(text)}\n" for n, text in ANSWERS.items()))
    train = "".join(f"{encoded(text)}\t{' '.join(right)}\n" for _, text, right, _ in QUESTIONS)
    write(folder / "question.train.token_idx.label", train)
    for part in ("dev", "test1", "test2"):  # the pool holds the right answers too, and some twice
        lines = (
            f"{' '.join(right)}\t{encoded(text)}\t{' '.join([*right, *wrong, *wrong])}\n"
            for _, text, right, wrong in QUESTIONS
        )
        write(folder / f"question.{part}.label.token_idx.pool", "".join(lines))


def v2(folder: Path, kind: str = "raw", pool: int = 500) -> None:
    vocabulary(folder / "vocabulary.gz")
    answers = "".join(f"{n}\t{encoded(text)}\n" for n, text in ANSWERS.items())
    write(folder / f"InsuranceQA.label2answer.{kind}.encoded.gz", answers)
    lines = (
        f"{domain}\t{encoded(text)}\t{' '.join(right)}\t{' '.join([*wrong, *right])}\n"
        for domain, text, right, wrong in QUESTIONS
    )
    content = "".join(lines)
    for split in ("train", "valid", "test"):
        write(folder / f"InsuranceQA.question.anslabel.{kind}.{pool}.pool.solr.{split}.encoded.gz", content)


def chatopera(folder: Path) -> None:
    write(folder / "answers.json", json.dumps({n: {"zh": f"答{n}", "en": text} for n, text in ANSWERS.items()}))
    questions = {
        str(n): {"zh": f"问{n}", "en": "  ".join(text.split()), "domain": domain, "answers": right, "negatives": wrong}
        for n, (domain, text, right, wrong) in enumerate(QUESTIONS)
    }
    for split in ("train", "valid", "test"):
        write(folder / f"{split}.json.gz", json.dumps(questions))


LAYOUTS = {"V1": v1, "V2": v2, "Chatopera": chatopera}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_public_layout_gives_the_pairs_of_the_conversion(tmp_path: Path, layout: str) -> None:
    public, own = tmp_path / "public", tmp_path / "own"
    public.mkdir()
    own.mkdir()
    LAYOUTS[layout](public)
    written = write_insuranceqa(public, own)
    assert {path.name: count for path, count in written.items() if "zh" not in path.name} == {
        "answers.en.tsv.gz": 3,
        "train.jsonl.gz": 2,
        "valid.jsonl.gz": 2,
        "test.jsonl.gz": 2,
    }
    assert insuranceqa_answers(public) == insuranceqa_answers(own) == ANSWERS
    for split in ("valid", "test"):
        assert list(insuranceqa_lists(public, split)) == list(insuranceqa_lists(own, split))  # type: ignore[arg-type]
        assert len(list(insuranceqa_lists(public, split))) == 6  # type: ignore[arg-type]
    assert read_insuranceqa(public, "train", gold="all") == read_insuranceqa(own, "train", gold="all")
    assert read_insuranceqa(public, "train") == [
        Pair("Is it law?", "Ask your agent.", 1.0, "train-0", "8"),
        Pair("Whom to ask?", "it is. it is.", 1.0, "train-1", "9"),
    ]


def test_chinese_is_in_the_json_alone(tmp_path: Path) -> None:
    chatopera(tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    write_insuranceqa(tmp_path, own)
    assert read_insuranceqa(own, "test", language="zh") == read_insuranceqa(tmp_path, "test", language="zh")
    assert read_insuranceqa(own, "test", language="zh")[0] == Pair("问0", "答8", 1.0, "test-0", "8")
    released = tmp_path / "released"
    released.mkdir()
    v1(released)
    with pytest.raises(MatchloomError, match=r"released: no answers of InsuranceQA \(zh\) here"):
        read_insuranceqa(released, "test", language="zh")


def test_the_second_test_set_of_v1(tmp_path: Path) -> None:
    v1(tmp_path)
    assert [pair.query_id for pair in read_insuranceqa(tmp_path, "test2")] == ["test2-0", "test2-1"]
    assert all(pair.label == 1 for pair in insuranceqa_lists(tmp_path, "train"))  # no pool is published with it


def test_which_files_of_v2_are_taken(tmp_path: Path) -> None:
    v2(tmp_path, "token", 1500)
    v2(tmp_path, "token", 100)
    assert "100.pool" in _path_in_error(tmp_path)
    v2(tmp_path, "token", 500)
    assert "token.500.pool" in _path_in_error(tmp_path)
    v2(tmp_path, "raw", 1000)
    assert "raw.1000.pool" in _path_in_error(tmp_path)


def _path_in_error(folder: Path) -> str:
    """The name of the file that is read, told by its first line when an answer is missing."""
    for path in folder.glob("InsuranceQA.label2answer*"):
        write(path, "1\tidx_0\n")
    with pytest.raises(MatchloomError, match="line 1: answer '8' is not among the answers") as told:
        read_insuranceqa(folder, "test")
    return str(told.value)


@pytest.mark.parametrize(
    ("layout", "name", "content", "message"),
    [
        ("V1", "answers.label.token_idx", "7\tidx_0\n8\tidx_99\n", r"idx, line 2: 'idx_99' is not in the vocabulary"),
        ("V1", "question.train.token_idx.label", "idx_0\t8\tidx", r"label, line 1: expected 2 columns .* found 3"),
        ("V1", "question.train.token_idx.label", "idx_0\t \n", r"label, line 1: a question without a right answer"),
        ("V1", "vocabulary", "idx_0 Yes\n", r"vocabulary, line 1: expected 2 columns"),
        ("V1", "vocabulary", "idx_0\tsch\xf6n\n", "not UTF-8"),
        ("Chatopera", "train.json.gz", '{"0":\n{"en": "a"', r"train\.json\.gz, line 2: .*truncated"),
        ("Chatopera", "train.json.gz", '{"0":\n{"en": "a"]', r"train\.json\.gz, line 2: .*malformed"),
        ("Chatopera", "train.json.gz", '{"0": {"en": 7}}', r"train\.json\.gz: Expected `str`, got `int`.*en"),
        ("Chatopera", "answers.json", "[]", r"answers\.json: Expected `object`, got `array`"),
    ],
)
def test_malformed(tmp_path: Path, layout: str, name: str, content: str, message: str) -> None:
    LAYOUTS[layout](tmp_path)
    raw = content.encode("latin-1")
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    with pytest.raises(MatchloomError, match=message):
        read_insuranceqa(tmp_path, "train")


def test_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match=r"no answers of InsuranceQA \(en\) here; expected one of answers\.en"):
        read_insuranceqa(tmp_path, "train")
    v1(tmp_path)
    (tmp_path / "vocabulary").unlink()
    with pytest.raises(MatchloomError, match="vocabulary not found; fetch the whole release"):
        read_insuranceqa(tmp_path, "train")
    v2(tmp_path)
    (tmp_path / "InsuranceQA.question.anslabel.raw.500.pool.solr.test.encoded.gz").unlink()
    with pytest.raises(MatchloomError, match=r"no InsuranceQA\.question\.anslabel\.raw\.\*\.pool\.solr\.test"):
        read_insuranceqa(tmp_path, "test")
