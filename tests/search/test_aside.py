"""Fits that wait, files that are followed, and questions that an owner took away again."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.search.collection import Collection
from matchloom.search.feedback import Judgement
from matchloom.search.source import take_source
from tests.refusing import refused

ANSWERS = {"password": "Choose Reset password.", "invoice": "Ask sales for an invoice.", "parcel": "Use the link."}
ASKED = {
    "password": ["I forgot my password", "reset my password", "password lost"],
    "invoice": ["can I pay by invoice", "send me an invoice", "invoice for companies"],
    "parcel": ["where is my parcel", "track my parcel", "parcel not here"],
}


def write(path: Path, asked: dict[str, list[str]], **texts: str) -> Path:
    answers = {**ANSWERS, **texts}
    rows = [f'"{question}","{answers[name]}",{name}\n' for name, own in asked.items() for question in own]
    path.write_text("question,answer,text_id\n" + "".join(rows), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "faq.csv", ASKED)


@pytest.fixture
def faq(tmp_path: Path, file: Path) -> Collection:
    return Collection.create(tmp_path / "faq", file, learn_weights=True)


def test_a_fit_waits_until_it_is_taken_up_with_what_came_later(faq: Collection) -> None:
    with refused("missing"):
        faq.promote()
    faq.add([("gift cards?", "Under Gifts.")])
    done = faq.refit(aside=True)
    assert (done.aside, done.kept, faq.changed) == (True, False, 1)
    faq.add([("are you hiring", "See Jobs.")])
    assert faq.folder is not None
    other = Collection.open(faq.folder)
    assert other.promote().kept
    assert (faq.changed, len(faq)) == (1, 5), "what came later is there, and not learnt yet"
    assert faq.search("are you hiring", top=1)[0].text == "See Jobs."
    assert Collection.check(faq.folder)
    with refused("missing"):
        faq.promote()


def test_a_fit_that_waits_is_refused_after_another(faq: Collection) -> None:
    faq.refit(aside=True)
    faq.refit()
    with refused("conflict"):
        faq.promote()


def test_a_file_is_followed_and_what_was_added_here_stays(faq: Collection, file: Path) -> None:
    assert not take_source(faq, file).put
    faq.add([("gift cards?", "Under Gifts.", 1.0)])
    faq.apply([faq["invoice"]._replace(questions=(*faq["invoice"].questions, "bill me"))])
    asked = {**ASKED, "invoice": [*ASKED["invoice"][:2], "monthly invoice"]}
    del asked["parcel"]
    done = take_source(faq, write(file, asked, password="Choose Reset."))
    assert (done.put, done.removed, done.taken) == (2, 1, True)
    assert done.before is not None
    assert "parcel" not in faq
    assert faq["password"].text == "Choose Reset."
    assert set(faq["invoice"].questions) == {*asked["invoice"], "bill me"}
    assert faq.find("Under Gifts.") is not None
    assert not take_source(faq, file).put, "it says what is here"


def test_a_file_that_makes_it_worse_is_not_followed(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(40)]
    rows = [
        f'"how about {word} {more}","Answer {word}.",{word}\n' for word in words for more in ("now", "please", "then")
    ]
    file = tmp_path / "faq.csv"
    file.write_text("question,answer,text_id\n" + "".join(rows), encoding="utf-8")
    faq = Collection.create(tmp_path / "faq", file)
    take_source(faq, file)
    copies = [
        f'"how about {word} {more} {again}","{word} {word} it is.",copy-{word}\n'
        for word in words
        for more in ("now", "please", "then")
        for again in ("", "now", "then")
    ]
    file.write_text("question,answer,text_id\n" + "".join(rows + copies), encoding="utf-8")
    before = faq.entries
    done = take_source(faq, file)
    assert not done.taken
    assert faq.entries == before


def test_what_an_owner_took_away_is_not_learnt_again(faq: Collection) -> None:
    said = [Judgement("let me in", "password", True, time=1.0)]
    faq.refit(feedback=said)
    assert "let me in" in faq["password"].questions
    faq.apply([faq["password"]._replace(questions=tuple(ASKED["password"]))])
    faq.refit(feedback=said)
    assert "let me in" not in faq["password"].questions
    assert faq.folder is not None
    again = Collection.open(faq.folder)
    again.refit(feedback=[*said, said[0]._replace(who="another", time=2.0)])
    assert "let me in" not in again["password"].questions


def test_what_is_checked_first_keeps_everything_as_it_is(faq: Collection) -> None:
    def no(_: object) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        faq.apply([], ["parcel"], check=no)
    assert "parcel" in faq
    assert faq.apply([], ["parcel", "nobody"]).keys() == {"parcel", "nobody"}
    with refused("no_data"):
        faq.apply([], faq.entries.ids)
