"""Articles as help desks export them: which are published, and their HTML as text.

Zendesk, Freshdesk and Intercom give the objects of their public APIs, as JSON or as columns of a sheet. A title is the
question, the body its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from matchloom.data.formats.html_text import has_tags, html_text
from matchloom.data.formats.row import LeftOut, OwnColumns, Row


class _HelpDesk(NamedTuple):
    """The columns that tell an article of this help desk, where its text is, and what says that it is a draft."""

    name: str
    needs: frozenset[str]
    text: tuple[str, ...]
    draft: tuple[str, tuple[str, ...]]


_HELP_DESKS = (
    _HelpDesk("Zendesk", frozenset({"title", "body", "section_id"}), ("body",), ("draft", ("true", "1", "yes"))),
    _HelpDesk("Freshdesk", frozenset({"title", "folder_id"}), ("description_text", "description"), ("status", ("1",))),
    _HelpDesk("Intercom", frozenset({"title", "body", "state"}), ("body",), ("state", ("draft",))),
)


def article_of(place: str, record: Mapping[str, Any]) -> Row | LeftOut | None:
    """The row of an article, or why it is left out; None for what is no article of a help desk that is known."""
    desk = next((desk for desk in _HELP_DESKS if desk.needs <= record.keys()), None)
    found = next((name for name in desk.text if record.get(name)), None) if desk else None
    if desk is None or (found is None and desk.text[-1] not in record):
        return None
    flag, drafts = desk.draft
    if str(record.get(flag, "")).lower() in drafts:
        return LeftOut(place, f"a draft in {desk.name}")
    title, body = record.get("title"), record.get(found or "", "")
    if isinstance(body, str) and found != "description_text":
        body = html_text(body)
    if not isinstance(title, str) or not isinstance(body, str) or not body.strip():
        return LeftOut(place, f"an article of {desk.name} without a text")
    own = {name: value for name, value in record.items() if name not in ("title", "name", "id", *desk.text)}
    return _row(place, {"title": title.strip(), found or desk.text[-1]: body, "id": record.get("id")}, own)


def _row(place: str, ours: Mapping[str, Any], own: Mapping[str, Any]) -> Row:
    values = dict(zip(("query", "text", "text_id"), ours.values(), strict=True))
    columns = OwnColumns((*ours, *own), (*ours.values(), *own.values()))
    return Row(place, values, columns, {role: i for i, role in enumerate(values)})


def plain_answer(value: Any) -> Any:
    """A text without its HTML, where it has any; what is no text as it is."""
    return html_text(value) if isinstance(value, str) and has_tags(value) else value
