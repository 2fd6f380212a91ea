"""Objects, as JSON and dicts have them, into rows: flat ones, one answer to many questions, chats, and nested ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import regex

from matchloom.data.formats.columns import Columns, find_columns, plain
from matchloom.data.formats.helpdesk import article_of, plain_answer
from matchloom.data.formats.html_text import html_text
from matchloom.data.formats.row import Found, LeftOut, OwnColumns, Row
from matchloom.types import MatchloomError

_DEPTH = 20  # of objects in objects
_ASKS = ("user", "human", "customer", "prompter")
_ANSWERS = ("assistant", "gpt", "bot", "agent", "model", "chatbot")
_CHATS = ("messages", "conversations", "conversation", "dialogue", "turns")
_QUESTIONS = ("question", "query", "questions", "queries", "utterances", "variants")
_ANSWERED = ("acceptedAnswer", "suggestedAnswer", "answer", "text", "response", "reply", "answers", "responses")
# Names of lists that say nothing of what stands in them; other names become the column `section`.
_LISTS = frozenset(
    {
        *("data", "items", "entries", "faqs", "faq", "questions", "articles", "children", "results", "list"),
        *("mainentity", "@graph", "paragraphs", "qas"),
    }
)
_SENTENCE = regex.compile(r"\s|[?？]|\p{Han}{2}")


class NamedRows:
    """Rows that name their own columns, each as it likes.

    Args:
        source: The file, for messages.
        given: What the user says of columns.
    """

    def __init__(self, source: str, given: Columns | None) -> None:
        self._source = source
        self._given = given
        self._known: dict[tuple[str, ...], dict[str, int]] = {}

    def row(self, place: str, row: Mapping[str, Any]) -> Row:
        """The values of a flat row under our names."""
        keys = tuple(row)
        if keys not in self._known:
            if len(self._known) > 1000:  # every row has its own keys: do not remember them all
                self._known.clear()
            self._known[keys] = find_columns(f"{self._source}, {place}", keys, self._given, header=False)
        columns = self._known[keys]
        values = {name: row[keys[i]] for name, i in columns.items()}
        return Row(place, values, OwnColumns(keys, row.values()), columns)

    def rows(self, place: str, record: Mapping[str, Any]) -> Iterator[Found]:
        """The rows of an object: one if it is flat, more if it holds several questions, turns or objects."""
        shaped = [] if self._given else list(_of_shape(place, record, {}))
        if shaped:
            yield from shaped
            return
        try:
            row = self.row(place, record)
        except MatchloomError:
            found = [] if self._given else list(self._nested(place, record, {}, _DEPTH))
            if not any(isinstance(one, Row) for one in found):
                raise
            yield from found
        else:
            yield row

    def rows_within(self, place: str, value: object) -> Iterator[Found]:
        """The rows of whatever holds some, however deep; nothing where there are none."""
        for record in value if isinstance(value, list) else [value]:
            if isinstance(record, Mapping):
                yield from self._inner(place, record, {}, _DEPTH)

    def _inner(self, place: str, record: Mapping[str, Any], above: Mapping[str, Any], depth: int) -> Iterator[Found]:
        shaped = list(_of_shape(place, record, above))
        if shaped:
            yield from shaped
            return
        beside = {name: value for name, value in above.items() if name not in record}
        try:
            row = self.row(place, record)
        except MatchloomError:
            yield from self._nested(place, record, above, depth)
        else:
            own = OwnColumns((*row.own.names, *beside), (*row.own.values, *beside.values()))
            yield row._replace(own=own)

    def _nested(self, place: str, record: Mapping[str, Any], above: Mapping[str, Any], depth: int) -> Iterator[Found]:
        """The rows of objects inside an object; its own texts and the names it stands under become their columns."""
        if _is_dictionary(record):
            for question, answer in record.items():
                yield made_row(place, question, answer, above)
            return
        own = {name: value for name, value in record.items() if isinstance(value, str) and _is_own(name)}
        for name, value in record.items() if depth else ():
            path = f"{above['section']} / {name}" if "section" in above else name
            section = {} if plain(name) in _LISTS else {"section": path}
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Mapping):
                    yield from self._inner(place, inner, {**above, **section, **own}, depth - 1)


def _is_own(name: str) -> bool:
    return not name.startswith("@")  # what JSON-LD says of an object


def columns_as_rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of an object of columns, lists or objects by the same index, as data frames write it; else itself."""
    columns = {name: value for name, value in record.items() if isinstance(value, list | Mapping)}
    indices = {tuple(value) if isinstance(value, Mapping) else tuple(range(len(value))) for value in columns.values()}
    if len(columns) < 2 or len(columns) < len(record) or len(indices) != 1:
        yield dict(record)
        return
    for index in indices.pop():
        yield {name: value[index] for name, value in columns.items()}


def made_row(place: str, query: object, text: object, columns: Mapping[str, Any], text_id: object = None) -> Row:
    """A row that a reader put together, with the user's own columns beside its texts."""
    values = {"query": query, "text": text, **({} if text_id is None else {"text_id": text_id})}
    own = {name: value for name, value in columns.items() if name not in values}
    known = {name: i for i, name in enumerate(values)}
    return Row(place, values, OwnColumns((*values, *own), (*values.values(), *own.values())), known)


def _of_shape(place: str, record: Mapping[str, Any], above: Mapping[str, Any]) -> Iterator[Found]:
    """The rows of an object of a shape that is known; none for any other."""
    article = article_of(place, record)
    chat = next((name for name in _CHATS if isinstance(record.get(name), list)), None)
    if article is not None:
        yield article
    elif chat is not None:
        columns = {**above, **{name: value for name, value in record.items() if name != chat}}
        yield from _chat(place, record[chat], columns)
    else:
        yield from _many(place, record, above)


def _chat(place: str, turns: Sequence[Any], columns: Mapping[str, Any]) -> Iterator[Found]:
    """What a user says, with what an assistant says next."""
    asked = None
    for number, turn in enumerate(turns, start=1):
        if not isinstance(turn, Mapping):
            continue
        role = str(turn.get("role", turn.get("from", turn.get("speaker", "")))).lower()
        said = _said(turn.get("content", turn.get("value", turn.get("text"))))
        if role in _ASKS:
            asked = said
        elif role in _ANSWERS and asked is not None:
            if asked.strip() and said.strip():
                yield made_row(f"{place}, message {number}", asked, said, columns)
            asked = None
    if asked is not None:
        yield LeftOut(place, "its last message is a question without an answer")


def _said(content: object) -> str:
    """The text of a message, which may be a list of parts of which some are text."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _many(place: str, record: Mapping[str, Any], above: Mapping[str, Any]) -> Iterator[Found]:
    """One answer with many questions, or one question with many answers, in lists or objects with a text."""
    asked = [name for name in _QUESTIONS if name in record] or ["name"] * ("name" in record)
    answer = next((name for name in _ANSWERED if name in record), None)
    if not asked or answer is None:
        return
    if not any(isinstance(record[name], list | Mapping) for name in (*asked, answer)):
        return
    own = {name: value for name, value in record.items() if name not in (*asked, answer) and _is_own(name)}
    for query in dict.fromkeys(text for name in asked for text in _texts(record[name])):
        for text in _texts(record[answer]):
            body = html_text(text) if "@type" in record else plain_answer(text)  # JSON-LD's texts are HTML
            yield made_row(place, query, body, {**above, **own}, record.get("text_id"))


def _texts(value: object) -> list[str]:
    """The different texts of a value: a text, an object that has one, or a list of these."""
    items = value if isinstance(value, list) else [value]
    texts = [item.get("text", item.get("name")) if isinstance(item, Mapping) else item for item in items]
    return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text.strip()))


def _is_dictionary(record: Mapping[str, Any]) -> bool:
    """Whether an object is questions with their answers: {"How do I pay?": "By card."}."""
    sentences = sum(bool(_SENTENCE.search(name.strip())) for name in record)
    return bool(record) and all(isinstance(value, str) for value in record.values()) and 2 * sentences > len(record)
