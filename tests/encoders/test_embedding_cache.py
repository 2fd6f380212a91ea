"""Positions that are read once: the numbers of the encoder itself, made anew where a file is damaged, swept by age."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from matchloom.batches import Texts
from matchloom.data.batching import pad_texts
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders import embedding_cache
from matchloom.encoders.embedding_cache import kept_positions
from matchloom.encoders.transformer import Transformer
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from tests.encoders.making import write_folder

pytest.importorskip("tokenizers")

TEXTS = ["how do the list sort read", "how do", "open", "", "how do"]


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Transformer:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Transformer.load(write_folder(tmp_path / "small")).eval()


def table_of(encoder: Transformer, texts: list[str]) -> TokenizedTexts:
    return encoder.reader(Tokenizer(), Vocab.build([["how"]])).read(texts)


def rows(table: TokenizedTexts, *which: int) -> Texts:
    return pad_texts(table, np.array(which))


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "matchloom" / "positions").iterdir())


@torch.no_grad()
def test_they_are_what_the_encoder_makes_of_each_text_alone(encoder: Transformer, tmp_path: Path) -> None:
    table = table_of(encoder, TEXTS)
    scoring = encoder.in_double()
    alone = [scoring(rows(table, n))[0] for n in range(len(TEXTS))]
    means = [scoring.mean(rows(table, n))[0] for n in range(len(TEXTS))]
    in_training = [encoder(rows(table, n))[0] for n in range(len(TEXTS))]
    with kept_positions(encoder, [table, table], workers=2):
        together, looked_up = (one(rows(table, *range(len(TEXTS)))) for one in (scoring, encoder))
        for n, x in enumerate(alone):
            torch.testing.assert_close(together[n, : len(x)], x, rtol=0, atol=0)
            torch.testing.assert_close(scoring.mean(rows(table, n))[0], means[n], rtol=0, atol=0)
            torch.testing.assert_close(looked_up[n, : len(x)], in_training[n], rtol=0, atol=1e-6)
        other = table_of(encoder, ["read the list", "how do"])
        found = encoder(rows(other, 0, 1))  # one that is not among them is read
    torch.testing.assert_close(encoder(rows(other, 0, 1)), found, rtol=0, atol=0)
    assert encoder.kept is None
    assert len(files(tmp_path)) == 1


@torch.no_grad()
@pytest.mark.parametrize("damage", ["cut", "flip", "nothing", "other"])
def test_a_damaged_file_is_made_anew(encoder: Transformer, tmp_path: Path, damage: str) -> None:
    table = table_of(encoder, TEXTS)
    with kept_positions(encoder, [table], workers=1):
        pass
    [file] = files(tmp_path)
    whole = file.read_bytes()
    broken = {
        "cut": whole[:-9],
        "flip": whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:],
        "nothing": b"",
        "other": b"PK\x03\x04" + whole,
    }
    file.write_bytes(broken[damage])
    with kept_positions(encoder, [table], workers=1):
        pass
    assert files(tmp_path) == [file]
    assert file.read_bytes() == whole


def test_other_weights_and_other_texts_have_other_files(encoder: Transformer, tmp_path: Path) -> None:
    other = Transformer.load(write_folder(tmp_path / "other", seed=1)).eval()
    for one, texts in ((encoder, TEXTS), (encoder, TEXTS[::-1]), (encoder, TEXTS[:2]), (other, TEXTS)):
        with kept_positions(one, [table_of(one, texts)], workers=1):
            pass
    assert len(files(tmp_path)) == 3  # the order of texts is nothing


def test_those_that_were_not_asked_for_longest_go_first(
    encoder: Transformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [table_of(encoder, [text]) for text in ("how", "do", "open")]
    made = []
    for n, table in enumerate(tables):
        with kept_positions(encoder, [table], workers=1):
            [new] = set(files(tmp_path)) - set(made)
        made.append(new)
        os.utime(new, (n, n))
    with kept_positions(encoder, [tables[0]], workers=1):
        pass  # asked for just now
    monkeypatch.setattr(embedding_cache, "MOST", 2 * made[0].stat().st_size)
    with kept_positions(encoder, [tables[2]], workers=1):
        pass
    assert files(tmp_path) == sorted([made[0], made[2]])


@torch.no_grad()
def test_what_is_too_large_is_not_kept_and_that_is_told(
    encoder: Transformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_of(encoder, TEXTS)
    monkeypatch.setattr(embedding_cache, "MOST", 10)
    with caplog.at_level("WARNING", "matchloom"), kept_positions(encoder, [table], workers=1):
        assert encoder(rows(table, 0)).any()
    assert not files(tmp_path)
    assert "texts are read anew in every epoch: their positions take" in caplog.text
