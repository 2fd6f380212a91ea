"""`matchloom reproduce lcs`: Match-SRNN and the longest common subsequence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from experiments.cli.reproduce_lcs import print_figure
from experiments.corpora.lcs import lcs_pairs, lcs_path, lcs_table
from experiments.reproduction.lcs import Checked, check, figure_4, matches, scans, train_lcs
from matchloom.matcher import Matcher
from matchloom.types import Pair
from tests.cli.conftest import Run, error_of
from tests.reference import spatial_gru


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.reproduction.lcs.LONGER", (12,))


@pytest.mark.slow
def test_it_trains_compares_and_draws(run: Run, tmp_path: Path) -> None:
    size = ["--pairs", 300, "--epochs", 2]
    result = run("reproduce", "lcs", *size, "--out", tmp_path / "net", "--plot", tmp_path / "four.png")
    assert result.code == 0, result.err
    assert "10 letters        1,000" in result.out
    assert "12 letters        1,000" in result.out
    programme = result.out.split("(a) dynamic programme\n")[1].splitlines()[:6]
    assert programme[0].split() == list("FACGD")
    assert programme[5].split() == ["E", "0", "1", "2", "2", "[3]"]  # the paper's example: three in common
    assert programme[4].split() == ["D", "0", "1", "2", "2", "[3]"]
    assert "(b) Match-SRNN\n" in result.out
    assert len(result.out.split("(c) its gates: left, top, diagonal\n")[1].splitlines()) == 6
    assert (tmp_path / "four.png").read_bytes().startswith(b"\x89PNG")
    again = run("reproduce", "lcs", "--matcher", tmp_path / "net")
    assert again.code == 0, again.err
    assert again.out == result.out


def test_what_cannot_be(run: Run, trained: Path, tmp_path: Path) -> None:
    assert error_of(run("reproduce", "lcs", "--first", "A B")).startswith("--first needs 1 to 60 letters")
    assert error_of(run("reproduce", "lcs", "--second", "")).startswith("--second needs 1 to 60 letters")
    assert error_of(run("reproduce", "lcs", "--plot", "a.gif")) == "the picture a.gif must end in .png, .svg or .pdf"
    assert "holds no network of this experiment" in error_of(run("reproduce", "lcs", "--matcher", trained))
    assert "is not a folder" in error_of(run("reproduce", "lcs", "--matcher", tmp_path / "none"))


@pytest.fixture(scope="module")
def network() -> Matcher:
    return train_lcs(pairs=2000, epochs=120, seed=0)


@pytest.mark.slow
def test_it_learns_the_dynamic_programme(network: Matcher) -> None:
    found = check(network, pairs=200, seed=0)
    assert found[:2] == (10, 200)
    assert found.lengths_right > 0.9  # the whole run, 10,000 pairs and 100 epochs, is in the results
    assert found.paths_right > 0.9
    assert found.error < 0.25


@pytest.mark.slow
def test_an_untrained_network_does_not(network: Matcher) -> None:
    untrained = train_lcs(pairs=50, epochs=1, seed=0)
    found = check(untrained, pairs=200, seed=0)
    assert found.lengths_right < 0.6
    assert found.paths_right < 0.6


@pytest.mark.slow
def test_scans_are_the_reference_cell_by_cell(network: Matcher) -> None:
    pair = Pair("A B C D E", "F A C G D")
    scan = scans(network, [pair])[0]
    a, b = pair.query.split(), pair.text.split()
    s = torch.tensor([[[float(x == y) for y in b] for x in a]])
    with torch.no_grad():
        h, z = spatial_gru.scan(network.model.scans[0], s)  # type: ignore[union-attr,index]
    weight, bias = network.model.head.weight[0].detach(), network.model.head.bias.detach()  # type: ignore[union-attr,index]
    for i in range(5):
        for j in range(5):
            assert scan.lengths[i, j] == pytest.approx(10 * float(weight @ h[i][j] + bias[0]), abs=1e-4)
            assert scan.gates[:, i, j].tolist() == pytest.approx([float(gate[0]) for gate in z[i][j][1:]], abs=1e-5)
    assert scan.lengths[-1, -1] == pytest.approx(10 * float(network.score([pair])[0]), abs=1e-4)


@pytest.mark.slow
def test_many_pairs_at_once_are_what_they_are_alone(network: Matcher) -> None:
    drawn = lcs_pairs(300, seed=5)
    for pair, scan in list(zip(drawn, scans(network, drawn), strict=True))[250:260]:
        alone = scans(network, [pair])[0]
        assert alone.path == scan.path
        assert abs(alone.lengths - scan.lengths).max() < 1e-5


def test_matches_of_a_path() -> None:
    a, b = "ABCDE", "FACGD"
    assert matches(a, b, lcs_path(a, b)) == [(0, 1), (2, 2), (3, 4)]
    assert matches("AA", "A", [(0, 0), (1, 0)]) == [(0, 0)]  # the second A was reached from above, not matched
    assert matches("A", "B", [(0, 0)]) == []
    assert lcs_table(a, b)[-1][-1] == 3


@pytest.mark.slow
def test_a_path_beside_the_matches_counts_as_wrong(network: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.reproduction.lcs.matching_path", lambda gates: [(0, 0)])
    assert isinstance(found := check(network, pairs=200, seed=0), Checked)
    assert found.paths_right < 0.5


@pytest.mark.slow
def test_a_wide_figure_is_not_cut(network: Matcher, capsys: pytest.CaptureFixture[str]) -> None:
    pair = Pair("G A T", " ".join("CATGATCATT"))
    print_figure("GAT", "CATGATCATT", figure_4(pair, scans(network, [pair])[0]))
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("T ")
    assert len(last.replace("[", " ").replace("]", " ").split()) == 1 + 3 * 10  # the letter, and three gates a cell
