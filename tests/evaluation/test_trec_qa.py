"""The figures that others can check, on the real TREC-QA (tokenised; clean = questions with both labels)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from matchloom.evaluation import evaluate
from matchloom.evaluation.report import Report
from matchloom.lexical import fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, read_vectors
from matchloom.types import Pair

pytestmark = pytest.mark.data

SPACE = Tokenizer("whitespace")


def read(folder: Path, name: str) -> list[Pair]:
    lines = (folder / "trecqa" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [Pair(question, answer, float(label), query_id=qid) for qid, question, answer, label in rows]


@pytest.fixture(scope="module")
def glove(data_dir: Path) -> WordVectors:
    words = {
        w.lower() for name in ("DEV.clean", "TEST") for p in read(data_dir, name) for w in f"{p.query} {p.text}".split()
    }
    return read_vectors(next((data_dir / "glove").glob("*.gz")), keep=words)


@pytest.fixture(scope="module")
def constant(data_dir: Path, glove: WordVectors) -> Report:
    pairs = read(data_dir, "TEST")  # raw: the subset protocol makes it clean
    return evaluate(np.zeros(len(pairs)), pairs, measures=["AP", "RR"], vectors=glove, tokenizer=SPACE)


def test_a_constant_scorer_gets_chance(constant: Report) -> None:
    assert constant.subset.line() == (
        "68 of 95 questions (with a positive and a negative; "
        "left out 6 without a positive and 21 without a negative), 1442 pairs"
    )
    assert constant.values["AP"] == pytest.approx(0.40, abs=0.065)  # three standard deviations of one order
    assert constant.high["AP"] == 1.0
    assert any(warning.startswith("the input lists positives first") for warning in constant.warnings)


@pytest.mark.parametrize(
    ("name", "ap", "rr"),
    [
        ("random", 0.398, 0.464),
        ("input order", 1.0, 1.0),
        ("overlap", 0.698, 0.782),
        ("bm25", 0.681, 0.767),
        ("bm25_stemmed", 0.695, 0.781),
        ("soft_coverage", 0.763, 0.857),
    ],
)
def test_baselines_on_clean_test(constant: Report, name: str, ap: float, rr: float) -> None:
    # The figures are means over random orders of tied scores; the ids that break ties move them this much.
    baseline = next(baseline for baseline in constant.baselines if baseline.name == name)
    assert baseline.measured.values["AP"] == pytest.approx(ap, abs=0.015)
    assert baseline.measured.values["RR"] == pytest.approx(rr, abs=0.025)


def test_soft_coverage_on_dev_where_it_was_chosen(data_dir: Path, glove: WordVectors) -> None:
    pairs = read(data_dir, "DEV.clean")
    scorer = fit_scorer("soft_coverage", {p.text for p in pairs}, tokenizer=SPACE, vectors=glove)
    report = evaluate(scorer, pairs, measures=["AP", "RR"], baselines=False)
    assert report.values["AP"] == pytest.approx(0.804, abs=0.01)
    assert report.values["RR"] == pytest.approx(0.874, abs=0.015)


def test_bm25_with_statistics_of_the_training_text(data_dir: Path) -> None:
    pairs = read(data_dir, "TEST.clean")
    train = {pair.text for pair in read(data_dir, "TRAIN-ALL")}
    report = evaluate(fit_scorer("bm25", train, tokenizer=SPACE), pairs, measures=["AP", "RR"], baselines=False)
    assert report.values["AP"] == pytest.approx(0.69, abs=0.01)
    assert report.values["RR"] == pytest.approx(0.79, abs=0.015)
