"""Damaged data files of every format, through their readers and now and then through a command."""

from __future__ import annotations

import gzip
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matchloom import read_pairs
from matchloom.cli.reading import read_texts
from matchloom.data.formats import read_qrels, read_run, write_pairs
from matchloom.text.vectors import read_vectors
from matchloom.types import Pair
from tests.hostile.damage import mutated
from tests.hostile.trying import Refused, run_command, told

SHEETS = Path(__file__).parents[1] / "data" / "formats" / "files"
PAIRS = [
    Pair(f"how is cloth {n} woven", f"on a loom, \"said\" the weaver {n}; naïve 护照", n % 2, f"q{n // 2}", f"t{n}")
    for n in range(12)
]  # fmt: skip
READERS: dict[str, Callable[[Path], Any]] = {
    **dict.fromkeys(
        (
            *("p.tsv", "p.csv", "p.jsonl", "p.json", "p.parquet", "p.tsv.gz", "p.csv.gz", "p.jsonl.gz"),
            *("p.xlsx", "p.ods", "p.md", "p.html", "p.zip"),
        ),
        lambda path: list(read_pairs(path, graded=True)),
    ),
    "a.run": lambda path: list(read_run(path)),
    "a.qrels": lambda path: list(read_qrels(path)),
    "v.txt": lambda path: read_vectors(path),
    "v.txt.gz": lambda path: read_vectors(path),
    "c.txt": read_texts,
}


class DataFiles:
    """Every format that is read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("p.tsv", "p.csv", "p.jsonl", "p.json", "p.parquet"):
            if name in ("p.tsv", "p.jsonl", "p.csv"):
                write_pairs(folder / name, PAIRS)
        plain = (folder / "p.jsonl").read_bytes()
        (folder / "p.json").write_bytes(b"[" + b",".join(plain.splitlines()) + b"]")
        _write_parquet(folder / "p.parquet")
        for name in ("p.xlsx", "p.ods"):
            shutil.copy(SHEETS / f"libreoffice{Path(name).suffix}", folder / name)
        (folder / "p.md").write_text("".join(f"## {pair.query}?\n\n{pair.text}\n" for pair in PAIRS))
        (folder / "p.html").write_text("".join(f"<h2>{pair.query}?</h2><p>{pair.text}</p>\n" for pair in PAIRS))
        with zipfile.ZipFile(folder / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in ("p.csv", "p.md", "p.jsonl"):
                archive.write(folder / name, f"sub/{name}")
        lines = [f"q{n // 2} Q0 t{n} {n % 2 + 1} {1 / (n + 1)} tag" for n in range(12)]
        (folder / "a.run").write_text("\n".join(lines) + "\n")
        (folder / "a.qrels").write_text("".join(f"q{n // 2} 0 t{n} {n % 2}\n" for n in range(12)))
        words = ["loom", "cloth", "weaver", "naïve"]
        (folder / "v.txt").write_text("4 3\n" + "".join(f"{w} 0.1 -0.5 {n}e-3\n" for n, w in enumerate(words)))
        (folder / "c.txt").write_text("".join(f"{pair.text}\n" for pair in PAIRS))
        self._content = {name: (folder / name.removesuffix(".gz")).read_bytes() for name in READERS}

    def attempt(self, rng: random.Random) -> None:
        """Read one that came to harm; a file that is whole is read as it is."""
        name = rng.choice(sorted(READERS))
        content = self._content[name]
        if name.endswith(".gz"):
            inside = rng.random() < 0.5
            content = gzip.compress(mutated(content, rng) if inside else content, mtime=0)
            content = content if inside else mutated(content, rng)
        else:
            content = mutated(content, rng)
        path = self._folder / f"bad.{name.partition('.')[2]}"
        path.write_bytes(content)
        found = told(lambda: READERS[name](path))
        if isinstance(found, Refused):
            assert str(path) in found.message, found
        if rng.random() < 0.05 and name.startswith("p."):
            run_command(["score", "bm25", str(path)])


def _write_parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist([pair._asdict() for pair in PAIRS]), path)
