"""The page in a real browser: Debian's chromium, driven by Playwright. Screenshots: MATCHLOOM_SCREENSHOTS=DIR."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from matchloom.explanation import Explanation, render_html
from matchloom.types import Signal, Trace
from tests.service.making import make_app, running

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None,
        reason="chromium is not installed (apt install chromium): the page was not tested in a browser",
    ),
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
KEY = "correct-horse-battery"
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def thumbs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page") / "thumbs.jsonl"


@pytest.fixture(scope="module")
def url(served: Path, thumbs: Path) -> Iterator[str]:
    with running(make_app(served, "faq", "mv", "tickets", feedback=thumbs)) as address:
        yield address


class Watched:
    """A page that must not complain: no errors, no refused styles or scripts, no dialogs, nothing from elsewhere."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.allowed: tuple[str, ...] = ()
        page.on("console", lambda said: self._hear(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda asked: self._from(asked.url))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(part in text for part in self.allowed):
            self.complaints.append(text)

    def _from(self, address: str) -> None:
        if not address.startswith(("http://127.0.0.1:", "data:")):
            self.complaints.append(f"asked {address}")


@pytest.fixture
def watched(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A new page; wide and light unless the test is given another (width, height, scheme)."""
    width, height, scheme = getattr(request, "param", (1200, 900, "light"))
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(30_000)
    made = Watched(context.new_page())
    yield made
    context.close()
    assert made.complaints == []


def ask(page: Page, url: str, question: str, address: str = "") -> None:
    page.goto(f"{url}/lab{address}")
    page.wait_for_selector("#system option", state="attached")
    page.fill("#question", question)
    page.press("#question", "Enter")


VIEWS = {
    "light": (1200, 900, "light"),
    "dark": (1200, 900, "dark"),
    "phone": (390, 844, "light"),
    "narrow": (500, 800, "dark"),
}


@pytest.mark.parametrize(("watched", "name"), [(view, name) for name, view in VIEWS.items()], indirect=["watched"])
def test_search_explain_and_compare_in_every_view(watched: Watched, url: str, name: str, artefacts: Path) -> None:
    page = watched.page
    ask(page, url, "I forgot my password")
    expect(page.locator(".card").first).to_contain_text("Reset password")
    expect(page.locator("#status")).to_contain_text("answers.")
    page.screenshot(path=artefacts / f"{name}-search.png")
    page.locator(".open").first.click()
    expect(page.locator(".heat-stage canvas")).to_be_visible()
    expect(page.locator(".words .w").first).to_be_visible()
    assert page.locator(".texts .side h2").all_inner_texts()[1:] == ["KNOWN QUESTION", "ANSWER"]
    rows = page.locator("table.made tbody")
    assert rows.first.locator(".of").first.is_hidden()
    rows.locator("summary").first.click()
    expect(rows.locator(".of").first).to_be_visible()
    page.screenshot(path=artefacts / f"{name}-why.png", full_page=True)
    assert broken_words(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    bars = page.locator("table.made td.fall div").first.bounding_box()
    assert bars is not None
    assert bars["x"] + bars["width"] <= VIEWS[name][0]
    page.select_option("#by", "bm25")
    expect(page.locator(".column h2")).to_have_text(["faq", "bm25"])
    expect(page.locator(".lead")).to_contain_text("faq and bm25")
    page.screenshot(path=artefacts / f"{name}-compare.png")
    page.locator(".open").first.click()
    expect(page.locator(".why .panel h3")).to_have_text(["faq", "bm25"])
    expect(page.locator(".why .heat-stage canvas")).to_have_count(2)
    page.screenshot(path=artefacts / f"{name}-compare-why.png", full_page=True)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(20, 22, 27)") == (VIEWS[name][2] == "dark")


def broken_words(page: Page) -> list[str]:
    """Words of the table and the texts that stand on two lines although a line has room for them."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('table.made bdi, .words .w')].filter((node) => {
             const range = document.createRange();
             range.selectNodeContents(node);
             return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
           }).map((node) => node.textContent)"""
    )
    return found


def test_pasted_texts_are_shown_and_never_run(watched: Watched, url: str, artefacts: Path) -> None:
    page = watched.page
    page.goto(f"{url}/lab")
    page.click("text=Rank texts")
    page.select_option("#system", "mv")
    page.fill("#question", f"reset my password {EVIL}")
    page.fill(
        "#candidates",
        f"{EVIL} password\n\n  Open Settings, then Reset password.  \nهل يمكنني الدفع بالفاتورة\na\u202eb\x07",
    )
    page.click("text=Ask")
    expect(page.locator(".card")).to_have_count(4)
    assert EVIL in " ".join(page.locator(".card .text").all_inner_texts())
    for opener in page.locator(".open").all():
        opener.click()
    expect(page.locator(".heat-stage canvas")).to_have_count(4)
    assert page.locator("#results img, #results script:not(.data)").count() == 0
    page.screenshot(path=artefacts / "pasted.png", full_page=True)
    page.select_option("#system", "bm25")
    expect(page.locator(".heat-stage")).to_have_count(0)
    page.locator(".open").first.click()
    expect(page.locator(".why .sum")).to_contain_text("bm25_stemmed")


def test_the_keyboard_leads_everywhere(watched: Watched, url: str) -> None:
    page = watched.page
    ask(page, url, "send me a bill")
    page.wait_for_selector(".card")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".open").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".open").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_selector(".heat-stage")
    expect(page.locator(".open").nth(1)).to_have_attribute("aria-expanded", "true")
    page.locator(".heat-stage").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".heat-tip")).not_to_be_empty()
    page.locator(".words button").first.focus()
    expect(page.locator(".readout")).to_contain_text("in all")
    page.keyboard.press("Escape")
    expect(page.locator(".open").nth(1)).to_be_focused()
    expect(page.locator(".why:visible")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.locator("#question")).to_be_focused()


def test_thumbs_are_kept(watched: Watched, url: str, thumbs: Path) -> None:
    page = watched.page
    ask(page, url, "where is my parcel now")
    card = page.locator(".card").first
    card.get_by_label("This answers my question").click()
    expect(page.locator("#status")).to_contain_text("Saved")
    expect(card.get_by_label("This answers my question")).to_have_attribute("aria-pressed", "true")
    card.get_by_label("This does not answer my question").click()
    expect(card.get_by_label("This does not answer my question")).to_have_attribute("aria-pressed", "true")
    lines = [json.loads(line) for line in thumbs.read_text(encoding="utf-8").splitlines()]
    assert [(line["question"], line["label"], line["id"]) for line in lines] == [
        ("where is my parcel now", 1, "parcel"),
        ("where is my parcel now", 0, "parcel"),
    ]


def test_bad_input_is_told_in_a_line(watched: Watched, url: str) -> None:
    page = watched.page
    watched.allowed = ("422",)  # the browser's own note of a refused request
    ask(page, url, "   ")
    expect(page.locator("#problem")).to_have_text("Type a question first.")
    ask(page, url, "word " * 3000)
    expect(page.locator("#problem")).to_contain_text("3,000 words; at most 2,000")
    page.click("text=Rank texts")
    page.fill("#question", "a")
    page.click("text=Ask")
    expect(page.locator("#problem")).to_contain_text("Paste the texts")


def test_an_archive_and_an_address_that_can_be_sent(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/lab#q=password&system=tickets&by=bm25")
    expect(page.locator(".column h2")).to_have_text(["tickets", "bm25"])
    page.locator(".open").first.click()
    expect(page.locator(".why .panel").first.locator(".sum")).to_contain_text("Score by")
    assert page.input_value("#question") == "password"


def test_a_key_is_asked_for_once(browser: Browser, served: Path) -> None:
    with running(make_app(served, "faq", key=KEY)) as address:
        page = browser.new_page()
        page.goto(f"{address}/lab")
        page.fill("#secret", "a-wrong-key-of-some-length")
        page.click("text=Use it")
        expect(page.locator("#problem")).to_have_text("This key is not valid.")
        page.fill("#secret", KEY)
        page.click("text=Use it")
        expect(page.locator("#key")).to_be_hidden()
        page.fill("#question", "password")
        page.press("#question", "Enter")
        expect(page.locator(".card").first).to_be_visible()
        page.close()


def test_the_static_explanation_is_whole_at_500_pixels(browser: Browser, tmp_path: Path, artefacts: Path) -> None:
    query, text = ["internationalisation", "connection", "lost"], ["reconnecting", "the", "connection", "afterwards"]
    grid = np.ones((3, 3, 4), np.float32)
    signals = [Signal(1, 2, channel, 1.0, 0.5) for channel in range(3)] + [Signal(0, 3, 0, 1.0, -0.25)]
    trace = Trace(1.5, signals, 0.25, grid, ["same word", "same stem", "same start"])
    file = tmp_path / "why.html"
    file.write_text(render_html([Explanation("mv_lstm", query, text, trace)]), encoding="utf-8")
    page = browser.new_page(viewport={"width": 500, "height": 800})
    page.goto(file.as_uri())
    assert broken_words(page) == []
    assert page.locator("table.made tbody tr:visible").count() == 4, "a pair in three channels is one row"
    page.locator("table.made summary").click()
    assert page.locator("table.made tbody tr:visible").count() == 7
    for box in page.locator("table.made td.fall:visible").all():
        found = box.bounding_box()
        assert found is not None
        assert found["width"] > 100
        assert found["x"] + found["width"] <= 500
    page.screenshot(path=artefacts / "static-500.png", full_page=True)
    page.close()
