from __future__ import annotations

import json

import numpy as np
import pytest

from matchloom.explanation import Explanation
from tests.explanation.samples import lexical_like, of_words, path_like, tensor_like


def test_the_whole_of_a_small_explanation() -> None:
    assert lexical_like().to_dict(grid=True) == {
        "scorer": "bm25",
        "score": 12.5,
        "residual": 0.0,
        "query": {"words": ["lost", "key"], "contributions": [0.0, 12.5]},
        "text": {"words": ["key", "and", "key"], "contributions": [6.25, 0.0, 6.25]},
        "channels": [{"name": "exact", "contribution": 12.5}],
        "signals": [
            {
                "query_word": "key",
                "text_word": "key",
                "query_position": 1,
                "text_position": position,
                "channel": "exact",
                "value": 4.5,
                "contribution": 6.25,
            }
            for position in (0, 2)
        ],
        "components": [],
        "paths": [],
        "grid": [[[0.0, 0.0, 0.0], [4.5, 0.0, 4.5]]],
    }


def test_paths_and_parts() -> None:
    plain = path_like().to_dict()
    assert plain["paths"] == [{"channel": "forward", "cells": [[0, 0], [0, 1], [1, 2], [2, 2]]}]
    assert plain["components"] == [
        {"name": "new number", "value": 1.0, "contribution": -0.25, "channel": None},
        {"name": "shared words", "value": 0.5, "contribution": 0.125, "channel": None},
    ]
    contributions = [one["contribution"] for one in plain["signals"] + plain["components"]]
    assert sum(contributions) + plain["residual"] == plain["score"]


def test_the_grid_is_optional() -> None:
    assert "grid" not in tensor_like().to_dict()


def test_it_adds_up_and_survives_json() -> None:
    plain = tensor_like().to_dict(grid=True)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert sum(signal["contribution"] for signal in plain["signals"]) + plain["residual"] == pytest.approx(
        plain["score"]
    )


def test_numbers_are_rounded_and_what_is_not_finite_is_null() -> None:
    one = tensor_like()
    grid = one.trace.grid.copy()
    grid[0, 0, :3] = [0.123456789, np.inf, np.nan]
    plain = Explanation(one.scorer, one.query, one.text, one.trace._replace(grid=grid)).to_dict(grid=True)
    assert plain["grid"][0][0] == [0.1235, None, None, -0.4]
    json.dumps(plain, allow_nan=False)


def test_words_stay_as_they_are() -> None:
    word = "</script>\x1b\ud800"
    assert json.loads(json.dumps(of_words([word], [word]).to_dict()))["query"]["words"] == [word]


def test_no_words() -> None:
    assert of_words([], ["a"]).to_dict(grid=True)["signals"] == []
