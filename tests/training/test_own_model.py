"""A user's own class in place of a name: trained, saved, loaded with its class, and refused in one line where wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from matchloom import Matcher, Pair, evaluate, explain, train
from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.models.base import PairModel
from matchloom.models.knrm import KNRM
from matchloom.traces import grid_trace
from matchloom.types import MatchloomError, Trace

TOPICS = ["loom", "ship", "bread", "glass", "horse", "clock"]
PAIRS = [Pair(f"who sells a {topic} {n}", f"our {topic} is here {n}") for topic in TOPICS for n in ("now", "soon")]


class MeanMatch(PairModel):
    """The dot product of two texts' means, times a factor that is learnt."""

    sentence_vectors = True

    def __init__(self, encoder: Encoder, *, factor: float = 1.0) -> None:
        super().__init__()
        self.encoder = encoder
        self.factor = nn.Parameter(torch.tensor([factor]))

    def encode(self, texts: Texts) -> Tensor:
        mask = texts.mask[..., None].to(self.factor.dtype)
        return (self.encoder(texts) * mask).sum(1) / mask.sum(1).clamp(min=1)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        return (left[batch.left_rows] * right[batch.right_rows]).sum(-1) * self.factor

    def trace(self, batch: PairBatch) -> list[Trace]:
        with torch.no_grad():
            scores, left, right = self(batch), self.encoder(batch.left), self.encoder(batch.right)
        found = []
        for b, (score, L, R) in enumerate(zip(scores.tolist(), *(x.tolist() for x in batch.sizes), strict=True)):
            dots = left[batch.left_rows[b], :L] @ right[batch.right_rows[b], :R].T
            found.append(grid_trace(score, dots[None], dots[None] * self.factor / (L * R), ["dot product"]))
        return found


class TwoScores(MeanMatch):
    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        return super().match(left, right, batch)[:, None]


class NoEncoder(MeanMatch):
    def __init__(self, encoder: Encoder) -> None:
        nn.Module.__init__(self)


class Open(MeanMatch):
    def __init__(self, encoder: Encoder, size: int) -> None:
        super().__init__(encoder)


class HalfDone(PairModel):
    def encode(self, texts: Texts) -> Tensor:
        return self.encoder(texts)


def trained(model: Any = MeanMatch, **options: Any) -> Matcher:
    return train(PAIRS, PAIRS, model=model, epochs=2, dimensions=8, vectors="random", **options)


def test_a_class_is_trained_evaluated_saved_and_loaded(tmp_path: Path) -> None:
    matcher = trained(arguments={"factor": 2.0}, folder=tmp_path / "m")
    assert matcher.kind is MeanMatch
    lists = [Pair(pair.query, text, float(text == pair.text)) for pair in PAIRS[:3] for text in (pair.text, "no word")]
    assert 0 < evaluate(matcher, lists).values["AP"] <= 1
    trace = explain(matcher, PAIRS[0].query, PAIRS[0].text).trace
    assert trace.score == matcher.score(PAIRS[:1])[0]
    assert abs(trace.residual) < 1e-6
    assert matcher.vectors(["a loom"]).shape == (1, 8)
    loaded = Matcher.load(tmp_path / "m", model=MeanMatch)
    np.testing.assert_array_equal(loaded.score(PAIRS), matcher.score(PAIRS))
    assert (loaded.digest, loaded.arguments) == (matcher.digest, {"factor": 2.0})
    longer = train(
        PAIRS, PAIRS, model=MeanMatch, arguments={"factor": 2.0}, epochs=3, dimensions=8, vectors="random",
        folder=tmp_path / "m", resume=True,
    )  # fmt: skip
    assert longer.kind is MeanMatch


def test_without_its_class_a_folder_says_what_it_needs(tmp_path: Path) -> None:
    trained(arguments={"ensemble_size": 2}, folder=tmp_path)
    with pytest.raises(MatchloomError, match=r"test_own_model\.MeanMatch.*Matcher\.load\(folder, model=MeanMatch\)"):
        Matcher.load(tmp_path)
    with pytest.raises(MatchloomError, match=r"holds the model .*MeanMatch, and model is .*TwoScores"):
        Matcher.load(tmp_path, model=TwoScores)
    assert Matcher.load(tmp_path, model=MeanMatch).kind is MeanMatch


def test_a_class_of_ours_is_its_name() -> None:
    assert trained(KNRM).name == "knrm"


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (TwoScores, r"shape \(3, 1\) for 3 pairs; expected \(3,\)"),
        (NoEncoder, "self.encoder = encoder"),
        (Open, "argument size of Open must be given by name"),
        (HalfDone, "HalfDone has no match, no trace"),
        (dict, "dict is no subclass of .*PairModel"),
        (7, "model is a int; expected a name of MODELS or a class"),
        ("mv_lstn", "is unknown; choose one of"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(model: Any, told: str) -> None:
    with pytest.raises(MatchloomError, match=told) as caught:
        trained(model)
    assert "\n" not in str(caught.value)
