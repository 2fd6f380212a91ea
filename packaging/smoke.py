"""What every install must be able to do, each step in a process of its own: `python packaging/smoke.py`, by its Python.

fit, search, add, remove, serve (page, API, client, SIGTERM). Prints the seconds of each; needs nothing but the package.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

THINGS = {
    "my password": "Open Settings, choose Security, then Reset password.",
    "an invoice": "Invoices are sent by mail on the first of each month.",
    "a parcel": "Parcels leave our house within two days.",
    "the account": "Write to us and the account is closed.",
    "a voucher": "Type its code into the field below the basket.",
}
ASKS = ("how do I change", "I have lost", "what about", "where is", "I need help with", "tell me about")


def step(name: str, *arguments: str, within: float = 300) -> str:
    """Run one command, tell how long it took, and return what it printed."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "matchloom", *arguments], capture_output=True, text=True, timeout=within, check=False
    )
    if done.returncode:
        sys.exit(f"{name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{name:14} {time.perf_counter() - began:6.2f} s")
    return done.stdout


def serve() -> None:
    """Start a service, ask it over HTTP and by the client, and end it by SIGTERM."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "matchloom", "serve", "faq", "--port", str(port), "--no-feedback"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"{url}/ready", timeout=2):
                    break
            except OSError:
                time.sleep(0.1)
        body = json.dumps({"question": "lost parcel"}).encode()
        asked = urllib.request.Request(f"{url}/v1/search", body, {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert "Parcels" in json.load(answer)["answers"][0]["text"]
        print(f"{'serve, answer':14} {time.perf_counter() - began:6.2f} s")
        with urllib.request.urlopen(url, timeout=30) as page:
            assert b"<title>" in page.read()
        from matchloom.client import Client

        with Client(url) as service:
            assert "Parcels" in service.search("lost parcel", top=1)[0].text
        began = time.perf_counter()
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) in (0, -signal.SIGTERM), child.returncode
        print(f"{'SIGTERM':14} {time.perf_counter() - began:6.2f} s")
    finally:
        child.kill()


def main() -> None:
    """All steps, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = [f"{ask} {thing}\t{answer}\n" for thing, answer in THINGS.items() for ask in ASKS]
        Path("faq.tsv").write_text("question\tanswer\n" + "".join(rows), encoding="utf-8")
        step("version", "--version")
        step("fit", "fit", "faq.tsv", "--out", "faq", "--encoder", "none")
        assert "Parcels" in step("first answer", "search", "faq", "lost parcel", "--top", "1", "--explain")
        step("add", "add", "faq", "--question", "a lost key", "--answer", "Call us.", "--id", "key")
        step("remove", "remove", "faq", "key")
        step("check", "check", "faq.tsv")
        serve()
    from importlib.util import find_spec

    print("not installed:", ", ".join(name for name in ("torch", "pyarrow", "lancedb") if find_spec(name) is None))


if __name__ == "__main__":
    main()
