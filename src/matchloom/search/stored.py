"""A state as a folder keeps it: settings in the manifest, arrays in the index, later changes in the journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchloom.artifact.checks import as_saved
from matchloom.search.calibration import SIGNALS, Calibration
from matchloom.search.features.base import inside
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.features.tuned import TUNED, sentences_of
from matchloom.search.folder import ENCODER, REMEDY, open_collection, write_collection
from matchloom.search.fusion import Fusion, LeaveOneOut
from matchloom.search.journal import Change, Journal
from matchloom.search.judged import Judged
from matchloom.search.learning import Settings, Tuning
from matchloom.search.reader import Reader
from matchloom.search.saved import FIRST_RATE
from matchloom.search.segment import Segment
from matchloom.search.state import State
from matchloom.search.view import View
from matchloom.text.tokenize import Tokenizer

PAGE = "report.html"
_COVERED = 0.8  # of the stems and n-grams of a question, mostly


class About(NamedTuple):
    """What a folder tells of a collection that no search needs."""

    report: dict[str, Any] | None = None  # what `fit` measured
    page: bytes | None = None  # the report for people
    since_report: int = 0  # entries that were changed between the report and the last fit


class Stored(NamedTuple):
    """What was read: the state with all changes, these changes, and the journal behind them."""

    state: State
    about: About
    journal: Journal
    changes: list[Change]


def write_state(folder: Path, state: State, changes: Sequence[Change], about: About) -> None:
    """Write the fit of a state and the changes since: all of it or nothing."""
    segment, own = state.view.base, state.settings
    settings: dict[str, Any] = {
        "tokenizer": own.tokenizer._asdict(),
        "words": own.words,
        "use_questions": own.use_questions,
        "learn": own.learn,
        "baseline": own.baseline,
        "only": list(own.features),
        "unanswerable": list(own.unanswerable),
        "whole": segment.reader.whole,
        "features": list(state.fusion.names),
        "weights": state.fusion.weights.tolist(),
        "why": state.fusion.why,
        "calibration": None if state.calibration is None else state.calibration._asdict(),
        "leave_one_out": None if state.figures is None else state.figures._asdict(),
        "tuning": None if state.tuning is None else state.tuning._asdict(),
        "note": segment.entries.note,
        "report": about.report,
        "since_report": about.since_report,
    }
    sentences = state.sentences
    encoder = None if sentences is None else (sentences.untuned or sentences).matcher
    files = {} if about.page is None else {PAGE: about.page}
    arrays = {**segment.arrays(), **state.judged.arrays()}
    write_collection(folder, settings, arrays, changes, files=files, encoder=encoder)


def read_state(folder: Path, sentences: SentenceVectors | None = None) -> Stored:
    """Read a folder as it is now; `sentences` is its encoder where that is in memory already."""
    settings, arrays, journal, saved = open_collection(folder)
    with as_saved(folder, REMEDY):
        tokenizer = Tokenizer.from_dict(settings["tokenizer"])
        own = {name: settings[name] for name in ("words", "use_questions", "learn", "baseline")}
        only, unanswerable = tuple(settings["only"]), tuple(settings["unanswerable"])
        reader = Reader.load(
            tokenizer,
            settings["whole"],
            {name.removeprefix("reader."): one for name, one in arrays.items() if name.startswith("reader.")},
        )
        if sentences is None:
            matcher = saved.inside(ENCODER)
            sentences = None if matcher is None else SentenceVectors(matcher)
        if sentences is not None:
            sentences = sentences_of(sentences, inside(TUNED, arrays))
        segment = Segment.load(arrays, reader, settings["features"], sentences, settings["note"])
        weights = np.array(settings["weights"], dtype=np.float64)
        figures = None if settings["leave_one_out"] is None else LeaveOneOut(**settings["leave_one_out"])
        changes = journal.read()
        view = View.of(segment)
        for change in changes:
            view = view.changed(change)
        state = State(
            Settings(tokenizer, **own, features=only, unanswerable=unanswerable),
            view,
            Fusion(tuple(settings["features"]), weights, settings["why"]),
            calibration_of(settings["calibration"]),
            figures,
            Judged.load(arrays),
            None if settings.get("tuning") is None else Tuning(**settings["tuning"]),
        )
        page = saved.content(PAGE) if saved.has(PAGE) else None
        about = About(settings["report"], page, int(settings["since_report"]))
    return Stored(state, about, journal, changes)


def calibration_of(plain: dict[str, Any] | None) -> Calibration | None:
    """From what was saved, by earlier versions too."""
    if plain is None:
        return None
    own: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in plain.items()}
    made = Calibration(**{"rate": FIRST_RATE, **own})
    sizes = {len(made.mean), len(made.deviation), len(made.weights) - 1}
    if sizes == {4}:
        return _with_five_signals(made)
    if sizes != {len(SIGNALS)}:
        raise ValueError(f"a calibration has {len(SIGNALS)} signals")
    return made


def _with_five_signals(made: Calibration) -> Calibration:
    """A calibration of earlier versions: its last signal counted n-grams too, and is taken to be as it mostly was."""
    bias, *weights = made.weights
    raw = all(one == 0 for one in made.mean)
    return made._replace(
        weights=(bias + (weights[3] * _COVERED if raw else 0.0), *weights[:3], 0.0, 0.0),
        mean=(*made.mean[:3], 0.0, 0.0),
        deviation=(*made.deviation[:3], 1.0, 1.0),
    )
