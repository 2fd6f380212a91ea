"""Without the extras: the core does what it promises, all else says in one line what to install. Packages are made
absent by a finder in a process of its own, so that nothing here depends on what is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import matchloom
from matchloom.basics import extras
from matchloom.basics.extras import EXTRAS, WITH_TORCH, MissingExtraError, install_command, missing, need
from matchloom.types import MatchloomError
from tests.test_imports import FAQ, LISTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
START = """
import contextlib, io, sys
import matchloom
from matchloom.cli import main

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

def works(*arguments):
    assert main(list(arguments)) == 0, arguments

def refused(extra, *arguments):
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        assert main(list(arguments)) == 2, arguments
    line = told.getvalue().strip().splitlines()[-1]
    assert line.startswith("matchloom: error: ") and f"[{extra}]" in line and "pip install" in line, line

def raises(extra, call):
    try:
        call()
    except ImportError as error:
        assert isinstance(error, ValueError) and error.code == "needs_extra" and f"[{extra}]" in str(error), error
    else:
        raise AssertionError("nothing was missing")
"""
CORE = """
works("import", "faq.tsv", "--out", "faq.csv")
works("check", "faq.csv")
works("fit", "faq.csv", "--out", "faq")
works("search", "faq", "lost parcel", "--top", "2", "--explain")
works("add", "faq", "--question", "a lost key", "--answer", "Call us.", "--id", "key")
works("remove", "faq", "key")
works("refit", "faq")
works("doctor", "faq")
works("report", "faq")
works("evaluate", "faq", "faq.tsv")
works("explain", "bm25", "lost parcel", "a parcel is lost")
works("mine", "faq.tsv", "--out", "mined.tsv", "--count", "1")
works("models")
works("encoders")
from matchloom.service import create_app
from matchloom.service.systems import Folder
create_app([Folder.of("faq")]).state.service.shelf.load()
import matchloom.client
"""
NETWORKS = """
refused("networks", "train", "faq.tsv", "--out", "runs")
refused("networks", "fit", "lists.tsv", "--out", "lists", "--kind", "lists")
refused("networks", "compare", "lists.tsv", "--test", "lists.tsv", "--system", "bm25")
refused("networks", "vectors", "faq.tsv", "--out", "vectors.txt")
refused("networks", "models", "mv_lstm")
raises("networks", lambda: matchloom.train)
raises("networks", lambda: matchloom.Matcher)
raises("networks", lambda: matchloom.MODELS)
raises("networks", lambda: matchloom.compare)
raises("networks", lambda: matchloom.fit("lists.tsv", kind="lists"))
"""
ARCHIVE = """
refused("archive", "index", "tickets", "faq.tsv", "--store", "lance")
raises("archive", lambda: matchloom.Collection.create("tickets", "faq.tsv", store="lance"))
import pathlib
pathlib.Path("old").mkdir()
pathlib.Path("old/archive.json").write_text("{}")
raises("archive", lambda: matchloom.load("old"))
"""
ENCODER = """
refused("encoder", "encoders", "add", "all-MiniLM-L6-v2")
raises("encoder", lambda: matchloom.Collection.create("dense", "faq.tsv", encoder="elsewhere"))
"""
PARQUET = """
refused("parquet", "import", "faq.tsv", "--out", "faq.parquet")
class Frame:
    def __arrow_c_stream__(self, requested_schema=None): ...
raises("parquet", lambda: matchloom.fit(Frame()))
"""
ONNX = """
from matchloom.export.running import require_onnx
raises("onnx", require_onnx)
"""
PLOTS = """
from matchloom.basics.plots import check_plot
raises("plots", lambda: check_plot("x.png"))
"""
RAY = """
from matchloom.batch.on_ray import do_on_ray
raises("ray", lambda: list(do_on_ray(None, [], None)))
"""
INTEGRATIONS = {
    "langchain": "langchain_core",
    "llama-index": "llama_index",
    "haystack": "haystack",
    "pyterrier": "pyterrier",
    "mteb": "mteb",
    "mcp": "mcp",
}
IR_DATASETS = """
from matchloom.integrations.ir_datasets import entries_of
raises("ir-datasets", lambda: entries_of("vaswani"))
"""
# By pip's name, where it is another than that of the import.
CALLED = {
    "langchain_core": "langchain-core",
    "llama_index": "llama-index-core",
    "haystack": "haystack-ai",
    "pyterrier": "python-terrier",
    "ir_datasets": "ir-datasets",
}
PROGRAMS = {
    "core": (set(EXTRAS), CORE),
    "networks": ({"torch", "gensim", "tomotopy"}, NETWORKS),
    "archive": ({"lancedb", "pyarrow", "torch"}, ARCHIVE),
    "encoder": ({"torch", "tokenizers"}, ENCODER),
    "parquet": ({"pyarrow"}, PARQUET),
    "onnx": ({"onnx", "onnxruntime"}, ONNX),
    "plots": ({"matplotlib"}, PLOTS),
    "ir-datasets": ({"ir_datasets"}, IR_DATASETS),
    "ray": ({"ray"}, RAY),
    **{
        extra: (
            {package},
            f"import importlib\nname = 'matchloom.integrations.{extra.replace('-', '_')}'\n"
            f"raises({extra!r}, lambda: importlib.import_module(name))\n",
        )
        for extra, package in INTEGRATIONS.items()
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_absent_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "faq.tsv").write_text(FAQ)
    (tmp_path / "lists.tsv").write_text(LISTS)
    gone, program = PROGRAMS[name]
    done = subprocess.run(
        [sys.executable, "-c", f"GONE = {gone!r}\n{START}{program}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_extra_is_tried_and_the_project_has_it() -> None:
    known = PROJECT["optional-dependencies"]
    assert set(EXTRAS.values()) | {"core"} == set(PROGRAMS)
    for package, extra in EXTRAS.items():
        brought = {re.split(r"[<>=\[]", one)[0].lower() for one in known[extra]}
        assert CALLED.get(package, package) in brought or package == "lance", (package, extra)
    with_torch = {extra for extra, brings in known.items() if any(one.startswith("torch") for one in brings)}
    assert with_torch | {"all"} == set(WITH_TORCH)
    core = {re.split(r"[<>=\[]", one)[0].lower() for one in PROJECT["dependencies"]}
    assert not core & set(EXTRAS)


def test_public_names_say_which_extra_they_need() -> None:
    for name, extra in {"train": "networks", "compare": "networks", "Matcher": "networks", "fit": "encoder"}.items():
        assert f"`{extra}`" in (getattr(matchloom, name).__doc__ or ""), name
    for name in ("read_pairs", "load"):
        assert "extra `" in (getattr(matchloom, name).__doc__ or ""), name


class _Dist:
    def __init__(self, told: str | None) -> None:
        self.told = told

    def read_text(self, _: str) -> str | None:
        return self.told


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (None, "pip install 'matchloom[plots]'"),
        ('{"url": "file:///gone/away", "dir_info": {}}', "pip install 'matchloom[plots]'"),
        ('{"url": "file://%HERE%", "dir_info": {}}', "pip install '%HERE%[plots]'"),
        ('{"url": "file://%HERE%", "dir_info": {"editable": true}}', "pip install --editable '%HERE%[plots]'"),
        (
            '{"url": "https://example.org/x.git", "vcs_info": {"vcs": "git"}}',
            "pip install 'matchloom[plots] @ git+https://example.org/x.git'",
        ),
        ("{", "pip install 'matchloom[plots]'"),
    ],
)
def test_the_command_fits_how_it_was_installed(
    told: str | None, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(tmp_path)
    found = _Dist(told and told.replace("%HERE%", here))
    monkeypatch.setattr(extras, "distribution", lambda name: found)
    assert install_command("plots") == shown.replace("%HERE%", here)


def test_torch_is_told_with_the_index_of_its_small_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", none)
    monkeypatch.setattr(extras, "has", lambda package: False)
    assert install_command("networks").startswith("pip install --extra-index-url https://")
    assert install_command("networks").endswith(" 'matchloom[networks]'")
    assert "index" not in install_command("plots")
    assert isinstance(missing("torch"), MatchloomError)


def test_what_is_no_extra_stays_what_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught:
        need("no_such_package")
    assert not isinstance(caught.value, MissingExtraError)
