"""What judgements teach: an entry's question, "not this one" for exactly one question, and nothing that hurts."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom import Collection
from matchloom.search import judged
from matchloom.search.feedback import FeedbackFile, Judgement
from matchloom.search.judged import Judged, settle
from matchloom.types import Pair

WORDS = {
    "password": ("Open the settings and choose Reset.", "reset my password", "password forgotten", "change a password"),
    "parcel": ("The mail has a link to its place.", "where is my parcel", "track a parcel", "parcel not arrived"),
    "invoice": ("Companies can, ask sales.", "pay by invoice", "send me an invoice", "invoice for companies"),
    "account": ("Write to us, and it is gone.", "delete my account", "close the account", "remove account data"),
}
PAIRS = [Pair(question, text, text_id=name) for name, (text, *asked) in WORDS.items() for question in asked]
SLANG = "my login phrase slipped my mind"


@pytest.fixture
def faq() -> Collection:
    return Collection.fit(PAIRS)


def first(faq: Collection, question: str) -> str:
    hits = faq.search(question)
    return hits[0].id if hits else ""


def test_right_is_a_question_of_that_answer(faq: Collection) -> None:
    report = faq.refit(feedback=[Judgement(SLANG, "password", True)]).feedback
    assert report is not None
    assert (report.right, report.wrong, report.learnt) == (1, 0, True)
    assert report.before is not None
    assert report.after is not None
    assert report.questions == len(PAIRS)
    assert first(faq, "login phrase") == "password"
    assert SLANG in faq["password"].questions
    assert len(faq) == len(WORDS), "no entry is made"


def test_wrong_is_not_the_answer_to_exactly_that_question(faq: Collection) -> None:
    asked = "parcel account"
    wrong, others = first(faq, asked), faq.search("parcel accounts")
    before = faq.search(asked)
    done = faq.refit(feedback=[Judgement(asked, wrong, False)])
    assert done.feedback is not None
    assert done.feedback.before is None, "nothing that held-out questions could tell"
    after = faq.search("PARCEL  account")
    assert [hit.id for hit in after] == [hit.id for hit in before if hit.id != wrong]
    assert [hit.probability for hit in after] == [hit.probability for hit in before if hit.id != wrong]
    assert len(faq.search(asked, top=2)) == 2
    assert faq.search("parcel accounts") == others
    assert faq.score([Pair(asked, WORDS[wrong][0])])[0] == pytest.approx(before[0].score), "a score is a score"


def test_a_baseline_leaves_it_out_too() -> None:
    faq = Collection.fit(PAIRS, baseline="bm25_stemmed")
    asked = "companies sales"
    assert first(faq, asked) == "invoice"
    faq.refit(feedback=[Judgement(asked, "invoice", False)])
    assert "invoice" not in [hit.id for hit in faq.search(asked, top=4)]
    assert first(faq, "sales companies") == "invoice"


def test_the_last_judgement_of_a_person_counts_and_of_people_the_majority(faq: Collection) -> None:
    up, down = Judgement(SLANG, "password", True, time=1.0), Judgement(SLANG.upper(), "password", False, time=2.0)
    entries = faq.entries

    def told(*given: Judgement) -> tuple[list[bool], int]:
        found = settle(given, entries, entries)
        return [one.right for one in found.verdicts], len(found.even)

    assert told(down, up) == ([False], 0), "by time, and not by the order of lines"
    assert told(up._replace(who="ann"), down._replace(who="bob")) == ([], 1)
    assert told(up._replace(who="ann"), up, down._replace(who="bob")) == ([True], 0)
    assert told(up._replace(who="ann"), down._replace(who="ann")) == ([False], 0)


def test_a_changed_mind_undoes_what_was_learnt(faq: Collection) -> None:
    faq.refit(feedback=[Judgement(SLANG, "password", True, "ann", 1.0)])
    faq.refit()
    assert SLANG in faq["password"].questions, "it stays learnt"
    both = [Judgement(SLANG, "password", True, "ann", 1.0), Judgement(SLANG, "password", False, "ann", 2.0)]
    faq.refit(feedback=both)
    assert SLANG not in faq["password"].questions
    assert "password" not in [hit.id for hit in faq.search(SLANG)]
    faq.refit(feedback=[*both, Judgement(SLANG, "password", True, "bob", 3.0)])
    assert faq.status()["judged"] == 0, "people do not agree any more"


def test_an_own_question_stays_with_its_answer(faq: Collection) -> None:
    report = faq.refit(feedback=[Judgement(q, name, False) for name, (_, *asked) in WORDS.items() for q in asked])
    assert report.feedback is not None
    assert report.feedback.contradicting == len(PAIRS)
    assert first(faq, "reset my password") == "password"
    assert any("are kept" in line for line in report.feedback.lines())


def test_judgements_of_removed_entries_are_left_aside(faq: Collection) -> None:
    given = [Judgement("box on its way", "parcel", True), Judgement("a", "nobody", True)]
    faq.remove(["parcel"])
    report = faq.refit(feedback=given).feedback
    assert report is not None
    assert (report.removed, report.right) == (2, 0)
    assert "parcel" not in faq
    faq.add([Pair("box gone", "The mail has a link to its place.", text_id="parcel")])
    report = faq.refit(feedback=given).feedback
    assert report is not None
    assert (report.removed, report.right) == (1, 1)


def test_what_makes_held_out_questions_worse_is_not_learnt(faq: Collection) -> None:
    asked = [f"{q} {more}" for _, *own in WORDS.values() for q in own for more in ("please", "now", "again", "today")]
    away = {"password": "parcel", "parcel": "invoice", "invoice": "account", "account": "password"}
    right = {q: name for name, (_, *own) in WORDS.items() for q in own}
    poison = [Judgement(q, away[right[q.rpartition(" ")[0]]], True) for q in asked]
    before = [first(faq, q) for q in asked]
    report = faq.refit(feedback=poison)
    assert report.feedback is not None
    assert not report.feedback.learnt
    assert report.kept, "the entries are refitted all the same"
    assert (report.feedback.after or 0.0) < (report.feedback.before or 0.0)
    assert [first(faq, q) for q in asked] == before
    assert faq.status()["judged"] == 0
    assert report.feedback.lines()[-1].startswith("They are not used")


def test_it_is_kept_in_the_folder(faq: Collection, tmp_path: Path) -> None:
    faq.save(tmp_path / "faq")
    file = FeedbackFile(tmp_path / "feedback.jsonl")
    file.keep(Judgement(SLANG, "password", True, system="faq"))
    file.keep(Judgement("parcel account", "parcel", False, system="faq"))
    file.keep(Judgement("parcel account", "parcel", False, system="another"))
    other = Collection.open(tmp_path / "faq")
    report = Collection.open(tmp_path / "faq").refit(feedback=file.path).feedback
    assert report is not None
    assert report.judgements == 2, "those of the other system are another's"
    for one in (other, Collection.open(tmp_path / "faq")):
        assert first(one, "login phrase") == "password"
        assert "parcel" not in [hit.id for hit in one.search("parcel account")]
        assert one.status()["judged"] == 2
    assert Collection.check(tmp_path / "faq")


def test_few_questions_cannot_be_held_out() -> None:
    faq = Collection.fit(PAIRS[:4])
    report = faq.refit(feedback=[Judgement(SLANG, "password", True)]).feedback
    assert report is not None
    assert (report.learnt, report.before, report.questions) == (True, None, 0)
    assert first(faq, "login phrase") == "password"


def test_many_questions_are_held_out_once(faq: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "_CROSSED", 5)
    report = faq.refit(feedback=[Judgement(SLANG, "password", True)]).feedback
    assert report is not None
    assert 0 < report.questions < len(PAIRS)


def test_old_folders_have_no_judgements() -> None:
    assert Judged.load({}) == Judged()
