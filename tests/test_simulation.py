"""Match-SRNN and the longest common subsequence."""

from __future__ import annotations

import pytest
import torch

from matchloom.data.corpora.lcs import lcs_pairs, lcs_path, lcs_table
from matchloom.matcher import Matcher
from matchloom.simulation import Checked, check, matches, scans, train_lcs
from matchloom.types import Pair
from tests.reference import spatial_gru


@pytest.fixture(scope="module")
def network() -> Matcher:
    return train_lcs(pairs=1000, epochs=100, seed=0)


def test_it_learns_the_dynamic_programme(network: Matcher) -> None:
    found = check(network, pairs=200, seed=99)
    assert found[:2] == (10, 200)
    assert found.lengths_right > 0.8  # the whole run, 10,000 pairs and 100 epochs, is in the results
    assert found.paths_right > 0.8
    assert found.error < 0.3


def test_an_untrained_network_does_not(network: Matcher) -> None:
    untrained = train_lcs(pairs=50, epochs=1, seed=0)
    found = check(untrained, pairs=200, seed=99)
    assert found.lengths_right < 0.6
    assert found.paths_right < 0.6


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


def test_a_path_beside_the_matches_counts_as_wrong(network: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchloom.simulation.matching_path", lambda gates: [(0, 0)])
    assert isinstance(found := check(network, pairs=200, seed=99), Checked)
    assert found.paths_right < 0.5
