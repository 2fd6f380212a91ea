"""The results as pages: results.md with the summary and a list of all, and one page a section in the folder results/.

Sections are written as one text (page.py), whose links are to sections of it; here they become links between pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

FOLDER = "results"
_LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")
_KEPT = ("Summary",)  # sections that stay on the first page


def split_pages(text: str, groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The pages by their names, from the whole text.

    Args:
        text: A head, and sections that begin with `## `.
        groups: The titles of sections under the names of the groups in which they are listed; all others come last.
    """
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    by_title = {section.partition("\n")[0].removeprefix("## "): section for section in sections}
    by_title.pop("Contents", None)
    homes = {
        slug(line.lstrip("# ")): (title, line.startswith("## "))
        for title, section in by_title.items()
        for line in re.findall(r"^###? .*", section, re.MULTILINE)
    }
    pages = {}
    for title, section in by_title.items():
        if title not in _KEPT:
            lower = re.sub(r"^##(?=#? )", "#", section, flags=re.MULTILINE)
            moved = _LINK.sub(r"](../\1)", lower)
            pages[f"{FOLDER}/{slug(title)}.md"] = _linked(moved, homes, "", "../results.md").rstrip() + "\n"
    listed = [title for titles in groups.values() for title in titles]
    rest = [title for title in by_title if title not in listed and title not in _KEPT]
    lists = [
        f"## {name}\n\n" + "\n".join(f"- [{title}]({FOLDER}/{slug(title)}.md)" for title in titles if title in by_title)
        for name, titles in ({**groups, "How, and what else was tried": rest}).items()
        if any(title in by_title for title in titles)
    ]
    kept = [_linked(by_title[title], homes, f"{FOLDER}/", "") for title in _KEPT if title in by_title]
    first = "\n".join(part.rstrip() + "\n" for part in (head, *lists[:1], *kept, *lists[1:]))
    return {"results.md": first, **pages}


def slug(title: str) -> str:
    """A title as GitHub names its section.

    >>> slug("Match-SRNN, d = 20: what it costs")
    'match-srnn-d--20-what-it-costs'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _linked(text: str, homes: Mapping[str, tuple[str, bool]], folder: str, first: str) -> str:
    """Links to sections of the whole text, as links to their pages."""

    def link(found: re.Match[str]) -> str:
        title, whole = homes[found[1]]
        if title in _KEPT:
            return f"]({first}#{found[1]})"
        return f"]({folder}{slug(title)}.md{'' if whole else f'#{found[1]}'})"

    return re.sub(r"\]\(#([^)]+)\)", link, text)
