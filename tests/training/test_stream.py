"""Pairs of Parquet shards that need not fit in memory: every pair once in an epoch, and the same run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchloom.data import token_cache
from matchloom.data.formats.shards import find_shards
from matchloom.data.reader import Reader
from matchloom.data.token_cache import TokenCache, open_cache
from matchloom.encoders.transformer import Transformer
from matchloom.matcher import NOTHING_LEARNT, Matcher
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.collection import CollectionExamples
from matchloom.training.config import TrainConfig
from matchloom.training.examples import TrainingExamples
from matchloom.training.prepare import stream
from matchloom.training.stream import StreamWindows
from matchloom.types import MatchloomError, Pair
from tests.encoders.making import write_folder
from tests.refusing import refused
from tests.training.making import colour_pairs, train

THINGS = [f"{kind} {part}" for kind in ("loom", "mill", "kiln", "forge", "lathe") for part in "abcdefgh"]
ASKED = ["how do I mend the {}", "my {} is broken what now", "the {} does not work"]
POSITIVES = [Pair(ask.format(thing), f"Call for the {thing} and wait.") for thing in THINGS for ask in ASKED]


def write_shards(folder: Path, pairs: Sequence[Pair], size: int = 50) -> Path:
    folder.mkdir()
    for n, start in enumerate(range(0, len(pairs), size)):
        some = pairs[start : start + size]
        columns = {name: [getattr(pair, name) for pair in some] for name in ("query", "text", "query_id")}
        labels = [pair.label for pair in some]
        table = pa.table(columns if None in labels else {**columns, "label": labels})
        pq.write_table(table, folder / f"part-{n}.parquet")
    (folder / "_SUCCESS").touch()
    return folder


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "BLOCK", 16)


def cached(folder: Path, place: Path, **settings: object) -> TokenCache:
    shards = find_shards(folder)
    assert shards is not None
    given = {"encoder": None, "columns": None, "graded": False, "hold_out": 0.0, "progress": False, **settings}
    return stream(shards, Tokenizer(), place, **given)  # type: ignore[arg-type]


def windows_of(cache: TokenCache, *, alone: bool, window: int = 40) -> tuple[StreamWindows, Matcher]:
    pairs = POSITIVES if alone else colour_pairs()
    matcher = train(pairs, model="nbow_mlp", dimensions=4, epochs=1)
    config = TrainConfig(window=window, questions=False)
    return StreamWindows(cache, matcher, config, alone=alone, shards=1, by_length=True), matcher


def words_of(matcher: Matcher, text: str) -> tuple[int, ...]:
    return tuple(matcher.read([text]).word_ids(0).tolist())


def test_blocks_are_read_and_not_mapped_and_a_cut_is_told(tmp_path: Path) -> None:
    cache = cached(write_shards(tmp_path / "shards", POSITIVES), tmp_path / "tokens")
    last = len(cache.sizes) - 1
    array = cache.block(last)["labels"]
    while array.base is not None and isinstance(array.base, np.ndarray):
        array = array.base
    assert not isinstance(array, np.memmap)  # whose pages would stay in memory
    blocks = tmp_path / "tokens" / "blocks.bin"
    blocks.write_bytes(blocks.read_bytes()[:-1])
    with refused("damaged", tmp_path / "tokens"):
        cache.block(last)


def test_every_pair_stands_in_one_window_of_an_epoch(tmp_path: Path) -> None:
    cache = cached(write_shards(tmp_path / "shards", POSITIVES), tmp_path / "tokens")
    windows, matcher = windows_of(cache, alone=True)
    expected = sorted((words_of(matcher, pair.query), words_of(matcher, pair.text)) for pair in POSITIVES)
    assert windows.count == 3
    orders = []
    for epoch in (0, 0, 1):
        found = []
        for number in range(windows.count):
            examples = windows.window(epoch, number)
            assert isinstance(examples, CollectionExamples)
            left, right, left_rows, right_rows, _ = examples.read
            rows = zip(left_rows.tolist(), right_rows.tolist(), strict=True)
            found += [(tuple(left.word_ids(q).tolist()), tuple(right.word_ids(t).tolist())) for q, t in rows]
        assert sorted(found) == expected
        orders.append(found)
    assert orders[0] == orders[1] != orders[2]


def test_no_negative_of_a_window_is_a_positive(tmp_path: Path) -> None:
    cache = cached(write_shards(tmp_path / "shards", POSITIVES[::-1]), tmp_path / "tokens")
    windows, matcher = windows_of(cache, alone=True, window=90)
    right = {words_of(matcher, pair.query): words_of(matcher, pair.text) for pair in POSITIVES}
    seen = 0
    for number in range(windows.count):
        examples = windows.window(0, number)
        assert isinstance(examples, CollectionExamples)
        for step in examples.steps(0):
            for member in step[0]:
                rows, texts = np.divmod(member, examples.collection.texts)
                answer = right[tuple(examples.read.left.word_ids(int(rows[0])).tolist())]
                told = [tuple(examples.read.right.word_ids(int(text)).tolist()) for text in texts]
                assert told[0] == answer
                assert answer not in told[1:]
                seen += len(told) - 1
        near = [set(rows.tolist()) & set(own.tolist()) for rows, own in zip(*examples.collection[4:1:-2], strict=True)]
        assert not any(near)
        assert any(len(rows) for rows in examples.collection.near)
    assert seen > len(POSITIVES)


def test_a_list_is_never_cut(tmp_path: Path) -> None:
    pairs = colour_pairs()
    cache = cached(write_shards(tmp_path / "shards", pairs, size=42), tmp_path / "tokens")
    windows, _ = windows_of(cache, alone=False)
    lists = 0
    for number in range(windows.count):
        examples = windows.window(0, number)
        assert isinstance(examples, TrainingExamples)
        assert examples.groups.negatives is not None
        lists += len(examples.groups.positives)
        assert all(len(own) in (1, 2, 3) for own in examples.groups.negatives)
    assert lists == len({pair.query_id for pair in pairs})


def test_words_are_counted_as_those_in_memory(tmp_path: Path) -> None:
    pairs = [pair._replace(query=f"{n} {pair.query}", text=f"{n} {pair.text}") for n, pair in enumerate(POSITIVES)]
    cache = cached(write_shards(tmp_path / "shards", pairs), tmp_path / "tokens")
    vocab = cache.vocab(Tokenizer().lowercase, 2)
    assert vocab == train(pairs, model="nbow_mlp", dimensions=4, epochs=1, min_count=2).vocab


@pytest.mark.parametrize(
    ("model", "arguments", "pairs", "expected"),
    [
        ("mv_lstm", {"hidden": 4, "units": 4, "lexical": True}, POSITIVES, [(1, 1), (1, 2), (2, 1)]),
        ("m2s_net", {"blocks": 1, "frame": 12, "features": "pair"}, colour_pairs(), [(1, 1), (1, 2), (1, 3)]),
    ],
)
def test_a_stopped_stream_goes_on_bit_for_bit(
    tmp_path: Path, model: str, arguments: dict[str, int], pairs: list[Pair], expected: list[tuple[int, int]]
) -> None:
    folder = write_shards(tmp_path / "shards", pairs)
    place = tmp_path / "tokens"
    given = {"model": model, "arguments": arguments, "dimensions": 4, "window": 60, "batch": 32, "cache": place}

    class StopError(Exception):
        pass

    entries = []

    def stop(entry: dict[str, float]) -> None:
        entries.append(entry)
        if len(entries) == 3:
            raise StopError

    with pytest.raises(StopError):
        train(folder, folder=tmp_path / "parts", epochs=2, on_epoch=stop, **given)
    assert [(entry["epoch"], entry["window"]) for entry in entries] == expected
    parts = train(folder, folder=tmp_path / "parts", epochs=2, resume=True, **given)
    whole = train(folder, folder=tmp_path / "whole", epochs=2, **given)
    for name, weights in whole.model.state_dict().items():
        assert weights.equal(parts.model.state_dict()[name])
    assert (tmp_path / "parts" / "weights.safetensors").read_bytes() == (
        tmp_path / "whole" / "weights.safetensors"
    ).read_bytes()


def test_a_stream_is_learnt_from(tmp_path: Path) -> None:
    pairs = colour_pairs(queries=200)
    folder = write_shards(tmp_path / "shards", pairs, size=300)
    matcher = train(
        folder,
        hold_out=0.1,
        model="knrm",
        dimensions=8,
        window=500,
        epochs=8,
        learning_rate=0.01,
        folder=tmp_path / "run",
    )
    assert NOTHING_LEARNT not in matcher.training
    assert matcher.training["best"]["RR"] > 0.6  # 0.52 by chance
    assert matcher.training["pairs"] < 800


def test_tokens_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, place = write_shards(tmp_path / "shards", POSITIVES), tmp_path / "tokens"
    first = cached(folder, place)
    before = (place / "blocks.bin").stat().st_ino

    def refuse(*given: object) -> None:
        raise AssertionError("made again")

    with monkeypatch.context() as patched:
        patched.setattr(token_cache._Maker, "write", refuse)
        assert cached(folder, place).digest == first.digest
        with pytest.raises(AssertionError):
            cached(folder, place, hold_out=0.5)
    assert (place / "blocks.bin").stat().st_ino == before
    pq.write_table(pa.table({"query": ["what?"], "text": ["this"]}), folder / "part-9.parquet")
    assert len(cached(folder, place)) == len(first) + 1


def test_a_flipped_bit_of_the_tokens_is_refused(tmp_path: Path) -> None:
    folder, place = write_shards(tmp_path / "shards", POSITIVES), tmp_path / "tokens"
    cached(folder, place)
    content = bytearray((place / "blocks.bin").read_bytes())
    content[100] ^= 1
    (place / "blocks.bin").write_bytes(content)
    with pytest.raises(MatchloomError) as error:
        cached(folder, place)
    assert error.value.code == "altered"
    assert "blocks.bin" in str(error.value)


def test_held_out_pairs_are_drawn_by_content_and_not_trained_on(tmp_path: Path) -> None:
    forth = cached(write_shards(tmp_path / "forth", POSITIVES), tmp_path / "one", hold_out=0.2)
    back = cached(write_shards(tmp_path / "back", POSITIVES[::-1]), tmp_path / "two", hold_out=0.2)
    assert sorted(pair.query for pair in forth.development) == sorted(pair.query for pair in back.development)
    assert 0 < len(forth.development) < 60
    assert len(forth) + len(forth.development) == len(POSITIVES)


def test_words_beyond_the_most_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "MOST_WORDS", 10)
    cache = cached(write_shards(tmp_path / "shards", POSITIVES), tmp_path / "tokens")
    assert len(cache.words) == 10
    windows, _ = windows_of(cache, alone=True)
    assert windows.window(0, 0) is not None


def test_few_pairs_are_read_as_a_whole(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards", colour_pairs())
    notes: list[str] = []
    one = train(folder, model="nbow_mlp", dimensions=4, epochs=1, on_note=notes.append)
    paths = sorted(folder.glob("*.parquet"))
    other = train(paths, model="nbow_mlp", dimensions=4, epochs=1)
    plain = train(colour_pairs(), model="nbow_mlp", dimensions=4, epochs=1)
    assert not any("stream" in note for note in notes)
    assert one.training["pairs"] == other.training["pairs"] == plain.training["pairs"] == len(colour_pairs())


@pytest.mark.parametrize(
    ("pairs", "settings", "code"),
    [
        ([Pair("a b", f"c {n}", 1.0) for n in range(20)], {"loss": "cross_entropy"}, "bad_labels"),
        ([Pair(f"a {n}", "same") for n in range(20)], {}, "no_data"),
        ([Pair(f"a {n}", f"c {n}", float(n % 2)) for n in range(20)], {"loss": "hinge"}, "bad_labels"),
        (colour_pairs(), {"in_batch": True}, "conflict"),
    ],
)
def test_what_teaches_nothing_is_refused(
    tmp_path: Path, pairs: list[Pair], settings: dict[str, object], code: str
) -> None:
    folder = write_shards(tmp_path / "shards", pairs)
    with pytest.raises(MatchloomError) as error:
        train(folder, model="nbow_mlp", dimensions=4, window=10, **settings)
    assert error.value.code == code


def test_windows_that_teach_nothing_are_passed_over(tmp_path: Path) -> None:
    """Several of them, one after the other: every answer of theirs is the same."""
    same = [Pair(f"asked {n}", "one answer for all") for n in range(64)]
    folder = write_shards(tmp_path / "shards", [*same, *POSITIVES[:32]])
    seen: list[dict[str, object]] = []
    train(folder, model="nbow_mlp", dimensions=4, window=16, epochs=2, hold_out=0, on_epoch=seen.append)
    assert 2 <= len(seen) <= 2 * 3  # of six windows in each epoch
    assert all("seconds_of_reading" in entry for entry in seen)


def test_a_reader_of_pieces_has_its_pieces_cached(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    encoder = write_folder(tmp_path / "encoder")
    cache = cached(write_shards(tmp_path / "shards", POSITIVES), tmp_path / "tokens", encoder=encoder)
    reader = Transformer.load(encoder).reader(Tokenizer(), Vocab([], [], [], 0))
    block = cache.block(0)
    pieces = [reader.text_pieces(pair.text) for pair in POSITIVES[:: len(ASKED)]]
    expected = [piece for one in pieces for piece in one.ids]
    assert block["right_pieces"].tolist() == expected[: len(block["right_pieces"])]
    matcher = train(tmp_path / "shards", encoder=encoder, cache=tmp_path / "tokens", window=60, epochs=1, batch=16)
    assert matcher.training["pairs"] == len(POSITIVES)


def test_disk_full_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = find_shards(write_shards(tmp_path / "shards", POSITIVES))
    assert shards is not None
    written = 0

    def full(self: object, *given: object) -> object:
        nonlocal written
        written += 1
        if written == 3:
            raise OSError(28, "No space left on device")
        return iter(())

    monkeypatch.setattr(token_cache._Maker, "_block", full)
    reader = Reader(Tokenizer(), Vocab([], [], [], 0))
    with pytest.raises(MatchloomError, match="No space left") as error:
        open_cache(shards, tmp_path / "tokens", reader, lambda *given: [])
    assert error.value.code == "unwritable"
    assert [path.name for path in (tmp_path / "tokens").iterdir()] == []
