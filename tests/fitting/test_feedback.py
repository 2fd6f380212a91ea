"""`fit` with judgements: an FAQ stays an FAQ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom import Pair, fit
from matchloom.search.feedback import FeedbackFile, Judgement
from tests.refusing import refused
from tests.search.test_judged import PAIRS, SLANG

FAQ = "".join(f"{pair.query}\t{pair.text}\t{pair.text_id}\n" for pair in PAIRS)


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    path = tmp_path / "faq.tsv"
    path.write_text("query\ttext\ttext_id\n" + FAQ, encoding="utf-8")
    return path


@pytest.fixture
def thumbs(tmp_path: Path) -> Path:
    file = FeedbackFile(tmp_path / "feedback.jsonl")
    file.keep(Judgement(SLANG, "password", True))
    file.keep(Judgement("parcel account", "parcel", False))
    file.keep(Judgement(PAIRS[0].query, "password", True))
    file.keep(Judgement("gone", "no such answer", True))
    return file.path


def test_fit_learns_from_judgements(faq: Path, thumbs: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    fitted = fit(faq, feedback=thumbs, out=tmp_path / "out", encoder=None, on_note=notes.append)
    assert fitted.kind == "answers"
    assert fitted.rank("login phrase")[0].id == "password"
    assert "parcel" not in [hit.id for hit in fitted.rank("parcel account")]
    assert len(fitted._collection()) == 4, "a judgement makes no answer"
    told = [line for line in notes if "judgements" in line]
    assert len(told) == 2, "what there was, and what is left aside"
    assert set(told) <= set(fitted.report.notes)
    alone = fit(faq, encoder=None)
    assert [one.test for one in alone.report.systems] == [one.test for one in fitted.report.systems]


def test_a_file_of_judgements_is_no_file_of_pairs(faq: Path, thumbs: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    line = {"query": "lost", "text": PAIRS[0].text, "label": 0, "text_id": "password", "system": "faq"}
    old.write_text(json.dumps(line) + "\n", encoding="utf-8")
    for file in (thumbs, old):
        with refused("conflict", file, "feedback="):
            fit(faq, file)
        with refused("conflict", file, "feedback="):
            fit(file)


def test_negatives_beside_an_faq_do_not_change_what_it_is(faq: Path, tmp_path: Path) -> None:
    labelled = tmp_path / "more.tsv"
    labelled.write_text(f"query\ttext\tlabel\nlost it\t{PAIRS[0].text}\t1\nlost it\tnothing\t0\n", encoding="utf-8")
    with refused("conflict", faq, labelled, "feedback=", "kind="):
        fit(faq, labelled)
    with refused("conflict", "source 1", "source 2"):
        fit(PAIRS, [Pair("lost it", "nothing", 0)])


def test_labels_and_none_go_together(faq: Path) -> None:
    again = [Pair(PAIRS[0].query, PAIRS[0].text, 1.0, text_id="password"), Pair("lost it", PAIRS[0].text, 1.0)]
    assert fit(faq, again, encoder=None).kind == "answers"


def test_judgements_are_of_answers(thumbs: Path) -> None:
    lists = [Pair(f"question {n}", f"text {m}", float(n % 3 == m)) for n in range(12) for m in range(3)]
    with refused("conflict", "feedback="):
        fit(lists, feedback=thumbs)
