"""docs/service.md, the Dockerfile and the systemd unit say what is so; what is shown is run."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchloom.cli.commands import load
from tests.service.making import make_app, running
from tests.test_documents import Block, blocks

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "service.md"
SHOWN = list(blocks(DOCUMENT))
OTHERS = list(blocks(ROOT / "docs" / "integrations.md"))
CURL = [block for block in [*SHOWN, *OTHERS] if block.language == "curl"]


@pytest.fixture(scope="module")
def url(served: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("shown")
    for name in ("faq", "mv", "tickets"):
        shutil.copytree(served / name, folder / name)
    app = make_app(folder, "faq", "mv", "tickets", writable=True, feedback=folder / "thumbs.jsonl")
    with running(app) as address:
        yield address


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: its examples were not run")
def test_curl_examples(url: str) -> None:
    for block in CURL:  # in their order: one finds what the one before has put there
        _runs(block, url)


def _runs(block: Block, url: str) -> None:
    command = shlex.split(block.source.replace("\\\n", " ").replace("localhost:8000", url.removeprefix("http://")))
    done = subprocess.run([*command, "--silent", "--fail-with-body"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"line {block.line}: {done.stdout}"
    if "format=csv" in block.source:
        assert len(list(csv.DictReader(done.stdout.splitlines()))) > 1
    else:
        assert isinstance(json.loads(done.stdout), dict | list)  # texts that are reranked come as a list


def test_every_route_for_programs_is_shown_or_named(url: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert len(CURL) >= 8
    for route in ("/v1/reload", "/health", "/ready", "/metrics", "/openapi.json"):
        assert route in text


def test_the_codes_in_the_table_are_those_that_are_sent() -> None:
    table = DOCUMENT.read_text(encoding="utf-8").partition("**Limits.**")[2].partition("**Shares.**")[0]
    told = set()
    for row in table.splitlines():
        for status, codes in re.findall(r"(\d{3}) ((?:`\w+`(?:, )?)+)", row.rpartition(" | ")[2]):
            told |= {(status, code) for code in re.findall(r"`(\w+)`", codes)}
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "src" / "matchloom" / "service").rglob("*.py")]
    sent = {found for source in sources for found in re.findall(r'Refused\(\s*(\d{3}),\s*"(\w+)"', source)}
    sent |= set(re.findall(r'(\d{3}): "(\w+)"', (ROOT / "src/matchloom/service/app.py").read_text(encoding="utf-8")))
    assert sent == told


def test_the_python_example(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [block for block in SHOWN if block.language == "python"]
    exec(compile(block.source.replace("http://127.0.0.1:8000", url), "service.md", "exec"), {})
    assert "Reset password" in capsys.readouterr().out


def test_the_commands_and_options_that_are_shown_exist() -> None:
    serve = {name for parameter in load("serve").params for name in parameter.opts}
    text = DOCUMENT.read_text(encoding="utf-8")
    for option in re.findall(r"`(--[a-z-]+)`", text):
        assert option in serve, option


def test_the_image_is_small_safe_and_whole() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    told = [
        (line.split(maxsplit=1)[0], line.split(maxsplit=1)[1])
        for line in lines
        if line and not line.startswith(("#", " "))
    ]
    said = dict(told)
    assert said["USER"] != "root"
    assert [value.partition(" ")[0] for name, value in told if name == "FROM"] == ["${BASE}"] * 2
    assert ("ARG", "BASE=debian:bookworm-slim") in told
    assert "/ready" in said["HEALTHCHECK"]
    for name, value in told:
        if name == "COPY" and not value.startswith("--from"):
            assert all((ROOT / source).exists() for source in value.split()[:-1])
    entry = json.loads(said["ENTRYPOINT"])
    assert entry[:2] == ["matchloom", "serve"]
    serve = {name for parameter in load("serve").params for name in parameter.opts}
    assert {part for part in entry if part.startswith("--")} <= serve


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here: the unit was not checked"
)
def test_the_unit_is_one(tmp_path: Path) -> None:
    (block,) = [block for block in SHOWN if block.title == "matchloom.service"]
    unit = tmp_path / "matchloom.service"
    unit.write_text(block.source.replace("/opt/matchloom/bin/matchloom", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
