"""Which pretrained encoder a fit may use."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from matchloom.encoders.library import Found, find_encoder, found_encoders

AUTO = "auto"


def encoder_for(wanted: Path | str | None, say: Callable[[str], None]) -> Found | None:
    """The encoder of this name or folder; the first that is found with "auto"; None with None."""
    if wanted is None:
        return None
    if wanted != AUTO:
        folder = find_encoder(wanted)
        return Found(folder.resolve().name, folder, "asked for")
    found = next(iter(found_encoders()), None)
    if found is None:
        return None
    if find_spec("tokenizers") is None:
        say(f"The pretrained encoder {found.name} is there, but not used: pip install 'matchloom[encoder]' for it.")
        return None
    say(f"The pretrained encoder {found.name} is found and tried, too; encoder 'none' leaves it out.")
    return found
