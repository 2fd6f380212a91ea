"""Does what was saved fit together? Who may write a folder may write its checksums, too, and a kernel asks no more.

Settings must have the types that are written, and arrays the shapes that the numbers of entries, questions and features
ask for. Numbers are finite. Of very large arrays only shapes are looked at: they are mapped, and not read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

FIRST_RATE = 0.05  # of the questions without an answer, where a calibration does not say it: it has four signals
LOOKED_AT = 2**25  # numbers of one array
_NUMBERS = (
    r".+\.(weights|bias|dual|lengths|squares|idf|new_idf|mean_length|background|word_idf|ngram_idf)"
    r"|(dense|tuned|untuned)\..+"
)
Shape = tuple[int | None, ...]


class _Calibration(msgspec.Struct, forbid_unknown_fields=True):
    temperature: float
    weights: list[float]
    mean: list[float]
    deviation: list[float]
    shown: list[float]
    right: list[bool]
    rate: float = FIRST_RATE

    @property
    def numbers(self) -> list[float]:
        return [self.temperature, self.rate, *self.weights, *self.mean, *self.deviation, *self.shown]


class _Tuning(msgspec.Struct, forbid_unknown_fields=True):
    questions: int
    before: float
    after: float
    kept: bool


class _Settings(msgspec.Struct):
    number: int
    digest: str
    tokenizer: dict[str, Any]
    words: bool
    use_questions: bool
    learn: bool
    baseline: str | None
    only: list[str]
    unanswerable: list[str]
    whole: bool
    features: list[str]
    weights: list[float]
    why: str
    calibration: _Calibration | None
    leave_one_out: dict[str, float] | None
    note: str
    report: dict[str, Any] | None
    since_report: int
    tuning: _Tuning | None = None


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of other types, or with numbers that no fit writes, as a ValueError."""
    found = msgspec.convert(dict(settings), _Settings)
    numbers = [*found.weights, *([] if found.calibration is None else found.calibration.numbers)]
    if not all(map(math.isfinite, numbers)) or min(numbers[: len(found.weights)], default=0.0) < 0:
        raise ValueError("numbers that are not finite, or weights below 0")
    if len(found.weights) != len(found.features) or len(set(found.features)) != len(found.features):
        raise ValueError(f"{len(found.features)} features and {len(found.weights)} weights")
    made = found.calibration
    if made is not None and not (made.temperature > 0 and min(made.deviation, default=0.0) > 0 and 0 < made.rate < 1):
        raise ValueError("a temperature or a deviation that is not above 0, or a rate outside 0 to 1")
    if made is not None and len(made.shown) != len(made.right):
        raise ValueError(f"{len(made.shown)} probabilities of {len(made.right)} answers")
    if found.baseline is not None:
        from matchloom.search.baselines import BASELINES

        if found.baseline not in BASELINES:
            raise ValueError(f"no baseline is named {found.baseline[:80]!r}")


def check_arrays(arrays: Mapping[str, NDArray[Any]], features: int) -> None:
    """Refuse arrays whose shapes or values do not belong to one collection, as a ValueError."""
    for name, shape in _shapes(arrays, features).items():
        for own, array in arrays.items():
            if re.fullmatch(name, own):
                _check_shape(own, array.shape, shape)
    for name, array in arrays.items():
        if re.fullmatch(_NUMBERS, name) and array.dtype not in (np.float32, np.float64):
            raise ValueError(f"{name} of the type {array.dtype}")
        if array.dtype.kind == "f" and array.size <= LOOKED_AT and not np.isfinite(array).all():
            raise ValueError(f"numbers in {name} that are not finite")
        if name.endswith(".mean_length") and not array.min(initial=1.0) > 0:
            raise ValueError(f"a length of {array.min()} on average")
    entries, questions = (len(arrays[f"{name}.starts"]) - 1 for name in ("ids", "questions"))
    check_places(arrays["owned.starts"], arrays["owned.places"], questions)
    _check_range(arrays["text_rows"], entries)
    if any(arrays[name].dtype != np.int64 for name in ("text_keys", "text_rows")):
        raise ValueError("keys of texts of another type")
    if any(int(array[0]) != entries for name, array in arrays.items() if name.endswith(".entries")):
        raise ValueError(f"another number of entries than {entries}")


def _shapes(arrays: Mapping[str, NDArray[Any]], features: int) -> dict[str, Shape]:
    """What shape each array must have, by a pattern of its name; None is any number."""
    count = {
        name: len(arrays[f"{name}.starts"]) - 1 if f"{name}.starts" in arrays else 0
        for name in ("ids", "questions", "tfidf.words", "tfidf.ngrams")
    }
    entries, questions, words, ngrams = count.values()
    size = arrays["dense.texts"].shape[-1] if "dense.texts" in arrays else None
    return {
        r"(ids|texts|columns|other_ids|other_texts|owned)\.starts": (entries + 1,),
        r"vectors\.starts": (questions + 1,),
        r"text_(keys|rows)": arrays["text_keys"].shape,
        r"(dense|untuned)\.questions": (questions, size),
        r"dense\.texts": (entries, size),
        r"tfidf\.word_idf": (words,),
        r"tfidf\.ngram_idf": (ngrams,),
        r"reader\.idf": (features,),
        r"feature\.[^.]+\.(lengths|squares|bias)": (entries,),
        r"feature\.[^.]+\.(idf|background)": (features,),
        r"feature\.[^.]+\.(counts|rows)\.starts": (entries + 1,),
        r"feature\.[^.]+\.(weights|columns|examples|table)\.starts": (features + 1,),
        r"feature\.ridge\.dual": (questions + entries, entries),
        r"feature\.(svm|softmax|joint)\.weights": (words + ngrams, entries),
        r"feature\.joint\.of_vectors": (entries, size),
        r"feature\.dense_softmax\.weights": (entries, size),
        r".+\.(mean_length|new_idf|entries)": (1,),
    }


def _check_shape(name: str, found: tuple[int, ...], wanted: Shape) -> None:
    if len(found) != len(wanted) or any(b not in (a, None) for a, b in zip(found, wanted, strict=True)):
        raise ValueError(f"{name} has the shape {found}")


def check_places(starts: NDArray[Any], places: NDArray[Any], most: int) -> None:
    """Refuse a list of lists, as starts and places below `most`, that does not fit together."""
    whole = starts.dtype == np.int64 and places.dtype == np.int32 and len(starts) and starts[0] == 0
    if not whole or starts[-1] != len(places) or (np.diff(starts) < 0).any():
        raise ValueError("places where lists start that do not fit")
    _check_range(places, most)


def _check_range(rows: NDArray[Any], most: int) -> None:
    if 0 < rows.size <= LOOKED_AT and not 0 <= int(rows.min()) <= int(rows.max()) < most:
        raise ValueError(f"rows outside {most}")


def check_lines(lines: Sequence[str], kind: Any) -> None:
    """Refuse lines of JSON that are not of this kind; empty ones are nothing."""
    for line in lines:
        if line:
            msgspec.convert(json.loads(line), kind)
