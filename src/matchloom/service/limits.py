"""What one request may ask for, and how much may wait. Each has its own answer when it is passed."""

from __future__ import annotations

from collections.abc import Generator, Iterable
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
        cells: Pairs of words, in every channel of their map, that one request has explained; more is 422,
            `too_many_words`. A search explains its best answers while there are so many left, and the others not.
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

    def check_lengths(self, texts: Iterable[str]) -> None:
        """Refuse a text that has too many characters."""
        for text in texts:
            if len(text) > self.characters:
                raise Refused(
                    422, "text_too_long", f"a text has {len(text):,} characters; at most {self.characters:,} are read"
                )

    def text_steps(self, texts: Iterable[str], tokenizer: Tokenizer) -> Generator[None, None, int]:
        """Refuse a text by its characters or by the words that this tokenizer would make of it: work for a thread.

        What it gives at the end is how many texts there are.
        """
        given = list(texts)
        self.check_lengths(given)
        for text in given:
            if len(text) <= self.words:
                continue  # it cannot have more words than characters
            yield
            count = len(tokenizer._replace(max_words=None).spans(text))
            if count > self.words:
                raise Refused(422, "too_many_words", f"a text has {count:,} words; at most {self.words:,} are read")
        return len(given)

    def check_texts(self, texts: Iterable[str], tokenizer: Tokenizer) -> None:
        """The same at once, for work that is in a thread already and cannot be parted."""
        for _ in self.text_steps(texts, tokenizer):
            pass

    def check_ids(self, ids: Iterable[str]) -> None:
        """Refuse ids that no person gave."""
        longest = max(map(len, ids), default=0)
        if longest > _ID:
            raise Refused(422, "text_too_long", f"an id has {longest:,} characters; at most {_ID} are kept")

    def check_map(self, rows: int, columns: int, channels: int = 1) -> None:
        """Refuse a map of so many words with so many, in each of its channels."""
        if rows * columns * channels > self.cells:
            times = f" in {channels} maps" if channels > 1 else ""
            raise Refused(
                422,
                "too_many_words",
                f"{rows:,} words with {columns:,} words{times} are too many to explain; at most {self.cells:,} cells",
            )
