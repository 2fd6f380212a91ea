"""One small artifact of each kind: how it is made (two of them, by a seed), and what it says once it is loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch

from matchloom import Fitted, Matcher, artifact, fit
from matchloom.calibration import Calibration
from matchloom.fitting import pair_tuning
from matchloom.fitting.calibrated import Calibrated
from matchloom.fitting.list_fusion import ListFusion
from matchloom.fitting.outcomes import OutcomeStore
from matchloom.fitting.pair_classifier import PairClassifier
from matchloom.fitting.systems import Outcome
from matchloom.fitting.word_scorers import WordScorer
from matchloom.lexical.trans_lm import TransLM
from matchloom.search import learning
from matchloom.search.collection import Collection
from matchloom.search.features.dense import SentenceVectors
from matchloom.text.tokenize import Tokenizer
from matchloom.training.checkpoint import load_checkpoint, read_checkpoint, save_checkpoint
from matchloom.types import MatchloomError, Pair
from tests.encoders.making import write_folder
from tests.fitting.samples import small_report
from tests.fitting.test_pairs_task import labelled
from tests.fitting.test_run import TOPICS, faq
from tests.search.collections import SPARE, as_large, many
from tests.search.lance.making import made_matcher, made_pairs

PAIRS = [*made_pairs(4), Pair("how do I reset my password", "open the settings"), Pair("", "loom")]


class Sample(NamedTuple):
    """How one is made in a folder, and what it says: anything that can be compared."""

    make: Callable[[Path, int], None]
    use: Callable[[Path], Any]


def scores(folder: Path) -> list[float]:
    """Of what any folder holds that can be loaded."""
    found: Any = artifact.load(folder)
    scored: list[float] = found.score(PAIRS).tolist()
    return scored


def make_calibrated(folder: Path, seed: int) -> None:
    """Over a matcher."""
    Calibrated(made_matcher(seed=seed), Calibration(0.5, 1.0, 0.0), Tokenizer()).save(folder)


def make_list_fusion(folder: Path, seed: int) -> None:
    """Of words and a matcher."""
    words = WordScorer.fit("overlap", [pair.text for pair in PAIRS], Tokenizer())
    ListFusion([words, made_matcher(seed=seed)], np.ones(2), np.ones(2), "why", Tokenizer()).save(folder)


def make_collection(folder: Path, seed: int) -> None:
    """With changes since it was fitted, and columns."""
    made = Collection.fit(faq(20, seed))
    made.add([{"question": f"where is loom {seed}", "answer": "In the shed.", "topic": "looms"}])
    made.add([("how do I weave", "In the shed."), ("pay by bill", TOPICS["a2"][0])])
    made.remove(["a5"])
    made.save(folder)


def make_large_collection(folder: Path, seed: int) -> None:
    """One that has candidates, and a table of translations."""
    with as_large():
        Collection.fit([*many(300 + seed), *SPARE]).save(folder)


THINGS, VERBS = ("file", "door", "page"), ("open", "read", "sort", "list")


def _sentences(seed: int) -> SentenceVectors:
    """By a random encoder of eight numbers."""
    with tempfile.TemporaryDirectory() as folder:
        encoder = write_folder(Path(folder) / "small", seed=seed)
        return SentenceVectors(Matcher.untrained(encoder, model="sentence_bert"))


@cache
def _tuned_collection(seed: int) -> Collection:
    """With an encoder as it came, and its layers that were tuned; tuning is kept whatever it brings."""
    pairs = [
        Pair(f"{start} {verb} the {thing} {end}", f"Answer about a {thing}.", text_id=thing)
        for thing in THINGS
        for verb in VERBS
        for start in ("how do i", "please", "i")
        for end in ("now", f"{seed}", "again")
    ]
    with patch.object(learning, "_WON", -1000), patch.object(learning, "_WHISKER", -10.0):
        made = Collection.fit(pairs, sentences=_sentences(seed), tune=True)
    assert made.tuning is not None
    assert made.tuning.kept
    made.add([Pair("how do i feed the cat", "Answer about a cat.", text_id="cat")])
    return made


def make_tuned_collection(folder: Path, seed: int) -> None:
    """Made once."""
    _tuned_collection(seed).save(folder)


@cache
def _tuned_pairs(seed: int) -> PairClassifier:
    """A classifier of pairs with an encoder as it came, and its layers that were tuned."""
    pairs = [
        Pair(
            f"how do i {VERBS[n % 4]} the {THINGS[n % 3]} {n}", f"please my {THINGS[(n + n % 2) % 3]} {seed}", 1 - n % 2
        )
        for n in range(60)
    ]
    with (
        patch.object(pair_tuning, "FEWEST", 50),
        patch("matchloom.fitting.pair_classifier.worth_keeping", lambda gap: True),
    ):
        made = PairClassifier.fit(pairs, Tokenizer(), sentences=_sentences(seed), tune=True)
    assert made.tuned is not None
    return made


def make_tuned_pairs(folder: Path, seed: int) -> None:
    """Made once."""
    _tuned_pairs(seed).save(folder)


def make_fit(folder: Path, seed: int) -> None:
    """Of labelled pairs."""
    texts = [pair.text for pair in made_pairs(9, seed=seed)]
    Fitted(WordScorer.fit("bm25_stemmed", texts, Tokenizer()), small_report(), "pairs").save(folder)


def make_checkpoint(folder: Path, seed: int) -> None:
    """Of a first step."""
    save_checkpoint(folder, *_stepped(seed), {"epoch": 1, "history": [{"loss": 0.5}]})


def use_checkpoint(folder: Path) -> Any:
    """The state, and the weights once they are put back."""
    state, tensors = read_checkpoint(folder)
    model, optimizer = _stepped(5)
    load_checkpoint(folder, tensors, model, optimizer)
    return str(state), {name: x.tolist() for name, x in model.state_dict().items()}


def _stepped(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = made_matcher(seed=seed).model
    optimizer = torch.optim.Adam(model.parameters())
    sum(x.sum() for x in model.parameters()).backward()  # type: ignore[union-attr]
    optimizer.step()
    return model, optimizer


def make_measured(folder: Path, seed: int) -> None:
    """Two systems, of which one failed."""
    made = OutcomeStore(folder / "work", "key", resume=False, measures=("P@1",))
    made.keep(Outcome({"P@1": 0.5}, {"P@1": np.array([0.0, 1.0])}), 1.0 + seed, "test", "bm25")
    made.keep(MatchloomError("none"), 0.0, "test", "other")


def use_measured(folder: Path) -> Any:
    """What is kept."""
    found = OutcomeStore(folder / "work", "key", resume=True, measures=("P@1",))
    outcome = found.outcome("test", "bm25")
    if outcome is None:
        raise MatchloomError(f"{folder} has no such figures")  # as where the fit was not begun
    return dict(outcome[0].values), outcome[0].each["P@1"].tolist(), outcome[1]


def make_export(folder: Path, seed: int) -> None:
    """As ONNX graphs."""
    from matchloom.export import export_onnx

    export_onnx(made_matcher(seed=seed), folder)


def use_export(folder: Path) -> Any:
    """What texts become."""
    from matchloom.export import GraphReader

    read = GraphReader.load(folder).read(PAIRS[0].query, [pair.text for pair in PAIRS])
    return [{name: x.tolist() for name, x in one.items()} for one in read]


SAMPLES: dict[str, Sample] = {
    "matcher": Sample(lambda folder, seed: made_matcher(seed=seed).save(folder), scores),
    "trans_lm": Sample(
        lambda folder, seed: TransLM.fit([pair.text for pair in PAIRS], made_pairs(9, seed=seed)).save(folder), scores
    ),
    "words": Sample(
        lambda folder, seed: WordScorer.fit(
            "bm25_stemmed", [pair.text for pair in made_pairs(9, seed=seed)], Tokenizer()
        ).save(folder),
        scores,
    ),
    "pair_classifier": Sample(
        lambda folder, seed: PairClassifier.fit(labelled(60, seed), Tokenizer()).save(folder), scores
    ),
    "calibrated": Sample(make_calibrated, scores),
    "list_fusion": Sample(make_list_fusion, scores),
    "collection": Sample(make_collection, scores),
    "large collection": Sample(make_large_collection, scores),
    "tuned collection": Sample(make_tuned_collection, scores),
    "tuned pairs": Sample(make_tuned_pairs, scores),
    "fit of answers": Sample(lambda folder, seed: fit(faq(20, seed)).save(folder), scores),
    "fit": Sample(make_fit, scores),
    "baseline": Sample(
        lambda folder, seed: Collection.fit(faq(20, seed), baseline="nearest_question").save(folder), scores
    ),
    "checkpoint": Sample(make_checkpoint, use_checkpoint),
    "measured": Sample(make_measured, use_measured),
    "export": Sample(make_export, use_export),
}
