"""Headers that name questions and answers in other languages, in long names, and in other encodings."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.data.formats import read_pairs
from matchloom.data.formats.columns import find_columns, known_names, plain
from matchloom.data.formats.languages import QUESTION_ANSWER
from matchloom.types import Pair
from tests.data.formats.reading import read
from tests.refusing import refused

HEADERS = [
    ("Frage", "Antwort"),
    ("Question", "Réponse"),
    ("Pregunta", "Respuesta"),
    ("Pergunta", "Resposta"),
    ("问题", "答案"),
    ("質問", "回答"),
    ("Q", "A"),
    ("Kundenfrage", "Antworten"),
    ("FRAGE", "ANTWORT"),
    ("Pytanie", "Odpowiedz"),
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(("name", "separator"), [("p.tsv", "\t"), ("p.csv", ","), ("p.csv", ";")])
def test_a_header_is_no_pair(tmp_path: Path, header: tuple[str, str], name: str, separator: str) -> None:
    found = read(tmp_path / name, f"{separator.join(header)}\nwarum?{separator}darum\n")
    assert found.pairs == [("warum?", "darum")]
    assert found.notes == []
    turned = read(tmp_path / name, f"{separator.join(header[::-1])}\ndarum{separator}warum?\n")
    assert turned.pairs == [("warum?", "darum")]


def test_every_language_names_both_sides() -> None:
    for questions, answers in QUESTION_ANSWER.values():
        assert find_columns("here", [answers[0], questions[0]]) == {"query": 1, "text": 0}
        assert {plain(name) for name in questions}.isdisjoint(plain(name) for name in answers)


@pytest.mark.parametrize(
    "header",
    [
        "Frage des Kunden (wie gestellt, im Wortlaut);Unsere Antwort, freigegeben;Zuletzt geändert, von wem",
        "Customer question;Approved answer, long form;Owner, team",
        "よくある質問;お客様への回答;更新日",
        "Question posée par le client;Réponse à donner, telle quelle;Date",
    ],
)
def test_long_names_between_semicolons(tmp_path: Path, header: str) -> None:
    content = f"\ufeff{header}\r\nWie, bitte?;So, genau so, und nicht anders.;2024\r\nWo?;Da;2023\r\n"
    found = read(tmp_path / "p.csv", content)
    assert found.pairs == [("Wie, bitte?", "So, genau so, und nicht anders."), ("Wo?", "Da")]
    assert list(found.own[0].values()) == ["2024"]


def test_a_sentence_is_no_header(tmp_path: Path) -> None:
    content = "What is the question?\tThe answer is 42.\nb\tc\n"
    assert read(tmp_path / "p.tsv", content).pairs[0] == ("What is the question?", "The answer is 42.")
    assert known_names(["What was the question?", "No answer"]) == 0


def test_two_long_names_for_one_side_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Short question,Long question,Answer\na,b,c\n")
    with refused("bad_columns", path, "Short question", "Long question"):
        list(read_pairs(path))


def test_an_unknown_header_of_many_columns_names_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Wer;Was;Wann;Warum;Womit\na, b;c;d;e;f\n")
    with refused("bad_columns", path, "Wer", "Womit", "columns="):
        list(read_pairs(path))
    assert next(read_pairs(path, columns={"query": "Wer", "text": "Was"}, fill_ids=False)) == Pair("a, b", "c")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-bom"])
@pytest.mark.parametrize("name", ["p.tsv", "p.csv", "p.jsonl", "p.json", "p.md", "p.html"])
def test_encodings_with_and_without_marks(tmp_path: Path, encoding: str, name: str) -> None:
    content = {
        "p.tsv": "Frage\tAntwort\nWarum so naïv?\tDarum 护照\n",
        "p.csv": "Frage,Antwort\nWarum so naïv?,Darum 护照\n",
        "p.jsonl": '{"Frage": "Warum so naïv?", "Antwort": "Darum 护照"}\n',
        "p.json": '[{"Frage": "Warum so naïv?", "Antwort": "Darum 护照"}]',
        "p.md": "# Warum so naïv?\nDarum 护照\n",
        "p.html": "<h1>Warum so naïv?</h1><p>Darum 护照</p>",
    }[name]
    bytes_ = b"\xfe\xff" + content.encode("utf-16-be") if encoding == "utf-16-be-bom" else content.encode(encoding)
    assert read(tmp_path / name, bytes_).pairs == [("Warum so naïv?", "Darum 护照")]
