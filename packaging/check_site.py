"""Every link, picture and script of the built site leads somewhere, and nothing is fetched from elsewhere.

python packaging/check_site.py site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

_FETCHED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}
_RELS = {"stylesheet", "icon", "preload", "modulepreload"}  # links of a head that a browser follows by itself


class Page(HTMLParser):
    """What a page links to, fetches, and may be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one element."""
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        followed = tag != "link" or given.get("rel", "") in _RELS
        if tag in _FETCHED and given.get(_FETCHED[tag]) and followed:
            self.fetched.append(given[_FETCHED[tag]])


def faults(site: Path) -> tuple[list[str], int, int]:
    """What is wrong, how many pages there are, and how many links."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    wrong, count = [], 0
    for path, page in pages.items():
        if path.name == "404.html":  # its links are meant for the root of a server
            continue
        for link in (*page.links, *page.fetched):
            count += 1
            told = urlparse(link)
            if told.scheme or told.netloc:
                if link in page.fetched and told.scheme != "data":
                    wrong.append(f"{path.name} fetches {link}")
                continue
            target = (path.parent / unquote(told.path)).resolve() if told.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                wrong.append(f"{path.name} links to {link}, which is not there")
            elif told.fragment and target in pages and unquote(told.fragment) not in pages[target].names:
                wrong.append(f"{path.name} links to {link}: no such section")
    return wrong, len(pages), count


if __name__ == "__main__":
    found, pages, links = faults(Path(sys.argv[1]))
    print("\n".join([*found, f"{pages} pages, {links} links, {len(found)} wrong"]))
    sys.exit(bool(found))
