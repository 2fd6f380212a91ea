"""docs/examples/postgres.py against a PostgreSQL of its own, where it and psycopg are installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from matchloom import Collection
from matchloom.search.behind import BehindEngine

psycopg = pytest.importorskip("psycopg")
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
FOUND = shutil.which("pg_ctl") or (str(BINARIES[-1]) if BINARIES else None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(FOUND is None, reason="PostgreSQL is not installed")]
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "postgres.py"
ANSWERS = {
    "password": "Open Settings, choose Security, then Reset password. A link is sent to your address.",
    "invoice": "Companies can pay by invoice. Ask sales for an account.",
    "parcel": "The link in your mail shows where your parcel is.",
    "link": "A link link link link that answers nothing at all.",
}


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A server on a socket of its own folder; it runs as nobody's superuser."""
    assert FOUND is not None
    user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="pg") as home:
        if user:
            shutil.chown(home, "postgres", "postgres")
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}

        def run(*command: str) -> None:
            quiet: Any = {"check": True, "cwd": home, "env": environment, "stdout": subprocess.DEVNULL, "timeout": 60}
            subprocess.run([str(Path(FOUND).parent / command[0]), *command[1:]], **quiet, **user)

        run("initdb", "-D", f"{home}/data", "-U", "matchloom", "-A", "trust", "-E", "UTF8")
        run("pg_ctl", "-D", f"{home}/data", "-w", "-l", f"{home}/log", "-o", f"-k {home} -h ''", "start")
        try:
            yield f"host={home} user=matchloom dbname=postgres"
        finally:
            run("pg_ctl", "-D", f"{home}/data", "-m", "immediate", "stop")


def test_the_example_answers(database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("postgres_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    Collection.create(tmp_path / "faq", [("I forgot my password", ANSWERS["password"]), ("parcel?", ANSWERS["parcel"])])
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE answers (id text, text text, url text)")
        connection.execute("CREATE INDEX ON answers USING gin (to_tsvector('english', text))")
        with connection.cursor() as cursor:
            rows = [(name, text, f"/{name}") for name, text in ANSWERS.items()]
            cursor.executemany("INSERT INTO answers VALUES (%s, %s, %s)", rows)
        find = example.finder(connection)
        question = "the link to reset my password"
        first = [one["id"] for one in find(question, 10)]
        assert set(first) == {"password", "parcel", "link"}  # any word may match, and nothing else is a candidate
        engine = BehindEngine(find, Collection.open(tmp_path / "faq"))
        assert engine.search(question)[0].id == "password"
        for odd in ("", "' | ) ( & !", "the of and", "a\0b", "😀", "o'neil", "http://a.b/c?d=e&f:g*", "x:*", "\\"):
            assert find(odd, 10) == []
    example.main(database, str(tmp_path / "faq"), question)
    assert capsys.readouterr().out.splitlines()[0].endswith("/password")
