from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from matchloom.data.kinds import PAIRS
from matchloom.fitting.report import FitReport
from matchloom.fitting.verdict import verdict
from tests.fitting.samples import bare_report, small_report


def printed(report: FitReport) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(report)
    return out.getvalue()


def test_a_system_takes_one_line_in_the_terminal() -> None:
    long = [replace(one, about="about " * 50) for one in small_report().systems]
    lines = printed(replace(small_report(), systems=long)).splitlines()
    assert lines[0].startswith("On 100 test questions, ")
    assert "answer_ranker" in lines[0]
    assert [line.split()[0] for line in lines[1:6]] == ["system", *(one.name for one in long)]
    assert lines[2].split()[1:6] == ["0.400", "0.600", "0.500", "<.001", "1.2"]
    assert "(chosen)" in lines[5]
    assert lines[6] == "mv_lstm: it learnt nothing"
    assert lines[8:] == [*small_report().verdict, "Note: 14 questions stand twice in the file."]


def test_the_terminal_names_what_was_tested() -> None:
    assert printed(replace(small_report(), kind=PAIRS, tested=1)).startswith("On 1 test pair, ")
    assert printed(bare_report()).startswith("On 0 test questions, ")


def test_nothing_from_outside_drives_the_terminal() -> None:
    evil = replace(small_report(), verdict=["\x1b[2Jgone [bold]"], notes=["\x07"])
    assert "\ufffd[2Jgone [bold]" in printed(evil)
    assert "\x07" not in printed(evil)


def test_it_goes_through_json_and_back() -> None:
    for report in (small_report(), bare_report()):
        again = FitReport.from_dict(json.loads(json.dumps(report.to_dict())))
        assert json.loads(json.dumps(again.to_dict())) == json.loads(json.dumps(report.to_dict()))
        assert printed(again) == printed(report)


def test_the_verdict_says_where_another_was_better_on_the_test_questions() -> None:
    report = small_report()
    systems = [replace(one, test={**one.test, "P@1": 0.99}, p=0.01) for one in report.systems if not one.error][:1]
    others = [one for one in report.systems if one.name != systems[0].name]
    told = verdict(replace(report, systems=[*systems, *others]))
    assert told[0].startswith("answer_ranker, chosen on development questions, is kept: ")
    assert f"But {systems[0].name} was significantly better" in told[0]
    close = [replace(systems[0], p=0.6), *others]
    assert "significantly better" not in verdict(replace(report, systems=close))[0]


def test_the_verdict_names_the_figure_of_each_system() -> None:
    report = small_report()
    better = [replace(one, test={**one.test, "P@1": 0.85}, p=0.6) if one.baseline else one for one in report.systems]
    first = verdict(replace(report, systems=better))[0]
    assert first.startswith("Use answer_ranker: the right answer comes first for 80%")
    assert first.endswith("BM25 is no worse on these questions: P@1 0.850.")
    assert verdict(replace(report, chosen="bm25_stemmed"))[0].startswith("BM25 is as good on your data: the right")


def test_the_verdict_says_why_one_was_chosen_that_has_not_the_highest_figure() -> None:
    def told(ours: float, theirs: float, test: float, p: float = 0.7) -> str:
        systems = [one for one in small_report().systems if not one.error]
        other = replace(systems[1], name="linear_classifier", development={"P@1": theirs}, test={"P@1": test}, p=p)
        ranker = replace(systems[2], development={"P@1": ours}, test={"P@1": 0.714})
        return " ".join(verdict(replace(small_report(), systems=[other, ranker])))

    assert "linear_classifier has 0.750, 0.036 more, a difference that may be chance (p 0.700)." in told(
        0.54, 0.531, 0.75
    )
    assert "P@1 0.540; linear_classifier has 0.531" in told(0.54, 0.531, 0.75)
    for test in (0.7, 0.714, 0.75):
        lines = told(0.531, 0.54, test)
        assert "answer_ranker does not have the highest figure" in lines
        assert "linear_classifier has P@1 0.540, and answer_ranker 0.531" in lines
    assert "highest" not in told(0.54, 0.531, 0.7)
    assert "0.500, 0.214 less, a difference that is significant (p <.001)." in told(0.54, 0.531, 0.5, p=2e-5)
    assert "linear_classifier has 0.714, too." in told(0.54, 0.531, 0.714)


def test_test_questions_that_were_learnt_from_are_no_new_ones() -> None:
    lines = verdict(replace(small_report(), known=100))
    assert "of 100 test questions" in lines[0]
    assert lines[1].startswith("All 100 test questions are also training questions")
    assert verdict(replace(small_report(), known=7))[1].startswith("7 of the 100 test questions are")
