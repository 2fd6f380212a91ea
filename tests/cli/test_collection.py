"""The commands that make, change and search a collection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom import Collection
from matchloom.search.feedback import FeedbackFile, Judgement
from tests.cli.conftest import Run, error_of, write_tsv

HEADER = "question\tanswer\ttext_id\tcategory\turl"
ROWS = [
    "How do I reset my password?\tOpen the settings.\tpassword\taccount\thttps://x/1",
    "I forgot my password\tOpen the settings.\tpassword\taccount\thttps://x/1",
    "Where is my parcel?\tThe mail has a link.\tparcel\tshipping\t",
    "Has my parcel left?\tThe mail has a link.\tparcel\tshipping\t",
    "Can I pay by invoice?\tCompanies can.\tinvoice\tbilling\t",
    "Do you send bills?\tCompanies can.\tinvoice\tbilling\t",
]


@pytest.fixture
def faq(run: Run, tmp_path: Path) -> Path:
    done = run("index", tmp_path / "faq", write_tsv(tmp_path / "faq.tsv", [HEADER, *ROWS]))
    assert done.code == 0, done.err
    return tmp_path / "faq"


def ids(run: Run, folder: Path, question: str, *more: str) -> list[str]:
    done = run("search", folder, question, "--json", *more)
    assert done.code == 0, done.err
    return [one["id"] for one in json.loads(done.out)["answers"]]


def test_index_makes_a_collection_and_adds_to_it(run: Run, faq: Path, tmp_path: Path) -> None:
    status = json.loads(run("index", faq, "--json").out)
    assert (status["entries"], status["questions"], status["learnt"]) == (3, 6, False)
    more = write_tsv(tmp_path / "more.tsv", ["question\tanswer\tlabel", "Can I call you?\tAt noon.\t1", "no\tno\t0"])
    done = run("index", faq, more, "--json")
    assert [json.loads(done.out)[name] for name in ("added", "replaced", "entries")] == [1, 0, 4]
    assert "1 pairs of" in done.err
    done = run("index", faq, "--delete", "parcel", "--delete", "nobody", "--json")
    assert (done.code, json.loads(done.out)["deleted"]) == (2, 1)
    assert len(Collection.open(faq)) == 3


def test_own_columns_are_shown_and_filter(run: Run, faq: Path) -> None:
    shown = run("search", faq, "forgot password", "--top", 1).out
    assert "url https://x/1" in shown
    assert "category account" in shown
    found = json.loads(run("search", faq, "parcel", "--json").out)["answers"][0]
    assert (found["id"], found["columns"]) == ("parcel", {"category": "shipping"})
    assert ids(run, faq, "my parcel and password", "--where", "category=account") == ["password"]
    both = ids(run, faq, "my parcel and password", "--where", "category=account", "--where", "category=shipping")
    assert sorted(both) == ["parcel", "password"]


def test_add_takes_a_file_or_one_pair(run: Run, faq: Path, tmp_path: Path) -> None:
    more = write_tsv(tmp_path / "more.csv", ["title,body", "Do you ship to Norway?,Within a week."])
    assert run("add", faq, more, "--columns", "query=title,text=body").code == 0
    done = run("add", faq, "--question", "Is there a shop?", "--answer", "In Lyon.", "--id", "shop", "--json")
    assert json.loads(done.out)["added"] == 1
    assert ids(run, faq, "shop", "--top", "1") == ["shop"]
    again = run("add", faq, "--question", "boutique", "--question", "store", "--id", "shop", "--json")
    assert [json.loads(again.out)[name] for name in ("added", "replaced", "questions")] == [0, 1, 10]
    assert ids(run, faq, "boutique", "--top", "1") == ["shop"]
    changed = run("add", faq, "--question", "boutique", "--answer", "In Paris.", "--id", "shop")
    assert "'matchloom refit' learns from them" in " ".join(changed.out.split())
    assert Collection.open(faq)["shop"].text == "In Paris."


def test_remove_takes_ids_and_files_of_them(run: Run, faq: Path, tmp_path: Path) -> None:
    listed = write_tsv(tmp_path / "old.txt", ["parcel", "", "nobody"])
    done = run("remove", faq, listed, "password", "--json")
    assert (done.code, json.loads(done.out)["removed"]) == (2, 2)
    assert "1 of 3 ids to remove do not exist, such as 'nobody'" in done.err
    assert ids(run, faq, "parcel invoice") == ["invoice"]
    assert "keeps one entry at least" in error_of(run("remove", faq, "invoice"))


def test_refit_learns_from_what_was_added(run: Run, faq: Path) -> None:
    assert run("add", faq, "--question", "Is there a shop?", "--answer", "In Lyon.", "--id", "shop").code == 0
    done = json.loads(run("refit", faq, "--json").out)
    assert (done["kept"], done["entries"], done["changed"]) == (True, 4, 1)
    assert Collection.open(faq).status()["changed_since_fit"] == 0
    shown = run("refit", faq).out
    assert "is used" in shown
    assert ids(run, faq, "is there a shop", "--top", "1") == ["shop"]


def test_both_stores_take_the_same_commands(run: Run, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    assert run("index", archive, write_tsv(tmp_path / "f.tsv", [HEADER, *ROWS]), "--store", "lance").code == 0
    done = run("add", archive, "--question", "Is there a shop?", "--answer", "In Lyon.", "--id", "shop", "--json")
    assert json.loads(done.out)["added"] == 1
    assert ids(run, archive, "shop", "--top", "1") == ["shop"]
    assert json.loads(run("remove", archive, "shop", "--json").out)["removed"] == 1
    assert len(Collection.open(archive)) == 6
    assert "'matchloom tune' finds it" in error_of(run("refit", archive))
    assert "keeps no columns" in error_of(run("search", archive, "x", "--where", "category=billing"))


def test_doctor_tells_what_is_damaged(run: Run, faq: Path) -> None:
    assert run("add", faq, "--question", "Is there a shop?", "--answer", "In Lyon.").code == 0
    assert run("doctor", faq).out.endswith(f"{faq} is whole.\n")
    journal = next(faq.glob("changes-*.jsonl"))
    with journal.open("ab") as file:
        file.write(journal.read_bytes()[:40])
    done = run("doctor", faq)
    assert (done.code, "an incomplete last line" in " ".join(done.out.split())) == (0, True)
    journal.write_bytes(journal.read_bytes().replace(b"Lyon", b"Linz"))
    done = run("doctor", faq, "--json")
    assert (done.code, json.loads(done.out)["whole"]) == (1, False)
    index = next(faq.glob("index-*.safetensors"))
    index.write_bytes(index.read_bytes()[:-9])
    assert "DAMAGED" in run("doctor", faq).out
    assert "--repair is for LanceDB archives" in error_of(run("doctor", faq, "--repair"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "faq"), "give a file of pairs, or --question"),
        (("add", "faq", "--question", "who?"), "needs --answer"),
        (("add", "faq", "--question", "who?", "--id", "nobody"), "no entry has the id"),
        (("add", "faq", "faq.tsv", "--id", "x"), "leave out --id"),
        (("add", "faq", "--question", "who?", "--answer", " "), "--answer is empty"),
        (("add", "nowhere", "faq.tsv"), "is no collection"),
        (("remove", "nowhere", "x"), "is no collection"),
        (("refit", "nowhere"), "is no collection"),
        (("search", "faq", "x", "--where", "category"), "expected NAME=VALUE"),
        (("search", "faq", "x", "--where", "colour=red"), "there are category, url"),
        (("search", "faq", "x", "--alpha", "0.5"), "--alpha is for LanceDB archives"),
        (("search", "faq", "x", "--rerank", "bm25"), "--rerank is for LanceDB archives"),
        (("index", "faq", "faq.tsv", "--store", "lance"), "choose another folder"),
        (("index", "faq", "faq.tsv", "--store", "sheet"), "expected files or lance"),
        (("index", "faq", "faq.tsv", "--tokenizer", "chinese"), "leave it out"),
        (("index", "faq", "--compact"), "'matchloom refit"),
        (("index", "full", "faq.tsv"), "choose an empty folder"),
    ],
)
def test_wrong_use_is_one_line(
    run: Run, faq: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(faq.parent)
    (faq.parent / "full").mkdir()
    (faq.parent / "full" / "letter.txt").write_text("mine")
    assert told in error_of(run(*words))


def test_refit_learns_from_judgements(run: Run, faq: Path, tmp_path: Path) -> None:
    thumbs = FeedbackFile(tmp_path / "feedback.jsonl")
    thumbs.keep(Judgement("login phrase slipped my mind", "password", True))
    thumbs.keep(Judgement("bills and parcels", "parcel", False))
    thumbs.keep(Judgement("anything", "nobody", True))
    done = run("refit", faq, "--feedback", thumbs.path, "--json")
    told = json.loads(done.out)["feedback"]
    assert [told[name] for name in ("right", "wrong", "removed", "learnt")] == [1, 1, 1, True]
    assert "3 judgements" in done.err
    assert "1 judgements are about answers that do not exist" in done.err
    assert ids(run, faq, "login phrase", "--top", "1") == ["password"]
    assert "parcel" not in ids(run, faq, "bills and parcels")
    assert "feedback" not in json.loads(run("refit", faq, "--json").out)
    assert "cannot be read" in error_of(run("refit", faq, "--feedback", tmp_path / "none"))


def test_a_blank_is_no_answer(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "faq.csv"
    blanks = "weather,\njoke,  \nnothing,\u200b\nspace,\u00a0\u3164\nlove,no_answer\n"
    file.write_text(f"question,answer\nlost password,Reset it\nlate parcel,Track it\n{blanks}", encoding="utf-8")
    made = run("index", tmp_path / "faq", file)
    assert "5 pairs have no answer: skipped." in made.err
    assert len(Collection.open(tmp_path / "faq")) == 2
    again = run("add", tmp_path / "faq", file)
    assert "5 pairs" in again.err
    assert "no answer" in again.err
    assert len(Collection.open(tmp_path / "faq")) == 2


def test_explained_answers_fit_into_80_columns(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "faq.csv"
    file.write_text("question,answer\nlost password,Reset it in the settings\nlate parcel,Track it\n", encoding="utf-8")
    run("index", tmp_path / "faq", file)
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("search", tmp_path / "faq", "I have lost my password", "--explain").out
    assert max(map(len, shown.splitlines())) <= 80
    assert "asked before: lost password" in shown
    assert "probability" not in shown


def test_questions_that_are_known_are_told_when_they_are_measured(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "faq.csv"
    file.write_text("question,answer\nlost password,Reset it\nlate parcel,Track it\n", encoding="utf-8")
    run("index", tmp_path / "faq", file)
    assert "2 of 2 questions of the file are known to" in run("evaluate", tmp_path / "faq", file).err
    file.write_text("question,answer\nhelp me log in,Reset it\nwhere is it,Track it\n", encoding="utf-8")
    assert "are known to" not in run("evaluate", tmp_path / "faq", file).err


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "FILE", "--encoder", "none", "--out", "BELOW"),
        ("index", "BELOW", "FILE"),
        ("import", "FILE", "--out", "BELOW.tsv"),
        ("train", "FILE", "--out", "BELOW"),
    ],
)
def test_a_folder_below_a_file_is_one_line(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    file = tmp_path / "faq.csv"
    rows = "".join(f"question {n},answer {n % 5}\n" for n in range(20))
    file.write_text(f"question,answer\n{rows}", encoding="utf-8")
    done = run(*(word.replace("FILE", str(file)).replace("BELOW", f"{file}/x") for word in command))
    assert done.code == 2
    assert "matchloom: error: " in done.err
    assert "Traceback" not in done.err
