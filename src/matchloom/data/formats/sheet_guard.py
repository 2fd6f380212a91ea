"""Cells that a sheet would run as a formula, written so that it shows them, and read back as they were.

Excel and LibreOffice run a cell of a CSV or TSV file that starts with =, +, - or @, narrow or wide. An apostrophe
before it makes it text there; plain numbers need none. Reading takes away one apostrophe, so that what was written is
what is read.
"""

from __future__ import annotations

import re

# Spaces before it are dropped by some, and sheets for Japanese and Chinese take the wide signs for the others.
_SIGN = r"['\s]*[=+\-@\uff1d\uff0b\uff0d\uff20]"
_RUN = re.compile(_SIGN)
_NUMBER = re.compile(r"[+-]?[0-9][0-9 .,:/-]*%?$")
_GUARDED = re.compile("'" + _SIGN)


def guarded(cell: str) -> str:
    """A cell as it is written to a TSV or CSV file.

    >>> guarded("=HYPERLINK(1)"), guarded("-5"), guarded("'=x"), guarded("how?")
    ("'=HYPERLINK(1)", '-5', "''=x", 'how?')
    """
    return f"'{cell}" if _RUN.match(cell) and not _NUMBER.match(cell) else cell


def unguarded(cell: str) -> str:
    """A cell as it was before it was written.

    >>> unguarded("'=HYPERLINK(1)"), unguarded("'tis"), unguarded("''=x")
    ('=HYPERLINK(1)', "'tis", "'=x")
    """
    return cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell
