from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from matchloom import Collection, Matcher, Pair
from matchloom.lexical import BM25
from tests.cli import conftest
from tests.cli.conftest import THINGS, Run, error_of
from tests.search.collections import many

TEXTS = list(conftest.TEXTS.values())


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    path = tmp_path / "candidates.txt"
    path.write_text("\n".join([*TEXTS, "", TEXTS[0]]) + "\n", encoding="utf-8")
    return path


def test_a_matcher_ranks_as_in_python(run: Run, trained: Path, candidates: Path) -> None:
    result = run("rank", trained, "how is bread made", candidates, "--top", 3, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert (found["scorer"], found["query"]) == ("mv_lstm", "how is bread made")
    expected = Matcher.load(trained).rank("how is bread made", TEXTS, top=3)
    assert [row["text"] for row in found["ranking"]] == [one.text for one in expected]
    assert [row["score"] for row in found["ranking"]] == pytest.approx([one.score for one in expected], abs=1e-5)
    assert [row["rank"] for row in found["ranking"]] == [1, 2, 3]
    assert all(TEXTS[row["index"]] == row["text"] for row in found["ranking"])


def test_a_lexical_scorer_ranks_the_texts_of_a_pairs_file(run: Run, corpus: Path) -> None:
    result = run("rank", "bm25", "threads on a loom", corpus / "test.tsv", "--json", "--top", 99)
    ranking = json.loads(result.out)["ranking"]
    scorer = BM25.fit(TEXTS)
    scores = {text: float(scorer.score([Pair("threads on a loom", text)])[0]) for text in TEXTS}
    assert [row["text"] for row in ranking] == sorted(TEXTS, key=lambda text: (-scores[text], text))
    assert ranking[0]["text"] == f"for cloth, {THINGS['cloth']}"


def test_text_ids_of_the_file_are_in_the_json(run: Run, corpus: Path, candidates: Path) -> None:
    for row in json.loads(run("rank", "bm25", "threads on a loom", corpus / "test.tsv", "--json").out)["ranking"]:
        assert conftest.TEXTS[row["text_id"]] == row["text"]
    plain = json.loads(run("rank", "bm25", "threads on a loom", candidates, "--json").out)
    assert {row["text_id"] for row in plain["ranking"]} == {None}


def test_the_table(run: Run, candidates: Path) -> None:
    result = run("rank", "bm25", "threads on a loom", candidates, "--top", 2)
    lines = result.out.splitlines()
    assert lines[0].split() == ["score", "text"]
    assert lines[1].split()[0] == "1"
    assert "threads are crossed on a loom by hand" in lines[1]
    assert "2 of 12 texts" in lines[-1]
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in result.out


def test_explain_names_the_words(run: Run, trained: Path, candidates: Path) -> None:
    result = run("rank", "bm25", "threads on a loom", candidates, "--top", 1, "--explain")
    assert "threads +" in result.out
    assert "loom +" in result.out
    plain = json.loads(run("rank", trained, "threads", candidates, "--top", 2, "--explain", "--json").out)
    for row in plain["ranking"]:
        contributions = sum(signal["contribution"] for signal in row["explanation"]["signals"])
        assert contributions + row["explanation"]["residual"] == pytest.approx(row["score"], abs=1e-3)
    assert "cannot explain" in error_of(run("rank", "random", "a", candidates, "--explain"))


def test_queries_from_the_input(run: Run, trained: Path, candidates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    encode = Matcher.encode

    def counted(self: Matcher, texts: list[str], *, progress: bool = False) -> object:
        asked.append(len(texts))
        return encode(self, texts, progress=progress)

    monkeypatch.setattr(Matcher, "encode", counted)
    monkeypatch.setattr("sys.stdin", io.StringIO("how is bread made\n\nwho makes ink and how\n"))
    result = run("rank", trained, "-", candidates, "--json", "--top", 1)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["query"] for row in rows] == ["how is bread made", "who makes ink and how"]
    assert asked == [12], "the candidates are encoded once"
    monkeypatch.setattr("sys.stdin", io.StringIO("bread\nink\n"))
    shown = run("rank", "bm25", "-", candidates, "--top", 1).out.splitlines()
    assert [line for line in shown if line.strip() in ("bread", "ink")] == ["bread", "ink"]


def test_brackets_and_control_characters_are_shown_and_do_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_text("[red]loom[/red] [/] :smile: \x1b[31mred\x07\n", encoding="utf-8")
    result = run("rank", "bm25", "loom", path, "--explain")
    assert result.code == 0, result.err
    assert "[red]loom[/red] [/] :smile:" in result.out
    assert "\x1b" not in result.out
    assert "\x07" not in result.out


def test_bad_requests(run: Run, candidates: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    assert "holds no texts" in error_of(run("rank", "bm25", "a", empty))
    assert "none.txt cannot be read" in error_of(run("rank", "bm25", "a", tmp_path / "none.txt"))
    assert "'matchloom fit' makes one from your file" in error_of(run("rank", "x" * 5000, "a", candidates))
    assert "--top" in error_of(run("rank", "bm25", "a", candidates, "--top", 0))
    assert "klingon" in error_of(run("rank", "bm25", "a", candidates, "--tokenizer", "klingon"))


@pytest.fixture
def answers(tmp_path: Path) -> tuple[Path, Path]:
    """A collection with probabilities, and some of its answers in a file beside a text of another's."""
    pairs = many(12, 3)
    Collection.fit(pairs).save(tmp_path / "faq")
    path = tmp_path / "answers.txt"
    path.write_text("\n".join(["a text of my own", *dict.fromkeys(one.text for one in pairs[:9])]), encoding="utf-8")
    return tmp_path / "faq", path


def test_a_collection_says_how_likely_its_own_answers_are_right(run: Run, answers: tuple[Path, Path]) -> None:
    folder, texts = answers
    question = "about thing1 cover number 1"
    found = json.loads(run("rank", folder, question, texts, "--json", "--coverage", "0.5").out)
    expected = {hit.text: hit.probability for hit in Collection.open(folder).search(question, top=None)}
    told = {row["text"]: row["probability"] for row in found["ranking"]}
    assert told.pop("a text of my own") is None
    assert told == {text: expected[text] for text in told}
    assert isinstance(found["answered"], bool)
    assert {"known", "confident"} <= set(found)


def test_where_none_is_sure_three_are_shown(run: Run, answers: tuple[Path, Path]) -> None:
    folder, texts = answers
    shown = run("rank", folder, "who won the cup?", texts, "--coverage", "0.5").out.splitlines()
    assert shown[0].startswith("No answer is certain enough")
    assert shown[-1].startswith("3 of 4 texts")


@pytest.mark.parametrize("option", ["--precision", "--coverage"])
def test_a_scorer_that_does_not_know_how_sure_it_is_is_told_apart(run: Run, candidates: Path, option: str) -> None:
    done = run("rank", "bm25", "threads", candidates, option, "0.9")
    assert done.code == 2
    assert option in error_of(done)
