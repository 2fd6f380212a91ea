"""What is published says what is so: versions, bounds, workflows. Building and installing is `make wheels` and CI's."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def pinned(name: str) -> dict[str, str]:
    """The versions of a constraints file by the packages' names."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {normal(package): version for package, version in found}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def test_the_lowest_versions_are_the_lower_bounds() -> None:
    bounds = dict(one.partition(",")[0].split(">=") for one in PROJECT["dependencies"])
    assert pinned("constraints-lowest.txt") == {normal(name): version for name, version in bounds.items()}


def test_every_dependency_has_an_exact_version() -> None:
    known = pinned("constraints.txt")
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(one for brings in extras.values() for one in brings)]
    names = {normal(re.split(r"[<>=\[]", one)[0]) for one in wanted} - {"matchloom"}
    assert names <= set(known), sorted(names - set(known))


def test_the_lock_has_the_core_as_it_is_tested_each_file_by_its_digest() -> None:
    lines = (ROOT / "packaging" / "core.lock").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    locked = {}
    for line in lines:
        if not line.startswith("#"):
            named, _, digests = line.partition(" --hash=")
            package, version = named.partition(";")[0].split("==")
            locked[normal(package.strip())] = version.strip()
            assert re.fullmatch(r"(sha256:[0-9a-f]{64}(\s+--hash=)?)+", digests.strip()), package
    known = pinned("constraints.txt")
    assert {normal(re.split(r"[<>=\[]", one)[0]) for one in PROJECT["dependencies"]} <= set(locked)
    assert {name: known.get(name, version) for name, version in locked.items()} == locked


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert f"## {PROJECT['version']} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_is_there(path: Path) -> None:
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert told["permissions"] == {"contents": "read"}, "no more than a job needs"
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for job in told["jobs"].values():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert job["timeout-minutes"] <= 30
        for step in job["steps"]:
            for target in re.findall(r"\bmake (\w+)", step.get("run", "")):
                assert target in targets
            for script in re.findall(r"(?:packaging|\.ci)/\S+", step.get("run", "")):
                assert (ROOT / script).is_file(), script
            assert re.fullmatch(r"[\w/-]+@(v\d+|release/v\d+)", step.get("uses", "a@v1")), step


def test_a_release_is_refused_while_there_is_no_address() -> None:
    assert r"! grep '\.example' pyproject.toml" in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


def nav_pages(entries: object) -> list[str]:
    """The files that a navigation names."""
    if isinstance(entries, str):
        return [entries]
    parts = entries.values() if isinstance(entries, dict) else entries
    assert isinstance(parts, Iterable)
    return [page for part in parts for page in nav_pages(part)]


def test_the_site_has_every_page() -> None:
    named = nav_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    docs = ROOT / "docs"
    found = {path.relative_to(docs).as_posix() for path in (*docs.glob("*.md"), *(docs / "guides").glob("*.md"))}
    assert set(named) == found, "name it in mkdocs.yml"
    assert len(named) == len(set(named))


def test_links_of_the_built_site_are_checked(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#x">b</a><a href="c.html">c</a><img src="https://far.org/p.png">')
    (tmp_path / "b.html").write_text('<h1 id="y">b</h1><a href="https://far.org">far</a>')
    command = [sys.executable, ROOT / "packaging" / "check_site.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "a.html links to b.html#x: no such section",
        "a.html links to c.html, which is not there",
        "a.html fetches https://far.org/p.png",
        "2 pages, 4 links, 3 wrong",
    ]
