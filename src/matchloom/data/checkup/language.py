"""Which language a text is in, as far as its letters and its most frequent words tell."""

from __future__ import annotations

from collections import Counter

import regex

_SCRIPTS = {
    "japanese": regex.compile(r"[\p{Hiragana}\p{Katakana}]"),
    "chinese": regex.compile(r"\p{Han}"),
    "korean": regex.compile(r"\p{Hangul}"),
    "russian or another in Cyrillic": regex.compile(r"\p{Cyrillic}"),
    "arabic": regex.compile(r"\p{Arabic}"),
    "hebrew": regex.compile(r"\p{Hebrew}"),
    "greek": regex.compile(r"\p{Greek}"),
    "thai": regex.compile(r"\p{Thai}"),
    "hindi or another in Devanagari": regex.compile(r"\p{Devanagari}"),
}
# Short words that are frequent in one language and mean nothing, or something rare, in the others.
_WORDS = {
    "english": "the and of is you your how what do does can are this that with for when where which my have we it to a "
    "an as in on at by or not be if from i me will no so",
    "german": "der die das und ist ich sie wie kann mein meine nicht ein eine mit für auf wir werden wird wo wann zu",
    "french": "le les des est vous je comment mon ma une pour dans avec sur puis ne pas nous votre vos du et où quand",
    "spanish": "el los las es cómo qué mi una para con puedo se por su sus dónde cuándo y del está usted como puede",
    "portuguese": "o os as é como meu minha uma para com posso não do da em seu sua onde quando você são ao pelo",
    "italian": "il gli è come mio mia una per con posso non di che si dove quando sono della nel della lo ho",
    "dutch": "het een van ik hoe mijn kan niet voor met wij wordt zijn waar wanneer uw je dat op te",
}
_LANGUAGES: dict[str, list[str]] = {}
for _language, _words in _WORDS.items():
    for _word in set(_words.split()):
        _LANGUAGES.setdefault(_word, []).append(_language)
_LETTER = regex.compile(r"\p{L}")
_WORD = regex.compile(r"[\p{L}\p{M}]+")
_READ = 600  # characters of a text


def language_of(text: str) -> str | None:
    """The language of a text; None where it cannot be told.

    >>> language_of("Wie kann ich mein Passwort ändern?"), language_of("密码怎么改"), language_of("ok")
    ('german', 'chinese', None)
    """
    text = text[:_READ]
    letters = len(_LETTER.findall(text))
    for language, script in _SCRIPTS.items():
        if letters and len(script.findall(text)) > (0.2 if language == "japanese" else 0.4) * letters:
            return language
    words = {word.casefold() for word in _WORD.findall(text)}
    counts = Counter(language for word in words for language in _LANGUAGES.get(word, ()))
    if not counts:
        return None
    (best, hits), *others = counts.most_common(2)
    clear = hits >= 2 and 5 * hits >= len(words) and (not others or hits >= 2 * others[0][1])
    return best if clear else None
