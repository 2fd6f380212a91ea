"""Yahoo! Answers as Yahoo! Webscope gives it to researchers: L6 (all questions, FullOct2007.xml) and L5 (manner.xml).

Both are XML: <vespaadd><document> with uri, subject, content, bestanswer, nbestanswers, maincat and, in L6, qlang.
L6 comes as two gzip files that are one XML file cut anywhere. L5 has 142,627 questions, the number that MV-LSTM's and
Match-SRNN's papers name.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element

from experiments.corpora.lines import spaced
from experiments.corpora.question_answers import LONGEST, SHORTEST, Answered, within_bounds
from experiments.corpora.xml_elements import elements, inner_text
from matchloom.basics.progress import track
from matchloom.data.identity import with_ids
from matchloom.data.repeats import once_each
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_PART = re.compile(r"\.part\d+(\.gz)?$")
_CHINESE = Tokenizer("chinese")
YahooLanguage = Literal["en", "zh"]


def read_yahoo(path: Path | str, *, language: YahooLanguage = "en", progress: bool = False) -> list[Pair]:
    """Read (subject, best answer) as positive pairs, both of 5 to 50 words, each text once.

    Args:
        path: The XML file, plain or gzip, or the folder that holds it or its parts.
        language: Questions whose qlang (or language) starts with it; L5 says none and counts as en.
        progress: Whether to show a bar: L6 has 12 GB, which take some twenty minutes.
    """
    if language not in ("en", "zh"):
        raise MatchloomError(f"language {language!r} of Yahoo! Answers is unknown; choose en or zh")
    found = track(yahoo_questions(yahoo_files(Path(path)), language), "Reading questions", show=progress)
    kept = (row for row in found if _bounded(row.question, language) and _bounded(row.answer, language))
    pairs = (Pair(row.question, row.answer, 1.0, group=f"{row.source}/{row.group}") for row in kept)
    return list(with_ids(once_each(sorted(pairs))))


def yahoo_files(path: Path) -> list[Path]:
    """The file, or the files of a folder: FullOct2007.xml or its parts in their order, otherwise manner.xml."""
    if not path.is_dir():
        return [path]
    for pattern in ("FullOct2007.xml", "FullOct2007.xml.gz", "FullOct2007.xml.part*", "manner.xml*"):
        if found := sorted(path.glob(pattern)):
            return found if _PART.search(found[0].name) else found[:1]
    raise MatchloomError(f"{path} has no FullOct2007.xml (or .part1.gz, .part2.gz) and no manner.xml")


def yahoo_questions(paths: list[Path], language: YahooLanguage = "en") -> Iterator[Answered]:
    """Each question of this language with its best answer; the source is its main category, the group its uri."""
    for where, entry in elements(paths, "document"):
        uri = inner_text(entry, "uri")
        if not uri or entry.find("subject") is None:
            raise MatchloomError(f"{where}: a <document> without <uri> or <subject>; is it of Yahoo! Answers?")
        if _language(entry).startswith(language):
            source = f"yahoo:{inner_text(entry, 'maincat') or 'none'}"
            yield Answered(source, uri, _plain(entry, "subject"), _plain(entry, "bestanswer"))


def _language(entry: Element) -> str:
    return (inner_text(entry, "qlang") or inner_text(entry, "language") or "en").lower()


def _plain(entry: Element, name: str) -> str:
    """Texts are pieces of HTML, written into XML: <br /> and entities are still in them."""
    return spaced(html.unescape(_BREAK.sub(" ", inner_text(entry, name))))


def _bounded(text: str, language: YahooLanguage) -> bool:
    return SHORTEST <= len(_CHINESE(text)) <= LONGEST if language == "zh" else within_bounds(text)
