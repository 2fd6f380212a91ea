"""LanceCollection: a collection in a LanceDB table, for millions of pairs; its folder is called an archive.

The folder, its table and who may write it are `archive.py`, candidates and scores `searcher.py`, alpha `tuning.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast, overload

import pyarrow as pa

from matchloom.basics.progress import bar
from matchloom.basics.stores import one_place
from matchloom.data.formats import PairsLike, as_pairs
from matchloom.explanation import Explanation
from matchloom.matcher import Matcher
from matchloom.search.checkup import CheckUp
from matchloom.search.lance.archive import Archive
from matchloom.search.lance.checkup import check_archive
from matchloom.search.lance.repair import Repaired, repair_archive
from matchloom.search.lance.rows import PairRow
from matchloom.search.lance.searcher import SAMPLE, Searcher
from matchloom.search.lance.snapshot import Snapshot
from matchloom.search.tuning import Tuned, tune_alpha
from matchloom.text.tokenize import Tokenizer, replace_surrogates
from matchloom.types import Added, Hits, MatchloomError, Scorer

_EXPLAINED = 100  # answers that are looked through for the one to explain
_log = logging.getLogger(__name__)


class LanceCollection:
    """Questions with their answers in a table on disk, which one may write and many may read at a time.

    It has the methods of `Collection`, which opens it, but for those that learn: `tune` finds the one weight it has.

    >>> index = LanceCollection.create("faq.archive")  # with a matcher's folder: its sentence vectors too
    >>> back = {"answer": "Write to us within a month.", "answer_id": "refunds"}
    >>> index.add([{"question": "How do I get my money back?", **back}, {"question": "Are there refunds?", **back}])
    Added(new=2, replaced=0, wrong=0)
    >>> [(answer.id, answer.question) for answer in index.search("money back", top=3)]
    [('refunds', 'How do I get my money back?')]
    """

    def __init__(self, archive: Archive) -> None:
        """Not for callers: use `create` or `open`."""
        self._archive = archive
        self._searcher = Searcher()

    @classmethod
    def create(
        cls, folder: Path | str, matcher: Matcher | Path | str | None = None, *, tokenizer: Tokenizer | None = None
    ) -> LanceCollection:
        """A new archive in an empty folder. Without a matcher it searches by BM25 alone.

        Args:
            folder: Where; it is made, and must be empty if it exists. Or a URI, such as s3://bucket/name.
            matcher: What encodes the archive, or its folder.
            tokenizer: How the full-text index and BM25 find words; a matcher brings its own.
        """
        folder = one_place("folder", folder)
        if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
            raise MatchloomError(f"tokenizer is {tokenizer!r}; expected Tokenizer({tokenizer!r})")
        return cls(Archive.create(folder, matcher, tokenizer or Tokenizer()))

    @classmethod
    def open(cls, folder: Path | str, matcher: Matcher | Path | str | None = None) -> LanceCollection:
        """An archive that is there. Its matcher is loaded when first needed, from where it was, unless it is given.

        A matcher that is not the one which made the vectors is refused.

        Args:
            folder: The archive's.
            matcher: The archive's matcher, or its folder, where it was moved.
        """
        return cls(Archive.open(one_place("folder", folder), matcher))

    @staticmethod
    def check(
        folder: Path | str,
        matcher: Matcher | Path | str | None = None,
        *,
        every_vector: bool = False,
        progress: bool = False,
    ) -> CheckUp:
        """Read every file and every row of an archive, and say what is damaged. The result is true if nothing is.

        Args:
            folder: The archive's; it need not open.
            matcher: The archive's matcher, or its folder, where it was moved.
            every_vector: Make every vector again and not those of 1,000 pairs.
            progress: Whether to show a bar.
        """
        return check_archive(one_place("folder", folder), matcher, every_vector, progress)

    @staticmethod
    def repair(folder: Path | str, *, progress: bool = False) -> Repaired:
        """Go back to the newest version of an archive that is whole, and say what is lost.

        The damaged files are put aside, in a folder of the archive's own. Nothing changes in an archive that is whole.

        Args:
            folder: The archive's; it need not open.
            progress: Whether to show a bar.
        """
        place = one_place("folder", folder)
        if not isinstance(place, Path):
            raise MatchloomError(
                "repair is for archives on a disk; an object store keeps copies and versions of its own",
                code="not_supported",
            )
        return repair_archive(place, progress)

    def __len__(self) -> int:
        return len(self._archive.current()[1])

    def __repr__(self) -> str:
        by = self._archive.manifest.matcher_name or "BM25"
        return f"LanceCollection({str(self.folder)!r}, {len(self):,} pairs, searched by {by})"

    @property
    def folder(self) -> Path | str:
        """Where it is: a folder, or a URI without its key and options."""
        return self._archive.folder

    @property
    def matcher(self) -> Matcher | None:
        """What encodes the archive, if anything does."""
        return self._archive.matcher_of(self._archive.manifest)

    @property
    def tokenizer(self) -> Tokenizer:
        """How the archive's texts become words."""
        return self._archive.manifest.tokenizer

    @property
    def alpha(self) -> float:
        """The weight of the similarity of questions, unless a search is given another."""
        return self._archive.manifest.alpha

    # ---- writing

    def add(self, pairs: PairsLike, *, progress: bool = False) -> Added:
        """Add pairs (query is the question, text the answer) as a stream; those with label 0 are left out.

        An answer may have many questions: a pair for each, with the same text (and text_id, if it has one). A pair's
        id is its `query_id` and `text_id`, those that are not empty, joined by '/'; without either, a digest of the
        answer. A pair whose `query_id` and id are there already takes its place; without a `query_id`, one whose
        text_id (or answer) and question are. Each batch of 10,000 (1,000 where positions are stored) is on the disk,
        whole, before the next is read: what a killed process had reported is there.

        Args:
            pairs: Questions with their answers: Pairs, tuples, dicts, a data frame or the path of a file.
            progress: Whether to show a bar.
        """
        new = replaced = wrong = 0
        pairs = as_pairs(pairs)
        with bar() as shown:
            task = shown.add_task("Indexing", total=None, note="", visible=progress)
            try:
                while batch := list(islice(pairs, self._archive.batch)):
                    right = [pair for pair in batch if pair.is_positive]
                    rows = {row.key: row for row in map(PairRow.of, right)}  # of two with one key, the last
                    there = self._archive.upsert(list(rows.values()))
                    new += len(rows) - there
                    replaced += len(right) - len(rows) + there
                    wrong += len(batch) - len(right)
                    shown.update(task, completed=new + replaced)
            except KeyboardInterrupt:
                _log.warning("stopped; %s new pairs are in the archive, go on with the rest", f"{new:,}")
                raise
            shown.update(task, note="bringing indices up to date")
            self._archive.maintain()
        return Added(new, replaced, wrong)

    def build(self, rows: Callable[[pa.Schema], Iterator[pa.RecordBatch]]) -> int:
        """Fill an archive that is empty with rows that were made elsewhere (`matchloom.batch.indexing`), in one commit.

        Args:
            rows: What yields batches of rows with the columns that it is given, each key once.
        """
        return self._archive.append(rows)

    def remove(self, ids: Iterable[str]) -> int:
        """Remove pairs by id; how many there were. Their texts stay in files until these are merged: see `compact`.

        An id of several pairs, or a text_id, removes all questions of that answer.

        Args:
            ids: As `search` gives them, or text_ids; unknown ones are left alone (see `unknown`).
        """
        count = self._archive.delete(_checked_ids(ids))
        self._archive.maintain()
        return count

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """Those of the ids that are not in the archive.

        Args:
            ids: As for `remove`.
        """
        return self._archive.unknown(_checked_ids(ids))

    def answers(self, name: str) -> list[str]:
        """The answers of pairs with an id; none where it is unknown.

        Args:
            name: As `search` gives it, or a text_id.
        """
        return self._archive.answers(*_checked_ids([name]))

    def find(self, text: str) -> str | None:
        """The id of an answer, case and spaces apart.

        Args:
            text: The answer.
        """
        return self._archive.id_of(text)

    def reencode(self, matcher: Matcher | Path | str, *, progress: bool = False) -> None:
        """Encode every pair again, with a matcher that was trained anew or another one.

        The vectors go into a second table, and one small file says which of both is in use. So readers see all old
        vectors or all new ones, and a run that is cut off leaves the archive as it was. alpha goes back to its start:
        it was tuned for other scores.

        Args:
            matcher: What is to encode the archive from now on, or its folder.
            progress: Whether to show a bar.
        """
        self._archive.reencode(matcher, progress)

    def erase(self) -> None:
        """Remove the archive, with all that is in it."""
        self._archive.erase()

    def compact(self, *, progress: bool = False) -> None:
        """Copy the archive, so that nothing of what was deleted or replaced is left on the disk. Others may search.

        Args:
            progress: Whether to show a bar.
        """
        self._archive.compact(progress)

    def tune(
        self, pairs: PairsLike, *, rerank: Scorer | None = None, candidates: int = 100, progress: bool = False
    ) -> Tuned:
        """Find the alpha, on a grid of 0.05, with the highest mean average precision, and keep it.

        Where every question has both labels, the judged pairs alone are ranked; else all candidates are, and what was
        not judged counts as wrong. With `rerank` the result is returned but not kept: it holds for that scorer only.

        Args:
            pairs: Judged pairs: query is a new question, `text_id` the id of an archived pair or answer (or text an
                archived question or answer), label 1 where that answers it.
            rerank: A scorer in place of the archive's own match.
            candidates: How many pairs are looked at for each question.
            progress: Whether to show a bar.
        """
        if rerank is None:
            with self._archive.writing():  # where nothing can be kept, nothing need be measured
                pass
        snapshot = self.snapshot()
        tuned = tune_alpha(self._searcher, snapshot, list(as_pairs(pairs)), rerank, candidates, progress)
        if rerank is None:
            with self._archive.writing():
                if self._archive.manifest.matcher != snapshot.manifest.matcher:
                    raise MatchloomError(f"{self.folder} was encoded anew meanwhile; tune it again")
                self._archive.keep(alpha=tuned.alpha)
        return tuned

    # ---- reading

    def explain(self, question: str, answer: str) -> Explanation:
        """Why an answer has its place among the first 100.

        Args:
            question: The question.
            answer: The id of an answer, as `search` gives it.
        """
        for hit in self.search(question, top=_EXPLAINED, explain=True):
            if hit.id == answer and hit.explanation is not None:
                return cast(Explanation, hit.explanation)
        raise MatchloomError(
            f"{answer[:80]!r} is not among the first {_EXPLAINED} answers; a search shows ids", code="missing"
        )

    @overload
    def search(  # type: ignore[overload-overlap]  # a text is many letters too
        self,
        question: str,
        *,
        top: int = 10,
        candidates: int = 100,
        alpha: float | None = None,
        rerank: Scorer | None = None,
        explain: bool | int = False,
    ) -> Hits: ...

    @overload
    def search(
        self,
        question: Iterable[str],
        *,
        top: int = 10,
        candidates: int = 100,
        alpha: float | None = None,
        rerank: Scorer | None = None,
        explain: bool | int = False,
    ) -> list[Hits]: ...

    def search(
        self,
        question: str | Iterable[str],
        *,
        top: int = 10,
        candidates: int = 100,
        alpha: float | None = None,
        rerank: Scorer | None = None,
        explain: bool | int = False,
    ) -> Hits | list[Hits]:
        """The archived answers that fit a question best, by falling score; equal scores are ordered by id.

        Each comes once, with that of its questions which scored highest. There are fewer than `top` where the archive
        has fewer, or where no other shares a word with the question and there are no vectors to find more.

        `rerank` takes the place of the archive's own s(t, a); a higher `candidates` looks at more pairs.
        `explain` adds why each answer got its score: what the archived question's words added, and what the answer's.

        Args:
            question: The new question; many of them, in a list, give a list of answers each.
            top: At most this many answers.
            candidates: How many pairs get a full score, found by words and by vectors.
            alpha: The weight of the questions' similarity; the archive's own by default.
            rerank: A scorer in place of the archive's own match s(t, a).
            explain: Add to each answer why it matched; a number, while the maps have so many cells in all.
        """
        if not isinstance(question, str) and isinstance(question, Iterable) and not isinstance(question, bytes):
            options: Any = {"top": top, "candidates": candidates, "alpha": alpha, "rerank": rerank, "explain": explain}
            return [self.search(_one(one), **options) for one in question]
        _check_search(question, top, candidates, alpha, rerank)
        while True:
            snapshot = self.snapshot()
            weight = snapshot.manifest.alpha if alpha is None else alpha
            try:
                found = self._searcher.search(
                    snapshot, question, top=top, candidates=candidates, alpha=weight, rerank=rerank, explain=explain
                )
                if found or self._archive.in_use(snapshot.manifest):
                    return found  # nothing is also what a table has whose files just went
            except MatchloomError:
                if self._archive.in_use(snapshot.manifest):
                    raise  # else the table was replaced in between

    def snapshot(self) -> Snapshot:
        """The archive as it is now; it stays so while others write."""
        return self._archive.snapshot()

    def texts(self, side: str = "answer") -> list[str]:
        """The questions or answers of at most 20,000 pairs, evenly spread: what lexical scorers count words in.

        Args:
            side: "question" or "answer".
        """
        if side not in ("question", "answer"):
            raise MatchloomError(f"side is {side!r}; expected 'question' or 'answer'")
        found: list[str] = self._archive.current()[1].sample([side], SAMPLE)[side].to_pylist()
        return found

    def status(self) -> dict[str, Any]:
        """What there is: pairs, how many of them the indices hold, the matcher, alpha, and the bytes on the disk."""
        return self._archive.status()


def _checked_ids(ids: Iterable[str]) -> list[str]:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise MatchloomError(f"ids is {ids!r}; expected a list of ids, such as [{str(ids)!r}]")
    ids = list(ids)
    for one in ids:
        if not isinstance(one, str) or replace_surrogates(one) != one:
            raise MatchloomError(f"the id {one!r} is no text; expected ids as `search` gives them")
    return ids


def _one(question: object) -> str:
    if not isinstance(question, str):
        raise MatchloomError(f"the question is {question!r}; expected a text")
    return question


def _check_search(question: str, top: int, candidates: int, alpha: float | None, rerank: Scorer | None) -> None:
    """Refuse what cannot be searched for, in one line."""
    if not isinstance(question, str) or not question.strip():
        raise MatchloomError(f"the question is {question!r}; expected a text")
    for name, count in (("top", top), ("candidates", candidates)):
        if not isinstance(count, int) or not 1 <= count < 2**31:
            raise MatchloomError(f"{name} is {count!r}; expected a number of at least 1")
    if alpha is not None and not (isinstance(alpha, int | float) and 0 <= alpha <= 1):
        raise MatchloomError(f"alpha is {alpha!r}; expected a number from 0 to 1")
    if rerank is not None and not isinstance(rerank, Scorer):
        raise MatchloomError(f"rerank is {rerank!r}; expected a scorer, such as a Matcher or BM25.fit(index.texts())")
    if isinstance(rerank, Matcher):
        rerank.refuse_if_unlearnt("the matcher of rerank")
