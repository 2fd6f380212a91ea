from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from matchloom import read_pairs
from matchloom.lexical import TransLM
from matchloom.text.tokenize import Tokenizer
from tests.cli.conftest import Run, error_of
from tests.cli.test_score import table


def test_the_folder_is_a_scorer_for_every_command(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    result = run("trans-lm", corpus / "train.tsv", "--out", out, "--beta", "0.7")
    assert result.code == 0, result.err
    assert result.out.startswith(f"{out}: ")
    train, test = (list(read_pairs(corpus / f"{name}.tsv")) for name in ("train", "test"))
    texts = dict.fromkeys(pair.text for pair in train)
    expected = TransLM.fit(texts, train, tokenizer=Tokenizer(max_words=200), beta=0.7).score(test)
    scored = run("score", out, corpus / "test.tsv")
    np.testing.assert_allclose([float(row["score"]) for row in table(scored.out)], expected, rtol=1e-5)
    measured = json.loads(run("evaluate", out, corpus / "test.tsv", "--json", "-", "--no-baselines").out)
    assert measured["scorer"] == "trans_lm"
    assert measured["values"]["P@1"] > 0.9  # every thing's words were seen with its name
    ranked = json.loads(run("rank", out, "cloth", corpus / "test.tsv", "--top", "1", "--json").out)
    assert "loom" in ranked["ranking"][0]["text"]
    explained = json.loads(run("explain", out, "cloth", "threads on a loom", "--json").out)
    assert explained["score"] > 0


def test_what_goes_wrong_is_one_line(run: Run, corpus: Path, tmp_path: Path) -> None:
    assert "'matchloom trans-lm' makes" in error_of(run("score", "trans_lm", corpus / "test.tsv"))
    smoothing = run("trans-lm", corpus / "train.tsv", "--out", tmp_path / "none", "--smoothing", "0")
    assert "smoothing above 0" in error_of(smoothing)
    assert not (tmp_path / "none").exists()
    taken = corpus / "train.tsv"
    assert "cannot be made a folder" in error_of(run("trans-lm", taken, "--out", taken))
