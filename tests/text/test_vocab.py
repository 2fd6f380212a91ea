"""The vocabulary: counting, ids, rarity, and files that come back as they went."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import PADDING, UNKNOWN, Vocab
from matchloom.types import MatchloomError
from tests.drawing import examples
from tests.refusing import refused

TEXTS = [["loom", "the", "the"], ["the", "weft"], ["loom", "looms"], []]


def test_counts_by_hand() -> None:
    vocab = Vocab.build(TEXTS)
    assert vocab.words == ["the", "loom", "looms", "weft"]  # by count, then by spelling
    assert vocab.counts == [3, 2, 1, 1]
    assert vocab.document_frequencies == [2, 2, 1, 1]
    assert vocab.documents == 4
    assert len(vocab) == 6
    assert "weft" in vocab
    assert "warp" not in vocab


def test_ids_leave_room_for_padding_and_unknown_words() -> None:
    vocab = Vocab.build(TEXTS)
    assert (PADDING, UNKNOWN) == (0, 1)
    assert vocab.ids(["the", "warp", "weft", ""]) == [2, UNKNOWN, 5, UNKNOWN]


def test_rare_words_stay_unknown() -> None:
    vocab = Vocab.build(TEXTS, min_count=2)
    assert vocab.words == ["the", "loom"]
    assert vocab.ids(["weft"]) == [UNKNOWN]
    assert vocab.documents == 4


def test_the_order_of_texts_and_words_does_not_show() -> None:
    texts = [[f"w{i % 7}", f"w{i % 4}", f"w{i % 11}"] for i in range(30)]
    shuffled = [random.Random(i).sample(text, len(text)) for i, text in enumerate(texts)]
    random.Random(0).shuffle(shuffled)
    assert Vocab.build(texts) == Vocab.build(shuffled)


def test_rarity() -> None:
    vocab = Vocab.build(TEXTS)
    assert vocab.idf("the") == pytest.approx(math.log(5 / 3) / math.log(5))
    assert vocab.idf("warp") == 1.0
    assert Vocab.build([["a"], ["a", "b"]]).idf("a") == 0.0
    assert vocab.stem_idf("loom") == pytest.approx(math.log(5 / 4) / math.log(5))  # loom 2 texts, looms 1
    assert vocab.stem_idf("warp") == 1.0
    assert Vocab.build([]).idf("a") == 1.0


def test_a_word_twice_is_refused() -> None:
    with refused("bad_value", "twice"):
        Vocab(["a", "a"], [1, 1], [1, 1], 1)


def test_the_file_is_plain_text() -> None:
    assert Vocab.build(TEXTS).dumps() == "#matchloom-vocabulary\t4\t4\nthe\t3\t2\nloom\t2\t2\nlooms\t1\t1\nweft\t1\t1\n"


# Words as tokenizers make them: anything but white space. \u200b and \ufeff are none, \x00 and half a line end neither.
odd_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(lambda w: w.split() == [w])


@given(texts=st.lists(st.lists(odd_words | st.sampled_from(["#matchloom-vocabulary", "\ufeff", "0", "\\n"]))))
def test_what_is_saved_is_loaded(tmp_path: Path, texts: list[list[str]]) -> None:
    vocab = Vocab.build(texts)
    path = tmp_path / "vocab.txt"
    path.write_bytes(vocab.dumps().encode())
    assert Vocab.load(path) == vocab


@pytest.mark.parametrize("kind", ["english", "chinese", "whitespace"])
@examples(50)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_the_words_of_every_tokenizer_survive_a_file(tmp_path: Path, kind: str, text: str) -> None:
    vocab = Vocab.build([Tokenizer(kind)(text)])
    path = tmp_path / "vocab.txt"
    path.write_bytes(vocab.dumps().encode())
    assert Vocab.load(path) == vocab


def test_a_cut_off_file_is_told_wherever_it_was_cut(tmp_path: Path) -> None:
    content = Vocab.build(TEXTS).dumps()
    ends_of_lines = {i + 1 for i, c in enumerate(content) if c == "\n"}
    path = tmp_path / "vocab.txt"
    for length in set(range(len(content))) - ends_of_lines:
        path.write_text(content[:length], encoding="utf-8", newline="\n")
        with refused("damaged", "vocab.txt"):
            Vocab.load(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is no vocabulary"),
        ("the\t3\t2\n", "is no vocabulary"),
        ("#matchloom-vocabulary\tmany\n", "is no vocabulary"),
        ("#matchloom-vocabulary\t2\t4\nthe\t3\t2\n", "was cut off"),
        (
            "#matchloom-vocabulary\t2\t4\nthe\t3\t2\nloom\t2\n",
            "line 3: expected word, count and texts, found 'loom\\\\t2'",
        ),
        ("#matchloom-vocabulary\t1\t4\nthe\tthree\t2\n", "line 2: expected word, count and texts"),
        ("#matchloom-vocabulary\t1\t4\n\n", "line 2: expected word, count and texts, found ''"),
    ],
)
def test_damaged_files(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MatchloomError, match=expected):
        Vocab.load(path)
