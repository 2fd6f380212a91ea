"""Ways in which files and folders come to harm, drawn from a seed."""

from __future__ import annotations

import random
from pathlib import Path

TOKENS = [
    b"\0", b"\xff", b"\x1b[2J", b"\r\n", b"\n", b"\t", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"\\", b"-1",
    b"1e999", b"NaN", b"null", b"true", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xae", b"\xed\xa0\x80", b"PAR1",
    b"\x1f\x8b\x08", b"9" * 400, b"[" * 3000, b"\\ud800", b"\\u0000", b"label", b"query\ttext\n",
]  # fmt: skip


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A file's content, after one to four accidents."""
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(made) + 1)
        end = min(len(made), at + rng.choice((1, 2, 8, 64, 1000)))
        what = rng.randrange(9)
        if what < 3 and made:
            at = min(at, len(made) - 1)
            made[at] ^= 1 << rng.randrange(8)
        elif what == 3:
            del made[at:]
        elif what == 4:
            del made[at:end]
        elif what == 5:
            made[at:at] = made[at:end] * rng.choice((1, 2, 50))
        elif what == 6:
            made[at:end] = rng.randbytes(end - at)
        elif what == 7:
            made[at:at] = rng.choice(TOKENS)
        else:
            made[at:end] = rng.choice(TOKENS)
    return bytes(made)


def files_under(folder: Path) -> list[Path]:
    """The files of a folder, by the folder they are in and in the order of writing: LanceDB draws their names."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(
        found, key=lambda path: (path.relative_to(folder).parts[:2][:-1], path.stat().st_mtime_ns, path.suffix)
    )


def damage(folder: Path, rng: random.Random) -> str:
    """Harm one file of a folder: flip a bit, cut it, delete it, or add another beside it. What was done."""
    path = rng.choice(files_under(folder))
    content = path.read_bytes()
    name = path.relative_to(folder).as_posix()
    what = rng.choice(("flip", "flip", "flip", "cut", "delete", "add"))
    if what == "flip" and content:
        made = bytearray(content)
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
        path.write_bytes(made)
    elif what == "cut" and content:
        path.write_bytes(content[: rng.randrange(len(content))])
    elif what == "delete":
        path.unlink()
    else:
        what = "add"
        new = rng.choice((f"{2**64 - 1 - rng.randrange(1, 30):020}.manifest", f"x{path.name}", "zz"))
        path.with_name(new).write_bytes(content if rng.random() < 0.5 else rng.randbytes(rng.randrange(200)))
    return f"{what} {name}"
