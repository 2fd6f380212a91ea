"""What can be wrong with pairs, one function for each kind of find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import regex

from matchloom.data.checkup.language import language_of
from matchloom.data.checkup.near import near_pairs
from matchloom.data.formats.html_text import has_tags
from matchloom.data.identity import answers_of, normalize_text
from matchloom.data.unanswerable import is_blank
from matchloom.types import Pair

_NEAR_ANSWERS = 0.9
_BROKEN = regex.compile(r"\N{REPLACEMENT CHARACTER}|Ã[\x80-\xBF]|â€[\u0080-\u00bf\u2018-\u201d™œ¦]|\p{Cc}(?<![\t\n\r])")


class Placed(NamedTuple):
    """A pair, and where it stands ("line 3")."""

    pair: Pair
    place: str


class Find(NamedTuple):
    """Something to look at: its kind, the places where it stands, and the words that show it."""

    kind: str
    places: tuple[str, ...]
    text: str


#: Kind -> what it means, in the order in which finds are shown.
KINDS = {
    "unreadable": "a row that cannot be read",
    "blank": "a question or an answer is empty",
    "contradiction": "one question, several answers",
    "both_labels": "one pair, labelled both right and wrong",
    "test_in_training": "a test question that is also in training",
    "near_question": "nearly the same question, another answer",
    "near_answer": "nearly the same answer twice",
    "duplicate": "the same question with the same answer, repeated",
    "html": "HTML tags in a text",
    "broken": "broken characters in a text",
    "language": "another language than most",
}


def blanks(rows: Sequence[Placed]) -> Iterator[Find]:
    """Rows of which a side is empty."""
    for pair, place in rows:
        if is_blank(pair.query) or is_blank(pair.text):
            yield Find(
                "blank",
                (place,),
                f"no question: {pair.text}" if not is_blank(pair.text) else f"no answer: {pair.query}",
            )


def duplicates(rows: Sequence[Placed]) -> Iterator[Find]:
    """Rows that say the same, case and spaces apart."""
    yield from _groups(
        "duplicate", rows, lambda pair: (normalize_text(pair.query), normalize_text(pair.text), pair.label)
    )


def contradictions(rows: Sequence[Placed]) -> Iterator[Find]:
    """Questions with several answers; where there are wrong texts, pairs that are labelled both ways."""
    if _judged(rows):
        yield from _both_labels(rows)
        return
    answers = answers_of([row.pair for row in rows])
    found: dict[str, dict[int, Placed]] = {}
    for row, answer in zip(rows, answers, strict=True):
        if row.pair.query.strip() and row.pair.text.strip():
            found.setdefault(normalize_text(row.pair.query), {}).setdefault(answer, row)
    for own in found.values():
        if len(own) > 1:
            first, *others = own.values()
            texts = " | ".join(_short(row.pair.text) for row in (first, *others[:2]))
            yield Find("contradiction", tuple(row.place for row in own.values()), f"{first.pair.query} -> {texts}")


def _both_labels(rows: Sequence[Placed]) -> Iterator[Find]:
    found: dict[tuple[str, str], list[Placed]] = {}
    for row in rows:
        found.setdefault((normalize_text(row.pair.query), normalize_text(row.pair.text)), []).append(row)
    for own in found.values():
        if len({row.pair.is_positive for row in own}) == 2:
            shown = f"{own[0].pair.query} -> {_short(own[0].pair.text)}"
            yield Find("both_labels", tuple(row.place for row in own), shown)


def near_questions(rows: Sequence[Placed]) -> Iterator[Find]:
    """Questions that hardly differ, and whose answers do."""
    if _judged(rows):
        return
    answers = answers_of([row.pair for row in rows])
    asked: dict[str, tuple[Placed, set[int]]] = {}
    for row, answer in zip(rows, answers, strict=True):
        if row.pair.query.strip():
            asked.setdefault(normalize_text(row.pair.query), (row, set()))[1].add(answer)
    questions = list(asked.values())
    for first, second, _ in near_pairs([row.pair.query for row, _ in questions]):
        (one, own), (other, others) = questions[first], questions[second]
        if not own & others:
            sides = (f"{row.pair.query} -> {_short(row.pair.text)}" for row in (one, other))
            yield Find("near_question", (one.place, other.place), " | ".join(sides))


def near_answers(rows: Sequence[Placed]) -> Iterator[Find]:
    """Answers that are told apart, and that nobody could tell apart."""
    if _judged(rows):
        return
    firsts: dict[int, Placed] = {}
    for row, answer in zip(rows, answers_of([row.pair for row in rows]), strict=True):
        if row.pair.text.strip():
            firsts.setdefault(answer, row)
    answers = list(firsts.values())
    for first, second, _ in near_pairs([row.pair.text for row in answers], _NEAR_ANSWERS):
        texts = (_short(answers[i].pair.text) for i in (first, second))
        yield Find("near_answer", (answers[first].place, answers[second].place), " | ".join(texts))


def html(rows: Sequence[Placed]) -> Iterator[Find]:
    """Texts with tags, which would be matched as words."""
    for pair, place in rows:
        for text in (pair.query, pair.text):
            if has_tags(text):
                yield Find("html", (place,), text)
                break


def broken(rows: Sequence[Placed]) -> Iterator[Find]:
    """Texts that were read in a wrong encoding somewhere on their way."""
    for pair, place in rows:
        for text in (pair.query, pair.text):
            if _BROKEN.search(text):
                yield Find("broken", (place,), text)
                break


def languages(rows: Sequence[Placed]) -> Iterator[Find]:
    """Rows in another language than most; nothing where hardly any language can be told."""
    detected = [language_of(f"{pair.query} {pair.text}") for pair, _ in rows]
    counts = Counter(language for language in detected if language is not None)
    if len(counts) < 2:
        return
    most = counts.most_common(1)[0][0]
    for (pair, place), language in zip(rows, detected, strict=True):
        if language not in (None, most):
            yield Find("language", (place,), f"{language}, not {most}: {pair.query or pair.text}")


def in_training(rows: Sequence[Placed], test: Iterable[Placed]) -> Iterator[Find]:
    """Test questions that stand in training word for word: a measure on them says nothing."""
    known: dict[str, str] = {}
    for pair, place in rows:
        known.setdefault(normalize_text(pair.query), place)
    for pair, place in test:
        if pair.query.strip() and (other := known.get(normalize_text(pair.query))):
            yield Find("test_in_training", (f"test {place}", other), pair.query)


FINDERS: tuple[Callable[[Sequence[Placed]], Iterator[Find]], ...] = (
    *(blanks, contradictions, near_questions, near_answers),
    *(duplicates, html, broken, languages),
)


def _groups(kind: str, rows: Sequence[Placed], key: Callable[[Pair], object]) -> Iterator[Find]:
    found: dict[object, list[Placed]] = {}
    for row in rows:
        if row.pair.query.strip():
            found.setdefault(key(row.pair), []).append(row)
    for own in found.values():
        if len(own) > 1:
            yield Find(kind, tuple(row.place for row in own), own[0].pair.query)


def _judged(rows: Sequence[Placed]) -> bool:
    """Whether there are wrong texts: then a question may have several right ones."""
    return any(not row.pair.is_positive for row in rows)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:60].rstrip()} ..."
