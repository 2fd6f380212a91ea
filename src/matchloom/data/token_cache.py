"""Pairs of Parquet shards, tokenised once and read by block: what training reads when pairs do not fit in memory.

A block is some 8,000 pairs that follow each other in a shard, a question's list never cut in two. It holds its distinct
texts as numbers of words, and rows of these for each pair. Texts themselves are not kept; that two are the same is told
by 64 bits of a digest. Beside the blocks there is a table of the words, as they are written, and how often each was
seen: the vocabulary of a matcher is made of that, so that the same cache serves every model and setting. Where all
pairs of a block are positive, it also has the texts of the block nearest to each question by BM25.

The folder is an artifact like any other: written whole or not at all, with a checksum of each file, and the digest of
what it was made of: the shards' bytes, the tokenizer, the columns and the part that is held out.
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.artifact import holds, settings_of, write, writing
from matchloom.artifact.mapped import open_mapped
from matchloom.basics.arrays import distinct
from matchloom.basics.progress import track
from matchloom.data.formats.columns import Columns
from matchloom.data.formats.pairs import read_pairs
from matchloom.data.formats.shards import Shards
from matchloom.data.identity import local_ids, normalize_text
from matchloom.data.kinds import positives_only
from matchloom.data.reader import Reader
from matchloom.data.tokenized import Ragged, Rows, deduplicate
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError, Pair

KIND, FORMAT = "tokens", 1
BLOCK = 8_192  # pairs
HELD = 2_000  # pairs that are held out at most
SAMPLE = 20_000  # pairs of which the texts are kept, for development questions to be ranked among
MOST_WORDS = 2_000_000  # distinct words, as they are written; what comes new after these is unknown
_REMEDY = "remove the folder: it is made again"
_WAIT = 24 * 3600.0  # seconds for another process that makes the same cache
#: The arrays of a block, laid end to end in one file.
ARRAYS: dict[str, str] = {
    "left_flat": "i4",
    "left_lengths": "i4",
    "right_flat": "i4",
    "right_lengths": "i4",
    "left_rows": "i4",
    "right_rows": "i4",
    "labels": "f4",  # NaN: none
    "lists": "u8",  # which pairs have one query_id
    "questions": "u8",  # which queries are the same but for case and spaces
    "texts": "u8",
    "answers": "u8",  # which texts are
    "text_ids": "u8",  # 0: none
    "near_flat": "i4",  # rows of texts, for each query in turn
    "near_lengths": "i4",
    "left_pieces": "i4",
    "left_piece_words": "i4",
    "left_piece_lengths": "i4",
    "right_pieces": "i4",
    "right_piece_words": "i4",
    "right_piece_lengths": "i4",
}
Block = dict[str, NDArray[Any]]
#: The rows of a block's texts nearest to each of its queries: queries, texts, the texts that belong to each query, and
#: the words of any of them.
Nearest = Callable[[Sequence[str], Sequence[str], Sequence[Rows], Callable[[str], list[str]]], Sequence[Rows]]


class Counted(NamedTuple):
    """What one pass over the shards has counted."""

    pairs: int
    positives: int
    unlabelled: int
    lists: int
    lists_with_both: int
    local_ids: bool


class TokenCache:
    """A cache that was opened: its blocks are read one by one and its words are in memory."""

    def __init__(self, folder: Path, *, verify: bool = False) -> None:
        found = open_mapped(folder, KIND, FORMAT, remedy=_REMEDY)
        if verify:
            found.verify()
        self.folder = folder
        self.digest: str = found.settings["digest"]
        self.counted: Counted = Counted(**found.settings["counted"])
        self.words: list[str] = found.content("words.txt").decode().split("\n")
        counts = np.frombuffer(found.content("counts.bin"), dtype="i8").reshape(2, -1)
        self._counts, self._frequencies = counts
        self._documents: int = found.settings["documents"]
        self._index = np.frombuffer(found.content("index.bin"), dtype="i8").reshape(-1, len(ARRAYS))
        self._file = os.open(found.path("blocks.bin"), os.O_RDONLY | os.O_CLOEXEC)  # stays if the cache is replaced
        weakref.finalize(self, os.close, self._file)
        self.development: list[Pair] = _loads(found.content("development.jsonl"))
        self.sample: list[Pair] = _loads(found.content("sample.jsonl"))
        sizes = self._index * [np.dtype(kind).itemsize for kind in ARRAYS.values()]
        self._starts = np.concatenate([[0], np.cumsum(sizes.sum(1))])
        if self._starts[-1] != os.fstat(self._file).st_size:
            raise MatchloomError(f"{folder}: the blocks do not fit their index; {_REMEDY}", code="damaged")

    def __len__(self) -> int:
        """How many pairs there are to train on."""
        return self.counted.pairs

    @property
    def sizes(self) -> Rows:
        """How many pairs each block has."""
        return self._index[:, list(ARRAYS).index("left_rows")]

    def block(self, number: int) -> Block:
        """The arrays of one block. They are read and not mapped: pages that were looked at would stay in memory, until
        those of all blocks are there."""
        first, last = self._starts[number : number + 2].tolist()
        content = np.frombuffer(os.pread(self._file, last - first, first), dtype=np.uint8)
        if len(content) != last - first:
            raise MatchloomError(f"{self.folder}: the blocks were cut off meanwhile; {_REMEDY}", code="damaged")
        start, found = 0, {}
        for (name, kind), count in zip(ARRAYS.items(), self._index[number].tolist(), strict=True):
            end = start + count * np.dtype(kind).itemsize
            found[name] = content[start:end].view(kind)
            start = end
        return found

    def vocab(self, lowercase: Callable[[list[str]], list[str]], min_count: int) -> Vocab:
        """The words that were seen so often, as a tokenizer lowers them."""
        counts: dict[str, int] = {}
        frequencies: dict[str, int] = {}
        lowered = zip(lowercase(self.words), self._counts.tolist(), self._frequencies.tolist(), strict=True)
        for word, count, frequency in lowered:
            if word:
                counts[word] = counts.get(word, 0) + count
                frequencies[word] = frequencies.get(word, 0) + frequency
        kept = sorted((w for w, n in counts.items() if n >= min_count), key=lambda word: (-counts[word], word))
        return Vocab(kept, [counts[w] for w in kept], [frequencies[w] for w in kept], self._documents)

    @property
    def positives_only(self) -> bool:
        """Whether all pairs are positive: labelled above 0, or none of them labelled."""
        return self.counted.pairs in (self.counted.positives, self.counted.unlabelled)


def open_cache(
    shards: Shards,
    folder: Path,
    reader: Reader,
    nearest: Nearest,
    *,
    columns: Columns | None = None,
    graded: bool = False,
    hold_out: float = 0.0,
    progress: bool = False,
) -> TokenCache:
    """The cache of these shards, made if it is not there. Two that want the same make it once.

    Args:
        shards: What it is made of.
        folder: Where it is kept.
        reader: Its tokenizer, and its pieces where an encoder reads them; its vocabulary plays no role.
        nearest: What finds near texts of a block.
        columns: As for `read_pairs`.
        graded: As for `read_pairs`.
        hold_out: The part of the questions that are held out, HELD pairs at most; drawn by content alone.
        progress: Whether to show a bar.
    """
    part = min(hold_out, HELD / len(shards))
    digest = _digest(shards.digest(), reader, columns, graded, part)
    with writing(folder, wait=_WAIT):
        settings = settings_of(folder, KIND) if holds(folder, KIND) else None
        if settings is None or settings.get("digest") != digest:
            pairs = shards.chain(lambda path: read_pairs(path, columns=columns, graded=graded, fill_ids=False))
            shown = track(pairs, "tokenising shards", total=len(shards), show=progress)
            _Maker(shown, reader, nearest, part, len(shards)).write(folder, digest)
            return TokenCache(folder)
    return TokenCache(folder, verify=True)


def _digest(shards: str, reader: Reader, columns: Columns | None, graded: bool, part: float) -> str:
    given = [FORMAT, BLOCK, MOST_WORDS, shards, reader.tokenizer._asdict(), dict(columns or {}), graded, part]
    pieces = "" if reader.pieces is None else reader.text_pieces("What are words, and 2 pieces?").ids
    return hashlib.sha256(json.dumps([*given, pieces], sort_keys=True).encode()).hexdigest()


def hash64(*parts: str) -> int:
    """64 bits that stand for these texts, never 0."""
    content = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") or 1


class _Maker:
    """One bounded pass: pairs in, blocks out; in memory are one block, the words and the sample."""

    def __init__(self, pairs: Iterable[Pair], reader: Reader, nearest: Nearest, held: float, expected: int) -> None:
        self._pairs, self._reader, self._nearest = pairs, reader, nearest
        self._held, self._kept = held * 2.0**64, min(1.0, SAMPLE / expected) * 2.0**64
        self._ids: dict[str, int] = {"": 0}
        self._counts = np.zeros((2, 1024), dtype=np.int64)
        self._index: list[list[int]] = []
        self._documents = self._positives = self._unlabelled = self._lists = self._with_both = 0
        self._local_ids = False
        self._development: list[Pair] = []
        self._sample: list[Pair] = []

    def write(self, folder: Path, digest: str) -> None:
        settings: dict[str, Any] = {"digest": digest}

        def blocks(stream: BinaryIO) -> None:
            for pairs in self._cut():
                for array in self._block(pairs):
                    stream.write(array.tobytes())
            if not self._index:
                raise MatchloomError("the shards hold no pairs to train on", code="no_data")
            counted = (self._positives, self._unlabelled, self._lists, self._with_both, self._local_ids)
            pairs_in_all = sum(row[list(ARRAYS).index("left_rows")] for row in self._index)
            settings["counted"] = Counted(pairs_in_all, *counted)._asdict()
            settings["documents"] = self._documents

        files: Mapping[str, Any] = {
            "blocks.bin": blocks,
            "index.bin": lambda stream: stream.write(np.array(self._index, dtype=np.int64).tobytes()),
            "words.txt": lambda stream: stream.write("\n".join(self._ids).encode()),
            "counts.bin": lambda stream: stream.write(self._counts[:, : len(self._ids)].tobytes()),
            "development.jsonl": lambda stream: stream.write(_dumps(self._development)),
            "sample.jsonl": lambda stream: stream.write(_dumps(self._sample)),
        }
        write(folder, KIND, FORMAT, settings, files)

    def _cut(self) -> Iterator[list[Pair]]:
        """The pairs that are not held out, in blocks; a list that goes on goes on in the same block."""
        block: list[Pair] = []
        for pair in self._pairs:
            drawn = hash64("held out", pair.group or normalize_text(pair.query))
            if drawn < self._held:
                self._development.append(pair)
                continue
            if len(block) >= BLOCK and (_list_of(pair) != _list_of(block[-1]) or len(block) >= 2 * BLOCK):
                yield block
                block = []
            if drawn < self._held + self._kept:
                self._sample.append(pair)
            block.append(pair)
        if block:
            yield block

    def _block(self, pairs: list[Pair]) -> Iterator[NDArray[Any]]:
        asked, left_rows = deduplicate([pair.query for pair in pairs])
        texts, right_rows = deduplicate([pair.text for pair in pairs])
        self._local_ids = self._local_ids or bool(local_ids(pairs))
        found: Block = {"left_rows": left_rows, "right_rows": right_rows}
        tokenizer = self._reader.tokenizer
        words = {text: tokenizer.tokenize(text) for text in dict.fromkeys([*asked, *texts])}
        for side, own in (("left", asked), ("right", texts)):
            ids = self._numbered([words[text] or [""] for text in own])
            found |= {f"{side}_flat": ids.flat, f"{side}_lengths": ids.lengths}
            if self._reader.pieces is not None:
                pieces = [self._reader.text_pieces(text) for text in own]
                one, other = Ragged.of([p.ids for p in pieces]), Ragged.of([p.words for p in pieces])
                found |= {f"{side}_pieces": one.flat, f"{side}_piece_words": other.flat}
                found[f"{side}_piece_lengths"] = one.lengths
        labels = np.array([np.nan if pair.label is None else pair.label for pair in pairs])
        lists = np.array([hash64("list", _list_of(pair)) for pair in pairs], dtype=np.uint64)
        found |= {
            "labels": labels,
            "lists": lists,
            "questions": _hashes(normalize_text(query) for query in asked)[left_rows],
            "texts": _hashes(texts)[right_rows],
            "answers": _hashes(normalize_text(text) for text in texts)[right_rows],
            "text_ids": np.array([hash64(p.text_id) if p.text_id else 0 for p in pairs], dtype=np.uint64),
        }
        if positives_only(pairs):
            of_asked, of_texts = np.divmod(distinct(left_rows * len(texts) + right_rows), len(texts))
            relevant = np.split(of_texts, np.cumsum(np.bincount(of_asked))[:-1])
            near = self._nearest(asked, texts, relevant, lambda text: tokenizer.lowercase(words[text]))
            found["near_flat"] = np.concatenate([np.empty(0, dtype=np.int64), *near])
            found["near_lengths"] = np.array([len(rows) for rows in near])
        self._positives += int((labels > 0).sum())
        self._unlabelled += int(np.isnan(labels).sum())
        names, places = np.unique(lists, return_inverse=True)
        good, bad = (np.bincount(places[one], minlength=len(names)) > 0 for one in (labels > 0, labels <= 0))
        self._lists += len(names)
        self._with_both += int((good & bad).sum())
        arrays = [np.asarray(found.get(name, ()), dtype=kind) for name, kind in ARRAYS.items()]
        self._index.append([len(array) for array in arrays])
        return iter(arrays)

    def _numbered(self, texts: Sequence[Sequence[str]]) -> Ragged:
        """The numbers of the texts' words, which are counted."""
        ids, lengths = self._ids, [len(words) for words in texts]
        words = list(chain.from_iterable(texts))
        for word in dict.fromkeys(words):
            if len(ids) >= MOST_WORDS:
                break
            ids.setdefault(word, len(ids))
        flat = np.fromiter(map(ids.get, words, repeat(0)), np.int64, len(words))
        if len(ids) > self._counts.shape[1]:
            more = np.zeros((2, 2 * len(ids) - self._counts.shape[1]), dtype=np.int64)
            self._counts = np.concatenate([self._counts, more], axis=1)
        found = Ragged(flat, np.array(lengths, dtype=np.int64))
        rows = np.repeat(np.arange(len(texts)), found.lengths)
        once = distinct(rows * len(ids) + found.flat) % len(ids)
        for row, seen in enumerate((found.flat, once)):
            counted = np.bincount(seen, minlength=len(ids))
            self._counts[row, : len(ids)] += counted
        self._documents += len(texts)
        return found


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    return np.array([hash64(text) for text in texts], dtype=np.uint64)


def _list_of(pair: Pair) -> str:
    return pair.query_id or pair.query


def _dumps(pairs: Sequence[Pair]) -> bytes:
    return "".join(json.dumps(pair) + "\n" for pair in pairs).encode()


def _loads(content: bytes) -> list[Pair]:
    return [Pair(*json.loads(line)) for line in content.splitlines()]
