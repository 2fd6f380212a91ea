"""What a search found, as it is shown, printed and explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from matchloom.basics.files import atomic_write
from matchloom.basics.screen import printable
from matchloom.cli.printing import console, in_words, note, print_json, table

if TYPE_CHECKING:
    from matchloom.explanation import Explanation
    from matchloom.types import Hit, Hits, Sureness

NOT_SURE = "No answer is certain enough. The most similar ones:"
_LONGEST = 1000  # characters of a text that are shown; --json has all of them


@dataclass
class Asked:
    """How a user wants to see what is found."""

    top: int
    explain: bool = False
    html: Path | None = None
    json: bool = False
    many: bool = False  # questions from standard input
    reasons: list[Explanation] = field(default_factory=list)

    @property
    def wants_reasons(self) -> bool:
        """Whether explanations are needed."""
        return self.explain or self.html is not None

    def keep_reasons(self, found: Sequence[Hit]) -> None:
        """For the page."""
        self.reasons += [one.explanation for one in found if one.explanation is not None]

    def write_page(self) -> None:
        """Write the page that explains the answers, if it is wanted."""
        if self.html is None:
            return
        from matchloom.explanation import render_html

        with atomic_write(self.html) as file:
            file.write(render_html(self.reasons))
        note(f"{self.html} is written; open it in a browser")


def show_hits(question: str, found: Hits, asked: Asked) -> None:
    """What a collection found: each answer with the known question that is nearest and the user's own columns."""
    asked.keep_reasons(found)
    if asked.json:
        sureness = {"known": found.known, "confident": found.confident, "answered": found.answered}
        given = {name: value for name, value in sureness.items() if name == "known" or value is not None}
        print_json({"question": question, **given, "answers": [plain_hit(one) for one in found]})
        return
    likely = any(hit.probability is not None for hit in found)  # an empty column would take room from the words
    numbers = ("", "score", *(["probability"] if likely else []))
    shown = table(*numbers, "answer", *(["why"] if asked.explain else []), right=numbers)
    for n, hit in enumerate(found, start=1):
        chance = [("" if hit.probability is None else f"{hit.probability:.2f}")] if likely else []
        reasons = [printable(in_words(hit.explanation))] if asked.explain else []
        shown.add_row(str(n), f"{hit.score:.2f}", *chance, _answer(hit), *reasons)
    printer = console()
    printer.print(printable(question), style="bold")
    if found and not is_sure(found):
        printer.print(NOT_SURE, style="yellow")
    printer.print(shown if found else "nothing found")


def is_sure(found: Hits | Sureness) -> bool:
    """Whether the first answer may be given as the answer: as was stated, or as the collection thinks."""
    return (found.confident if found.answered is None else found.answered) is not False


def _answer(hit: Hit) -> Text:
    text = Text(line_of(hit.text))
    if hit.question:
        text.append(f"\nasked before: {line_of(hit.question)}", style="dim")
    for name, value in (hit.columns or {}).items():
        text.append(f"\n{line_of(name)} {line_of(value)}", style="dim")
    return text.append(f"\nid {line_of(hit.id)}", style="dim")


def plain_hit(one: Hit) -> dict[str, Any]:
    """A hit for programs: what it has, under the names that Python, service and client use."""
    plain = {name: value for name, value in one._asdict().items() if value is not None and name != "index"}
    return plain if one.explanation is None else {**plain, "explanation": one.explanation.to_dict()}


def line_of(text: str) -> str:
    """A text on one line, cut where it would fill the screen."""
    line = " ".join(text[: 2 * _LONGEST].split())
    return printable(line if len(line) <= _LONGEST else line[:_LONGEST] + " …")
