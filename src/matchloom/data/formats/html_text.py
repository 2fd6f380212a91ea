"""HTML into tags and text, in time that grows with its length alone, whatever it holds.

The standard library's parser is not used: text such as `<a <a <a` takes it minutes for each hundred thousand
characters (Python 3.11.7), and `<![` raises. Entities are its own (`html.unescape`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_NAME = re.compile(r"/?[a-zA-Z][a-zA-Z0-9:-]{0,30}")
RAW = frozenset({"script", "style", "textarea", "title", "template", "noscript", "svg"})  # nothing inside is a tag
BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "br", "button", "dd", "details", "div", "dl", "dt", "figure"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary"),
        *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    }
)
_MARKUP = re.compile(
    r"</(?:p|div|span|a|b|i|u|em|strong|ul|ol|li|h[1-6]|table|tr|td|th|code|pre|font|section|article)\s{0,9}>"
    r"|<(?:br|hr|img)\b[^<>]{0,2000}>|<(?:a|p|div|span|img|table|td|font)\s[^<>]{0,2000}=[^<>]{0,2000}>",
    re.I,
)
_SPACES = re.compile(r"[^\S\n]+")


class Tag(NamedTuple):
    """An opening or closing tag: its name, its attributes as they are written, and where it starts."""

    name: str
    closing: bool
    attributes: str
    at: int


class Text(NamedTuple):
    """Text between tags, its entities replaced, and where it starts."""

    text: str
    at: int


def has_tags(text: str) -> bool:
    """Whether a text is marked up: it has closing tags, line breaks or attributes.

    >>> has_tags("<p>By card.</p>"), has_tags("how do I close a <p> element?"), has_tags("a < b, <your name>")
    (True, False, False)
    """
    return "<" in text and _MARKUP.search(text) is not None


def html_text(source: str) -> str:
    """The words of a piece of HTML; blocks become lines, scripts and styles nothing.

    >>> html_text("<p>By card &amp; <b>invoice</b>.</p><ul><li>now</li></ul>")
    'By card & invoice.\\nnow'
    """
    parts: list[str] = []
    raw = False
    for token in tokens(source):
        if isinstance(token, Text):
            parts.append("" if raw else " ".join(f"_{token.text}_".split())[1:-1])
        else:
            raw = token.name in RAW and not token.closing
            if token.name in BLOCKS:
                parts.append("\n")
    return tidy("".join(parts))


def tidy(text: str) -> str:
    """Lines without needless spaces; none that are empty."""
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def tokens(source: str) -> Iterator[Tag | Text]:
    """Tags and texts in their order; comments and declarations are passed over, any other `<` is text."""
    at = start = 0
    while (at := source.find("<", at)) >= 0:
        name = _NAME.match(source, at + 1)
        if name is None and not source.startswith(("<!", "<?"), at):
            at += 1
            continue
        end = _end(source, at)
        if end < 0:  # it never ends, nor does any behind it
            break
        if start < at:
            yield Text(_unescaped(source[start:at]), start)
        start = at
        if name is not None:
            word = name[0].lower()
            tag = Tag(word.removeprefix("/"), word.startswith("/"), source[name.end() : end - 1], at)
            yield tag
            if word in RAW and not tag.attributes.endswith("/"):
                closing = re.compile(f"</{word}", re.I).search(source, end)
                yield Text(source[end : closing.start() if closing else len(source)], end)
                end = closing.start() if closing else len(source)
        at = start = end
    if start < len(source):
        yield Text(_unescaped(source[start:]), start)


def _end(source: str, at: int) -> int:
    """Where a tag, comment or declaration ends; a comment that does not end takes the rest, as in a browser."""
    if source.startswith("<!--", at):
        end = source.find("-->", at + 4)
        return len(source) if end < 0 else end + 3
    end = source.find(">", at)
    return end if end < 0 else end + 1


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a number of thousands of digits
        return text
