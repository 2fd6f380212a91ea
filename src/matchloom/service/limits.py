"""What one request may ask for, and how much may wait. Each has its own answer when it is passed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matchloom.service.problems import Refused
from matchloom.text.tokenize import Tokenizer

_ID = 500  # characters


@dataclass(frozen=True)
class Limits:
    """All limits of the service; those with an option of `matchloom serve` say so.

    Args:
        body: Bytes of a request (--max-body); more is 413.
        characters: Characters of one text; more is 422, `text_too_long`.
        words: Words of one text (--max-words); more is 422, `too_many_words`.
        texts: Candidates, pairs or ids in one request (--max-texts); more is 422, `too_many_texts`.
        cells: Pairs of words in one explanation, whose map has a number for each; more is 422, `too_many_words`.
        waiting: Requests that are worked on or wait (--queue); one more is 503 at once.
        seconds: From a request's first line to its answer (--timeout); later is 503.
        upload: Seconds in which a request must have arrived; a slower one is 408.
        connections: Connections that are open; one more closes the one that was idle longest, or is told 503.
        room: Bytes of large requests and answers that are held at a time, of which one client may have half; more is
            503. What has 16 kB or less needs none.
        threads: Calls of the library at a time (--threads).
        workers: Processes (--workers); all other limits are those of each.
    """

    body: int = 2_000_000
    characters: int = 50_000
    words: int = 2_000
    texts: int = 1_000
    cells: int = 250_000
    waiting: int = 256
    seconds: float = 10.0
    upload: float = 10.0
    connections: int = 512
    room: int = 128_000_000
    threads: int = 2
    workers: int = 1

    def check_count(self, name: str, count: int) -> None:
        """Refuse a list that is too long."""
        if count > self.texts:
            raise Refused(
                422, "too_many_texts", f"{name}: {count:,} were given; at most {self.texts:,} are taken at a time"
            )

    def check_texts(self, texts: Iterable[str], tokenizer: Tokenizer) -> None:
        """Refuse a text that is too long, by its characters or by the words that this tokenizer would make of it."""
        for text in texts:
            if len(text) > self.characters:
                raise Refused(
                    422, "text_too_long", f"a text has {len(text):,} characters; at most {self.characters:,} are read"
                )
            if len(text) <= self.words:
                continue  # it cannot have more words than characters
            count = len(tokenizer._replace(max_words=None).spans(text))
            if count > self.words:
                raise Refused(422, "too_many_words", f"a text has {count:,} words; at most {self.words:,} are read")

    def check_ids(self, ids: Iterable[str]) -> None:
        """Refuse ids that no person gave."""
        longest = max(map(len, ids), default=0)
        if longest > _ID:
            raise Refused(422, "text_too_long", f"an id has {longest:,} characters; at most {_ID} are kept")

    def check_cells(self, query: str, text: str, tokenizer: Tokenizer) -> None:
        """Refuse an explanation whose map would fill the memory."""
        self.check_map(len(tokenizer(query)), len(tokenizer(text)))

    def check_map(self, rows: int, columns: int) -> None:
        """Refuse a map of so many words with so many."""
        if rows * columns > self.cells:
            raise Refused(
                422,
                "too_many_words",
                f"{rows:,} words with {columns:,} words are too many for a map; at most {self.cells:,} pairs of words",
            )
