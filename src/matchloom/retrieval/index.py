"""QuestionIndex: an archive of answered questions on disk. Was this asked before, and what was the answer?

A new question t is compared with every candidate (q, a) of the archive by the mixture of Qiu and Huang (IJCAI 2015):

    score = alpha * v_t . v_q + (1 - alpha) * s(t, a)

Candidates come from two sides, the full-text index over the words of question and answer, and the vectors (see
sketch.py); they are taken in turns, best first, up to `candidates` in all. Each part can be replaced:

    the archive's matcher           v_t . v_q                       s(t, a)
    has sentence vectors (CNTN)     from the stored vectors         from the stored vectors
    has none (MV-LSTM, Match-SRNN)  BM25 share of t with q          by the matcher, at every search
    there is none                   BM25 share of t with q          BM25 share of t with a
    `rerank` is given               as above                        by that scorer, at every search

Parts are mixed as they are, without a scale between them: alpha is what makes up for it, and `tune` finds it. A BM25
share is BM25 of stems over what the question scores with itself (see shares.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from matchloom.data.ids import digest
from matchloom.explanation import Explanation
from matchloom.explanation import explain as explain_pair
from matchloom.matcher import Matcher
from matchloom.progress import bar
from matchloom.retrieval import encoder
from matchloom.retrieval.about import About, prepare, read_about, stamp, writing
from matchloom.retrieval.shares import BM25Share, asked
from matchloom.retrieval.sketch import Sketch
from matchloom.retrieval.store import TEXTS, VECTORS, Newest, RowIds, Store, Vectors, connect, rows_of, vectors_of
from matchloom.retrieval.tuning import Tuned, tune_alpha
from matchloom.text.tokenize import Tokenizer, stems
from matchloom.types import MatchloomError, Pair, Scorer, Scores

T = TypeVar("T")

_BATCH = 10_000  # pairs in memory, and in one commit
_SAMPLE = 20_000  # pairs in which words are counted


class Answer(NamedTuple):
    """An archived pair that was found: its score, and the two parts that it is mixed from."""

    id: str
    question: str
    answer: str
    score: float
    similarity: float  # of the new question and this one
    match: float  # of the new question and this answer
    explanation: Explanation | None = None  # of `match`


class View(NamedTuple):
    """One version of the archive with what encodes it, whatever others write meanwhile."""

    about: About
    store: Store
    matcher: Matcher | None

    def vector(self, question: str) -> Vectors | None:
        """v_t, where the archive has vectors."""
        if self.matcher is None or self.about.vector_size is None:
            return None
        return np.asarray(self.matcher.vectors([question])[0], np.float32)


class Parts(NamedTuple):
    """The parts of the scores of some rows, and the scorer that made the second."""

    similarity: Scores
    match: Scores
    scorer: Scorer


class Gathered(Generic[T]):
    """What was gathered from a sample of the archive, and when it should be gathered again."""

    def __init__(self, value: T, store: Store) -> None:
        self.value = value
        self._table, self._rows = store.name, len(store)
        self._seen = store  # the version that was asked last: rows are counted once in each

    def stale(self, store: Store) -> bool:
        """Whether this is another table, or one with a tenth more or fewer rows."""
        if store is self._seen:
            return False
        changed = store.name != self._table or abs(len(store) - self._rows) * 10 > self._rows
        if not changed:
            self._seen = store
        return changed


class QuestionIndex:
    """An archive of questions with their answers, in a folder that one may write and many may read at a time.

    >>> index = QuestionIndex.create("faq.archive", "runs/faq")  # doctest: +SKIP
    >>> index.add(read_pairs("faq.tsv", fill_ids=False))  # doctest: +SKIP
    >>> index.search("how do I get my money back?", top=3)  # doctest: +SKIP
    """

    def __init__(self, folder: Path, about: About, matcher: Matcher | None, database: Any) -> None:
        """Not for callers: use `create` or `open`."""
        self.folder = folder
        # With the digest for which it was loaded, in one place: several threads may search.
        self._loaded = None if matcher is None or about.matcher is None else (about.matcher, matcher)
        self._about = about
        self._stamp = (0, 0, 0)  # so that the first look reads the settings again: they may be older than the file
        self._database = database
        self._newest = Newest(database, folder)
        self._counted: Gathered[tuple[BM25Share, BM25Share]] | None = None
        self._sketched: Gathered[Sketch] | None = None

    @classmethod
    def create(
        cls, folder: Path | str, matcher: Matcher | Path | str | None = None, *, tokenizer: Tokenizer | None = None
    ) -> QuestionIndex:
        """A new archive in an empty folder. Without a matcher it searches by BM25 alone.

        The tokenizer cuts texts for the full-text index and BM25; a matcher brings its own.
        """
        folder = Path(folder)
        loaded = encoder.load(matcher)
        prepare(folder)
        with writing(folder):
            about = encoder.about_of("pairs-1", loaded, matcher, tokenizer or Tokenizer())
            database = connect(folder)
            Store.create(database, folder, about.table, about.vector_size)
            about.write(folder)
        return cls(folder, about, loaded, database)

    @classmethod
    def open(cls, folder: Path | str, matcher: Matcher | Path | str | None = None) -> QuestionIndex:
        """An archive that is there. Its matcher is loaded when first needed, from where it was, unless it is given.

        A matcher that is not the one which made the vectors is refused.
        """
        folder = Path(folder)
        about = read_about(folder)
        given = None if matcher is None else encoder.fitting(folder, about, matcher)
        opened = cls(folder, about, given, connect(folder))
        opened._store()
        return opened

    def __len__(self) -> int:
        return len(self._store())

    @property
    def matcher(self) -> Matcher | None:
        """What encodes the archive, if anything does."""
        return self._matcher_of(self._about)

    @property
    def tokenizer(self) -> Tokenizer:
        """How the archive's texts become words."""
        return self._about.tokenizer

    @property
    def alpha(self) -> float:
        """The weight of the similarity of questions, unless a search is given another."""
        return self._about.alpha

    # ---- writing

    def add(self, pairs: Iterable[Pair], *, progress: bool = False) -> int:
        """Add pairs (query is the question, text the answer) as a stream; how many were written.

        A pair's id is its `query_id` and `text_id`, those that are not empty, joined by '/'; without either, a digest
        of both texts. A pair whose id is there already takes its place. Each batch of 10,000 is on the disk, whole,
        before the next is read: what a killed process had reported is there.
        """
        count = 0
        pairs = iter(pairs)
        with writing(self.folder), bar() as shown:
            self._refresh()
            task = shown.add_task("Indexing", total=None, note="", visible=progress)
            while batch := list(islice(pairs, _BATCH)):
                rows = {pair_id(pair): pair for pair in batch}  # of two with one id, the last
                questions, answers = [pair.query for pair in rows.values()], [pair.text for pair in rows.values()]
                self._store().upsert(self._rows(list(rows), questions, answers))
                count += len(rows)
                shown.update(task, completed=count)
            shown.update(task, note="bringing indices up to date")
            self._maintain()
        return count

    def delete(self, ids: Sequence[str]) -> int:
        """Remove pairs by id; how many there were."""
        with writing(self.folder):
            self._refresh()
            return self._store().delete(ids)

    def reencode(self, matcher: Matcher | Path | str, *, progress: bool = False) -> None:
        """Encode every pair again, with a matcher that was trained anew or another one.

        The vectors go into a second table, and one small file says which of both is in use. So readers see all old
        vectors or all new ones, and a run that is cut off leaves the archive as it was. alpha goes back to its start:
        it was tuned for other scores.
        """
        loaded = encoder.load(matcher)
        with writing(self.folder), bar() as shown:
            old_about = read_about(self.folder)
            name = f"pairs-{int(old_about.table.removeprefix('pairs-')) + 1}"
            about = encoder.about_of(name, loaded, matcher, old_about.tokenizer)
            old = Store.open(self._database, self.folder, old_about.table)
            new = Store.create(self._database, self.folder, name, about.vector_size)
            task = shown.add_task("Encoding", total=len(old), note="", visible=progress)
            renewed = QuestionIndex(self.folder, about, loaded, self._database)
            for batch in old.batches(TEXTS, _BATCH):
                new.append(renewed._rows(*(batch.column(name).to_pylist() for name in TEXTS)))
                shown.advance(task, len(batch))
            replace(about, trained_on=new.maintain(0)).write(self.folder)
            self._loaded = None if loaded is None or about.matcher is None else (about.matcher, loaded)
            self._refresh()
        with writing(self.folder):  # sweeps the old table away; a search that still reads it starts again
            pass

    def tune(
        self, pairs: Iterable[Pair], *, rerank: Scorer | None = None, candidates: int = 100, progress: bool = False
    ) -> Tuned:
        """Find the alpha, on a grid of 0.05, with the highest mean average precision, and keep it.

        `pairs` are judged: query is a new question, `text_id` the id of an archived pair (or text its question), label
        1 where that answers it. Where every question has both labels, the judged pairs alone are ranked; else all
        candidates are, and what was not judged counts as wrong. With `rerank` the result is returned but not kept: it
        holds for that scorer only.
        """
        tuned = tune_alpha(self, list(pairs), rerank, candidates, progress)
        if rerank is None:
            with writing(self.folder):
                replace(read_about(self.folder), alpha=tuned.alpha).write(self.folder)
                self._refresh()
        return tuned

    # ---- reading

    def search(
        self,
        question: str,
        *,
        top: int = 10,
        candidates: int = 100,
        alpha: float | None = None,
        rerank: Scorer | None = None,
        explain: bool = False,
    ) -> list[Answer]:
        """The archived pairs that answer a question best, by falling score; equal scores are ordered by id.

        `rerank` takes the place of the archive's own s(t, a); a higher `candidates` looks at more pairs.
        `explain` adds why each answer matched.
        """
        if alpha is not None and not 0 <= alpha <= 1:
            raise MatchloomError(f"alpha is {alpha}; expected a number from 0 to 1")
        try:
            return self._search(question, top, candidates, alpha, rerank, explain)
        except MatchloomError:  # the table may have been replaced in between
            if not self._refresh():
                raise
            return self._search(question, top, candidates, alpha, rerank, explain)

    def _search(
        self, question: str, top: int, candidates: int, alpha: float | None, rerank: Scorer | None, explain: bool
    ) -> list[Answer]:
        view = self.snapshot()
        weight = view.about.alpha if alpha is None else alpha
        vector = view.vector(question)
        rows = self.candidates(view, question, vector, candidates, weight)
        if not rows:
            return []
        found = self.parts(view, question, vector, rows, rerank)
        scores = weight * found.similarity + (1 - weight) * found.match
        last = np.partition(scores, -min(top, len(rows)))[-min(top, len(rows))]
        first = np.flatnonzero(scores >= last)  # only what is shown is read and sorted
        shown = view.store.take([rows[n] for n in first], TEXTS).to_pylist()
        answers = []
        for n, row in zip(first.tolist(), shown, strict=True):
            parts = (float(scores[n]), float(found.similarity[n]), float(found.match[n]))
            answers.append(Answer(row["id"], row["question"], row["answer"], *parts))
        answers = sorted(answers, key=lambda answer: (-answer.score, answer.id))[:top]
        if explain:
            answers = [one._replace(explanation=explain_pair(found.scorer, question, one.answer)) for one in answers]
        return answers

    def snapshot(self) -> View:
        """The archive as it is now; it stays so while others write."""
        self._refresh()
        about = self._about
        return View(about, self._newest.store(about.table), self._matcher_of(about))

    def candidates(self, view: View, question: str, vector: Vectors | None, count: int, alpha: float) -> RowIds:
        """The rows worth a full score with this alpha: by words and by vectors in turns, the best of each first."""
        towards = None
        if view.matcher is not None and vector is not None:
            towards = self._sketch(view.store).towards(view.matcher, vector, alpha)
        by_words, by_vector = view.store.nearest(asked(view.about.tokenizer(question)), towards, count)
        turns = chain.from_iterable(zip_longest(by_vector, by_words))
        return list(dict.fromkeys(row for row in turns if row is not None))[:count]

    def parts(
        self, view: View, question: str, vector: Vectors | None, rows: RowIds, rerank: Scorer | None = None
    ) -> Parts:
        """The two parts of the score of these rows, not mixed yet, and what made the second."""
        if view.matcher is None or vector is None:
            of_question, of_answer = self._counts(view.store, view.about.tokenizer)
            scorer = rerank or view.matcher or of_answer
            taken = view.store.take(rows, ["question", "answer"])
            similarity = of_question.score([Pair(question, other) for other in taken["question"].to_pylist()])
            return Parts(similarity, _scores(scorer, question, taken), scorer)
        taken = view.store.take(rows, [VECTORS] if rerank is None else [VECTORS, "answer"])
        v_q, v_a = vectors_of(taken)
        match = view.matcher.match_vectors(vector, v_a) if rerank is None else _scores(rerank, question, taken)
        return Parts(v_q @ vector, match, rerank or view.matcher)

    def texts(self, side: str = "answer") -> list[str]:
        """The questions or answers of at most 20,000 pairs, evenly spread: what lexical scorers count words in."""
        found: list[str] = self._store().sample([side], _SAMPLE)[side].to_pylist()
        return found

    def status(self) -> dict[str, Any]:
        """What there is: pairs, how many of them the indices hold, the matcher, alpha, and the bytes on the disk."""
        self._refresh()
        store = self._store()
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {
            "pairs": len(store),
            **store.status(),
            "matcher": self._about.matcher_name,
            "matcher_folder": self._about.matcher_folder,
            "vector_size": self._about.vector_size,
            "tokenizer": self._about.tokenizer.kind,
            "alpha": self._about.alpha,
            "bytes": sum(path.stat().st_size for path in files),
        }

    # ---- inside

    def _store(self) -> Store:
        return Store.open(self._database, self.folder, self._about.table)

    def _matcher_of(self, about: About) -> Matcher | None:
        if about.matcher is None:
            return None
        loaded = self._loaded
        if loaded is None or loaded[0] != about.matcher:
            matcher = encoder.fitting(self.folder, about, None)
            assert matcher is not None  # there is one
            self._loaded = loaded = (about.matcher, matcher)
        return loaded[1]

    def _refresh(self) -> bool:
        """Read the settings again if another process replaced them; True if so."""
        now = stamp(self.folder)
        if now == self._stamp:
            return False
        about = read_about(self.folder)
        self._about, self._stamp = about, now
        return True

    def _rows(self, ids: list[str], questions: list[str], answers: list[str]) -> pa.Table:
        cut = self._about.tokenizer
        words = [" ".join(stems(cut(q) + cut(a))) for q, a in zip(questions, answers, strict=True)]
        columns = {"id": ids, "question": questions, "answer": answers, "words": words}
        vectors: tuple[Vectors, Vectors] | None = None
        if self._about.vector_size is not None:
            assert self.matcher is not None  # whatever has vectors has what made them
            vectors = (self.matcher.vectors(questions), self.matcher.vectors(answers, side="right"))
        try:
            return rows_of(columns, vectors)
        except UnicodeEncodeError as error:
            broken = error.object[error.start : error.end]
            raise MatchloomError(f"a pair cannot be archived: {broken!r} is half a character; remove it") from None

    def _maintain(self) -> None:
        trained_on = self._store().maintain(self._about.trained_on)
        if trained_on != self._about.trained_on:
            replace(self._about, trained_on=trained_on).write(self.folder)
            self._refresh()

    def _counts(self, store: Store, tokenizer: Tokenizer) -> tuple[BM25Share, BM25Share]:
        """BM25 over the archive's questions and over its answers."""
        if self._counted is None or self._counted.stale(store):
            found = store.sample(("question", "answer"), _SAMPLE)
            sides = [found[name].to_pylist() or [""] for name in ("question", "answer")]
            questions, answers = (BM25Share.fit(texts, tokenizer) for texts in sides)
            self._counted = Gathered((questions, answers), store)
        return self._counted.value

    def _sketch(self, store: Store) -> Sketch:
        """What the answer vectors of this table look like."""
        if self._sketched is None or self._sketched.stale(store):
            _, answers = vectors_of(store.sample([VECTORS], Sketch.SAMPLE))
            self._sketched = Gathered(Sketch(answers), store)
        return self._sketched.value


def pair_id(pair: Pair) -> str:
    """The id under which a pair is archived."""
    return "/".join(part for part in (pair.query_id, pair.text_id) if part) or digest(pair.query, pair.text)


def _scores(scorer: Scorer, question: str, taken: pa.Table) -> Scores:
    return scorer.score([Pair(question, answer) for answer in taken["answer"].to_pylist()])
