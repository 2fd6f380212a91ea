"""Pictures by matplotlib, which is an extra: one place that asks for it, checks a name's ending and writes whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchloom.basics.extras import need
from matchloom.basics.files import atomic_write
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("png", "svg", "pdf")


def check_plot(path: Path | str) -> None:
    """Refuse a picture that could not be written, before the work that it would show."""
    if _kind(path) not in KINDS:
        raise MatchloomError(f"the picture {path} must end in .png, .svg or .pdf", code="wrong_format")
    if not Path(path).absolute().parent.is_dir():
        raise MatchloomError(
            f"the picture {path} cannot be written: its folder is not there; make it first", code="unwritable"
        )
    need("matplotlib", f"the picture {path}")


def new_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches, which belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_plot(figure: Any, path: Path | str) -> None:
    """Write a figure in the format that its name ends with."""
    with atomic_write(Path(path), "wb") as file:
        figure.savefig(file, format=_kind(path), dpi=150)


def _kind(path: Path | str) -> str:
    return Path(path).suffix.lower().removeprefix(".")
