"""What may reach a screen: texts of users and files never drive a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# Control characters (C0, DEL, C1) drive a terminal, line and paragraph separators end a line, direction overrides and
# isolates reorder what follows, annotations hide it, surrogates cannot be written. Joiners and marks belong to words.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]")
_BUT_TABS_AND_LINES = re.compile(r"(?![\t\n])" + _UNPRINTABLE.pattern)
_BUT_LINES = re.compile(r"(?!\n)" + _UNPRINTABLE.pattern)


def printable(text: str) -> str:
    """A text that is safe to print on one line: what drives a terminal or reorders a line becomes U+FFFD.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def printable_table(text: str) -> str:
    """The same for lines of cells: tabs and line ends stay."""
    return _BUT_TABS_AND_LINES.sub("\ufffd", text)


def escaped_json(text: str) -> str:
    r"""JSON that says the same, with escapes (\u001b) for what should not be printed."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Screen(Console):
    """A console on which every text is printable, whatever table, bar or tree it came in. Styles are rich's own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments as rich makes them; a text that came as a control character was a user's."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or not _BUT_LINES.search(segment.text):
                yield segment
            else:
                yield Segment(_BUT_LINES.sub("\ufffd", segment.text), segment.style)


def screen(**arguments: Any) -> Screen:
    """A console where brackets in a user's text are brackets."""
    return Screen(highlight=False, markup=False, emoji=False, **arguments)
