"""From a docstring to two pieces of plain prose: its summary and the rest of the description."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from matchloom.data.truncation import first_words
from matchloom.text.tokenize import Tokenizer

_SHORTEST, _LONGEST = 5, 50
_WORDS = Tokenizer("english")
_CUT = Tokenizer("english", max_words=_LONGEST)

# name(arguments) -> result, alone on its line or before the text.
_SIGNATURE = regex.compile(
    r"[\w.]+ ?\((?:[^()]|\([^()]*\))*\)(?:\s*(?:-+>|=)[^\n]*?)?(?:\s*(?:--+|:)\s+|[.:]?\s*(?:\n|$))"
)
_ROLE = regex.compile(r":\w{1,30}(?::\w{1,30}){0,3}:`[~!]?([^`]*)`")  # bounded: else colons alone take quadratic time
_RULE = regex.compile(r"[-=~^*_#+]{3,}\s*$")
# How a line starts that is no prose: prompt, directive, field, bullet, number, definition, assignment, column.
_NOT_PROSE = regex.compile(
    r">>>|\.\.\s|[:@]\w[^:]*:(?:\s|$)|[-*+•o#|$]\s|\(?(?:\d+|[a-zA-Z])[.)]\s"
    r"|[\w*'\"`.,/()\[\]<>=-]+(?:,? [\w*'\"`.,/()\[\]<>=-]+){0,3} +(?:--?|[=-]+>|:) "
    r"|(?!Notes?:|NOTE:|Warning:|WARNING:|Caution:)[\w*'\"`]+:(?:\s|$)|[\w.*]+ = |.*\S {3,}\S"
)
_SENTENCE_END = regex.compile(
    r"(?<!\b(?:e\.g|i\.e|etc|vs|cf|approx|eg|ie|resp|a\.k\.a)\.)(?<=[.!?][\"')\]]*)"
    r"(?:\s+(?=[\p{Lu}\p{Ps}\"'`_*])| {2,}|\n)"
)
_OPENING = regex.compile(r"[`'\"*]*[\p{L}_]\w*(?![\w(=.])")  # a word, not the start of a call
_CREDIT = regex.compile(r"(?:Written|Contributed|Adapted|Cloned|Based) (?:by|from|on)\b|Copyright|Author|XXX|TODO")
_SYMBOL = regex.compile(r"[=<>{}\[\]|\\@#$%^&*+~/]")


def summary_and_rest(docstring: str) -> tuple[str, str] | None:
    """The first sentence of a docstring and the prose behind it, or None where either is missing or short.

    Both have 5 words or more; a rest of more than 50 is cut, a summary of more than 50 is none.

    >>> summary_and_rest("Send one letter to the address.\\n\\nThe stamp is paid by whoever gets it.\\n\\n>>> send()")
    ('Send one letter to the address.', 'The stamp is paid by whoever gets it.')
    """
    blocks = _prose(docstring)
    first = next(blocks, [])
    if not first:
        return None
    summary = first.pop(0)
    while first and len(_WORDS(summary)) < _SHORTEST:  # "Close the file. Later calls do nothing."
        summary += f" {first.pop(0)}"
    said = _WORDS(summary)
    rest = " ".join(
        sentence
        for block in [first, *blocks]
        for sentence in block
        if _is_prose(sentence) and _WORDS(sentence)[: len(said)] != said
    )
    new = set(_WORDS(rest)) - set(said)
    if not _SHORTEST <= len(said) <= _LONGEST or len(_WORDS(rest)) < _SHORTEST or len(new) < 3:
        return None
    return (summary, first_words(rest, _CUT)) if _is_prose(summary) and _OPENING.match(summary) else None


def _prose(docstring: str) -> Iterator[list[str]]:
    """The sentences of each paragraph; the first paragraph may come out empty, later ones are then left out."""
    text = _ROLE.sub(r"\1", docstring.strip())
    while signature := _SIGNATURE.match(text):
        text = text[signature.end() :].strip()
    for number, block in enumerate(regex.split(r"\n\s*\n", text)):
        lines: list[str] = []
        for line in block.splitlines():
            if (line[0].isspace() and not _hangs_on_prose(lines)) or _RULE.match(line):
                del lines[-1:]  # what a list hangs on, or what is underlined, is a heading
                break
            if _NOT_PROSE.match(line.strip()):
                break
            lines.append(line.strip())
        sentences = [" ".join(sentence.split()) for sentence in _SENTENCE_END.split("\n".join(lines).strip())]
        if number == 0 or sentences != [""]:
            yield [sentence for sentence in sentences if sentence]


def _hangs_on_prose(lines: list[str]) -> bool:
    """Whether an indented line goes on with the sentence before it, as some docstrings are laid out."""
    return bool(lines) and len(lines[-1].split()) > 5 and not lines[-1].endswith(":")


def _is_prose(sentence: str) -> bool:
    """No heading, no introduction to something that was left out, no credit, no code and no listing."""
    words = len(sentence.split())
    return (
        not sentence.endswith((":", ","))
        and (words > 4 or sentence.endswith((".", "!", "?")))
        and not sentence.isupper()
        and not _CREDIT.match(sentence)
        and len(_SYMBOL.findall(sentence)) * 12 <= len(sentence)
        and sentence.count(",") * 3 <= words
    )
