"""The picture at the top of docs/architecture.md, drawn from what the parts import: `python -m experiments.import_map`.

An arrow leads from a part to one that imports it. Arrows that follow from others are left out: if `search` imports
`evaluation`, and that imports `data`, there is no arrow from `data` to `search`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import matchloom
from experiments import places
from matchloom.basics.files import atomic_write

SOURCE = Path(matchloom.__file__).parent
PAGE = places.DOCS / "architecture.md"
#: The rooms of the picture and the parts in each, in the order of the page.
ROOMS: Mapping[str, tuple[str, ...]] = {
    "what every part needs": ("types", "basics", "traces", "calibration", "batches", "artifact", "pages"),
    "texts and pairs": ("text", "lexical", "data"),
    "networks": ("kernels", "layers", "encoders", "models", "matcher_files", "matcher", "training", "export"),
    "judging": ("explanation", "evaluation", "comparison"),
    "answers": ("search", "publishing", "fitting"),
    "doors": ("runs", "batch", "client", "service", "integrations", "cli"),
}
_BLOCK = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)


def modules() -> list[Path]:
    """The files of the package, but for the one that has the public names."""
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def part_of(path: Path) -> str:
    """The part that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names.add(node.module or "")
            if node.module == "matchloom":
                names |= {f"matchloom.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("matchloom.")}


def home_of(name: str) -> str:
    """The part of an imported module, or of a public name that is imported from the package itself."""
    part = name.split(".")[1]
    home = matchloom._HOMES.get(part)
    return home.split(".")[0] if home else part


@cache
def graph() -> dict[str, set[str]]:
    """Which parts each part imports."""
    found: dict[str, set[str]] = {}
    for path in modules():
        own = found.setdefault(part_of(path), set())
        own |= {home_of(name) for name in imported(path)} - {part_of(path)}
    return found


def _reached(part: str) -> set[str]:
    """All parts that a part imports, by way of others, too."""
    found: set[str] = set()
    left = [part]
    while left:
        new = graph().get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def arrows() -> list[tuple[str, str]]:
    """From each part to those that import it, without what follows from other arrows."""
    found = []
    for part, theirs in graph().items():
        through = {one for other in theirs for one in _reached(other)}
        found += [(one, part) for one in sorted(theirs - through)]
    return sorted(found)


def picture() -> str:
    """The block of the page."""
    lines = ["```mermaid", "flowchart LR"]
    for n, (room, parts) in enumerate(ROOMS.items()):
        lines += [f'  subgraph r{n} ["{room}"]', *(f"    {part}" for part in parts), "  end"]
    lines += [f"  {one} --> {other}" for one, other in arrows() if other != "__main__"]
    return "\n".join([*lines, "```", ""])


def with_picture(page: str) -> str:
    """The page with the picture as it is now."""
    return _BLOCK.sub(lambda _: picture(), page, count=1)


if __name__ == "__main__":
    made = with_picture(PAGE.read_text(encoding="utf-8"))
    with atomic_write(PAGE) as page:
        page.write(made)
