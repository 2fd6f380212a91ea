"""The page for users, the widget and the desk in a real browser (Debian's chromium, driven by Playwright)."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from experiments.benchmarks.day_two import CHROMIUM, Story, launched
from matchloom.search.collection import Collection
from matchloom.service.desk.desk import DeskOptions
from matchloom.service.look import read_look
from matchloom.types import Pair
from tests.service.making import make_app, running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the pages were not tested in a browser"),
]
SHOP = Path(__file__).parents[2] / "docs" / "examples" / "shop.json"
EVIL = (
    "<h1>Title</h1><b onclick=alert(1)>bold</b><img src=x onerror=alert(2)><script>alert(3)</script>"
    '<a href="javascript:alert(4)">bad</a> <a href="https://good.example/x" onclick=alert(5)>good</a>'
    "<iframe src=https://evil.example></iframe><svg onload=alert(6)><style>body{display:none}</style>"
)
MARKDOWN = (
    "# Steps\n\n1. **Open** it\n2. `run` [this](https://a.example/?q=1)\n\nSee www.b.example. [x](javascript:alert(1))"
)
MIXED = "<b>Settings</b> **then** [Help](https://h.example/).\n\n- one <img src=x onerror=alert(7)>\n- <i>two</i>\nlast"
ODD = [
    Pair("is this shown as it is", EVIL, text_id="evil"),
    Pair("how is markdown shown", MARKDOWN, text_id="markdown"),
    Pair("how is a mixture shown", MIXED, text_id="mixed"),
    Pair("are paragraphs and emphasis mixed", "<p>One **bold** `<word>`</p><pre>**raw**</pre>", text_id="blocks"),
    Pair("هل يمكنني الدفع", "نعم، يمكنك الدفع بالفاتورة", text_id="arabic"),
    Pair("where is my parcel", "Use the link in your mail.", text_id="parcel"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must not complain, and that asks nobody else."""
    complaints: list[str] = []
    made = browser.new_page(viewport={"width": 1200, "height": 850})
    # That a style of an answer is blocked is told even where the answer is only read, in a document apart.
    made.on(
        "console",
        lambda said: (
            complaints.append(said.text)
            if said.type in ("error", "warning") and "Applying inline style" not in said.text
            else None
        ),
    )
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on("dialog", lambda dialog: (complaints.append("a dialog"), dialog.dismiss()))
    made.on("request", lambda asked: None if "127.0.0.1" in asked.url else complaints.append(asked.url))
    yield made
    made.close()
    assert complaints == []


def make(folder: Path, pairs: list[Pair] | Path) -> Path:
    Collection.create(folder / "faq", pairs, learn_weights=True)
    return folder


def test_answers_are_formatted_and_nothing_of_them_runs(page: Page, tmp_path: Path) -> None:
    look = read_look(title='<Help> & "more"', accent="#0a6e5c")
    with running(make_app(make(tmp_path, ODD), "faq", look=look)) as url:
        story = Story(page, url)
        page.goto(url)
        expect(page.get_by_role("heading", level=1)).to_have_text('<Help> & "more"')
        expect(page.locator("#examples button")).not_to_have_count(0)
        story.ask("is this shown as it is")
        shown = page.locator(".rich", has_text="bold").first
        expect(shown.locator("b")).to_have_text("bold")
        assert shown.locator("script, img, iframe, style, svg, [onclick], [style]").count() == 0
        assert [one.get_attribute("href") for one in shown.locator("a").all()] == ["https://good.example/x"]
        assert shown.locator("a").first.get_attribute("rel") == "noopener noreferrer nofollow"
        story.ask("how is markdown shown")
        shown = page.locator(".rich", has_text="Steps").first
        assert shown.locator("ol li").count() == 2
        assert shown.locator("strong, code").count() == 2
        links = [one.get_attribute("href") for one in shown.locator("a").all()]
        assert links == ["https://a.example/?q=1", "https://www.b.example/"]
        story.ask("how is a mixture shown")
        shown = page.locator(".rich", has_text="Settings").first
        parts = [shown.locator(tag).inner_text() for tag in ("b", "strong", "a", "i")]
        assert parts == ["Settings", "then", "Help", "two"]
        assert shown.locator("ul li").count() == 2
        assert "*" not in shown.inner_text()
        story.ask("are paragraphs and emphasis mixed")
        shown = page.locator(".rich", has_text="One").first
        assert [shown.locator(tag).inner_text() for tag in ("strong", "pre")] == ["bold", "**raw**"]
        expect(page.locator(".because").first).to_contain_text("paragraphs")
        assert not {"are", "and"} & {one.inner_text() for one in page.locator(".because em").all()}
        story.ask("هل يمكنني الدفع")
        assert page.locator(".rich").first.evaluate("node => getComputedStyle(node).direction") == "rtl"


@pytest.mark.parametrize("width", [390, 760, 1100])
def test_what_made_a_score_stays_within_its_card(page: Page, tmp_path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    known = [one for pair in ODD for one in (pair, pair._replace(query=f"please tell me {pair.query}"))]
    with running(make_app(make(tmp_path, known), "faq")) as url:
        page.goto(url)
        Story(page, url).ask("please tell me where my parcel is")
        page.get_by_role("button", name="How it was found").first.click()
        made = page.locator("table.made").first
        expect(made).to_be_visible()
        table, card = made.bounding_box(), page.locator(".answer.first").bounding_box()
        assert table is not None
        assert card is not None
        assert table["x"] + table["width"] <= card["x"] + card["width"]


def test_a_page_that_is_opened_while_the_service_begins_waits_for_it(browser: Browser, tmp_path: Path) -> None:
    loading = {"error": {"code": "loading", "message": "the systems are being read"}}
    refused: list[str] = []

    def begins(route: Route) -> None:
        if len(refused) < 2:
            refused.append(route.request.url)
            route.fulfill(status=503, json=loading)
        else:
            route.continue_()

    page = browser.new_page()
    page.route("**/v1/page*", begins)
    with running(make_app(make(tmp_path, ODD), "faq")) as url:
        page.goto(url)
        expect(page.get_by_text("being loaded")).to_be_visible()
        expect(page.locator("#examples button")).not_to_have_count(0)
        expect(page.get_by_text("being loaded")).to_be_hidden()
    page.close()
    assert len(refused) == 2


@pytest.mark.parametrize("allowed", [True, False])
def test_the_widget_asks_from_another_site_only_where_it_may(browser: Browser, tmp_path: Path, allowed: bool) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Site)
    site = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    app = make_app(make(tmp_path, ODD), "faq", origins=[site] if allowed else [], feedback=tmp_path / "thumbs.jsonl")
    page = browser.new_page()
    try:
        with running(app) as url:
            _Site.service = url
            page.goto(site)
            page.get_by_role("button", name="Help").click()
            page.get_by_label("Your question").fill("where is my parcel")
            page.get_by_role("button", name="Ask").click()
            if not allowed:
                expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
                return
            expect(page.locator(".answer").first).to_contain_text("link in your mail")
            page.get_by_role("button", name="This answers my question").first.click()
            expect(page.get_by_role("status")).to_contain_text("Thank you")
            page.keyboard.press("Escape")
            expect(page.get_by_label("Your question")).to_be_hidden()
        assert '"id": "parcel", "label": 1' in (tmp_path / "thumbs.jsonl").read_text()
    finally:
        page.close()
        server.shutdown()
        server.server_close()


class _Site(BaseHTTPRequestHandler):
    service = ""

    def do_GET(self) -> None:
        page = f'<!doctype html><h1>A shop</h1><script src="{self.service}/widget.js" data-title="Help" defer></script>'
        self.send_response(200)
        self.send_header("content-type", "text/html")
        # As strict as a shop may be: the widget brings no style and no script of its own into the page.
        self.send_header("content-security-policy", f"default-src 'none'; script-src {self.service}; connect-src *")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_the_whole_day(page: Page, tmp_path: Path) -> None:
    folder = make(tmp_path, SHOP)
    desk = DeskOptions(audit=folder / "audit.jsonl", questions=folder / "asked.jsonl")
    app = make_app(folder, "faq", writable=True, feedback=folder / "thumbs.jsonl", desk=desk)
    with running(app) as url:
        story = Story(page, url)
        story.tell()
    inbox = [one for one in story.steps if one["step"].startswith("inbox")]
    assert all(one["clicks"] <= 2 for one in inbox), "two clicks at most"
    shutil.rmtree(folder / "faq")
