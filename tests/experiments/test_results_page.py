"""The page of results says what the results say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from experiments.benchmarks import page, scale, search_tables
from experiments.benchmarks.split import split_pages
from experiments.reproduction.running import MINUTES

ROOT = Path(__file__).parents[2]


def cells(text: str) -> dict[str, list[str]]:
    """The rows of all tables of a section by their first cell."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}


def test_the_page_is_up_to_date() -> None:
    docs = ROOT / "docs"
    found = {path.relative_to(docs).as_posix() for path in (docs / "results").glob("*.md")} | {"results.md"}
    pages = page.results_pages()
    assert found == set(pages), "run: make docs"
    for name, made in pages.items():
        assert (docs / name).read_text(encoding="utf-8") == made, "run: make docs"


def test_each_section_has_a_page_and_links_lead_there() -> None:
    text = (
        "# R\n\n## Summary\n\n[a](#a-table)\n\n## Contents\n\n- x\n\n## A table\n\n![p](figures/p.png) [s](#summary)\n"
    )
    text += "\n## Trials\n\n### One, tried\n\nx [o](#one-tried) [r](reproduce.md) [w](https://w.org)\n"
    pages = split_pages(text, {"Answers": ["A table"]})
    assert list(pages) == ["results.md", "results/a-table.md", "results/trials.md"]
    assert "[a](results/a-table.md)" in pages["results.md"]
    assert "- [Trials](results/trials.md)" in pages["results.md"]
    assert pages["results.md"].index("Answers") < pages["results.md"].index("Summary")
    assert pages["results/a-table.md"] == "# A table\n\n![p](../figures/p.png) [s](../results.md#summary)\n"
    assert (
        "## One, tried\n\nx [o](trials.md#one-tried) [r](../reproduce.md) [w](https://w.org)"
        in pages["results/trials.md"]
    )


def test_the_minutes_of_the_package_are_up_to_date() -> None:
    assert MINUTES.read_text(encoding="utf-8") == page.known_minutes(), "run: make docs"


@pytest.mark.slow
def test_the_pictures_of_the_page_are_there() -> None:
    linked = re.findall(r"\]\((figures/[^)]*)\)", page.results_page())
    assert len(linked) > 2
    assert all((ROOT / "docs" / name).is_file() for name in linked), "run: make docs"


def test_results_that_are_missing_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    assert "##" not in page.results_page()


def test_faq() -> None:
    figures = {"bm25_stemmed": 0.1, "answer_ranker": 0.5}
    rows = [
        {"questions": size, "system": name, "P@1": [value, value + size / 1000]}
        for size in (100, 50)
        for name, value in figures.items()
    ]
    found = cells(search_tables.faq_table({"commit": "abc", "tested": 519, "rows": rows}))
    assert found["system"] == ["50", "100"]
    assert found["answer_ranker: what `fit` keeps without one"] == ["0.525", "0.550"]
    assert list(found)[-1] == "BM25 with each answer"


def test_quality() -> None:
    done = {"hwu64, 10, words, test": {"P@1": 0.8, "SVM": 0.7, "commit": "abc"}, "hwu64, 10, words, dev": {"P@1": 0.9}}
    section = search_tables.quality_table(done)
    assert cells(section)["data, questions per answer"] == ["P@1", "linear SVM", "commit"]
    assert cells(section)["hwu64, 10, words"] == ["0.800", "0.700", "abc"]
    assert search_tables.quality_table({}) == ""


def test_pairs() -> None:
    rival, ours = {"AP": 0.48, "pairs": 6000, "commit": "abc"}, {"AP": 0.52, "pairs": 6000, "commit": "def"}
    section = search_tables.pairs_table({"atec": {"pair_classifier": ours, "LR on TF-IDF": rival}})
    assert cells(section)["atec"] == ["6,000", "0.480", "0.520", "", "", "abc, def"]


def test_engines() -> None:
    one = {"searches_a_second": {"collection, not learnt": 500.0, "tantivy, top 100": 2000.0}, "open_seconds": 0.05}
    one["searches_a_cpu_second"] = {"collection, not learnt": 800.0, "tantivy, top 100": 2000.0}
    one |= {"added_and_found_seconds": 0.04, "megabytes": 40.0, "load": 2.0, "commit": "abc"}
    rates = {"collection, 200 at once": 300.0, "scikit-learn, 200 at once": 400.0}
    done = {"faq": {"searches_a_second": rates, "load": 1.0, "commit": "def"}, "10000": one}
    section = search_tables.engines_table(done)
    assert cells(section)["collection, not learnt"] == ["500", "0.25", "0.40"]
    assert cells(section)["collection, 200 at once"] == ["300", "0.75", ""]
    assert "an entry was added and found in 40 ms. Load 2.0. Commit abc." in section
    assert "scikit" not in search_tables.engines_table({"10000": one})


def test_archive() -> None:
    speeds = {"median_ms": 7.25, "p99_ms": 12.0, "searches_a_second": 1234.5}
    plain: dict[str, Any] = {
        "build_seconds": 12.345,
        "disk_mb": 20.0,
        "build_peak_mb": 900.0,
        "append_1000_seconds": 0.5,
        "search_peak_mb": 700.0,
        "recall": 0.985,
        "commit": "abc",
        "searches": {"stored vectors": speeds, "bm25 alone": speeds},
    }
    large = {**plain, "build_seconds": 3456.7, "searches": {"stored vectors": speeds}}
    recall = {"real": {"pairs": 10_000, "alpha 0.7": 0.99}}
    about = {"commit": "def", "encoder": "cntn", "python": "3.11", "cores": 2, "candidates": 100, "recall": recall}
    section = page.archive_table({**about, "sizes": {"10000": plain, "1000000": large}})
    found = cells(section)
    assert found["pairs"] == ["10,000", "1,000,000"]
    assert found["build, s"] == ["12.3", "3,457"]
    assert found["stored vectors: searches/s"] == ["1,234", "1,234"]
    assert found["bm25 alone: 99th percentile, ms"] == ["12", ""]
    assert found["first of all pairs is a candidate"] == ["98.5%", "98.5%"]
    assert "- real pairs (10,000): 99.0% at alpha 0.7" in section
    assert "Commits abc, def." in section


def test_retrieval() -> None:
    def runs(measure: str, *values: float) -> list[dict[str, Any]]:
        return [{"seed": n, "test": {measure: v}, "per_query": {"q": v, "r": v}} for n, v in enumerate(values)]

    def row(name: str, alpha: float | None, train: float, *values: float) -> dict[str, Any]:
        lists, archive = runs("AP", *values), runs("AP@100", *(v / 2 for v in values))
        return {"name": name, "alpha": alpha, "train": train, "lists": lists, "archive": archive}

    rows = [row("BM25", None, 0.65, 0.6), row("a + b", 0.3, 0.7, 0.5, 0.7), row("b + c", 0.5, 0.6, 0.9)]
    about = {"commit": "abc", "machine": {"python": "3.11"}, "archive": 438, "engine": {"AP": 0.71}}
    lists, archive = page.retrieval_tables({**about, "questions": {"train": 267, "dev": 50}, "rows": rows}).split(
        "\nAll "
    )
    assert "MAP chose **a + b**" in lists  # by training questions, not by dev
    assert cells(lists)["**a + b**"] == ["0.30", "0.700", "0.600 ±0.141", "1.000", "2"]
    assert cells(lists)["BM25"] == ["", "0.650", "0.600", "", "1"]
    assert cells(archive)["b + c"] == ["0.50", "0.600", "0.450", "0.500", "1"]  # two questions: four flips, two as far


def test_the_page_of_sizes_is_up_to_date() -> None:
    assert scale.PAGE.read_text(encoding="utf-8") == scale.page()
