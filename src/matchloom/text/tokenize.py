"""Texts into words. Four ways, one for each kind of text; the choice travels with a saved matcher."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar, cast

import regex

from matchloom.text.languages import ENGLISH, FUNCTION_WORDS, language_of, stem_in
from matchloom.types import MatchloomError

# Numbers keep their inner points and commas, words their inner apostrophes; all else parts words and is dropped.
_ENGLISH = regex.compile(r"\d+(?:[.,]\d+)+|[\p{L}\p{M}\d]+(?:['’][\p{L}\p{M}]+)*")
_HAS_WORD = regex.compile(r"[\p{L}\p{N}]")
_WITHOUT_FORMS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}]")
_BETWEEN_SPACES = re.compile(r"\S+")
# A run of one script: what stands between particles is mostly a word, and n-grams of characters find the rest.
_JAPANESE = regex.compile(
    r"\d+(?:[.,]\d+)+|[\p{Han}々〆]+|[\p{Katakana}ー]+|\p{Hiragana}+|(?:(?![\p{Han}\p{Katakana}\p{Hiragana}ー])[\p{L}\p{M}\d])+"
)
_MOST_KEPT = 8_000_000  # characters of texts whose words are kept during a fit
LONGEST_KEPT = 64  # characters of a word that is remembered, so that what is remembered is bounded in bytes
F = TypeVar("F", bound=Callable[..., Any])


class Span(NamedTuple):
    """A word as a matcher reads it, and where it stands in the user's own text: text[start:end]."""

    word: str
    start: int
    end: int


def _english(text: str) -> list[Span]:
    return [Span(match[0], *match.span()) for match in _ENGLISH.finditer(text)]


def _japanese(text: str) -> list[Span]:
    return [Span(match[0], *match.span()) for match in _JAPANESE.finditer(text)]


def _chinese(text: str) -> list[Span]:
    import rjieba  # here, because its dictionary is large and only Chinese needs it

    spans, end = [], 0
    for word in rjieba.cut(replace_surrogates(text)):  # the pieces are the whole text, in its order
        start, end = end, end + len(word)
        if _HAS_WORD.search(word):
            spans.append(Span(word, start, end))
    return spans


def _whitespace(text: str) -> list[Span]:
    return [Span(match[0], *match.span()) for match in _BETWEEN_SPACES.finditer(replace_surrogates(text))]


def replace_surrogates(text: str) -> str:
    """A text without half characters (an argument that is no UTF-8 has them), which nothing could write or hash.

    Each becomes one question mark, so that places in the text stay what they were.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


TOKENIZERS: dict[str, Callable[[str], list[Span]]] = {
    "english": _english,
    "chinese": _chinese,
    "japanese": _japanese,
    "whitespace": _whitespace,
}


class Tokenizer(NamedTuple):
    """How texts become words.

    `kind` is english (a regex, for all languages with spaces), chinese (segmentation), japanese (runs of one script) or
    whitespace (tokenised data). `max_words` truncates longer texts; None keeps every word. `language` says which stems
    and function words they have.

    >>> Tokenizer("english")("Don't part 3.5 litres, please!")
    ["don't", 'part', '3.5', 'litres', 'please']
    """

    kind: str = "english"
    lower: bool = True
    max_words: int | None = None
    language: str = ENGLISH

    @classmethod
    def named(cls, name: str, *, max_words: int | None = None) -> Tokenizer:
        """The tokenizer of a kind or of a language.

        >>> Tokenizer.named("whitespace").kind, Tokenizer.named("german").language
        ('whitespace', 'german')
        """
        if name not in {*TOKENIZERS, *FUNCTION_WORDS}:
            raise MatchloomError(
                f"tokenizer {name[:80]!r} is unknown; choose chinese, whitespace or a language: "
                f"{', '.join(FUNCTION_WORDS)}",
                code="unknown_name",
            )
        kind = name if name in TOKENIZERS else "english"
        return cls(kind, max_words=max_words, language=name if name in FUNCTION_WORDS else ENGLISH)

    @classmethod
    def for_texts(cls, texts: Iterable[str]) -> Tokenizer:
        """The tokenizer that suits the script and the language of the texts.

        >>> Tokenizer.for_texts(["Wie kann ich das Konto löschen?"]).language, Tokenizer.for_texts(["如何取消"]).kind
        ('german', 'chinese')
        """
        return cls.named(language_of(texts))  # what is not Chinese in Chinese texts is mostly English

    @property
    def reads(self) -> str:
        """The language that texts are taken for, as reports name it."""
        return "Chinese" if self.kind == "chinese" else self.language.capitalize()

    @classmethod
    def from_dict(cls, plain: object) -> Tokenizer:
        """What `_asdict` gave, as a saved system keeps it; anything else is refused."""
        if not isinstance(plain, dict) or plain.keys() | {"language"} != set(cls._fields):
            raise MatchloomError(f"no tokenizer is described by {str(plain)[:80]!r}", code="bad_value")
        kind, lower, max_words, language = ({"language": ENGLISH, **plain}[name] for name in cls._fields)
        if not isinstance(kind, str) or kind not in TOKENIZERS:
            raise MatchloomError(
                f"tokenizer {str(kind)[:80]!r} is unknown; choose one of {', '.join(TOKENIZERS)}", code="unknown_name"
            )
        if not isinstance(lower, bool) or not (max_words is None or (type(max_words) is int and max_words > 0)):
            raise MatchloomError(
                f"no tokenizer has lower {str(lower)[:80]!r} and max_words {str(max_words)[:80]!r}", code="bad_value"
            )
        if language not in FUNCTION_WORDS:
            raise MatchloomError(
                f"language {str(language)[:80]!r} is unknown; choose one of {', '.join(FUNCTION_WORDS)}",
                code="unknown_name",
            )
        return cls(kind, lower, max_words, language)

    def __call__(self, text: str) -> list[str]:
        """The words of one text."""
        kept = _WORDS_ONCE.get()
        return self.lowercase(self.tokenize(text)) if kept is None else kept.words(self, text)

    def tokenize(self, text: str) -> list[str]:
        """The words as they stand in the text, capitals included."""
        if self.kind == "english":  # the words alone are found in a fifth of the time
            return cast("list[str]", _ENGLISH.findall(text)[: self.max_words])
        return [span.word for span in self._spans(text)]

    def lowercase(self, words: list[str]) -> list[str]:
        """Words as a matcher reads them. Each is lower-cased alone: its spelling must not depend on its neighbours."""
        return [word.lower() for word in words] if self.lower else words

    def spans(self, text: str) -> list[Span]:
        """The words with their places in the text, so that the user's own text can be marked.

        >>> Tokenizer("english").spans("Stop: go!")
        [Span(word='stop', start=0, end=4), Span(word='go', start=6, end=8)]
        """
        spans = self._spans(text)
        return [span._replace(word=span.word.lower()) for span in spans] if self.lower else spans

    def _spans(self, text: str) -> list[Span]:
        if self.kind not in TOKENIZERS:
            raise MatchloomError(
                f"tokenizer {self.kind!r} is unknown; choose one of {', '.join(TOKENIZERS)}", code="unknown_name"
            )
        spans = TOKENIZERS[self.kind](text)
        return spans if self.max_words is None else spans[: self.max_words]


class _WordsOnce:
    """The words of texts, as long as there is room for more."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Tokenizer, list[str]]] = {}
        self._room = _MOST_KEPT

    def words(self, tokenizer: Tokenizer, text: str) -> list[str]:
        """What the tokenizer makes of a text."""
        found = self._kept.get(text)
        if found is not None and found[0] == tokenizer:
            return found[1].copy()
        words = tokenizer.lowercase(tokenizer.tokenize(text))
        if len(text) <= self._room:
            self._room -= len(text)
            self._kept[text] = tokenizer, words.copy()
        return words


_WORDS_ONCE: ContextVar[_WordsOnce | None] = ContextVar("words_once", default=None)


@contextmanager
def words_once() -> Iterator[None]:
    """Meanwhile a text is tokenised once: `fit` makes many systems of the same texts."""
    token = _WORDS_ONCE.set(_WordsOnce())
    try:
        yield
    finally:
        _WORDS_ONCE.reset(token)


def remember_words(function: F) -> F:
    """A function of a word that remembers what it found for words of usual lengths."""
    remembered = lru_cache(maxsize=200_000)(function)

    @wraps(function)
    def call(word: str, *rest: str) -> Any:
        return (remembered if len(word) <= LONGEST_KEPT else function)(word, *rest)

    return cast("F", call)


@remember_words
def stem(word: str, language: str = ENGLISH) -> str:
    """The stem of a word, Snowball's where it has the language; words of other scripts come back as they are."""
    return stem_in(word, language)


def stems(words: Iterable[str], language: str = ENGLISH) -> list[str]:
    """The stem of each word."""
    return [stem(word, language) for word in words]


def language_of_words(tokenizer: object) -> str:
    """The language of a tokenizer; English of anything else that turns texts into words."""
    return tokenizer.language if isinstance(tokenizer, Tokenizer) else ENGLISH


@remember_words
def has_no_forms(word: str) -> bool:
    """True for words of scripts that write no endings after a stem, such as Chinese: stems and starts tell nothing new.

    >>> has_no_forms("保险"), has_no_forms("looms"), has_no_forms("1999")
    (True, False, False)
    """
    return _WITHOUT_FORMS.search(word) is not None


def word_hash(word: str) -> int:
    """A positive number for a word, the same in every process: 62 bits, so that collisions never happen in practice."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little") >> 2
