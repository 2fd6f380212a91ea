"""`fit` tunes the encoder of the system that it chose, once; where there is no time, or Ctrl-C, it stays as it came."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.fitting import answers_task, fit
from matchloom.fitting.fitted import Fitted
from matchloom.search import learning
from matchloom.search.collection import WITH_ENCODER, Collection
from matchloom.types import Pair
from tests.encoders.making import write_folder

pytest.importorskip("tokenizers")

STARTS = ("how do i", "please", "can you", "tell me to", "i want to", "why can nobody", "help me")
PAIRS = [
    Pair(f"{start} {verb} the {thing}", f"Answer about a {thing}.", text_id=thing)
    for thing in ("file", "door", "page", "mail", "song", "shop")
    for verb in ("open", "read", "sort", "list")
    for start in STARTS
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("encoder") / "small")


@pytest.fixture
def tunings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A random encoder is tuned and kept, whatever it brings: how many questions each tuning had."""
    monkeypatch.setattr(learning, "_WON", -1000)
    monkeypatch.setattr(learning, "_WHISKER", -10.0)
    asked: list[int] = []
    own = learning.tune

    def counted(sentences, questions, texts, member):  # type: ignore[no-untyped-def]
        asked.append(len(questions))
        return own(sentences, questions, texts, member)

    monkeypatch.setattr(learning, "tune", counted)
    monkeypatch.setattr(answers_task.AnswersTask, "curve", lambda *_: [])
    return asked


def _collection(fitted: Fitted) -> Collection:
    assert fitted.report.chosen == WITH_ENCODER
    assert fitted.collection is not None
    return fitted.collection


def _said(fitted: Fitted) -> str:
    return " ".join(fitted.report.notes)


def test_the_chosen_system_is_tuned_once_it_is_chosen(encoder: Path, tunings: list[int], tmp_path: Path) -> None:
    fitted = fit(PAIRS, encoder=encoder, out=tmp_path / "faq")
    assert _collection(fitted).tuning is not None
    assert "was tuned on your questions" in _said(fitted)
    assert tunings[0] < len(PAIRS)  # for the test questions, and what is asked by cluster
    assert tunings[-1] == len(PAIRS)
    assert len(tunings) <= 3
    opened = Collection.open(tmp_path / "faq")
    assert opened.tuning == _collection(fitted).tuning
    asked = "why can i open this song"
    assert opened.search(asked)[0].score == _collection(fitted).search(asked)[0].score


def test_it_can_be_left_out(encoder: Path, tunings: list[int]) -> None:
    fitted = fit(PAIRS, encoder=encoder, tune=False)
    assert _collection(fitted).tuning is None
    assert "tuned" not in _said(fitted)
    assert not tunings


def test_without_time_it_stays_as_it_came(encoder: Path, tunings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_task, "tuning_seconds", lambda *_: 10_000.0)
    fitted = fit(PAIRS, encoder=encoder)
    assert _collection(fitted).tuning is None
    assert "no time to tune" in _said(fitted)
    assert not tunings


def test_ctrl_c_keeps_the_encoder_as_it_came(encoder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "tune", stop)
    fitted = fit(PAIRS, encoder=encoder, out=tmp_path / "faq")
    assert _collection(fitted).tuning is None
    assert "Stopped" in _said(fitted)
    assert Collection.open(tmp_path / "faq").search("open the song")[0].id == "song"
