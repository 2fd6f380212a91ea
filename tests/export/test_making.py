"""Every model as graphs: the scores of torch at many sizes, a folder that is whole, and a program without torch."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from matchloom import Matcher, Pair
from matchloom.encoders.transformer import Transformer
from matchloom.export import GraphReader, export_onnx
from matchloom.export.checking import run_graphs, some_batch
from matchloom.export.running import Session
from matchloom.models import MODELS
from tests.encoders.making import write_folder
from tests.models.making import TEXTS, TOKENIZER, VOCAB, embedding, make_model
from tests.refusing import refused
from tests.representatives import each_model

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

REFUSED = ("match_srnn", "bi_match_srnn", "rae")
# Small where the defaults are large, and what reads more than word ids.
SMALL: dict[str, dict[str, int | float | str | bool]] = {
    "mv_lstm": {"hidden": 4, "units": 4, "features": "pair"},
    "m2s_net": {"frame": 24, "blocks": 1, "features": "pair"},
    "arc_i": {"maps": 4, "units": 4},
    "arc_ii": {"maps": 4, "units": 4, "layers": 1},
    "match_pyramid": {"interaction": "indicator", "maps_2": 4},
    "multi_gran_cnn": {"maps": 4, "units": 4},
    "deep_match": {"topics": 6, "words": 4},
    "cntn": {"depth": 2, "filters": 4, "sentence": 4},
    "cnn_mlp": {"depth": 1, "filters": 4, "sentence": 4, "units": 4},
    "late_interaction": {"lexical": True},
}
OVER_PIECES = ("mv_lstm", "late_interaction", "cross_encoder", "sentence_bert", "cntn")


def make_matcher(name: str, folder: Path | None = None) -> Matcher:
    arguments = SMALL.get(name, {})
    if folder is not None:
        pytest.importorskip("tokenizers")
    encoder = embedding() if folder is None else Transformer.load(write_folder(folder))
    model = make_model(name, encoder=encoder, **arguments).float()
    return Matcher(name, dict(arguments), model.unrounded(), encoder.reader(TOKENIZER, VOCAB))


def scores_by_graphs(folder: Path, query: str, texts: list[str]) -> np.ndarray:
    """As a program without torch would: files, names and arrays alone."""
    about = json.loads((folder / "export.json").read_text(encoding="utf-8"))["settings"]
    left, right, pairs = GraphReader.load(folder).read(query, texts)
    for side, given in (("left", left), ("right", right)):
        if about["encode"]:
            pairs[side] = Session((folder / about["encode"][side]).read_bytes()).run(given)
    return Session((folder / about["match"]).read_bytes()).run(pairs)


def unrounded(matcher: Matcher) -> Matcher:
    """What is exported: positions of late interaction are not rounded."""
    return replace(matcher, model=matcher.model.unrounded())


@pytest.mark.parametrize("name", each_model(name for name in MODELS if name not in REFUSED))
def test_graphs_score_as_the_matcher_does(name: str, tmp_path: Path) -> None:
    matcher = make_matcher(name)
    made = export_onnx(matcher, tmp_path / "graphs")
    assert made.check.pairs > 30
    assert made.check.difference < 5e-4
    for query, texts in ((TEXTS[1], TEXTS), (TEXTS[3], [TEXTS[0]]), ("", [TEXTS[4], "sort"])):
        found = scores_by_graphs(made.folder, query, texts)
        expected = unrounded(matcher).score([Pair(query, text) for text in texts])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not matcher.model.training


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mv_lstm", "cntn", "late_interaction"])
def test_graphs_of_a_ensemble(name: str, tmp_path: Path) -> None:
    encoder, arguments = embedding(), {**SMALL[name], "ensemble_size": 2}
    model = make_model(name, encoder=encoder, **arguments).float()
    matcher = Matcher(name, arguments, model, encoder.reader(TOKENIZER, VOCAB))
    found = scores_by_graphs(export_onnx(matcher, tmp_path / "graphs").folder, TEXTS[0], TEXTS)
    expected = unrounded(matcher).score([Pair(TEXTS[0], text) for text in TEXTS])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", OVER_PIECES)
def test_graphs_over_a_pretrained_encoder(name: str, tmp_path: Path) -> None:
    matcher = make_matcher(name, tmp_path / "small")
    made = export_onnx(matcher, tmp_path / "graphs")
    assert "tokenizer.json" in made.files
    assert ("encode.onnx" in made.files) == (name != "cross_encoder")
    texts = [*TEXTS, "how do I open a file " * 12]  # longer than the encoder's positions
    found = scores_by_graphs(made.folder, TEXTS[0], texts)
    expected = unrounded(matcher).score([Pair(TEXTS[0], text) for text in texts])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    found = scores_by_graphs(made.folder, texts[-1], texts)
    expected = unrounded(matcher).score([Pair(texts[-1], text) for text in texts])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_positions_that_a_ranking_rounds_are_as_they_were(tmp_path: Path) -> None:
    encoder = embedding()
    model = make_model("late_interaction", encoder=encoder).float()
    assert model.bits == 8
    matcher = Matcher("late_interaction", {}, model, encoder.reader(TOKENIZER, VOCAB))
    folder = export_onnx(matcher, tmp_path / "graphs").folder
    found = scores_by_graphs(folder, TEXTS[0], TEXTS)
    plain = replace(matcher, model=model.unrounded())
    np.testing.assert_allclose(found, plain.score([Pair(TEXTS[0], text) for text in TEXTS]), rtol=1e-4, atol=1e-4)
    rounded = matcher.score([Pair(TEXTS[0], text) for text in TEXTS])
    assert json.loads((folder / "export.json").read_text(encoding="utf-8"))["settings"]["matcher"] == matcher.digest
    assert 1e-4 < np.abs(found - rounded).max() < 2


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported_says_why(name: str, tmp_path: Path) -> None:
    with refused("not_supported"):
        export_onnx(make_matcher(name), tmp_path / "graphs")
    assert not (tmp_path / "graphs").exists()


def test_a_graph_that_differs_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = make_matcher("nbow_mlp")
    score = type(matcher.model).forward
    monkeypatch.setattr(type(matcher.model), "forward", lambda self, batch: score(self, batch) + 0.1)
    with refused("failed", "differs", "0", "1"):
        export_onnx(matcher, tmp_path / "graphs")
    assert not (tmp_path / "graphs").exists()


def test_the_folder_tells_of_itself(tmp_path: Path) -> None:
    matcher = make_matcher("cntn")
    folder = export_onnx(matcher, tmp_path / "graphs").folder
    manifest = json.loads((folder / "export.json").read_text(encoding="utf-8"))
    about = manifest["settings"]
    assert about["matcher"] == matcher.digest
    assert about["encode"] == {"left": "encode.onnx", "right": "encode_right.onnx"}  # CNTN's sides differ
    assert list(about["graphs"]["match.onnx"]["inputs"]) == ["left", "right", "left_rows", "right_rows"]
    assert all(one["meaning"] for graph in about["graphs"].values() for one in graph["inputs"].values())
    assert sorted(path.name for path in folder.iterdir()) == sorted([*manifest["checksums"], "export.json"])
    with refused("exists", "already"):
        export_onnx(matcher, folder)


def test_no_write_is_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with refused("unwritable", "device"):
        export_onnx(make_matcher("lstm_rnn"), tmp_path / "graphs")
    assert list((tmp_path / "graphs").iterdir()) == []


@pytest.mark.slow
def test_the_encoder_in_eight_bits(tmp_path: Path) -> None:
    matcher = make_matcher("late_interaction", tmp_path / "small")
    made = export_onnx(matcher, tmp_path / "graphs", int8=True, texts=TEXTS)
    assert made.int8 is not None
    assert made.int8.texts == len(TEXTS)
    assert 0.98 < made.int8.least_cosine <= made.int8.mean_cosine < 1
    found = scores_by_graphs(made.folder, TEXTS[0], TEXTS)
    expected = unrounded(matcher).score([Pair(TEXTS[0], text) for text in TEXTS])
    assert np.corrcoef(found, expected)[0, 1] > 0.99
    alone = [scores_by_graphs(made.folder, TEXTS[0], [text])[0] for text in TEXTS]
    np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-4)  # no text's numbers depend on the others
    with refused("not_supported", "pretrained"):
        export_onnx(make_matcher("late_interaction"), tmp_path / "other", int8=True, texts=TEXTS)
    with refused("no_data", "eight"):
        export_onnx(matcher, tmp_path / "other", int8=True)
    with refused("not_supported", "cross_encoder"):
        export_onnx(make_matcher("cross_encoder", tmp_path / "small"), tmp_path / "other", int8=True, texts=TEXTS)


def test_without_the_packages_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with refused("needs_extra", "onnxruntime", "[onnx]"):
        export_onnx(make_matcher("lstm_rnn"), tmp_path / "graphs")


def test_batches_of_the_check_are_of_many_kinds() -> None:
    matcher = make_matcher("knrm")
    batch = some_batch(matcher, np.random.default_rng(0), 3, 2, (1, 9))
    assert len(batch) == 5
    assert (len(batch.left.words), len(batch.right.words)) == (3, 2)
    assert torch.isfinite(matcher.model(batch)).all()
    assert callable(run_graphs)


@pytest.mark.slow
def test_the_example_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = make_matcher("late_interaction", tmp_path / "small")
    export_onnx(matcher, tmp_path / "faq.onnx")
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert example is not None
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(compile(example[1], "docs/export.md", "exec"), found)
    expected = unrounded(matcher).score([Pair(found["query"], text) for text in found["texts"]])
    np.testing.assert_allclose(found["scores"], expected, rtol=1e-4, atol=1e-4)
