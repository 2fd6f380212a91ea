"""What is served: folders read as systems, each under a name, and read anew without a pause.

What reads a folder is imported when it is served: parts of `fit` bring scikit-learn, and a matcher torch, each of which
takes seconds.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import regex

from matchloom.artifact import kind_of, load
from matchloom.basics.stores import is_uri, shown
from matchloom.lexical import fit_scorer
from matchloom.publishing.replica import Replica
from matchloom.publishing.snapshot import NEWEST
from matchloom.service.encoded import EncodedCandidates
from matchloom.text.tokenize import Tokenizer
from matchloom.types import EncodesCandidates, Explains, MatchloomError, Pair, Scorer

if TYPE_CHECKING:
    from matchloom.fitting import Fitted
    from matchloom.search.collection import Collection
    from matchloom.search.lance.collection import LanceCollection

FITTED = "fitted"  # what clients are told of a fit; else the kind of the folder
BM25 = "bm25"  # beside every system, to be compared with; no folder may have this name
_NAME = regex.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PROBE = "how is this answered"


class Folder(NamedTuple):
    """A folder to serve, and the name it goes by; or what is published at a URI, of which a local copy is served."""

    name: str
    path: Path
    replica: Replica | None = None

    @classmethod
    def of(cls, given: str, copies: Path | None = None, key: bytes | None = None) -> Folder:
        """`FOLDER`, which goes by its own name, or `NAME=FOLDER`; a URI in its place is copied into `copies`."""
        name, equals, path = given.partition("=")
        if not equals or is_uri(given) or Path(given).exists():
            name, path = Path(shown(given)).resolve().name, given
        if not _NAME.fullmatch(name) or name == BM25:
            raise MatchloomError(
                f"{name!r} cannot be the name of {path}; expected letters, digits, '.', '_' and '-', and not {BM25!r}; "
                "give another as NAME=FOLDER",
                code="bad_value",
            )
        if not is_uri(path) and not (Path(path) / NEWEST).is_file():
            return cls(name, Path(path))
        home = (copies or _copies()) / f"{name}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"
        return cls(name, home, Replica(path, home, key))


def _copies() -> Path:
    """Where copies of what is published are kept, unless a place is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "matchloom" / "replicas"


@dataclass(eq=False)
class ServedSystem:
    """One folder as it was read: a fitted system, a matcher or an archive. A reload makes another.

    A collection and an archive follow what is written into their folders, by whomever.
    """

    name: str
    kind: str
    path: Path
    scorer: Scorer | None  # what scores given pairs; an archive without a matcher has none
    fitted: Fitted | None = None
    collection: Collection | None = None
    index: LanceCollection | None = None
    generation: int = 1
    loaded: float = field(default_factory=time.time)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _bm25: tuple[object, Scorer] | None = field(default=None, repr=False)
    _encoded: EncodedCandidates | None = field(default=None, repr=False)

    @property
    def tokenizer(self) -> Tokenizer:
        """How it cuts texts into words."""
        found = self.index.tokenizer if self.index is not None else getattr(self.fitted or self.scorer, "tokenizer", 0)
        return found if isinstance(found, Tokenizer) else Tokenizer()

    @property
    def answers(self) -> Collection | LanceCollection | None:
        """What is searched and changed, in either store."""
        return self.collection if self.index is None else self.index

    @property
    def searches(self) -> bool:
        """Whether it has answers of its own."""
        return self.answers is not None

    @property
    def explains(self) -> bool:
        """Whether it says why."""
        scorer = self.scorer if self.fitted is None else self.fitted.scorer
        return self.index is not None or isinstance(scorer, Explains)

    @property
    def encoded(self) -> EncodedCandidates | None:
        """Candidates encoded before, where a matcher ranks them."""
        matcher = self.scorer if self.fitted is None else self.fitted.scorer
        with self._lock:
            if self._encoded is None and isinstance(matcher, EncodesCandidates):
                self._encoded = EncodedCandidates(matcher)
            return self._encoded

    def bm25(self) -> Scorer:
        """Stemmed BM25 over this system's own answers, made when it is first asked for."""
        with self._lock:
            version = None if self.collection is None else self.collection.version
            if self._bm25 is None or self._bm25[0] != version:
                self._bm25 = (version, self._made_bm25())
            return self._bm25[1]

    def _made_bm25(self) -> Scorer:
        if self.collection is not None:
            from matchloom.search.baselines import BASELINES

            return BASELINES["bm25_stemmed"](self.collection.entries, self.tokenizer)
        if self.index is not None:
            return fit_scorer("bm25_stemmed", self.index.texts() or [""], tokenizer=self.tokenizer)
        raise MatchloomError(f"{self.name} has no answers in which {BM25} could count words", code="no_data")

    def about(self, *, writable: bool) -> dict[str, Any]:
        """What a client is told of it."""
        answers: Any = self.answers
        scorer, collection = self.scorer, self.collection
        return {
            "name": self.name,
            "kind": self.kind,
            "scorer": None if scorer is None else scorer.name,
            "scores": scorer is not None,
            "searches": self.searches,
            "explains": self.explains,
            "writable": writable and self.searches,
            "size": None if answers is None else len(answers),
            "changed": None if collection is None else collection.changed_since_report,
            "generation": self.generation,
        }


def read_system(folder: Folder, generation: int = 1) -> ServedSystem:
    """Read a folder and try it once, so that what is broken is refused here and the first request is no slower."""
    name, path, replica = folder
    if replica is not None:
        path = (replica.copy or replica.start()).folder
    kind, found = kind_of(path), cast(Any, load(path))
    if kind == "archive":
        made = ServedSystem(name, kind, path, found.matcher, index=found, generation=generation)
        found.search(_PROBE, top=1)
    elif kind == "fit":
        made = ServedSystem(name, FITTED, path, found, fitted=found, generation=generation)
    elif kind == "collection":
        told = kind if found.report is None else FITTED
        made = ServedSystem(name, told, path, found, collection=found, generation=generation)
        found.search(_PROBE, top=1)
    else:
        made = ServedSystem(name, str(kind), path, found, generation=generation)
        if kind == "matcher":
            found.refuse_if_unlearnt(str(path))
    if made.scorer is not None:
        made.scorer.score([Pair(_PROBE, "like this")])
    return made


class Reloaded(NamedTuple):
    """What became of systems that were to be read anew."""

    taken: list[str]
    refused: dict[str, str]  # why, by name; what was there goes on


class Shelf:
    """The systems by name. One that is replaced goes on for the requests that have it."""

    def __init__(self, folders: Sequence[Folder]) -> None:
        names = [folder.name for folder in folders]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise MatchloomError(
                f"two folders are named {min(twice)!r}; give one another name as NAME=FOLDER", code="conflict"
            )
        self.folders = {folder.name: folder for folder in folders}
        self.systems: dict[str, ServedSystem] = {}
        self._lock = threading.Lock()

    def find(self, name: str | None) -> ServedSystem | None:
        """The system of this name, or the first one."""
        return self.systems.get(name) if name else next(iter(self.systems.values()), None)

    @property
    def ready(self) -> bool:
        """Whether everything was read once."""
        return self.systems.keys() == self.folders.keys()

    def load(self) -> None:
        """Read everything; the first folder that cannot be read is an error."""
        with self._lock:
            for folder in self.folders.values():
                self.systems[folder.name] = read_system(folder)

    def reload(self, names: Sequence[str]) -> Reloaded:
        """Read some systems anew, all of them where none is named; a broken one is refused and the old one goes on."""
        taken, refused = [], {}
        with self._lock:
            for name in names or list(self.folders):
                try:
                    made = read_system(self.folders[name], self.systems[name].generation + 1)
                except Exception as error:
                    refused[name] = " ".join(str(error).split()) or type(error).__name__
                else:
                    self.systems[name] = made
                    taken.append(name)
        return Reloaded(taken, refused)
