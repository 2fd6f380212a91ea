"""Words marked in the user's own text."""

from __future__ import annotations

import io
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from matchloom.basics.screen import printable
from matchloom.explanation import Explanation, Source, Term, explain, mixed_explanation
from matchloom.explanation.source import pieces, source_of
from matchloom.lexical import BM25
from matchloom.text.tokenize import Tokenizer
from tests.explanation.samples import of_words, tensor_like
from tests.explanation.test_html import Page
from tests.refusing import refused

QUERY, TEXT = "Renew  MY\npassport?", "(A new passport: abroad!)"


class Span(NamedTuple):
    word: str
    start: int
    end: int


class Letters:
    """Every letter is a word, lower-cased; all else is none."""

    def spans(self, text: str) -> list[Span]:
        return [Span(letter.lower(), i, i + 1) for i, letter in enumerate(text) if letter.isalpha()]


def in_place() -> Explanation:
    one = tensor_like()
    cut = Tokenizer()
    sources = source_of(cut, QUERY, one.query), source_of(cut, TEXT, one.text)
    assert None not in sources
    return Explanation(one.scorer, one.query, one.text, one.trace, sources=sources)


def printed(explanation: Explanation) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(explanation)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_source_is_found_where_the_tokenizer_cuts_the_same_words() -> None:
    assert source_of(Letters(), "A-b!", ["a", "b"]) == Source("A-b!", [(0, 1), (2, 3)])
    assert source_of(Letters(), "A-b!", ["a"]) is None
    assert source_of(Letters(), "?!", ["(no words)"]) is None
    assert source_of(str.split, "a b", ["a", "b"]) is None
    assert source_of(None, "a", ["a"]) is None


@given(st.text(), st.text())
def test_the_pieces_are_the_text(before: str, text: str) -> None:
    whole = f"{before}{text}"[:70]
    words = [span.word for span in Letters().spans(whole)]
    source = source_of(Letters(), whole, words)
    assert source is not None
    assert source.fits(len(words))
    shown = list(pieces(words, source, range(len(words))))
    assert "".join(piece.text for piece in shown).split() == (whole.split() if words else [])
    assert [piece.at for piece in shown if piece.at is not None] == list(range(len(words)))
    assert [piece.text.lower() for piece in shown if piece.at is not None] == words


def test_what_is_left_out_and_what_is_long_are_ellipses() -> None:
    words = list("abcdef")
    assert "".join(piece.text for piece in pieces(words, None, [1, 2, 4])) == "… b c … e …"
    source = source_of(Letters(), "A, B; C. D! E? F", words)
    assert "".join(piece.text for piece in pieces(words, source, [1, 2, 4])) == "… B; C … E …"
    assert "".join(piece.text for piece in pieces(words, source, [0, 5])) == "A … F"
    dashes = source_of(Letters(), "a" + "-" * 1_000_000 + "b" + " \n" * 50, ["a", "b"])
    assert "".join(piece.text for piece in pieces(["a", "b"], dashes, [0, 1])) == "a" + "-" * 80 + " … b "


@pytest.mark.parametrize(
    "spans", [[(0, 1)], [(0, 1), (1, 2), (2, 3), (3, 4)], [(1, 2), (0, 1), (3, 4)], [(0, 1), (1, 2), (2, 99)]]
)
def test_spans_that_do_not_fit_are_refused(spans: list[tuple[int, int]]) -> None:
    one = tensor_like()
    with refused("mismatch", "correct", "3"):
        Explanation(one.scorer, one.query, one.text, one.trace, sources=(Source("abcd", spans), None))


def test_the_page_and_the_terminal_mark_words_in_place() -> None:
    explanation = in_place()
    page = Page(explanation.to_html())
    assert page.words == {"query": ["Renew", "MY", "passport"], "text": ["A", "new", "passport", "abroad"]}
    source = explanation.to_html()
    assert '<p class="words" data-side="text" dir="auto">(<span class="w" data-at="0">A</span> <button' in source
    assert "</button>?</p>" in source
    lines = [" ".join(line.split()) for line in printed(explanation).splitlines()]
    assert "query Renew++ MY passport+++?" in lines
    assert "text (A new++ passport+++: abroad+!)" in lines


def test_json_has_the_source_and_the_spans() -> None:
    plain = in_place().to_dict()
    assert plain["query"]["source"] == {"text": QUERY, "spans": [[0, 5], [7, 9], [10, 18]]}
    text = plain["text"]["source"]
    assert [text["text"][start:end].lower() for start, end in text["spans"]] == plain["text"]["words"]
    assert "source" not in tensor_like().to_dict()["query"]


def test_explain_takes_the_texts_of_a_scorer_whose_tokenizer_has_spans() -> None:
    explanation = explain(BM25.fit([TEXT]), "A Passport?", TEXT)
    assert [source and source.text for source in explanation.sources] == ["A Passport?", TEXT]
    without = explain(BM25.fit([TEXT], tokenizer=str.split), "A Passport?", TEXT)
    assert without.sources == (None, None)
    assert "source" not in without.to_dict()["text"]


def test_each_section_of_a_mixture_has_its_own_source() -> None:
    one = in_place()
    query, text = one.sources
    terms = [
        Term("question", 0.5, one.query, one.text, one.trace, (query, text)),
        Term("answer", 0.5, one.query, one.text, one.trace),
    ]
    mixed = mixed_explanation("mixture", terms, one.trace.score)
    assert [side.source for side in mixed.sides()] == [query, text, None]
    assert Page(mixed.to_html()).words["text"] == ["A", "new", "passport", "abroad", "a", "new", "passport", "abroad"]
    sections = mixed.to_dict()["text"]["sections"]
    assert ["source" in section for section in sections] == [True, False]


@given(st.text(st.characters()))
def test_no_source_becomes_markup(text: str) -> None:
    words = [span.word for span in Letters().spans(text)]
    plain = of_words(words, words)
    source = source_of(Letters(), text, words)
    explanation = Explanation(plain.scorer, words, words, plain.trace, sources=(source, source))
    page = explanation.to_html()
    page.encode("utf-8")
    assert [tag for tag, _ in Page(page).tags] == [tag for tag, _ in Page(plain.to_html()).tags]
    assert Page(page).words["query"] == [printable(letter) for letter in text if letter.isalpha()]
    printed(explanation)
