"""A day of an owner in Chromium: fit, serve, ask, judge, inbox, new entry, refit, promote; clicks and seconds.

Run: python -m experiments.benchmarks.day_two [--out experiments/results/day_two.json] [--screenshots DIR] [--axe FILE]

The FAQ is docs/examples/shop.json. The first two steps are the commands; the others are clicks and keys of a browser
that Playwright drives. With --axe (axe.min.js of npm's axe-core) every page is checked, light and dark.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
expect.set_options(timeout=30_000)  # of a machine that others use, too
UNANSWERED = "renting bicycles"
AGAIN = "rent a bicycle for the weekend"
PHRASED = "the courier never rang my bell"


class Story:
    """The steps in the browser, each with its clicks and seconds."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.steps: list[dict[str, Any]] = []
        self._clicks = 0

    def click(self, name: str, role: Any = "button", **which: Any) -> None:
        """A click on what a person would click on."""
        self.page.get_by_role(role, name=name, **which).first.click()
        self._clicks += 1

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step of the story."""
        self._clicks, start = 0, time.perf_counter()
        yield
        self.steps.append({"step": name, "clicks": self._clicks, "seconds": round(time.perf_counter() - start, 2)})

    def ask(self, question: str) -> None:
        """Ask on the page for those who ask."""
        self.page.get_by_label("Your question").fill(question)
        self.click("Ask", exact=True)
        expect(self.page.locator("#results")).to_have_attribute("data-asked", question)

    def tell(self, shot: Callable[[str], None] = lambda _: None) -> None:
        """The whole day; `shot` is called where there is something to see."""
        page = self.page
        with self.step("ask, get an answer and say that it is right"):
            page.goto(self.url)
            expect(page.locator("#examples button").first).to_be_visible()
            shot("page-start")
            self.ask("how can I track my parcel")
            expect(page.locator("article.first")).to_be_visible()
            expect(page.locator(".because").first).to_be_visible()
            self.click("This answers my question")
            expect(page.get_by_role("button", name="This answers my question").first).to_have_attribute(
                "aria-pressed", "true"
            )
            shot("page-answer")
        with self.step("ask, and say that the answer is wrong"):
            self.ask(PHRASED)
            if page.locator("#results details").count():
                page.locator("#results details summary").first.click()
                self._clicks += 1
            self.click("This does not answer my question")
            expect(page.get_by_role("status")).to_contain_text("Thank you")
        with self.step("ask what nobody answers, twice"):
            for question in (UNANSWERED, AGAIN):
                self.ask(question)
            shot("page-none")
        with self.step("inbox: a group becomes a new entry"):
            page.goto(f"{self.url}/desk#inbox")
            group = page.locator("article.group").filter(has_text="bicycle").first
            expect(group).to_be_visible()
            shot("desk-inbox")
            group.get_by_role("button", name="New entry").click()
            self._clicks += 1
            group.get_by_label("Answer (").fill("Yes: at our shop, for **10 euros** a day.")
            self.click("Save")
            expect(page.locator("#told")).to_contain_text("new entry")
        with self.step("inbox: the other group is assigned to an answer"):
            page.locator("article.group").filter(has_text=PHRASED).get_by_role("button", name="Assign").first.click()
            self._clicks += 1
            expect(page.locator("#told")).to_contain_text("ssigned")
        with self.step("refit, before and after"):
            self.click("Refit", "link")
            self.click("Refit and compare")
            expect(page.get_by_role("button", name="Promote")).to_be_visible(timeout=120_000)
            shot("desk-refit")
        with self.step("promote"):
            self.click("Promote")
            expect(page.locator("#told")).to_contain_text("Promoted")
        with self.step("the new entry is found"):
            page.goto(self.url)
            self.ask("can I rent a bicycle")
            expect(page.locator("#results")).to_contain_text("at our shop, for 10 euros")
        with self.step("an entry is removed, and stays removed after a refit"):
            page.goto(f"{self.url}/desk#entries")
            page.get_by_label("Search entries").fill("10 euros")
            expect(page.locator("tbody tr")).to_have_count(1)
            shot("desk-entries")
            page.get_by_role("button", name="Remove").first.click()
            self._clicks += 1
            expect(page.locator("#told")).to_contain_text("Removed")
            expect(page.get_by_role("button", name="Undo")).to_be_focused()  # the keyboard goes on from there
            self.click("Refit", "link")
            self.click("Refit, use if not worse")
            expect(page.get_by_text("Learning")).to_be_visible()
            expect(page.get_by_text("In use.")).to_be_visible(timeout=120_000)
            page.goto(self.url)
            self.ask("can I rent a bicycle")
            expect(page.locator("#results")).not_to_contain_text("at our shop, for 10 euros")


@contextmanager
def launched() -> Iterator[Browser]:
    """Debian's chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """`matchloom serve` of a folder with everything that the desk has; its address."""
    command = [sys.executable, "-m", "matchloom", "serve", "faq", "--writable", "--no-refit", "--port", "0"]
    command += ["--log-questions", "asked.jsonl", "--allow-origin", "http://127.0.0.1:8901", "--title", "Shop help"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(line.split()[1].rstrip("/") for line in process.stderr if line.startswith("Ready: "))
            Thread(target=process.stderr.read, daemon=True).start()  # its log must not stop it
            yield address
        finally:
            process.terminate()


@contextmanager
def another_site(service: str) -> Iterator[str]:
    """A page of another site that has the widget."""
    page = f"""<!doctype html><html lang=en><title>A shop</title><meta name=viewport content="width=device-width">
<h1>A shop</h1><p>Welcome.</p><script src="{service}/widget.js" data-title="Questions?" defer></script></html>"""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 8901), Site)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield "http://127.0.0.1:8901/"
    finally:
        server.shutdown()


def axe_findings(page: Page, axe: Path | None) -> list[str]:
    """What axe-core finds serious or critical on a page."""
    if axe is None:
        return []
    page.evaluate(axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:120]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def looked_at(browser: Browser, url: str, shots: Path | None, axe: Path | None) -> dict[str, Any]:
    """Every page, light and dark, wide and on a phone: screenshots, and what axe-core finds."""
    views: dict[str, tuple[str, Callable[[Page], None]]] = {
        "page": ("", lambda page: expect(page.locator("#examples button").first).to_be_visible()),
        "answer": ("#q=how+can+I+track+my+parcel", lambda page: expect(page.locator(".because")).to_be_visible()),
        "none": ("#q=xylophone+lessons+in+tibet", lambda page: expect(page.locator("#results .none")).to_be_visible()),
        "entries": ("desk#entries", lambda page: expect(page.locator("tbody tr").first).to_be_visible()),
        "inbox": ("desk#inbox", lambda page: expect(page.locator("#view .tools")).to_be_visible()),
        "quality": ("desk#quality", lambda page: expect(page.locator(".fact").first).to_be_visible()),
        "refit": ("desk#refit", lambda page: expect(page.locator("#view h2")).to_be_visible()),
        "changes": ("desk#changes", lambda page: expect(page.locator("tbody tr").first).to_be_visible()),
        "lab": ("lab#q=parcel", lambda page: expect(page.locator(".card").first).to_be_visible()),
    }
    found: dict[str, Any] = {}
    with another_site(url) as site:
        for scheme, size in (
            ("light", (1200, 850)),
            ("dark", (1200, 850)),
            ("light", (390, 800)),
            ("dark", (390, 800)),
        ):
            for name, (path, ready) in [*views.items(), ("widget", (site, _open_widget))]:
                page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)  # type: ignore[arg-type]
                wrong: list[str] = []
                page.on("pageerror", partial(_note, wrong))
                page.goto(path if path.startswith("http") else f"{url}/{path}")
                ready(page)
                label = f"{name} {scheme} {'phone' if size[0] < 500 else 'wide'}"
                wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                found[label] = [
                    *wrong,
                    *axe_findings(page, axe),
                    *([f"scrolls sideways by {wide} pixels"] if wide > 0 else []),
                ]
                if shots is not None:
                    page.screenshot(path=shots / f"{label.replace(' ', '-')}.png")
                page.close()
    return found


def _shot(page: Page, shots: Path | None, name: str) -> None:
    if shots is not None:
        page.screenshot(path=shots / f"story-{name}.png")


def _note(wrong: list[str], error: object) -> None:
    wrong.append(str(error))


def _open_widget(page: Page) -> None:
    page.get_by_role("button", name="Questions?").click()
    page.get_by_label("Your question").fill("how can I track my parcel")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".answer").first).to_be_visible()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=places.RESULTS / "day_two.json")
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--axe", type=Path, help="axe.min.js of npm's axe-core")
    options = parser.parse_args()
    if options.screenshots is not None:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    faq = Path(__file__).parents[2] / "docs" / "examples" / "shop.json"
    with tempfile.TemporaryDirectory() as name, launched() as browser:
        folder, start = Path(name), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "matchloom", "fit", str(faq), "--out", "faq"], cwd=folder, check=True,
            capture_output=True, env={**os.environ, "MATCHLOOM_PROGRESS": "0"},
        )  # fmt: skip
        fitted = time.perf_counter() - start
        with serving(folder) as url:
            served = time.perf_counter() - start - fitted
            page = browser.new_page(viewport={"width": 1200, "height": 850})
            story = Story(page, url)
            story.tell(partial(_shot, page, options.screenshots))
            page.close()
            found = looked_at(browser, url, options.screenshots, options.axe)
    steps = [{"step": "fit", "seconds": round(fitted, 1)}, {"step": "serve", "seconds": round(served, 1)}, *story.steps]
    result = {
        "commit": commit(),
        "data": "docs/examples/shop.json",
        "steps": steps,
        "clicks": sum(one.get("clicks", 0) for one in steps),
        "seconds": round(sum(one["seconds"] for one in steps), 1),
        "axe": None if options.axe is None else {name: own for name, own in found.items() if own},
        "pages": len(found),
    }
    for one in steps:
        print(f"| {one['step']} | {one.get('clicks', '')} | {one['seconds']} |")
    print(
        f"{result['clicks']} clicks, {result['seconds']} s; {result['pages']} pages, serious findings: {result['axe']}"
    )
    with atomic_write(options.out) as file:
        file.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
