"""Each kind of find, with its lines; the page; the file that is left."""

from __future__ import annotations

from pathlib import Path

from matchloom.data.checkup import Checkup, Placed, check, check_file
from matchloom.data.checkup.language import language_of
from matchloom.data.formats import read_pairs
from matchloom.types import Pair
from tests.refusing import refused

FAQ = """question,answer,url
How do I pay?,By card.,/pay
how do i  pay?,by card.,/pay
How do I pay,By invoice.,/invoice
Where are you?,In Ghent.,
Where are you?,In Bruges.,
,Nobody asks for this.,
Who asks?,,
What is <b>bold</b>?,<p>A <i>style</i>.</p>,
CafÃ© open?,Yes it is open for you and me.,
Wie kann ich mein Passwort ändern und wo?,Das geht mit der App.,
What is the best way to send you my order?,You can write to us and we will answer you.,
What is the fastest way for me to get this?,"Go to the shop, which is in the middle of the town.",
When can I come to the shop?,"Go to the shop, which is in the middle of the towns.",
only one cell
"""


def found_in(tmp_path: Path, content: str = FAQ, test: str | None = None) -> Checkup:
    (tmp_path / "faq.csv").write_text(content)
    if test is not None:
        (tmp_path / "test.csv").write_text(test)
    return check_file(tmp_path / "faq.csv", test=None if test is None else tmp_path / "test.csv")[0]


def test_every_kind_names_its_lines(tmp_path: Path) -> None:
    found = found_in(tmp_path, test="q,a\nWHERE are you?,x\nWhat else?,y\n")
    places = {kind: [one.places for one in own] for kind, own in found.finds.items()}
    assert places == {
        "unreadable": [("line 15",)],
        "blank": [("line 7",), ("line 8",)],
        "contradiction": [("line 5", "line 6")],
        "test_in_training": [("test line 2", "line 5")],
        "near_question": [("line 2", "line 4")],
        "near_answer": [("line 13", "line 14")],
        "duplicate": [("line 2", "line 3")],
        "html": [("line 9",)],
        "broken": [("line 10",)],
        "language": [("line 11",)],
    }
    assert list(found.finds) == list(places)  # in the order of KINDS
    assert found.rows == 14


def test_lines_are_bounded(tmp_path: Path) -> None:
    many = "q,a\n" + "".join(f"what is {n}?,\n" for n in range(50))
    found = found_in(tmp_path, many)
    assert found.lines(2) == [
        "50 x a question or an answer is empty",
        "  line 2: no answer: what is 0?",
        "  line 3: no answer: what is 1?",
        "  and 48 more",
    ]
    assert found.summary() == ["50 x a question or an answer is empty (line 2, ...)"]
    same = found_in(tmp_path, "q,a\n" + "same?,again\n" * 50)
    assert same.lines() == [
        "1 x the same question with the same answer, repeated",
        "  line 2, line 3, line 4, line 5, line 6 and 45 more: same?",
    ]


def test_nothing_found(tmp_path: Path) -> None:
    assert found_in(tmp_path, "q,a\nx,y\n").lines() == ["nothing found in 1 rows"]


def test_lists_may_have_several_right_texts() -> None:
    rows = [Pair("q", "a", 1.0), Pair("q", "b", 1.0), Pair("q", "c", 0.0), Pair("q", "A", 0.0)]
    found = check([Placed(pair, f"line {n}") for n, pair in enumerate(rows)])
    assert {kind: [one.places for one in own] for kind, own in found.finds.items()} == {
        "both_labels": [("line 0", "line 3")]
    }


def test_a_page_shows_what_was_found_and_runs_nothing(tmp_path: Path) -> None:
    page = found_in(tmp_path, FAQ + "<script>alert(1)</script>x</p>?,<p>y</p>,\n").to_html()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "line 5, line 6" in page
    assert "HTML tags in a text: 2" in page


def test_what_can_be_fixed_is_fixed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "faq.csv").write_text(FAQ)
    (tmp_path / "test.csv").write_text("q,a\nWhere ARE you?,x\n")
    _, fixed = check_file(tmp_path / "faq.csv", test=tmp_path / "test.csv", fix=tmp_path / "clean.tsv")
    assert fixed is not None
    assert fixed.done == {"unreadable": 1, "html": 1, "blank": 2, "duplicate": 1, "test_in_training": 2}
    pairs = [(pair.query, pair.text) for pair in read_pairs(tmp_path / "clean.tsv")]
    assert pairs[:3] == [("How do I pay?", "By card."), ("How do I pay", "By invoice."), ("What is bold?", "A style.")]
    assert len(pairs) == 8
    assert (tmp_path / "clean.tsv").read_text().splitlines()[:2] == [
        "query\ttext\turl",
        "How do I pay?\tBy card.\t/pay",
    ]
    assert (tmp_path / "faq.csv").read_text() == FAQ
    again, _ = check_file(tmp_path / "clean.tsv")
    assert again.finds.keys().isdisjoint({"unreadable", "blank", "duplicate", "html"})


def test_a_file_without_pairs_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("q,a\nonly\n")
    with refused("bad_row", tmp_path / "p.csv", "line 2"):
        check_file(tmp_path / "p.csv")


def test_languages() -> None:
    for text, language in {
        "How can I change the password of my account?": "english",
        "Wie kann ich das Passwort für mein Konto ändern?": "german",
        "Comment puis-je changer le mot de passe de mon compte pour vous?": "french",
        "¿Cómo puedo cambiar la contraseña de mi cuenta y dónde está?": "spanish",
        "Como posso mudar a senha da minha conta e onde são?": "portuguese",
        "Come posso cambiare la password del mio conto e dove si trova?": "italian",
        "Hoe kan ik het wachtwoord van mijn account wijzigen?": "dutch",
        "パスワードを変更するには": "japanese",
        "如何修改密码": "chinese",
        "비밀번호 변경": "korean",
    }.items():
        assert language_of(text) == language
    assert language_of("LINQ to SQL") is None
    assert language_of("prepare the order as soon as possible") in (None, "english")
    assert language_of("") is None
