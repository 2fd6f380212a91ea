from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from matchloom.data.truncation import first_words
from matchloom.text.tokenize import Tokenizer


def test_cut_keeps_the_text_as_written() -> None:
    text = "«The  Loom», said 1,000 weavers -- isn't it?"
    assert first_words(text, Tokenizer("english", max_words=4)) == "«The  Loom», said 1,000"
    assert first_words(text, Tokenizer("whitespace", max_words=2)) == "«The  Loom»,"
    assert first_words(text, Tokenizer("english", max_words=7)) == text  # nothing to cut: the end stays too
    assert first_words(text, Tokenizer("english")) == text
    assert first_words("", Tokenizer("english", max_words=3)) == ""


def test_cut_of_chinese() -> None:
    text = "法律要求残疾保险吗？是的，法律要求。"
    cut = first_words(text, Tokenizer("chinese", max_words=3))
    assert cut
    assert text.startswith(cut)
    assert len(cut) < len(text)


@given(st.text(st.characters(), max_size=80), st.integers(0, 8))
@example("AΣ.B", 1)  # a capital sigma is a final one at the end of a word, whatever follows the word
@example("half \ud800 character", 2)
def test_the_same_first_words_come_out(text: str, count: int) -> None:
    for kind in ("english", "whitespace"):
        tokenizer = Tokenizer(kind, max_words=count)
        cut = first_words(text, tokenizer)
        assert text.startswith(cut)
        assert Tokenizer(kind)(cut) == tokenizer(text)
