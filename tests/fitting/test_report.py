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
    assert lines[0] == "On 100 test questions, measured once (p: against answer_ranker):"
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
    assert f"But {systems[0].name} was better on the test questions" in told[0]
    close = [replace(systems[0], p=0.6), *others]
    assert "better on the test" not in verdict(replace(report, systems=close))[0]
