"""Markdown and HTML: headings that ask, what follows, and text that means harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.formats import read_pairs
from matchloom.data.formats.html_text import Text, has_tags, html_text, tokens
from tests.data.formats.reading import read
from tests.drawing import examples
from tests.refusing import refused

MARKDOWN = """---
title: FAQ
---
# Help

Welcome, **all** of you.

## Money

### How do I [pay](http://example.org)?

By *card* or `invoice`.

#### By card

Visa only.

### 2. Where is my invoice?
<!-- not this -->
It comes by mail.

```
# is this a heading?
```

Do you ship abroad?
-------------------
Yes, to <b>all</b> countries.

**Can I return it?**

Within 30 days.

Q: And gifts?
A: These, too.

<details><summary>Is it safe?</summary>

Quite safe.
</details>
"""


def test_markdown(tmp_path: Path) -> None:
    found = read(tmp_path / "faq.md", MARKDOWN)
    assert found.pairs == [
        ("How do I pay?", "By card or invoice.\nBy card\nVisa only."),
        ("Where is my invoice?", "It comes by mail.\n# is this a heading?"),
        ("Do you ship abroad?", "Yes, to all countries."),
        ("Can I return it?", "Within 30 days."),
        ("And gifts?", "These, too."),
        ("Is it safe?", "Quite safe."),
    ]
    assert found.places[:2] == ["line 10", "line 18"]
    assert found.own[0] == {"section": "Help / Money"}
    assert [one.place for one in found.left_out] == ["line 4"]


def test_headings_that_do_not_ask_are_titles_of_answers(tmp_path: Path) -> None:
    found = read(tmp_path / "faq.md", "# Lost keys\nWrite to us.\n# Opening hours\n## Summer\nFrom nine.\n")
    assert found.pairs == [("Lost keys", "Write to us."), ("Summer", "From nine.")]
    assert found.own[1] == {"section": "Opening hours"}


HTML = """<!DOCTYPE html><html><head><title>FAQ</title><style>p{}</style></head><body><nav><h2>Menu?</h2></nav>
<h1>FAQ</h1><p>Welcome</p>
<h2>Money</h2>
<h3>How do I <em>pay</em>?</h3><p>By card &amp; invoice.</p><ul><li>Visa</li><li>Other</li></ul>
<dl><dt>Who are you?<dd>A shop.</dd><dt><p>Where?</p></dt><dd>In Ghent.</dd></dl>
<details><summary><h4>Do you ship?</h4></summary><p>Yes, &lt;all&gt; days</p></details>
<p><strong>Can I return it?</strong></p><p>Sure.</p>
<button>And gifts?</button><div>Also.</div>
<script>if (a<b) { alert("<h3>no?</h3>") }</script><footer>Imprint</footer></body></html>
"""


def test_html(tmp_path: Path) -> None:
    found = read(tmp_path / "faq.html", HTML)
    assert found.pairs == [
        ("How do I pay?", "By card & invoice.\nVisa\nOther"),
        ("Who are you?", "A shop."),
        ("Where?", "In Ghent."),
        ("Do you ship?", "Yes, <all> days"),
        ("Can I return it?", "Sure."),
        ("And gifts?", "Also."),
    ]
    assert found.places[0] == "line 4"
    assert found.own[0] == {"section": "FAQ / Money"}


def test_what_a_page_tells_search_engines_goes_first(tmp_path: Path) -> None:
    data = '{"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "Pay?", "acceptedAnswer": {"text": "<p>Yes</p>"}}]}'  # noqa: E501
    page = f'<h2>Pay?</h2><p>Yes</p><h2>More?</h2><p>No</p>\n<script type="application/ld+json">{data}</script>'
    assert read(tmp_path / "faq.html", page).pairs == [("Pay?", "Yes")]
    broken = page.replace("]}", "]")
    found = read(tmp_path / "faq.html", broken)
    assert found.pairs == [("Pay?", "Yes"), ("More?", "No")]


@pytest.mark.parametrize("name", ["p.md", "p.html"])
def test_wrong_documents_are_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("no heading here, and no question\n")
    with refused("no_data", path):
        list(read_pairs(path))
    path.write_bytes(b"# caf\xe9?\nlatin\n<h1>caf\xe9?</h1>")
    with refused("bad_row", path, "line 1"):
        list(read_pairs(path))
    path.write_text("# a?\nb\n<h1>a?</h1>b")
    with refused("conflict", path):
        list(read_pairs(path, columns={"query": "x"}))


PATTERNS = ["<", "<!", "<!--", "<a ", '<a b="', "</", "&", "&#", "<?", "<![", "<script>", "<b", "<h1>", "&#9", "<svg>"]
HOSTILE = [*PATTERNS, "<title", "[a](", "**", "_a", "![", "`", "# ", "<summary>", "Q: ", "<details", "\n- "]


@pytest.mark.parametrize("name", ["p.md", "p.html"])
@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_pattern_a_hundred_thousand_times_is_read(tmp_path: Path, name: str, pattern: str) -> None:
    """The standard library's parser takes hours for some of these."""
    found = read(tmp_path / name, f"# a?\nb <h1>a?</h1><p>b</p>\n{pattern * 100_000}\n")
    assert found.pairs[0][0] == "a?"


@examples(200)
@given(st.text(alphabet="<>/ab!-?&;#=\"' \nscript"))
def test_any_text_is_tokens_that_leave_nothing_of_plain_text_out(source: str) -> None:
    found = list(tokens(source))
    assert [token.at for token in found] == sorted(token.at for token in found)
    if "<" not in source and "&" not in source:
        assert "".join(token.text for token in found if isinstance(token, Text)) == source
    assert "\n\n" not in html_text(source)


def test_tags_are_told_from_words() -> None:
    assert has_tags("<p>yes</p>")
    assert has_tags("one<br>two")
    assert has_tags('<a href="x">y')
    assert not has_tags("1 < 2 > 0, <your name>, a <p> element")
