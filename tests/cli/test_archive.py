"""The commands index, search and tune."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from matchloom.cli import main
from matchloom.search.lance.collection import LanceCollection
from tests.cli.conftest import SMALL, THINGS, Run, error_of, write_tsv
from tests.encoders.making import write_folder


@pytest.fixture(scope="session")
def encoder(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a matcher with sentence vectors."""
    folder = tmp_path_factory.mktemp("runs") / "encoder"
    sizes = ["--set", "hidden=8", *SMALL[SMALL.index("--dimensions") :], "--epochs", "25"]
    given = [str(corpus / "train.tsv"), "--dev", str(corpus / "train.tsv"), "--out", str(folder)]
    assert main(["train", *given, "--model", "lstm_rnn", *sizes]) == 0  # it must have learnt something
    return folder


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    rows = [f"{name}\tmaking {name}\t{text}" for name, text in THINGS.items()]
    return write_tsv(tmp_path / "faq.tsv", ["query_id\tquestion\tanswer", *rows])


@pytest.fixture
def archive(run: Run, faq: Path, tmp_path: Path) -> Path:
    assert run("index", tmp_path / "faq.archive", faq, "--store", "lance").code == 0
    return tmp_path / "faq.archive"


def test_index_builds_appends_replaces_deletes_and_says_what_is_there(run: Run, faq: Path, tmp_path: Path) -> None:
    archive = tmp_path / "new.archive"
    built = run("index", archive, faq, "--store", "lance")
    assert built.code == 0, built.err
    assert ["added", "12"] in [line.split() for line in built.out.splitlines()]
    assert "BM25 alone" in built.out
    more = ["query_id\tquery\ttext\tlabel", "salt\tmaking salt\tby boiling\t1", "mud\tmaking mud\twith rain\t1"]
    appended = run("index", archive, write_tsv(tmp_path / "more.tsv", [*more, "x\twrong\twrong\t0"]), "--json")
    assert (json.loads(appended.out)["added"], json.loads(appended.out)["replaced"]) == (1, 1)
    assert json.loads(appended.out)["pairs"] == 13
    assert "1 pairs of" in appended.err
    assert "label 0" in appended.err
    assert LanceCollection.open(archive).search("salt", top=1)[0].text == "by boiling"
    listed = write_tsv(tmp_path / "old.txt", ["mud", "", "soap"])
    done = run("index", archive, "--delete", listed, "--delete", "rope", "--delete", "nobody", "--compact", "--json")
    deleted = json.loads(done.out)
    assert (deleted["deleted"], deleted["pairs"]) == (3, 10)
    assert done.code == 2
    assert "1 of 4 ids to remove do not exist, such as 'nobody'" in done.err
    assert not any(b"with rain" in path.read_bytes() for path in archive.rglob("*") if path.is_file())
    status = json.loads(run("index", archive, "--json").out)
    assert (status["pairs"], status["matcher"], status["alpha"]) == (10, None, 0.7)


def test_search_shows_and_prints_the_parts(run: Run, archive: Path) -> None:
    shown = run("search", archive, "how do they go about making soap", "--top", 2, "--explain")
    lines = shown.out.splitlines()
    assert lines[0].split() == ["score", "similarity", "match", "question", "and", "answer", "why"]
    assert "making soap" in lines[1]
    assert "soap (question) +" in " ".join(lines[1].split())
    assert any("id soap" in line for line in lines)
    assert max(map(len, lines)) <= 100
    plain = json.loads(run("search", archive, "water and flour", "--json", "--alpha", 0.25, "--explain").out)
    assert plain["question"] == "water and flour"
    best = plain["answers"][0]
    assert best["id"] == "bread"
    assert best["score"] == pytest.approx(0.25 * best["similarity"] + 0.75 * best["match"], abs=1e-6)
    why = best["explanation"]
    assert why["score"] == pytest.approx(best["score"], abs=1e-6)
    assert [section["name"] for section in why["text"]["sections"]] == ["question", "answer"]
    question = sum(why["text"]["contributions"][: why["text"]["sections"][1]["start"]])
    assert question == pytest.approx(0.25 * best["similarity"], abs=1e-5)
    assert sum(why["text"]["contributions"]) + why["residual"] == pytest.approx(best["score"], abs=1e-5)
    assert "nothing found" in run("search", archive, "xyzzy").out


def test_long_texts_are_cut_on_the_screen_alone(run: Run, archive: Path, tmp_path: Path) -> None:
    long = "making paint " + "very " * 5000 + "slowly"
    assert run("index", archive, write_tsv(tmp_path / "l.tsv", ["query\ttext", f"making paint\t{long}"])).code == 0
    shown = run("search", archive, "paint", "--top", 1).out
    assert len(shown) < 5000
    assert "…" in shown
    assert json.loads(run("search", archive, "paint", "--top", 1, "--json").out)["answers"][0]["text"] == long


def test_a_first_file_that_holds_nothing_leaves_no_archive(run: Run, tmp_path: Path) -> None:
    archive = tmp_path / "new.archive"
    for rows, told in ((["q\ta\t0"], "has no pair with a right answer"), (["q\ta\t1", "broken"], "line 3")):
        given = write_tsv(tmp_path / "bad.tsv", ["query\ttext\tlabel", *rows])
        assert told in error_of(run("index", archive, given, "--store", "lance"))
        assert not archive.exists()
    assert (
        run("index", archive, write_tsv(tmp_path / "good.tsv", ["query\ttext", "q\ta"]), "--store", "lance").code == 0
    )


def test_pairs_that_share_an_id_are_told(run: Run, tmp_path: Path) -> None:
    rows = ["query_id\tquery\ttext", *(f"q1\twhy\tbecause {n}" for n in range(3))]
    done = run("index", tmp_path / "a", write_tsv(tmp_path / "p.tsv", rows), "--store", "lance")
    assert "2 pairs of" in done.err
    assert "replaced earlier ones with the same id" in done.err


def test_input_that_is_no_utf8_is_told(run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"soap\n\xff\xfe\n"), "utf-8"))
    assert "standard input: byte 0xff is not UTF-8" in error_of(run("search", archive, "-"))


def test_questions_of_one_answer_are_all_kept_and_it_is_shown_once(run: Run, tmp_path: Path) -> None:
    asked = {"loom": ["weave cloth", "make cloth", "get cloth"], "mill": ["grind corn", "make cloth of corn"]}
    rows = [f"how do I {what}\tuse a {name}\t{name}" for name, questions in asked.items() for what in questions]
    archive = tmp_path / "a"
    given = write_tsv(tmp_path / "f.tsv", ["question\tanswer\ttext_id", *rows])
    built = run("index", archive, given, "--store", "lance", "--json")
    assert [json.loads(built.out)[name] for name in ("added", "replaced", "pairs", "answers")] == [5, 0, 5, 2]
    plain = json.loads(run("search", archive, "make cloth", "--top", 3, "--json").out)
    assert [(one["id"], one["question"]) for one in plain["answers"]] == [
        ("loom", "how do I make cloth"),
        ("mill", "how do I make cloth of corn"),
    ]
    assert "2 of 3 answers: the archive has no others" in run("search", archive, "make cloth", "--top", 3).out
    few = run("search", archive, "weave", "--top", 3).out
    assert "1 of 3 answers: none of the other 1 shares a word with the question" in few
    assert json.loads(run("index", archive, "--delete", "loom", "--json").out)["deleted"] == 3
    again = run("index", archive, "--delete", "loom")
    assert (again.code, again.out.split()[:2]) == (2, ["deleted", "0"])
    assert "such as 'loom'" in again.err


def test_search_takes_questions_from_the_input(run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("making soap\n\nmaking ink\n"))
    lines = run("search", archive, "-", "--json", "--top", 1).out.splitlines()
    assert [json.loads(line)["answers"][0]["id"] for line in lines] == ["soap", "ink"]


def test_search_reranks_with_any_scorer(run: Run, archive: Path, faq: Path, trained: Path, tmp_path: Path) -> None:
    translations = tmp_path / "t"
    assert run("trans-lm", faq, "--out", translations).code == 0
    for scorer in (trained, "bm25_stemmed", "overlap", "random", translations):
        result = run("search", archive, "making candles", "--rerank", scorer, "--json")
        assert result.code == 0, result.err
        assert json.loads(result.out)["answers"][0]["question"].startswith("making")
    assert "is no folder that 'matchloom fit', 'train' or 'trans-lm' made" in error_of(
        run("search", archive, "x", "--rerank", "nobody")
    )
    assert "a run file has no scores for an archive" in error_of(
        run("search", archive, "x", "--rerank", archive / "archive.json")
    )


def test_a_page_explains_the_answers(run: Run, archive: Path, tmp_path: Path) -> None:
    result = run("search", archive, "wax around a wick", "--top", 2, "--html", tmp_path / "why.html")
    assert result.code == 0, result.err
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "wick" in page
    assert page.count('<h2>question</h2><p class="words" data-side="text"') == 1


def test_an_untrained_encoder_searches_and_says_why(run: Run, faq: Path, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    archive, matcher = tmp_path / "a", tmp_path / "m"
    assert run("encoders", "use", write_folder(tmp_path / "small"), "--out", matcher).code == 0
    built = run("index", archive, faq, "--matcher", matcher)
    assert f"late_interaction ({matcher}), 8 numbers per word" in " ".join(built.out.split())
    found = json.loads(run("search", archive, "making soap", "--json", "--explain", "--top", 3).out)["answers"]
    assert found[0]["id"] == "soap"
    named = {channel["name"].split(":")[0] for channel in found[0]["explanation"]["channels"]}
    assert named == {"question", "answer"}
    assert run("doctor", archive).code == 0


def test_a_matcher_that_was_trained_again(run: Run, faq: Path, encoder: Path, corpus: Path, tmp_path: Path) -> None:
    archive, matcher = tmp_path / "a", tmp_path / "m"
    shutil.copytree(encoder, matcher)
    assert run("index", archive, faq, "--matcher", matcher).code == 0
    assert len(json.loads(run("search", archive, "unheard", "--json").out)["answers"]) == 10
    shutil.rmtree(matcher)
    sizes = ["--set", "hidden=5", *SMALL[SMALL.index("--dimensions") :], "--epochs", "25"]
    given = (corpus / "train.tsv", "--dev", corpus / "train.tsv", "--out", matcher)
    assert run("train", *given, "--model", "lstm_rnn", *sizes).code == 0
    for words in (("search", archive, "x"), ("index", archive, faq)):
        assert error_of(run(*words)).endswith(f"matchloom index {archive} --reencode {matcher}")
    done = run("index", archive, "--reencode", matcher, "--json")
    assert (json.loads(done.out)["reencoded"], json.loads(done.out)["vector_size"]) == (12, 5)
    assert run("search", archive, "x").code == 0
    moved = shutil.move(matcher, tmp_path / "moved")
    assert "is not there" in error_of(run("search", archive, "x"))
    assert run("search", archive, "x", "--matcher", moved).code == 0
    assert "is not there" in error_of(run("search", archive, "x"))
    judged = write_tsv(tmp_path / "dev.tsv", ["query\ttext_id\ttext\tlabel", "making soap at home\tsoap\t-\t1"])
    assert run("tune", archive, judged, "--matcher", moved).code == 0  # a writer keeps the new place
    assert run("search", archive, "x").code == 0
    assert "--reencode names the matcher" in error_of(run("index", archive, "--reencode", moved, "--matcher", moved))


def test_tune_keeps_alpha_and_draws_it(run: Run, archive: Path, tmp_path: Path) -> None:
    rows = ["query\ttext_id\ttext\tlabel"]
    for name in ("bread", "soap", "ink"):
        rows += [f"making {name} at home\t{name}\t-\t1", f"making {name} at home\trope\t-\t0"]
    judged = write_tsv(tmp_path / "dev.tsv", rows)
    shown = run("tune", archive, judged, "--plot", tmp_path / "alpha.png")
    assert shown.code == 0, shown.err
    assert len([line for line in shown.out.splitlines() if line.strip()[:2] in ("0.", "1.")]) == 21
    assert "(3 questions, judged pairs ranked)" in shown.out
    assert (tmp_path / "alpha.png").stat().st_size > 5000
    plain = json.loads(run("tune", archive, judged, "--rerank", "overlap", "--json").out)
    assert plain["kept"] is False
    assert len(plain["curve"]) == 21


def test_wrong_use_is_one_line(run: Run, archive: Path, faq: Path, encoder: Path, tmp_path: Path) -> None:
    assert "is no archive" in error_of(run("search", tmp_path, "x"))
    assert "matchloom fit" in error_of(run("search", tmp_path / "nowhere", "x"))
    assert "is no collection" in error_of(run("index", tmp_path / "nothing"))
    assert "is an archive, not a scorer" in error_of(run("score", archive, faq))
    assert "cannot be read" in error_of(run("index", tmp_path / "b", tmp_path / "none.tsv"))
    assert not (tmp_path / "b").exists()
    assert "leave it out" in error_of(run("index", archive, faq, "--tokenizer", "chinese"))
    assert "leave it out" in error_of(run("index", tmp_path / "b", faq, "--tokenizer", "english", "--matcher", encoder))
    assert "indexed without a matcher" in error_of(run("index", archive, faq, "--matcher", encoder))
    assert "--alpha" in error_of(run("search", archive, "x", "--alpha", 2))
    assert "there is no label" in error_of(run("tune", archive, faq))


def test_doctor_looks_at_an_archive_and_mends_it(run: Run, archive: Path, tmp_path: Path) -> None:
    shown = run("doctor", archive)
    assert shown.code == 0, shown.err
    assert shown.out.endswith(f"{archive} is whole.\n")
    assert "12 read, as many as there should be" in shown.out
    assert run("index", archive, write_tsv(tmp_path / "l.tsv", ["query\ttext", "late\tlater"])).code == 0
    newest = max((archive / "pairs-1.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-9])
    plain = run("doctor", archive, "--json")
    assert plain.code == 1
    assert json.loads(plain.out)["whole"] is False
    shown = run("doctor", archive)
    assert shown.code == 1
    assert "DAMAGED" in shown.out
    assert f"'matchloom doctor {archive} --repair'" in " ".join(shown.out.split())
    mended = run("doctor", archive, "--repair")
    assert mended.code == 0, mended.err
    assert "12 pairs of version" in mended.out
    assert "lost: version" in mended.out
    assert run("doctor", archive, "--all").code == 0
    assert json.loads(run("search", archive, "salt", "--json").out)["answers"][0]["id"] == "salt"
    assert "is no archive" in error_of(run("doctor", tmp_path))


@pytest.mark.slow
def test_a_panic_of_lancedb_is_one_line(archive: Path) -> None:
    code = (
        "import os, sys\n"
        "from unittest.mock import patch\n"
        "from matchloom.cli import main\n"
        "from matchloom.search.lance.table import Store\n"
        "class RustPanic(BaseException): pass\n"
        "async def panic(*_):\n"
        "    os.write(2, b\"thread 'x' panicked at a.rs\\nstack backtrace\\n\")\n"
        "    raise RustPanic('rust future panicked')\n"
        "with patch.object(Store, '_nearest', panic): sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "search", archive, "x"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"matchloom: error: {archive} cannot be used as an archive (LanceDB cannot read its")
    assert done.stderr.count("\n") == 1
