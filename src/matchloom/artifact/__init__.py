"""A folder that is saved, checksummed, locked and loaded: the same way for whatever it holds."""

from matchloom.artifact.checks import WRONG, as_saved
from matchloom.artifact.kinds import KINDS, kind_of, load
from matchloom.artifact.lock import is_written, try_lock, writing
from matchloom.artifact.manifest import holds, settings_of
from matchloom.artifact.save import Saveable, remove, write
from matchloom.artifact.saved import Saved, read
from matchloom.artifact.tensors import packed

__all__ = [
    "KINDS",
    "WRONG",
    "Saveable",
    "Saved",
    "as_saved",
    "holds",
    "is_written",
    "kind_of",
    "load",
    "packed",
    "read",
    "remove",
    "settings_of",
    "try_lock",
    "write",
    "writing",
]
