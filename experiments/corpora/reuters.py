"""Reuters stories for sentence completion (Hu et al., NIPS 2014): which second clause ends this first one?

Stories come as Reuters-21578 (`.sgm`, pseudo-SGML in latin-1) or as plain text (`.txt`, such as Reuters C50).
"""

from __future__ import annotations

import gzip
import html
import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import regex

from matchloom.basics.files import atomic_write
from matchloom.data.identity import normalize_text, with_ids
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

_SHORTEST, _LONGEST = 8, 28
_WORDS = Tokenizer("english")
_STORY = regex.compile(r'<REUTERS [^>]*NEWID="(\d+)"[^>]*>.*?</REUTERS>', regex.DOTALL)
_BODY = regex.compile(r"<BODY>(.*?)</BODY>", regex.DOTALL)
_PARAGRAPH = {".sgm": regex.compile(r"\n(?=    )"), ".txt": regex.compile(r"\n")}
_BLANK = regex.compile(r"[\s\p{Cc}]+")
_CLAUSE_END = regex.compile(r",(?!\d)")  # the comma of 1,000 parts no clauses
_SIGNATURE = regex.compile(r"\s*\breuter\s*$", regex.IGNORECASE)
# A sentence ends at . ! ? (and closing quotes) before a capital or a digit, but not at an initial or a common title.
_SENTENCE_END = regex.compile(
    r"(?<!\b(?:\p{Lu}|Mr|Mrs|Ms|Dr|St|Gen|Sen|Rep|Gov|Inc|Co|Corp|Ltd|No|vs|Jan|Feb|Aug|Sept|Oct|Nov|Dec)\.)"
    r"(?<=[.!?][\"')]*)\s+(?=[\"'(]*[\p{Lu}\d])"
)


def read_reuters(path: Path | str) -> list[Pair]:
    """Read sentences of two clauses as positive pairs (first clause, second clause), each sentence once.

    `path` is a folder or a tar archive (plain or compressed) with `.sgm` files or, where there is none, `.txt` files.
    A sentence counts if it has exactly one comma and 8 to 28 words on both sides of it. The group is the story; a
    sentence found in several belongs to the first by name.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    for story, text, paragraph in _stories(Path(path)):
        for first, second in _two_clauses(text, paragraph):
            key = normalize_text(first), normalize_text(second)
            pairs.setdefault(key, Pair(first, second, 1.0, group=story))
    return list(with_ids(pairs.values()))


def write_reuters(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write the stories of a folder or archive as `reuters21578.tar.gz` (`.sgm`) or `reuters_c50.tar.gz` (`.txt`).

    Args:
        source: The folder or archive of the stories.
        folder: The folder to write to, which is there.
    """
    files = list(_files(Path(source)))
    path = folder / ("reuters21578.tar.gz" if files[0][0].endswith(".sgm") else "reuters_c50.tar.gz")
    with (
        atomic_write(path, "wb") as stream,
        gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as zipped,  # the same stories give the same bytes
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return {path: len(files)}


def _two_clauses(story: str, paragraph: regex.Pattern[str]) -> Iterator[tuple[str, str]]:
    for lines in paragraph.split(_SIGNATURE.sub("", story)):
        for sentence in _SENTENCE_END.split(_BLANK.sub(" ", lines).strip()):
            if sentence.count(",") != 1:
                continue
            clauses = _CLAUSE_END.split(sentence)
            if len(clauses) == 2 and all(_SHORTEST <= len(_WORDS(clause)) <= _LONGEST for clause in clauses):
                yield clauses[0].strip(), clauses[1].strip()


def _stories(path: Path) -> Iterator[tuple[str, str, regex.Pattern[str]]]:
    """Name, text and paragraph mark of each story, in the order of names."""
    for name, raw in _files(path):
        try:
            if name.endswith(".sgm"):
                for story in _STORY.finditer(raw.decode("latin-1")):
                    for body in _BODY.findall(story[0]):
                        yield story[1], html.unescape(body), _PARAGRAPH[".sgm"]
            else:
                yield name, html.unescape(raw.decode("utf-8")), _PARAGRAPH[".txt"]
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise MatchloomError(f"{path}: {name}, line {line}: not UTF-8; convert the file to UTF-8") from None


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each story file of a folder or archive, by name."""
    try:
        if path.is_dir():
            found = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
            for name in _chosen(path, list(found)):
                yield name, found[name].read_bytes()
            return
        contents = {}
        with tarfile.open(path) as archive:
            for member in archive:  # in the archive's order: to jump about in a compressed file takes minutes
                if stream := archive.extractfile(member):
                    contents[member.name] = stream.read()
        for name in _chosen(path, list(contents)):
            yield name, contents[name]
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise MatchloomError(f"{path}: not a folder or a whole tar archive ({error}); fetch the file again") from None
    except OSError as error:
        raise MatchloomError(f"{path}: cannot be read ({error.strerror or error}); check the path") from None


def _chosen(path: Path, names: list[str]) -> list[str]:
    for ending in (".sgm", ".txt"):
        if chosen := sorted(name for name in names if name.endswith(ending)):
            return chosen
    raise MatchloomError(f"{path}: no .sgm and no .txt file in it; give the folder or archive of the stories")
