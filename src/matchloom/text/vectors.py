"""Word vectors: read (GloVe, word2vec), trained by skip-gram on the task's own text, and made into a first matrix."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.extras import need
from matchloom.basics.files import open_bytes, write_lines
from matchloom.basics.progress import track
from matchloom.text.skip_gram import native, places
from matchloom.text.vocab import PADDING, Vocab
from matchloom.types import MatchloomError

# Where a row stands, its word, and its numbers: as they are written, or as the bytes of float32.
_Row = tuple[int, bytes, list[bytes] | bytes]
SKIP_GRAM_EPOCHS = 10  # over a task's own texts, which are few
_LONGEST = 10_000  # gensim drops, without a word, what a text holds beyond this


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors, row by row."""

    words: list[str]
    matrix: NDArray[np.float32]  # (words, dimensions)

    def __repr__(self) -> str:
        return f"WordVectors({len(self.words):,} words, {self.dimensions} dimensions)"

    @property
    def dimensions(self) -> int:
        """How long a vector is."""
        return int(self.matrix.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}


class Coverage(NamedTuple):
    """How much of a text the vectors know."""

    running: float  # share of the words as they run through the text
    distinct: float  # share of the different words
    missing: list[str]  # the ten most frequent words without a vector


def read_vectors(path: Path | str, *, keep: Container[str] | None = None, progress: bool = False) -> WordVectors:
    """Read GloVe text, word2vec text or word2vec binary, each plain or gzip; which of them is told by the content.

    `keep` holds the words that are wanted (a `Vocab` will do); the vectors of others are not kept in memory. The first
    vector of a word counts. A malformed line is an error that names it.
    """
    places: dict[str, int] = {}  # the line (in a binary file, the count) of each word
    values = array("f")
    with open_bytes(path) as stream:
        first = stream.readline().removeprefix(b"\xef\xbb\xbf")
        total, dimensions = _header(path, first)
        binary = total is not None and _is_binary(stream, dimensions)
        place = f"{path}, {'word' if binary else 'line'} "
        rows = (
            _binary_rows(place, stream, dimensions) if binary else _text_rows(place, first, stream, total, dimensions)
        )
        count = 0
        for number, raw, numbers in track(rows, f"Reading {Path(path).name}", total=total, show=progress):
            count += 1
            try:
                word = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise MatchloomError(f"{place}{number}: {raw[:30]!r} is not UTF-8", code="bad_row") from None
            if word in places or (keep is not None and word not in keep):
                continue
            places[word] = number
            if isinstance(numbers, bytes):
                values.frombytes(numbers)
                continue
            try:
                values.extend(map(float, numbers))
            except ValueError as error:
                raise MatchloomError(
                    f"{place}{number}: expected {dimensions} numbers, but {str(error)[:100]}", code="bad_row"
                ) from None
    if total is not None and count != total:
        raise MatchloomError(
            f"{path} holds {count} vectors, but its first line says {total}; is the file cut off?", code="damaged"
        )
    matrix = np.frombuffer(values, dtype=np.float32).reshape(-1, dimensions)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        word, number = list(places.items())[int(np.argmin(finite))]
        raise MatchloomError(
            f"{place}{number}: the vector of {word!r} holds a number that is not finite", code="bad_row"
        )
    return WordVectors(list(places), matrix)


def _header(path: Path | str, line: bytes) -> tuple[int | None, int]:
    """How many words and dimensions: word2vec's first line says both; of GloVe we know the dimensions only."""
    parts = line.split()
    if len(parts) == 2 and all(part.isdigit() and len(part) < 10 for part in parts) and int(parts[1]) > 0:
        return int(parts[0]), int(parts[1])
    if len(parts) < 2:
        raise MatchloomError(f"{path}, line 1: found {line[:40]!r}; expected a word and its numbers", code="bad_row")
    return None, len(parts) - 1


def _is_binary(stream: BufferedReader, dimensions: int) -> bool:
    """Whether the first row is no line of numbers and has bytes that no number is written with."""
    start = stream.peek()
    numbers = start.partition(b"\n")[0].split()[-dimensions:]
    if len(numbers) == dimensions and all(map(_is_number, numbers)):
        return False
    values = start.partition(b" ")[2][: 4 * dimensions]
    return any(byte >= 0x80 or (byte < 0x20 and byte not in b"\t\n\r") for byte in values)


def _text_rows(place: str, first: bytes, stream: BufferedReader, total: int | None, dimensions: int) -> Iterator[_Row]:
    lines = stream if total is not None else chain([first], stream)
    for number, line in enumerate(lines, start=1 if total is None else 2):
        word, *numbers = line.rsplit(None, dimensions) or [b""]
        # GloVe has words with spaces inside, none of which ends with a number: that is a value too many.
        if len(numbers) != dimensions or (b" " in word and _is_number(word.rpartition(b" ")[2])):
            found = max(0, len(line.split()) - 1)
            raise MatchloomError(
                f"{place}{number}: found {found} numbers after the word, expected {dimensions}", code="bad_row"
            )
        yield number, word, numbers


def _is_number(part: bytes) -> bool:
    try:
        float(part)
    except ValueError:
        return False
    return True


def _binary_rows(place: str, stream: BufferedReader, dimensions: int) -> Iterator[_Row]:
    buffer, at, number = b"", 0, 0
    size = 4 * dimensions  # float32, little-endian as everywhere
    while True:
        number += 1
        end = buffer.find(b" ", at)
        while end < 0 or len(buffer) < end + 1 + size:
            more = stream.read(1 << 20)
            if not more:
                if buffer[at:].strip():
                    raise MatchloomError(
                        f"{place}{number}: the file ends inside this vector; is it cut off?", code="damaged"
                    )
                return
            buffer, at = buffer[at:] + more, 0
            end = buffer.find(b" ")
        yield number, buffer[at:end].lstrip(b"\n"), buffer[end + 1 : end + 1 + size]
        at = end + 1 + size


def write_vectors(path: Path | str, vectors: WordVectors) -> None:
    """Write word2vec text (gzip where the name ends with .gz), whole or not at all; reading gives the same floats."""
    for word in vectors.words:
        if word.encode("utf-8", "replace").split() != [word.encode("utf-8", "replace")]:
            raise MatchloomError(
                f"{path} was not written: the word {word!r} is empty or has a space inside", code="bad_value"
            )
    write_lines(path, _lines(vectors))


def _lines(vectors: WordVectors) -> Iterator[bytes]:
    yield f"{len(vectors.words)} {vectors.dimensions}\n".encode()
    row_format = " ".join(["%s", *["%.9g"] * vectors.dimensions]) + "\n"  # nine digits tell every float32 apart
    for word, row in zip(vectors.words, vectors.matrix, strict=True):
        yield (row_format % (word, *row.tolist())).encode()


def train_vectors(
    texts: Iterable[Sequence[str]],
    *,
    dimensions: int = 50,
    min_count: int = 1,
    window: int = 5,
    epochs: int = 5,
    seed: int = 0,
    workers: int = 1,
    progress: bool = False,
) -> WordVectors:
    """Train skip-gram vectors (five negative samples a word) on tokenised texts.

    With one worker the same texts, in whatever order, and the same seed give the same bits; more workers are faster,
    but no two runs are equal.
    """
    word2vec = native(need("gensim.models", "training of word vectors").Word2Vec)  # a second; few commands need it

    # Training walks through the texts in turn. A digest is an order of its own, whatever the order they came in.
    shuffled = sorted((list(text) for text in texts), key=lambda words: _digest("\0".join(words), seed))
    parts = [text[i : i + _LONGEST] for text in shuffled for i in range(0, len(text), _LONGEST)]
    # gensim wants a hash function that does not change from run to run.
    model = word2vec(
        vector_size=dimensions,
        window=window,
        min_count=min_count,
        sg=1,
        negative=5,
        seed=seed,
        workers=workers,
        hashfxn=lambda text: int.from_bytes(_digest(str(text), seed)[:4], "little"),
    )
    model.build_vocab(parts)
    if not model.wv.index_to_key:
        remedy = "lower min_count" if min_count > 1 else "does the tokenizer suit them?"
        raise MatchloomError(
            f"no word occurs {min_count} times in the texts, so no vectors can be trained; {remedy}", code="no_data"
        )
    texts_placed = places(model, parts)
    rates = np.linspace(model.alpha, model.min_alpha, epochs + 1)
    for epoch in track(range(epochs), "Training vectors", show=progress):
        model.train(
            texts_placed,
            total_examples=len(parts),
            epochs=1,
            start_alpha=float(rates[epoch]),
            end_alpha=float(rates[epoch + 1]),
        )
    return WordVectors(list(model.wv.index_to_key), np.array(model.wv.vectors, dtype=np.float32))


def _digest(text: str, seed: int) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=seed.to_bytes(8, "little")).digest()


def coverage(vectors: WordVectors, vocab: Vocab | Mapping[str, int]) -> Coverage:
    """How much of a vocabulary (or of words with their counts) has a vector."""
    counts = dict(zip(vocab.words, vocab.counts, strict=True)) if isinstance(vocab, Vocab) else vocab
    missing = sorted((word for word in counts if word not in vectors.index), key=lambda word: (-counts[word], word))
    running = sum(counts.values())
    return Coverage(
        running=1 - sum(counts[word] for word in missing) / running if running else 0.0,
        distinct=1 - len(missing) / len(counts) if counts else 0.0,
        missing=missing[:10],
    )


def first_vectors(
    source: WordVectors | Path | str | None,
    texts: Iterable[Sequence[str]],
    *,
    dimensions: int,
    min_count: int = 1,
    seed: int = 0,
    progress: bool = False,
) -> WordVectors | None:
    """Vectors as they are given or stand in a file, or "skip-gram", trained on these texts; None for random ones."""
    if source is None or source == "random":
        return None
    if isinstance(source, WordVectors):
        return source
    if source != "skip-gram":
        return read_vectors(source, progress=progress)
    return train_vectors(
        texts, dimensions=dimensions, min_count=min_count, epochs=SKIP_GRAM_EPOCHS, seed=seed, progress=progress
    )


def initial_matrix(
    vocab: Vocab, vectors: WordVectors | None, *, dimensions: int, seed: int, scale: float = 0.1
) -> NDArray[np.float32]:
    """The first embedding of a vocabulary, one row an id: (len(vocab), dimensions).

    Padding is zeros; a word without a vector, and the unknown word, is drawn uniformly from (-scale, scale).
    """
    drawn = np.random.default_rng(seed).uniform(-scale, scale, (len(vocab), dimensions)).astype(np.float32)
    drawn[PADDING] = 0
    if vectors is None:
        return drawn
    if vectors.dimensions != dimensions:
        raise MatchloomError(
            f"the vectors have {vectors.dimensions} dimensions, expected {dimensions}; set one to the other",
            code="mismatch",
        )
    known = [word for word in vocab.words if word in vectors.index]
    if not known:
        raise MatchloomError(
            f"none of the {len(vocab.words)} words of the vocabulary ({', '.join(vocab.words[:3])} ...) has a vector; "
            "are the vectors of another language, or the texts not in lower case?",
            code="mismatch",
        )
    drawn[vocab.ids(known)] = vectors.matrix[[vectors.index[word] for word in known]]
    return drawn
