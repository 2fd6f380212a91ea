from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from experiments.corpora.insuranceqa import insuranceqa_answers, insuranceqa_lists, read_insuranceqa
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

ENGLISH = "7\tYes, it is.\n8\tNo; not in any of the states we know.\n9\tAsk your agent.\n"
CHINESE = "7\t是的。\n8\t不，不在我们知道的任何州。\n9\t问你的代理人。\n"
QUESTIONS = [
    {"id": "0", "en": "Is it law?", "zh": "是法律吗？", "domain": "auto", "answers": ["8", "7"], "negatives": ["9"]},
    {"id": "1", "en": "Whom to ask?", "zh": "问谁？", "domain": "home", "answers": ["9"], "negatives": ["8", "7"]},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "answers.en.tsv.gz", ENGLISH)
    write(tmp_path, "answers.zh.tsv.gz", CHINESE)
    write(tmp_path, "test.jsonl.gz", "".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return tmp_path


def write(folder: Path, name: str, content: str) -> None:
    (folder / name).write_bytes(gzip.compress(content.encode()))


def test_positive_pairs(folder: Path) -> None:
    first = Pair("Is it law?", "No; not in any of the states we know.", 1.0, "test-0", "8")
    second = Pair("Is it law?", "Yes, it is.", 1.0, "test-0", "7")
    third = Pair("Whom to ask?", "Ask your agent.", 1.0, "test-1", "9")
    assert read_insuranceqa(folder, "test") == [first, third]
    assert read_insuranceqa(folder, "test", gold="all") == [first, second, third]


def test_chinese(folder: Path) -> None:
    assert read_insuranceqa(folder, "test", language="zh")[1] == Pair("问谁？", "问你的代理人。", 1.0, "test-1", "9")


def test_own_lists(folder: Path) -> None:
    pairs = list(insuranceqa_lists(folder, "test"))
    assert [(pair.query_id, pair.text_id, pair.label) for pair in pairs] == [
        ("test-0", "8", 1.0),
        ("test-0", "7", 1.0),
        ("test-0", "9", 0.0),
        ("test-1", "9", 1.0),
        ("test-1", "8", 0.0),
        ("test-1", "7", 0.0),
    ]
    assert pairs[2].text == "Ask your agent."


def test_answers_cut(folder: Path) -> None:
    short = Tokenizer("english", max_words=2)
    assert insuranceqa_answers(folder, truncate=short) == {"7": "Yes, it", "8": "No; not", "9": "Ask your"}
    assert read_insuranceqa(folder, "test", truncate=short)[0].text == "No; not"
    assert {pair.text for pair in insuranceqa_lists(folder, "test", truncate=short)} == {
        "Yes, it",
        "No; not",
        "Ask your",
    }


def test_malformed(folder: Path) -> None:
    write(folder, "valid.jsonl.gz", json.dumps(QUESTIONS[0] | {"answers": ["77"]}))
    with pytest.raises(MatchloomError, match=r"valid\.jsonl\.gz, line 1: answer '77' is not among the answers"):
        read_insuranceqa(folder, "valid")
    write(folder, "valid.jsonl.gz", json.dumps(QUESTIONS[0]) + '\n{"id": 3}')
    with pytest.raises(MatchloomError, match=r"valid\.jsonl\.gz, line 2: "):
        list(insuranceqa_lists(folder, "valid"))
    write(folder, "answers.en.tsv.gz", "7\tYes\n8 No\n")
    with pytest.raises(MatchloomError, match=r"answers\.en\.tsv\.gz, line 2: expected 2 columns"):
        read_insuranceqa(folder, "test")


def test_unknown_arguments(folder: Path) -> None:
    with pytest.raises(MatchloomError, match=r"split 'dev' .* choose train, valid or test"):
        read_insuranceqa(folder, "dev")  # type: ignore[arg-type]
    with pytest.raises(MatchloomError, match=r"language 'de' .* choose en or zh"):
        insuranceqa_answers(folder, language="de")  # type: ignore[arg-type]
    with pytest.raises(MatchloomError, match=r"gold 'best' .* choose first or all"):
        read_insuranceqa(folder, "test", gold="best")  # type: ignore[arg-type]


@pytest.mark.data
@pytest.mark.parametrize("language", ["en", "zh"])
def test_published_counts(data_dir: Path, language: str) -> None:
    folder = data_dir / "insuranceqa"
    assert len(insuranceqa_answers(folder, language=language)) == 27413  # type: ignore[arg-type]
    splits = {"train": 12889, "valid": 2000, "test": 2000}
    for split, count in splits.items():
        assert len(read_insuranceqa(folder, split, language=language)) == count  # type: ignore[arg-type]


@pytest.mark.data
def test_published_lists(data_dir: Path) -> None:
    pairs = list(insuranceqa_lists(data_dir / "insuranceqa", "test"))
    assert sum(pair.label == 0 for pair in pairs) == 2000 * 200
    assert sum(pair.label == 1 for pair in pairs) == len(read_insuranceqa(data_dir / "insuranceqa", "test", gold="all"))
