"""The transformer against a slow reference, against stored numbers of another program, and inside a matcher."""

from __future__ import annotations

import json
import logging
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from matchloom import Matcher, Pair
from matchloom.batches import Pieces, Texts
from matchloom.data.batching import pad_texts
from matchloom.data.reader import WordPieces
from matchloom.encoders.library import find_encoder
from matchloom.encoders.transformer import Transformer
from matchloom.models import build_model
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError
from tests.encoders.making import FAMILIES, POSITIONS, config_json, tensors_of, write_folder
from tests.models.making import TEXTS, TOKENIZER, VOCAB
from tests.reference.transformer import transformer
from tests.refusing import refused

pytest.importorskip("tokenizers")

STORED = json.loads((Path(__file__).parent / "minilm.json").read_text(encoding="utf-8"))


@pytest.fixture
def encoder(tmp_path: Path) -> Transformer:
    return Transformer.load(write_folder(tmp_path / "small")).eval()


def pieces_of(encoder: Transformer, text: str) -> WordPieces:
    return encoder.word_pieces(text, TOKENIZER.spans(text))


def spelt(encoder: Transformer, ids: list[int]) -> list[str]:
    pieces = {n: piece for piece, n in json.loads(encoder.tokenizer.text)["model"]["vocab"].items()}
    return [pieces[n] for n in ids]


def read(encoder: Transformer, texts: list[str]) -> Texts:
    table = encoder.reader(TOKENIZER, VOCAB).read(texts)
    return pad_texts(table, np.arange(len(texts)))


@pytest.mark.parametrize("prefix", ["", "model."])
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_sums_of_its_paper(family: str, prefix: str, tmp_path: Path) -> None:
    encoder = Transformer.load(write_folder(tmp_path, family, prefix=prefix)).double().eval()
    config = config_json(family)
    texts = [pieces_of(encoder, text).ids for text in ("how do I OPENED file's 3.5 sorting?", "I OPENED", "")]
    lengths = torch.tensor([len(ids) for ids in texts])
    padded = torch.tensor([[*ids, *[7] * (int(lengths.max()) - len(ids))] for ids in texts])
    found = encoder.positions(Pieces(padded, torch.full_like(padded, -1), lengths))
    for n, ids in enumerate(texts):
        expected = torch.stack(transformer(config, tensors_of(config), ids))
        # But for the type of a text, which is added to its places in single precision, all is in double.
        torch.testing.assert_close(
            found[n, : len(ids)], expected, rtol=0, atol=1e-10 if family == "distilbert" else 1e-5
        )


def test_equals_the_stored_numbers_of_transformers(users_encoders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHLOOM_ENCODERS", str(users_encoders))
    # Every 64th number of each piece by transformers 5.22.2 on torch 2.13.0, of all-MiniLM-L6-v2.
    try:
        encoder = Transformer.load(find_encoder("all-MiniLM-L6-v2")).eval()
    except MatchloomError as error:
        pytest.skip(f"the weights are not here: {error}")
    for stored in STORED:
        ids = torch.tensor([stored["pieces"]])
        with torch.no_grad():
            found = encoder.positions(Pieces(ids, torch.full_like(ids, -1), torch.tensor([ids.shape[1]])))
        np.testing.assert_allclose(found[0, :, ::64], stored["numbers"], rtol=0, atol=1e-5)


def test_words_become_pieces_with_marks_that_belong_to_none(encoder: Transformer) -> None:
    ids, words = pieces_of(encoder, "How (opened): 3.5, Sorting?")
    expected = ["[CLS]", "how", "[UNK]", "open", "##ed", "[UNK]", "[UNK]", "3", "[UNK]", "5", "[UNK]", "sort", "##ing"]
    assert spelt(encoder, ids) == [*expected, "[UNK]", "[SEP]"]
    assert words == [-1, 0, -1, 1, 1, -1, -1, 2, 2, 2, -1, 3, 3, -1, -1]  # 3.5 is one word of ours
    assert pieces_of(encoder, "") == WordPieces([2, 3], [-1, -1])
    assert pieces_of(encoder, "[SEP]").ids.count(3) == 1  # a user's text holds no marks


@pytest.mark.parametrize("trimmed", [True, False])
def test_a_piece_that_begins_with_a_space_belongs_to_its_word(trimmed: bool, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "roberta")
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    untrimmed = text.replace('"trim_offsets": true', '"trim_offsets": false')
    (folder / "tokenizer.json").write_text(text if trimmed else untrimmed, encoding="utf-8")
    ids, words = pieces_of(encoder := Transformer.load(folder), "op open  (x)")
    assert spelt(encoder, ids) == ["<s>", "o", "p", "\u0120op", "e", "n", "\u0120", "\u0120", "(", "x", ")", "</s>"]
    assert words == [-1, 0, 0, 1, 1, 1, -1, -1, -1, 2, -1, -1]


def test_what_lies_behind_the_last_word_that_may_be_read_is_cut(encoder: Transformer) -> None:
    reader = encoder.reader(Tokenizer(max_words=2), VOCAB)
    table = reader.read(["how do the list?", "how do", "how?", "half a \ud800 character"])
    ids, words = table.pieces
    assert ids.lengths.tolist()[:3] == [4, 4, 4]
    assert words.flat[:8].tolist() == [-1, 0, 1, -1] * 2


def test_a_word_is_the_mean_of_its_pieces(encoder: Transformer) -> None:
    texts = read(encoder, ["sorting files", "how"])
    with torch.no_grad():
        words, pieces = encoder(texts), encoder.positions(texts.pieces)
    torch.testing.assert_close(words[0, 0], pieces[0, 1:3].mean(0))  # sort ##ing
    torch.testing.assert_close(words[0, 1], pieces[0, 3:5].mean(0))  # file ##s
    torch.testing.assert_close(words[1, 0], pieces[1, 1])
    assert encoder.seen(texts).tolist() == [[True, True], [True, False]]


def test_a_long_text_is_cut_and_that_is_told(encoder: Transformer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "matchloom"):
        ids, words = pieces_of(encoder, "how " * 60)
        pieces_of(encoder, "do " * 70)
    assert len(ids) == len(words) == POSITIONS
    assert (ids[-1], words[-1], words[-2]) == (3, -1, POSITIONS - 3)
    assert [record.getMessage() for record in caplog.records] == [
        "a text of 62 pieces was cut to its first 40, and so are all longer texts"
    ]
    texts = read(encoder, ["how " * 60])
    assert int(encoder.seen(texts).sum()) == POSITIONS - 2
    with torch.no_grad():
        assert not encoder(texts)[0, POSITIONS - 2 :].any()


def test_training_reads_less_and_drops_out_and_leaves_the_tables_alone(encoder: Transformer) -> None:
    encoder.training_pieces = 6
    texts = read(encoder, ["how do the list sort read", "how do"])
    encoder.learn(True)
    assert not any(x.requires_grad for x in (encoder.words, encoder.places))
    assert all(x.requires_grad for x in encoder.layers.parameters())
    encoder.train()
    assert encoder.seen(texts).sum(1).tolist() == [4, 2]
    torch.manual_seed(0)
    first, second = encoder(texts), encoder(texts)
    assert not torch.equal(first, second)
    encoder.learn(False)  # frozen: as in scoring
    assert encoder.seen(texts).sum(1).tolist() == [6, 2]
    torch.testing.assert_close(encoder(texts), encoder.eval()(texts), rtol=0, atol=0)


def test_cut_texts_keep_their_closing_mark(encoder: Transformer) -> None:
    encoder.learn(True)
    encoder.training_pieces = 6
    encoder.train()
    long = read(encoder, ["how do the list sort read", "how do"])
    encoder.shape = encoder.shape.__class__(**{**encoder.shape.as_dict(), "dropout": 0.0})
    short = read(encoder, ["how do the list", "how do"])
    torch.testing.assert_close(encoder(long)[:, :4], encoder(short), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["late_interaction", "mv_lstm"])
def test_a_matcher_is_whole_without_the_folder_it_came_from(name: str, tmp_path: Path) -> None:
    encoder = Transformer.load(write_folder(tmp_path / "small"))
    model = build_model(name, {}, encoder, seed=0).eval()
    matcher = Matcher(name, {}, model, encoder.reader(TOKENIZER, VOCAB))
    pairs = [Pair(query, text) for query in TEXTS for text in TEXTS]
    scores = matcher.score(pairs)
    matcher.save(tmp_path / "saved")
    for path in (tmp_path / "small").iterdir():
        path.unlink()
    again = Matcher.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.score(pairs), scores)
    assert again.digest == Matcher.load(tmp_path / "saved").digest
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "matcher.json",
        "tokenizer.json",
        "vocab.txt",
        "weights.safetensors",
    ]
    assert "##ing" not in (tmp_path / "saved" / "matcher.json").read_text(encoding="utf-8")


def test_a_saved_matcher_refuses_another_tokenizer(tmp_path: Path) -> None:
    Matcher.untrained(write_folder(tmp_path / "small")).save(tmp_path / "saved")
    other = (tmp_path / "saved" / "tokenizer.json").read_text(encoding="utf-8").replace('"how"', '"who"')
    (tmp_path / "saved" / "tokenizer.json").write_text(other, encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"tokenizer.json was altered since it was saved"):
        Matcher.load(tmp_path / "saved")
    (tmp_path / "saved" / "tokenizer.json").unlink()
    with pytest.raises(MatchloomError, match=r"tokenizer.json cannot be read"):
        Matcher.load(tmp_path / "saved")


def test_untrained_is_maxsim_of_words(tmp_path: Path) -> None:
    matcher = Matcher.untrained(write_folder(tmp_path / "small"))
    query, text = "how do I open a file", "open files and read the list"
    with torch.no_grad():
        x, y = (matcher.model.encoder(read(matcher.model.encoder, [side]))[0] for side in (query, text))
    cosines = torch.nn.functional.normalize(x, dim=1) @ torch.nn.functional.normalize(y, dim=1).T
    maxsim = 20 * float(cosines.amax(1).mean())
    assert matcher.score([Pair(query, text)])[0] == pytest.approx(maxsim, abs=0.01)
    whole = Matcher.untrained(tmp_path / "small", bits=32)
    assert whole.score([Pair(query, text)])[0] == pytest.approx(maxsim, abs=1e-5)
    assert matcher.score([Pair("", text), Pair(query, "?!")]).tolist() == [0, 0]


def test_untrained_with_fewer_numbers_wants_texts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "small")
    texts = ["open files and read the list", "how do I sort", "the file"]
    matcher = Matcher.untrained(folder, size=3, texts=texts)
    again = Matcher.untrained(folder, size=3, texts=texts[::-1] * 2)
    assert matcher.digest == again.digest
    encoded = matcher.encode(texts).blocks[0].encoded
    assert (encoded.dtype, encoded.shape[2]) == (torch.int8, 3 + 4)
    with refused("conflict", "encoder", "3", "8"):
        Matcher.untrained(folder, size=3)
    assert Matcher.untrained(folder, size=8).model.projection is None


def test_chinese_words_are_read_too(tmp_path: Path) -> None:
    # No Chinese weights are at hand: a random WordPiece folder shows that words find their pieces.
    matcher = Matcher.untrained(write_folder(tmp_path / "small"), tokenizer=Tokenizer("chinese"))
    left, right, trace = matcher.trace("\u4fdd\u9669", "open \u4fdd\u9669")
    assert (left, right) == (["\u4fdd\u9669"], ["open", "\u4fdd\u9669"])
    assert matcher.model.encoder.word_pieces(left[0], matcher.tokenizer.spans(left[0])).words == [-1, 0, -1]
    assert trace.grid.shape == (1, 1, 2)


@pytest.mark.parametrize("inner", [128, 100])
def test_a_text_is_read_alike_alone_and_beside_others(encoder: Transformer, inner: int) -> None:
    shape = replace(encoder.shape, size=64, heads=4, inner=inner, layers=3)
    torch.manual_seed(0)
    made = Transformer(shape, encoder.tokenizer).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0, 0.2)
    draw = random.Random(0)
    texts = [" ".join(draw.choices(["how", "open", "file", "sorting", "xyz"], k=draw.randint(1, 7))) for _ in range(70)]
    table, by_text = made.reader(TOKENIZER, VOCAB).read(texts), made.in_double()

    def means(rows: list[int]) -> Tensor:
        with torch.no_grad():
            return by_text.mean(pad_texts(table, np.array(rows)))

    together = means(list(range(len(texts))))
    for n in range(len(texts)):
        assert torch.equal(means([n])[0], together[n])
    some = draw.sample(range(len(texts)), 20)
    assert torch.equal(means(some), together[some])
    with torch.no_grad():
        torch.testing.assert_close(made.mean(pad_texts(table, np.arange(70))).double(), together, rtol=1e-4, atol=1e-5)
