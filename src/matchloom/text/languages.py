"""The language of texts, told by script and function words, and what it changes: stems, function words, accents.

Function words are the most frequent ones of a language, which say nothing about a topic. They tell languages of one
script apart, and do not count where function words are left out (for English `matchloom.lexical.statistics` has a
longer list). Stems are Snowball's where it has the language.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files

import regex
import Stemmer

ENGLISH = "english"

#: Function words by language, a line each in a file beside this one.
FUNCTION_WORDS: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, _, words in (
        line.partition(": ")
        for line in files("matchloom.text").joinpath("function_words.txt").read_text("utf-8").splitlines()
    )
}
_SCRIPTS: dict[str, tuple[str, ...]] = {  # the languages of each script that is not Latin
    "Cyrillic": ("russian", "ukrainian", "bulgarian", "serbian"),
    "Greek": ("greek",),
    "Armenian": ("armenian",),
    "Arabic": ("arabic", "persian"),
    "Hebrew": ("hebrew", "yiddish"),
    "Devanagari": ("hindi", "nepali"),
    "Tamil": ("tamil",),
    "Bengali": ("bengali",),
    "Thai": ("thai",),
    "Hangul": ("korean",),
}
_ELSEWHERE = {"japanese", *(name for own in _SCRIPTS.values() for name in own)} - {"serbian"}  # that is written in both
_LATIN = tuple(name for name in FUNCTION_WORDS if name not in _ELSEWHERE)
#: Languages of whose letters with accents people often type the plain ones. In others, such as Swedish, these are
#: letters of their own. Snowball does the same for German by itself, ß included.
_PLAIN_ACCENTS = frozenset(
    ("french", "spanish", "italian", "portuguese", "catalan", "romanian", "czech", "polish", "hungarian", "turkish")
)
_SNOWBALL = frozenset(Stemmer.algorithms())
_PARTICLES = regex.compile(  # of Korean, behind a noun of two syllables or more
    r"(?<=^\p{Hangul}{2,})(?:에서는|으로는|에게서|에서|에게|으로|까지|부터|처럼|보다|이나|은|는|이|가|을|를|의|에|와|과|도|로|만)$"
)
_ELISION = regex.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|[ad]?gl|d?all|dell|nell|sull|quell|quest|com|dov)['’]"
)
_ELIDED = frozenset(("french", "italian", "catalan"))  # where a word hides behind what was cut short: l'assurance
_ENOUGH = 0.06  # of a sample's words that must be function words of another language than English
_DIFFERENT = 3  # such words at least
_AHEAD = 1.5  # times as many as English has
_MIXED = 0.3  # of the letters are Han in a Chinese or Japanese text
_KANA = 0.1  # of such a text's letters are kana in Japanese
_WORD = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")
_stemmers: dict[str, Stemmer.Stemmer] = {}


def stem_in(word: str, language: str) -> str:
    """The stem of a word; in a language without a stemmer the word itself, of Korean without its particle."""
    if language == "korean":
        return _PARTICLES.sub("", word)
    if language not in _SNOWBALL:
        return word
    if language not in _stemmers:
        _stemmers[language] = Stemmer.Stemmer(language, 0)  # without a cache: ours has bounds
    if language in _ELIDED:
        word = _ELISION.sub("", word)
    found = str(_stemmers[language].stemWord(word))
    return without_accents(found) if language in _PLAIN_ACCENTS else found


def without_accents(word: str) -> str:
    """The letters of a word without their accents.

    >>> without_accents("préférée"), without_accents("größe"), without_accents("łódź")
    ('preferee', 'große', 'łodz')
    """
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(one for one in apart if not unicodedata.combining(one)))


def language_of(texts: Iterable[str]) -> str:
    """The language that most of the texts are in, "chinese" among them; English where nothing tells another.

    >>> language_of(["Wie kann ich mein Konto löschen?", "Wo finde ich die Rechnung?"])
    'german'
    >>> language_of(["How do I close my account?"]), language_of([])
    ('english', 'english')
    """
    sample = "\n".join(texts)
    scripts = _letters(sample)
    letters = max(1, sum(scripts.values()))
    if scripts["Han"] + scripts["Kana"] > _MIXED * letters:
        return "japanese" if scripts["Kana"] > _KANA * letters else "chinese"
    script = max(scripts, key=lambda name: scripts[name], default="Latin")
    return _by_words([word.lower() for word in _WORD.findall(sample)], _SCRIPTS.get(script, _LATIN))


_SCRIPT_LETTERS = {
    **{name: regex.compile(rf"\p{{{name}}}") for name in ("Latin", "Han", *_SCRIPTS)},
    "Kana": regex.compile(r"[\p{Hiragana}\p{Katakana}]"),
}


def _letters(sample: str) -> Counter[str]:
    return Counter({name: len(pattern.findall(sample)) for name, pattern in _SCRIPT_LETTERS.items()})


def _by_words(words: Sequence[str], languages: Sequence[str]) -> str:
    """The language whose function words these are; a word that several have counts for each a part."""
    latin = ENGLISH in languages
    times = Counter(word for word in words if not latin or len(word) > 1)  # a letter alone may be anything
    shared = Counter(word for name in languages for word in FUNCTION_WORDS[name])
    weights = {
        name: sum(times[word] / shared[word] for word in FUNCTION_WORDS[name] if word in times) for name in languages
    }
    best = max(languages, key=lambda name: weights[name])
    if not latin:
        return best
    known = [times[word] for word in FUNCTION_WORDS[best] if word in times]
    sure = weights[best] > _AHEAD * weights[ENGLISH] and sum(known) > _ENOUGH * len(words) and len(known) >= _DIFFERENT
    return best if sure else ENGLISH
