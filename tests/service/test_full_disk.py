"""No room on the disk: what cannot be written down is refused with 507 and not done; what was done is told as done."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from matchloom import Collection
from matchloom.service.desk.desk import DeskOptions
from matchloom.service.refits import Order, Result, _keep_result, result_of
from matchloom.types import MatchloomError
from tests.service.making import ask, code_of, make_app


@pytest.fixture
def app(served: Path, tmp_path: Path) -> FastAPI:
    shutil.copytree(served / "faq", tmp_path / "faq")
    desk = DeskOptions(audit=tmp_path / "audit.jsonl")
    return make_app(tmp_path, "faq", writable=True, feedback=tmp_path / "thumbs.jsonl", desk=desk)


def full(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


def test_an_import_needs_room(app: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"content": "question,answer\nwhere is it,There.\n"}
    for module, name in ((tempfile, "mkdtemp"), (Path, "open")):
        with monkeypatch.context() as filled:
            filled.setattr(module, name, full)
            assert code_of(ask(app, "/v1/collections/faq/import", content)) == (507, "unwritable")
    assert ask(app, "/v1/collections/faq/import", content).json()["new"] == 1


def test_a_thumb_needs_room(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"question": "a", "id": "password", "label": 1}
    with monkeypatch.context() as filled:
        filled.setattr("os.fsync", full)
        assert code_of(ask(app, "/v1/feedback", asked)) == (507, "unwritable")
    assert ask(app, "/v1/feedback", asked).json() == {"kept": True}


def test_a_promotion_is_written_down_or_not_done(app: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = Collection.open(tmp_path / "faq")
    collection.add([("where is it", "There.")])
    collection.refit(aside=True)
    desk = app.state.service.desk
    with monkeypatch.context() as filled:
        filled.setattr(desk.audit.file, "append", lambda *_, **__: unwritable())
        assert code_of(ask(app, "/v1/collections/faq/promote", {})) == (507, "unwritable")
    assert Collection.open(tmp_path / "faq").changed == 1
    with monkeypatch.context() as filled:  # the note of what became of it comes last, and is not needed
        filled.setattr("matchloom.service.refits.atomic_write", lambda *_: unwritable())
        assert ask(app, "/v1/collections/faq/promote", {}).json()["promoted"]
    assert Collection.open(tmp_path / "faq").changed == 0
    assert [one.action for one in desk.audit.records("faq")] == ["promote"]


def unwritable() -> Any:
    raise MatchloomError("it was not written: No space left on device", code="unwritable")


def test_a_refit_that_cannot_be_noted_is_done(
    app: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread ended with a traceback that was no line of the log."""
    service = app.state.service
    service.shelf.load()
    result = Result(**dict.fromkeys(Result.__struct_fields__))
    monkeypatch.setattr("matchloom.service.refits.atomic_write", lambda *_: unwritable())
    monkeypatch.setattr(service.desk.audit.file, "append", lambda *_, **__: unwritable())
    _keep_result(tmp_path / "faq", result)
    assert result_of(tmp_path / "faq") is None
    with caplog.at_level(logging.WARNING, logger="matchloom.service"):
        service.refits.when_done(service.shelf.systems["faq"], Order(), result)
    assert [one.message for one in caplog.records] == ["not written down"]
