"""Independent labelled pairs: figures over all of them, and probabilities wherever scores are shown."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from matchloom import Fitted, Matcher, fit
from matchloom.calibration import Calibration
from matchloom.data.formats import read_pairs
from matchloom.types import Pair
from tests.cli.conftest import SMALL, Run, error_of, write_tsv

WORDS = [f"{a}{b}" for a in ("ba", "ke", "lo", "mi", "nu", "po", "ra", "se") for b in ("den", "lar", "mik", "ton")]


def paraphrases(count: int, seed: int) -> list[Pair]:
    """Pairs that match where most words are shared."""
    rng = random.Random(seed)
    pairs = []
    for n in range(count):
        words = rng.sample(WORDS, 6)
        kept = rng.randint(4, 5) if n % 2 else rng.randint(0, 2)
        others = rng.sample([word for word in WORDS if word not in words], 6 - kept)
        pairs.append(Pair(f"n{n} " + " ".join(words), " ".join(words[:kept] + others) + f" m{n}", float(n % 2)))
    return pairs


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What fit makes of labelled pairs."""
    folder = tmp_path_factory.mktemp("fitted") / "pairs"
    fit(paraphrases(120, 0), out=folder)
    return folder


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [f"{pair.query}\t{pair.text}\t{pair.label:.0f}" for pair in paraphrases(60, 1)]
    path = tmp_path_factory.mktemp("labelled") / "test.tsv"
    return write_tsv(path, ["sentence1\tsentence2\tlabel", *rows])


def test_every_pair_is_measured_at_the_threshold_that_was_kept(run: Run, fitted: Path, labelled: Path) -> None:
    plain = json.loads(run("evaluate", fitted, labelled, "--json", "-").out)
    scorer, pairs = Fitted.load(fitted), paraphrases(60, 1)
    assert (plain["kind"], plain["pairs"], plain["positives"]) == ("pairs", 60, 30)
    assert plain["threshold"] == scorer.threshold
    said = scorer.score(pairs) >= plain["threshold"]
    assert plain["values"]["accuracy"] == pytest.approx(sum(said == [bool(pair.label) for pair in pairs]) / 60)
    assert plain["values"]["accuracy"] > 0.8
    assert list(plain["values"]) == ["AP", "AUC", "accuracy", "F1"]
    shown = run("evaluate", fitted, labelled, "--against", "bm25")
    assert shown.out.splitlines()[0].split() == ["AP", "AUC", "accuracy", "F1"]
    for told in (
        "a match from",
        "always the same",
        "overlap",
        "60 independent pairs, 30 of which match",
        "over 60 pairs",
    ):
        assert told in shown.out
    bm25 = run("evaluate", "bm25", labelled)
    assert "this scorer has no threshold" in bm25.out
    assert "--run is for candidate lists" in error_of(run("evaluate", "bm25", labelled, "--run", "x.run"))
    assert "--kind 'x' is unknown" in error_of(run("evaluate", "bm25", labelled, "--kind", "x"))
    assert "none of 60 questions counts" in error_of(run("evaluate", "bm25", labelled, "--kind", "lists"))


def test_score_and_rank_show_the_probability(run: Run, fitted: Path, labelled: Path, tmp_path: Path) -> None:
    result = run("score", fitted, labelled)
    rows = list(csv.DictReader(result.out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert list(rows[0]) == ["sentence1", "sentence2", "label", "score", "probability"]
    scorer, pairs = Fitted.load(fitted), paraphrases(60, 1)
    likely = scorer.probabilities(scorer.score(pairs))
    assert likely is not None
    assert [float(row["probability"]) for row in rows] == pytest.approx(likely.tolist(), abs=1e-6)
    plain = json.loads(run("rank", fitted, pairs[1].query, labelled, "--json").out)
    assert plain["ranking"][0]["text"] == pairs[1].text
    assert plain["ranking"][0]["probability"] == pytest.approx(float(likely[1]), abs=1e-6)
    assert run("rank", fitted, pairs[1].query, labelled).out.splitlines()[0].split() == ["score", "probability", "text"]


def test_a_matcher_trained_with_cross_entropy_has_probabilities(run: Run, labelled: Path, tmp_path: Path) -> None:
    sizes = [*SMALL, "--loss", "cross_entropy"]
    done = run("train", labelled, "--dev", labelled, "--out", tmp_path / "m", *sizes)
    assert done.code == 0, done.err
    matcher = Matcher.load(tmp_path / "m")
    pairs = list(read_pairs(labelled))
    scores = matcher.score(pairs)
    expected = Calibration.fit(scores, np.array([pair.label == 1 for pair in pairs]))
    assert matcher.threshold == pytest.approx(expected.threshold)
    result = run("score", tmp_path / "m", labelled)
    rows = list(csv.DictReader(result.out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        likely = expit(expected.slope * float(row["score"]) + expected.offset)
        assert float(row["probability"]) == pytest.approx(likely, abs=1e-5)
    assert "accuracy" in json.loads(run("evaluate", tmp_path / "m", labelled, "--json", "-").out)["values"]


def test_a_matcher_trained_with_hinge_has_none(run: Run, trained: Path, corpus: Path) -> None:
    matcher = Matcher.load(trained)
    assert (matcher.threshold, matcher.probabilities(matcher.score([Pair("a", "b")]))) == (None, None)
    assert "probability" not in run("score", trained, corpus / "test.tsv").out.splitlines()[0]
