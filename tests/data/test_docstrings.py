from __future__ import annotations

import pytest

from matchloom.data.docstrings import summary_and_rest
from matchloom.text.tokenize import Tokenizer

SUMMARY = "Wind the yarn onto a bobbin."
REST = "The bobbin must be empty when winding starts."


def test_summary_and_rest_in_one_or_two_paragraphs() -> None:
    assert summary_and_rest(f"{SUMMARY}\n\n{REST}") == (SUMMARY, REST)
    assert summary_and_rest(f"{SUMMARY}  {REST}") == (SUMMARY, REST)
    assert summary_and_rest(f"Wind the yarn\nonto a bobbin. {REST}") == (SUMMARY, REST)


@pytest.mark.parametrize(
    "noise",
    [
        "Example:\n>>> wind(yarn)\nTrue",
        ">>> wind(yarn)",
        "    wind(yarn, bobbin)\n    wind(silk, bobbin)",
        "Use it like this::\n\n    wind(yarn)",
        "Arguments:\nyarn -- the yarn to wind onto it\nbobbin -- where it goes",
        "Args:\n    yarn: The yarn that shall be wound onto the bobbin.",
        ":param yarn: the yarn that shall be wound\n:returns: the bobbin, full of yarn",
        "@param yarn: the yarn that shall be wound",
        "- first the yarn is taken up\n- then the bobbin is turned",
        "* first the yarn is taken up",
        "1. First the yarn is taken up and then it is wound.",
        ".. versionadded:: 3.2 by someone who needed it",
        "Winding\n-------",
        "STANDARD OPTIONS",
        "yarn      the yarn that shall be wound\nbobbin    where it goes",
        "wind(yarn, bobbin) -> bobbin",
        "Options are\n    yarn, bobbin, spindle",
        "Valid names: yarn, bobbin, spindle, loom, warp, weft, reed, heddle.",
        "Written by Ada, who wound the first one.",
        "x = wind(yarn) + 2 * [wind(silk)] / {1: 2}",
    ],
)
def test_noise_is_left_out(noise: str) -> None:
    assert summary_and_rest(f"{SUMMARY}\n\n{noise}\n\n{REST}") == (SUMMARY, REST)
    assert summary_and_rest(f"{SUMMARY}\n\n{noise}") is None


@pytest.mark.parametrize(
    "signature",
    [
        "wind(yarn, bobbin=None) -> Bobbin\n\n",
        "wind(yarn[, turns]) -> None.\n",
        "B.wind(yarn) -- ",
        "wind() -> one thing\nwind(yarn, f(x)) -> another\n\n",
    ],
)
def test_signature_before_the_summary(signature: str) -> None:
    assert summary_and_rest(f"{signature}{SUMMARY}\n\n{REST}") == (SUMMARY, REST)


def test_roles_become_words() -> None:
    text = "Wind :class:`~loom.Yarn` onto a bobbin.\n\n" + REST
    assert summary_and_rest(text) == ("Wind loom.Yarn onto a bobbin.", REST)


def test_abbreviations_end_no_sentence() -> None:
    text = "Wind some yarn (e.g. Wool, i.e. That of sheep) onto it."
    assert summary_and_rest(f"{text} {REST}") == (text, REST)


def test_short_first_sentence_takes_the_next_of_its_paragraph() -> None:
    assert summary_and_rest(f"Wind it. Then let it rest.\n\n{REST}") == ("Wind it. Then let it rest.", REST)
    assert summary_and_rest(f"Wind it.\n\n{REST}") is None


def test_rest_that_only_repeats_is_none() -> None:
    assert summary_and_rest(f"{SUMMARY}\n\nWind the yarn onto a bobbin, and so on and so forth.") is None
    assert summary_and_rest(f"{SUMMARY}\n\nThe yarn, onto a bobbin, wind!") is None
    assert summary_and_rest(f"{SUMMARY}\n\n{SUMMARY} {REST}") == (SUMMARY, REST)


@pytest.mark.parametrize("text", ["", SUMMARY, "\n\n", f">>> wind()\n\n{REST}", f"wind(yarn) {SUMMARY} {REST}"])
def test_nothing_to_pair(text: str) -> None:
    assert summary_and_rest(text) is None


def test_lengths() -> None:
    def sentence(words: int) -> str:
        return " ".join(f"w{i}x" for i in range(words)).capitalize() + "."

    for words in (4, 51):
        assert summary_and_rest(f"{sentence(words)}\n\n{REST}") is None
    for words in (5, 50):
        assert summary_and_rest(f"{sentence(words)}\n\n{REST}") == (sentence(words), REST)
    found = summary_and_rest(f"{SUMMARY}\n\n{sentence(30)}\n\n{sentence(30)}")
    assert found
    assert len(Tokenizer()(found[1])) == 50
    assert summary_and_rest(f"{SUMMARY}\n\nOnly four new words.") is None
