"""Vectors: the three file formats, skip-gram training, coverage and the first matrix."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from matchloom.text.vectors import (
    WordVectors,
    coverage,
    initial_matrix,
    read_vectors,
    train_vectors,
    write_vectors,
)
from matchloom.text.vocab import PADDING, UNKNOWN, Vocab
from matchloom.types import MatchloomError
from tests.drawing import examples
from tests.refusing import refused

GLOVE = "the 0.5 -1 2e-3\nloom 1 2 3\n. . . 4 5 6\n"
ROWS = [[0.5, -1, 2e-3], [1, 2, 3], [4, 5, 6]]


def told(path: Path) -> str:
    with pytest.raises(MatchloomError) as caught:
        read_vectors(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def binary(*rows: tuple[bytes, list[float]], end: bytes = b"\n") -> bytes:
    """As the word2vec program writes it: header, then word, space, floats (and mostly a line feed)."""
    head = f"{len(rows)} {len(rows[0][1])}\n".encode()
    return head + b"".join(word + b" " + struct.pack(f"<{len(values)}f", *values) + end for word, values in rows)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("header", ["", "3 3\n"])
def test_text_formats(tmp_path: Path, header: str, zipped: bool) -> None:
    content = (header + GLOVE).encode()
    path = tmp_path / "v.txt"
    path.write_bytes(gzip.compress(content) if zipped else content)
    found = read_vectors(path)
    assert found.words == ["the", "loom", ". . ."]
    assert found.matrix.dtype == np.float32
    np.testing.assert_array_equal(found.matrix, np.array(ROWS, dtype=np.float32))
    assert found.dimensions == 3
    assert found.index == {"the": 0, "loom": 1, ". . .": 2}


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("zipped", [False, True])
def test_binary_format(tmp_path: Path, end: bytes, zipped: bool) -> None:
    content = binary((b"the", ROWS[0]), ("hündin".encode(), ROWS[1]), (b"x", ROWS[2]), end=end)
    path = tmp_path / "v.bin"
    path.write_bytes(gzip.compress(content) if zipped else content)
    found = read_vectors(path)
    assert found.words == ["the", "hündin", "x"]
    np.testing.assert_array_equal(found.matrix, np.array(ROWS, dtype=np.float32))


def test_binary_bytes_that_look_like_spaces_and_line_feeds(tmp_path: Path) -> None:
    values = [struct.unpack("<f", b" \n\n ")[0], struct.unpack("<f", b"\x01\n  ")[0]]
    path = tmp_path / "v.bin"
    path.write_bytes(binary((b"a", values), (b"b", values[::-1])))
    found = read_vectors(path)
    assert found.words == ["a", "b"]
    np.testing.assert_array_equal(found.matrix, np.array([values, values[::-1]], dtype=np.float32))


def test_gensim_reads_what_we_write_and_we_what_it_writes(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(300)]
    matrix = np.random.default_rng(0).normal(size=(300, 100)).astype(np.float32)
    write_vectors(tmp_path / "ours.txt", WordVectors(words, matrix))
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / "ours.txt"))
    assert theirs.index_to_key == words
    np.testing.assert_array_equal(theirs.vectors, matrix)
    for name, is_binary in (("theirs.bin", True), ("theirs.txt", False)):
        theirs.save_word2vec_format(str(tmp_path / name), binary=is_binary)
        found = read_vectors(tmp_path / name)
        assert found.words == words
        np.testing.assert_array_equal(found.matrix, matrix)


@examples(60)
@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(
            lambda word: word.encode().split() == [word.encode()]
        ),
        min_size=1,
        max_size=5,
        unique=True,
    ),
    rows=arrays.arrays(np.float32, (5, 2), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)),
    name=st.sampled_from(["v.txt", "v.txt.gz"]),
)
def test_written_vectors_are_read_back(tmp_path: Path, words: list[str], rows: np.ndarray, name: str) -> None:
    write_vectors(tmp_path / name, WordVectors(words, rows[: len(words)]))
    found = read_vectors(tmp_path / name)
    assert found.words == words
    np.testing.assert_array_equal(found.matrix, rows[: len(words)])


def test_only_wanted_words_are_kept_and_the_first_of_two_counts(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("a 1 2\nb 3 4\na 5 6\nc 7 8\n")
    assert read_vectors(path).matrix.tolist() == [[1, 2], [3, 4], [7, 8]]
    kept = read_vectors(path, keep=Vocab.build([["a", "c", "z"]]))
    assert (kept.words, kept.matrix.tolist()) == (["a", "c"], [[1, 2], [7, 8]])
    none = read_vectors(path, keep=set())
    assert (none.words, none.matrix.shape) == ([], (0, 2))


MALFORMED = {
    "too few": ("a 1 2 3\nb 1 2\n", "line 2: found 2 numbers after the word, expected 3"),
    "too many": ("a 1 2\nb 1 2 3\n", "line 2: found 3 numbers after the word, expected 2"),
    "no number": (
        "a 1 2\nb 1 2\nc 1 two\n",
        "line 3: expected 2 numbers, but could not convert string to float: b'two'",
    ),
    "not a number": ("a 1 2\nb nan 2\n", "line 2: the vector of 'b' holds a number that is not finite"),
    "too large": ("a 1 2\nb 1 1e99\n", "line 2: the vector of 'b' holds a number that is not finite"),
    "cut off": ("a 1 2\nb", "line 2: found 0 numbers after the word, expected 2"),
    "an empty line": ("a 1 2\n\nb 1 2\n", "line 2: found 0 numbers after the word, expected 2"),
    "empty": ("", "line 1: found b''; expected a word and its numbers"),
    "no vectors": ("just\nwords\n", "line 1: found b'just\\n'; expected a word and its numbers"),
    "other words": ("a text of words\nand more of it\n", "line 1: expected 3 numbers, but could not convert"),
    "header only": ("2 3\n", "holds 0 vectors, but its first line says 2; is the file cut off?"),
    "short of lines": ("3 2\na 1 2\nb 1 2\n", "holds 2 vectors, but its first line says 3"),
    "header and too few": ("2 3\na 1 2 3\nb 1\n", "line 3: found 1 numbers after the word, expected 3"),
    "latin-1": ("a 1 2\ncaf\xe9 1 2\n".encode("latin-1"), "line 2: b'caf\\xe9' is not UTF-8"),
    "cut off gzip": (gzip.compress(GLOVE.encode() * 9)[:-12], "is damaged or cut off"),
    "cut off binary": (binary((b"a", [1, 2]), (b"b", [3, 4]))[:-4], "word 2: the file ends inside this vector"),
    "binary short of words": (
        binary((b"a", [1, 2]), (b"b", [3, 4]))[:-11],
        "holds 1 vectors, but its first line says 2",
    ),
    "binary NaN": (binary((b"a", [1, 2]), (b"b", [float("nan"), 4])), "word 2: the vector of 'b' holds a number that"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_files(tmp_path: Path, kind: str) -> None:
    content, expected = MALFORMED[kind]
    path = tmp_path / "v.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert expected in told(path)


def test_words_that_no_line_can_hold_are_not_written(tmp_path: Path) -> None:
    for word in ("", "two words", "line\nbreak"):
        with refused("bad_value", "inside"):
            write_vectors(tmp_path / "v.txt", WordVectors([word], np.ones((1, 2), dtype=np.float32)))
    assert list(tmp_path.iterdir()) == []


# ---- training

# Two topics that never meet: words of one stand together, words of the other elsewhere.
_random = np.random.default_rng(1)
TOPICS = [["warp", "weft", "loom", "yarn", "reed"], ["kernel", "shell", "pipe", "socket", "daemon"]]
TEXTS = [list(_random.choice(TOPICS[i % 2], size=12)) for i in range(400)]


def test_words_that_stand_together_come_close() -> None:
    vectors = train_vectors(TEXTS, dimensions=10, epochs=10, seed=3)
    assert sorted(vectors.words) == sorted(TOPICS[0] + TOPICS[1])
    assert vectors.matrix.shape == (10, 10)
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    cosine = unit @ unit.T
    first = [vectors.index[word] for word in TOPICS[0]]
    second = [vectors.index[word] for word in TOPICS[1]]
    assert cosine[np.ix_(first, first)].min() > cosine[np.ix_(first, second)].max()


def test_the_same_texts_in_any_order_give_the_same_bits() -> None:
    once = train_vectors(TEXTS, dimensions=8, epochs=2, seed=3)
    again = train_vectors(iter(TEXTS[::-1]), dimensions=8, epochs=2, seed=3)
    other = train_vectors(TEXTS, dimensions=8, epochs=2, seed=4)
    assert once.words == again.words
    np.testing.assert_array_equal(once.matrix, again.matrix)
    assert not np.array_equal(once.matrix, other.matrix)


@pytest.mark.slow
def test_training_does_not_depend_on_the_hash_seed_of_python() -> None:
    program = (
        "import hashlib; from matchloom.text.vectors import train_vectors as t; "
        "v = t([f'w{i % 7} w{i % 3} w{i % 5}'.split() for i in range(90)], dimensions=6, epochs=2, seed=1); "
        "print(hashlib.sha256(' '.join(v.words).encode() + v.matrix.tobytes()).hexdigest())"
    )
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    other = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    )
    texts = [f"w{i % 7} w{i % 3} w{i % 5}".split() for i in range(90)]
    here = train_vectors(texts, dimensions=6, epochs=2, seed=1)
    digest = hashlib.sha256(" ".join(here.words).encode() + here.matrix.tobytes()).hexdigest()
    assert other.stdout.strip() == digest


def test_rare_words_are_left_out_and_too_little_text_is_told() -> None:
    assert train_vectors([["a", "b", "a"]], dimensions=2, min_count=2).words == ["a"]
    with refused("no_data", "occurs", "3"):
        train_vectors([["a", "b", "a"]], min_count=3)
    with refused("no_data", "occurs", "1"):
        train_vectors([])


def test_words_beyond_the_longest_text_of_gensim_are_trained() -> None:
    long = ["filler"] * 10_000 + ["warp", "weft"] * 3_000
    (seen, fresh) = (train_vectors([long], dimensions=4, epochs=n, seed=0) for n in (1, 0))
    rows = [seen.index[word] for word in ("warp", "weft")]
    assert (seen.matrix[rows] != fresh.matrix[rows]).all()


# ---- coverage and the first matrix


def test_coverage_by_hand() -> None:
    vectors = WordVectors(["a", "b"], np.zeros((2, 1), dtype=np.float32))
    vocab = Vocab.build([["a", "a", "c"], ["c", "c", "d", "a", "b"]])  # a 3, c 3, b 1, d 1
    for counted in (vocab, Counter({"a": 3, "c": 3, "b": 1, "d": 1})):
        assert coverage(vectors, counted) == (0.5, 0.5, ["c", "d"])
    assert coverage(vectors, Counter({"a": 1, "z": 3})) == (0.25, 0.5, ["z"])
    assert coverage(vectors, {}) == (0.0, 0.0, [])


def test_the_first_matrix() -> None:
    vocab = Vocab.build([["b", "b", "a", "new"]])
    vectors = WordVectors(["other", "a", "b"], np.array([[9, 9], [1, 2], [3, 4]], dtype=np.float32))
    matrix = initial_matrix(vocab, vectors, dimensions=2, seed=5, scale=0.25)
    assert matrix.dtype == np.float32
    assert matrix.shape == (5, 2)
    assert matrix[PADDING].tolist() == [0, 0]
    assert matrix[vocab.ids(["a", "b"])].tolist() == [[1, 2], [3, 4]]
    drawn = matrix[[UNKNOWN, *vocab.ids(["new"])]]
    assert (np.abs(drawn) < 0.25).all()
    assert len(set(drawn.ravel())) == 4
    np.testing.assert_array_equal(matrix, initial_matrix(vocab, vectors, dimensions=2, seed=5, scale=0.25))
    assert (initial_matrix(vocab, vectors, dimensions=2, seed=6)[UNKNOWN] != matrix[UNKNOWN]).all()


def test_the_first_matrix_without_vectors_is_uniform() -> None:
    vocab = Vocab.build([[f"w{i}" for i in range(2_000)]])
    values = initial_matrix(vocab, None, dimensions=10, seed=0)[1:]
    # Uniform in (-.1, .1): mean 0 and variance .2^2 / 12, both within five standard errors.
    assert abs(values.mean()) < 5 * 0.2 / 12**0.5 / values.size**0.5
    assert abs(values.var() / (0.2**2 / 12) - 1) < 0.05
    assert np.abs(values).max() > 0.0999


def test_vectors_that_do_not_fit_the_vocabulary() -> None:
    vectors = WordVectors(["der", "die"], np.ones((2, 3), dtype=np.float32))
    with refused("mismatch", "vocabulary", "2"):
        initial_matrix(Vocab.build([["the", "loom"]]), vectors, dimensions=3, seed=0)
    with refused("mismatch", "3", "50"):
        initial_matrix(Vocab.build([["die"]]), vectors, dimensions=50, seed=0)


@pytest.mark.data
def test_glove_is_read_whole(data_dir: Path) -> None:
    path = data_dir / "glove" / "glove.6B.100d.subset.txt.gz"
    found = read_vectors(path)
    assert found.matrix.shape == (95_117, 100)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        first = next(lines).split()
    np.testing.assert_array_equal(found.matrix[found.index[first[0]]], np.array(first[1:], dtype=np.float32))


@examples(200)
@given(
    start=st.sampled_from([GLOVE.encode(), b"3 3\n" + GLOVE.encode(), binary((b"a", [1, 2]), (b"b", [3, 4]))]),
    data=st.data(),
)
def test_any_bytes_give_vectors_or_one_line(tmp_path: Path, start: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(start)))
    path = tmp_path / "v.txt"
    path.write_bytes(start[:cut] + data.draw(st.binary(max_size=20)) + start[cut:])
    try:
        found = read_vectors(path)
    except MatchloomError as error:
        line = str(error)
    else:
        line = str(path)
        assert found.matrix.shape == (len(found.words), found.dimensions)
    assert str(path) in line
    assert "\n" not in line
