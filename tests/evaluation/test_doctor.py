from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.evaluation import Finding, audit
from tests.refusing import refused

QRELS = [(f"q{q}", f"d{d}", int(d == q % 4)) for q in range(12) for d in range(4)]


class Files:
    """Writes a run and its judgements and audits them."""

    def __init__(self, folder: Path) -> None:
        self.run, self.qrels = folder / "run", folder / "qrels"

    def audit(
        self, run: list[tuple[str, str, int, float]], qrels: list[tuple[str, str, int]] = QRELS
    ) -> dict[str, Finding]:
        self.run.write_text("".join(f"{q} Q0 {d} {rank} {score} tag\n" for q, d, rank, score in run), encoding="utf-8")
        self.qrels.write_text("".join(f"{q} 0 {d} {label}\n" for q, d, label in qrels), encoding="utf-8")
        findings = audit(self.run, self.qrels, ["AP", "P@1"])
        assert len({f.kind for f in findings}) == len(findings)
        assert all("\n" not in f.text for f in findings)
        return {f.kind: f for f in findings}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def sound_run() -> list[tuple[str, str, int, float]]:
    """The relevant text is first in the queries 0 to 5 and second in the others: AP .75, P@1 .5."""
    run = []
    for q in range(12):
        right, wrong = f"d{q % 4}", [f"d{d}" for d in range(4) if d != q % 4]
        order = [right, *wrong] if q < 6 else [wrong[0], right, *wrong[1:]]
        run += [(f"q{q}", d, rank, 1 / rank) for rank, d in enumerate(order, start=1)]
    return run


def test_a_sound_run(files: Files) -> None:
    findings = files.audit(sound_run())
    assert list(findings) == ["figure"]
    assert findings["figure"].text == "AP 0.7500, P@1 0.5000 over 12 judged queries"
    assert findings["figure"].figures == {"as trec_eval": {"AP": 0.75, "P@1": 0.5}}


def test_constant_scores_in_label_order(files: Files) -> None:
    run = [(q, d, 1, 7.0) for q, d, label in sorted(QRELS, key=lambda row: -row[2])]
    findings = files.audit(run)
    assert list(findings) == ["figure", "ties", "constant scores", "order follows labels"]
    ties = findings["ties"]
    assert ties.figures["lowest"] == {"AP": 0.25, "P@1": 0.0}
    assert ties.figures["highest"] == {"AP": 1.0, "P@1": 1.0}
    assert ties.figures["at random"]["AP"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, abs=0.06)
    # Ties by id, from the last: d3 d2 d1 d0, and each of them is right three times.
    assert ties.figures["as trec_eval"]["AP"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert ties.text.startswith(
        "scores are tied, and their order is free, in 12 queries: AP 0.5208 as trec_eval, 0.2500 lowest"
    )
    assert "throughout" in findings["constant scores"].text
    assert findings["order follows labels"].figures["in file order"] == {"AP": 1.0, "P@1": 1.0}


def test_some_constant_queries(files: Files) -> None:
    run = [(q, d, rank, 0.5 if q in ("q6", "q7") else score) for q, d, rank, score in sound_run()]
    finding = files.audit(run)["constant scores"]
    assert "one score in 2 queries" in finding.text
    assert finding.figures["over the others"]["AP"] == pytest.approx((6 + 4 * 0.5) / 10)


@pytest.mark.parametrize(("right", "place", "value"), [("z", "first", 1.0), ("a", "last", 1 / 3)])
def test_ids_that_follow_labels(files: Files, right: str, place: str, value: float) -> None:
    qrels = [(f"q{q}", d, int(d == right)) for q in range(12) for d in ("m", "n", right)]
    findings = files.audit([(q, d, 1, 0.0) for q, d, _ in qrels], qrels)
    assert f"put relevant texts {place}" in findings["ids follow labels"].text
    assert findings["figure"].figures["as trec_eval"]["AP"] == pytest.approx(value)


def test_scores_that_differ_beyond_float32(files: Files) -> None:
    run = [(q, d, rank, 1 + 1e-10 * (5 - rank)) for q, d, rank, _ in sound_run()]
    finding = files.audit(run)["near ties"]
    assert finding.figures["as float64"] == {"AP": 0.75, "P@1": 0.5}
    assert finding.figures["as float32"]["AP"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_missing_and_extra_queries(files: Files) -> None:
    run = [row for row in sound_run() if row[0] not in ("q6", "q7", "q8", "q9")] + [("new", "d0", 1, 1.0)]
    findings = files.audit(run)
    assert list(findings) == ["figure", "extra queries", "missing queries"]
    assert findings["extra queries"].text == "in the run but not judged: 1 query (new), which counts for nothing"
    missing = findings["missing queries"]
    assert missing.text.startswith(
        "judged but not answered: 4 queries (q6, q7, q8, ...): AP 0.5833 over all, 0.8750 over"
    )
    assert missing.figures["over answered"]["P@1"] == pytest.approx(6 / 8)


def test_not_a_number(files: Files) -> None:
    run = [(q, d, rank, float("nan") if (q, rank) == ("q0", 1) else score) for q, d, rank, score in sound_run()]
    findings = files.audit(run)
    finding = findings["not finite"]
    assert "NaN in 1 line, infinite in 0" in finding.text
    assert finding.figures["ranked first"]["AP"] == 0.75
    assert finding.figures["ranked last"]["AP"] == pytest.approx(0.75 - 0.75 / 12)


def test_infinite_scores_keep_their_place(files: Files) -> None:
    run = [(q, d, rank, {1: float("inf"), 4: float("-inf")}.get(rank, score)) for q, d, rank, score in sound_run()]
    findings = files.audit(run)
    assert findings["figure"].figures["as trec_eval"]["AP"] == 0.75
    assert "infinite in 24" in findings["not finite"].text


def test_duplicate_ids(files: Files) -> None:
    run = sound_run()
    run.append(("q0", "d0", 5, -1.0))  # its relevant text again, now last
    finding = files.audit(run)["duplicate ids"]
    assert "repeated in 1 line" in finding.text
    assert finding.figures["first line counts"]["AP"] == 0.75
    assert finding.figures["last line counts"]["AP"] == pytest.approx(0.75 - 0.75 / 12)


def test_ranks_against_scores(files: Files) -> None:
    run = [(q, d, rank, float(rank)) for q, d, rank, _ in sound_run()]  # distances, not similarities
    finding = files.audit(run)["ranks contradict scores"]
    assert "in 12 queries" in finding.text
    assert finding.figures["by rank column"]["AP"] == 0.75
    assert finding.figures["by score"]["AP"] == pytest.approx((1 / 4 + 1 / 3) / 2)


def test_one_sided_queries(files: Files) -> None:
    qrels = [*QRELS, ("yes", "d0", 1), ("no", "d0", 0)]
    finding = files.audit([*sound_run(), ("yes", "d0", 1, 1.0), ("no", "d0", 1, 1.0)], qrels)["one-sided queries"]
    assert "of 1 query with relevant texts only and of 1 with none" in finding.text
    assert finding.figures["over all"]["AP"] == pytest.approx((9 + 1 + 0) / 14)
    assert finding.figures["over the others"]["AP"] == 0.75


def test_judged_but_not_retrieved_counts_against_it(files: Files) -> None:
    findings = files.audit(sound_run(), [*QRELS, *((f"q{q}", "lost", 1) for q in range(12))])
    assert findings["figure"].figures["as trec_eval"]["AP"] == pytest.approx(0.375)


def test_judged_twice(files: Files) -> None:
    assert "1 judgement repeat" in files.audit(sound_run(), [*QRELS, QRELS[0]])["judged twice"].text


def test_nothing_to_audit(files: Files) -> None:
    with refused("no_data", "run"):
        files.audit([])
    with refused("no_data", "qrels"):
        files.audit(sound_run(), [])
    with refused("mismatch", "'x'", "'q0'"):
        files.audit([("x", "d0", 1, 1.0)])
    with refused("unreadable", "such"):
        audit(files.run.with_name("no-such-run"), files.qrels)
