"""`matchloom export`: the files, the difference that it tells, and what cannot be exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, error_of
from tests.encoders.making import write_folder

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def test_a_trained_matcher(run: Run, trained: Path, tmp_path: Path) -> None:
    found = run("export", trained, "--onnx", tmp_path / "graphs")
    assert (found.code, found.err) == (0, "")
    files, checked = found.out.splitlines()
    assert files == f"encode.onnx, match.onnx, vocab.txt, export.json are in {tmp_path / 'graphs'}."
    assert checked.startswith("On 33 pairs of many sizes scores differ by at most ")
    assert "already holds an export" in error_of(run("export", trained, "--onnx", tmp_path / "graphs"))
    assert "eight bits are for pretrained encoders" in error_of(
        run("export", trained, "--onnx", tmp_path / "small", "--int8", "--texts", trained / "vocab.txt")
    )


@pytest.mark.slow
def test_eight_bits(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    run("encoders", "use", write_folder(tmp_path / "mine"), "--out", tmp_path / "m")
    texts = tmp_path / "texts.txt"
    texts.write_text("open the file\nsort the list\nread\n")
    found = run("export", tmp_path / "m", "--onnx", tmp_path / "graphs", "--int8", "--texts", texts)
    assert found.code == 0
    assert found.out.splitlines()[-1].startswith("In eight bits, 3 texts: cosine of a word's vectors at least 0.")
    note = run("export", tmp_path / "m", "--onnx", tmp_path / "other", "--texts", texts)
    assert (note.code, "--texts is for --int8" in note.err) == (0, True)


def test_what_cannot_be_exported(run: Run, corpus: Path, tmp_path: Path) -> None:
    small = ["--dimensions", "4", "--vectors", "random", "--epochs", "1", "--set", "dimensions=2", "--set", "slices=1"]
    run("train", corpus / "right.tsv", "--out", tmp_path / "m", "--model", "match_srnn", *small)
    told = error_of(run("export", tmp_path / "m", "--onnx", tmp_path / "graphs"))
    assert told.startswith("no ONNX graph can be made of this model: its spatial GRU is native code")
    assert not (tmp_path / "graphs").exists()
    assert "is not a folder" in error_of(run("export", tmp_path / "none", "--onnx", tmp_path / "graphs"))
