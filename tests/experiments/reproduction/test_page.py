"""The page of a folder of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_rel

from experiments.reproduction.figures import draw_plots, drawable
from experiments.reproduction.page import results_page
from experiments.reproduction.summary import order_lines, p_value, t_test, table_rows, tie_lines
from experiments.reproduction.tables import read_table
from matchloom.evaluation import paired_randomisation

QUERIES = [f"q{n}" for n in range(12)]


def entry(seed: int, figure: float, **more: Any) -> dict[str, Any]:
    values = {"P@1": figure, "RR": figure + 0.1}
    return {
        "seed": seed,
        "commit": "abc",
        "development": {"P@1": figure - 0.1, "RR": figure},
        "test": values,
        "lowest": values,
        "highest": values,
        "other_subsets": {},
        "per_query": {query: float(n * 0.07 < figure) for n, query in enumerate(QUERIES)},
        "minutes": 2.0,
        "best_epoch": {},
        **more,
    }


def results(**systems: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = {"train": 1234, "development": 40, "test": 40}
    return {"protocol": "lists of four", "sizes": sizes, "machine": {"python": "3.11"}, "systems": systems}


PROBE = {"name": "text length", "note": "longer", "values": {"P@1": 0.2, "RR": 0.5}, "p": 0.4}
WHOLE = results(
    Random=[entry(0, 0.2), entry(1, 0.3)],
    BM25=[entry(0, 0.6, lowest={"P@1": 0.5, "RR": 0.7}, highest={"P@1": 0.62, "RR": 0.7})],
    Net=[entry(0, 0.4, resumed_at="def", probes=[PROBE])],
)
UNTESTED = {key: value for key, value in entry(0, 0.7).items() if key not in ("test", "lowest", "highest", "per_query")}


def write(folder: Path, name: str, done: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(done), encoding="utf-8")


def test_a_table_has_ours_beside_the_published() -> None:
    head, *rows = table_rows(read_table("colours"), WHOLE)
    found = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert list(found) == ["Random", "BM25", "Net"]
    assert found["Random"]["test P@1"] == "0.250 ±0.071"
    assert found["Random"]["seeds"] == "2"
    assert found["Random"]["p against Random"] == ""
    assert found["Net"]["published"] == "0.500 / 0.700"
    assert found["Net"]["dev P@1"] == "0.300"
    ours = list(WHOLE["systems"]["Net"][0]["per_query"].values())
    theirs = [
        (a + b) / 2 for a, b in zip(*(run["per_query"].values() for run in WHOLE["systems"]["Random"]), strict=True)
    ]
    assert found["Net"]["p against Random"] == f"{paired_randomisation(ours, theirs):.3f}"
    assert found["Net"]["t-test against Random"] == f"{ttest_rel(ours, theirs).pvalue:.3f}"


def test_nothing_is_tested_where_queries_are_others_or_unknown() -> None:
    one, other = entry(0, 0.5), entry(1, 0.5, per_query={"another": 1.0})
    assert p_value([one], [other]) is None
    assert p_value([one], [UNTESTED]) is None
    assert t_test([one], [entry(3, 0.5)]) is None
    assert p_value([one], []) is None


def test_ties_are_told_where_they_decide() -> None:
    assert tie_lines(read_table("colours"), WHOLE) == ["- BM25: P@1 0.500 to 0.620"]


def test_the_order_of_the_rows() -> None:
    said = "- test P@1: Spearman's correlation between the published order of 3 rows and ours is 0.50"
    assert order_lines(read_table("colours"), WHOLE) == [f"{said}; the paper's own model, Net, is number 2."]
    best = results(**{**WHOLE["systems"], "Net": [entry(0, 0.9)]})
    assert order_lines(read_table("colours"), best)[0].endswith("is 1.00; the paper's own model, Net, is first.")
    assert order_lines(read_table("colours"), results(BM25=[entry(0, 0.5)])) == []


def test_the_order_on_development_data(paper: Path) -> None:
    path = paper / "colours.toml"
    for value in (0.25, 0.4, 0.5):
        path.write_text(path.read_text().replace(f"published = [{value},", f"published_development = {value} # [", 1))
    (line,) = order_lines(read_table("colours"), WHOLE)
    assert line.startswith("- dev P@1: Spearman's correlation between the published order of 3 rows and ours is 0.50")


def test_the_page_has_tables_then_others_then_trials(tmp_path: Path) -> None:
    write(tmp_path, "colours", WHOLE)
    write(tmp_path, "trials_colours", results(**{"BM25, untested": [UNTESTED]}))
    write(tmp_path, "cloth.fast", WHOLE)
    page = results_page(tmp_path, [], "# Ours\n", ["## Others\n"], "## Choices\n")
    titles = [line for line in page.splitlines() if line.startswith("#")]
    sections = ["## Choices", "## Colours of cloth", "## Others", "## Trials", "### Trials of colours"]
    assert titles == ["# Ours", "## Summary", "## Contents", *sections]
    assert "| [Colours of cloth](#colours-of-cloth) | P@1 | BM25 | 0.500 | 0.600 | 1 |  |" in page
    assert "- [Trials](#trials)\n  - [Trials of colours](#trials-of-colours)\n" in page
    assert "`matchloom reproduce colours`: lists of four." in page
    assert "**Differences, and their likely reasons**\n\nCloth here is not the paper's." in page
    assert "- Net, text length (longer): P@1 0.200, RR 0.500, lowest p 0.4" in page
    assert "Pairs: train 1,234, development 40, test 40. python 3.11. Commits abc, def." in page
    assert "| system | dev P@1 | dev RR | seeds | minutes | published |" in page.partition("### Trials")[2]
    assert "##" not in results_page(tmp_path / "none", [], first="## Choices\n")


def test_a_probe_that_is_not_at_chance_is_told(tmp_path: Path) -> None:
    leaking = results(Net=[entry(0, 0.4, probes=[{**PROBE, "p": 1e-5}]), entry(1, 0.4, probes=[PROBE])])
    write(tmp_path, "colours", leaking)
    page = results_page(tmp_path, [])
    assert "lowest p 1e-05: **not at chance**" in page
    assert "**Not at chance: text length.**" in page
    assert "| 0.400 | 2 | text length |" in page
    write(tmp_path, "colours", WHOLE)
    assert "not at chance**" not in results_page(tmp_path, [])


def test_a_plot_is_drawn_where_its_data_are(tmp_path: Path, paper: Path) -> None:
    toml = (paper / "colours.toml").read_text().replace('name = "BM25"', 'name = "MV-LSTM cosine, k = 5"')
    (paper / "qa.toml").write_text(toml.replace('name = "Net, half"', 'name = "MV-LSTM cosine, k = 10"'))
    rows = {"MV-LSTM cosine, k = 10": [entry(0, 0.6), entry(1, 0.7)], "MV-LSTM cosine, k = 5": [entry(0, 0.5)]}
    write(tmp_path, "qa", results(**rows))
    assert draw_plots(tmp_path, tmp_path / "figures") == drawable(tmp_path) == ["mv_lstm_k"]
    assert (tmp_path / "figures" / "mv_lstm_k.png").read_bytes().startswith(b"\x89PNG")
    link = "![MV-LSTM's Table 2: P@1 of the cosine interaction against k](figures/mv_lstm_k.png)"
    assert link in results_page(tmp_path, ["mv_lstm_k"])
    assert "figures/" not in results_page(tmp_path, [])
    (paper / "qa.toml").write_text(toml.replace("Cloth here", "![k](figures/mv_lstm_k.png) Cloth here"))
    assert link not in results_page(tmp_path, ["mv_lstm_k"])


@pytest.mark.parametrize("content", [{}, {"rows": {"a": {"speed": {}}}}, {"rows": {"a": 3}}, {"rows": []}])
def test_results_with_other_fields_are_not_drawn(tmp_path: Path, content: dict[str, Any]) -> None:
    write(tmp_path, "encoders", content)
    write(tmp_path, "qa", results(**{"MV-LSTM cosine, k = 5": [UNTESTED]}))
    assert drawable(tmp_path) == []


@pytest.mark.slow
def test_every_plot_draws_the_projects_own_results(tmp_path: Path) -> None:
    ours = Path(__file__).parents[3] / "experiments" / "results"
    assert {"mv_lstm_k", "m2s_net_figure2", "cntn_figure3", "quality_speed"} <= set(draw_plots(ours, tmp_path))
