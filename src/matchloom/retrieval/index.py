"""QuestionIndex: an archive of answered questions on disk. Was this asked before, and what was the answer?

A new question t is compared with every candidate (q, a) of the archive by the mixture of Qiu and Huang (IJCAI 2015):

    score = alpha * v_t . v_q + (1 - alpha) * s(t, a)

Candidates come from two sides, the full-text index over the words of question and answer, and the vectors (see
candidate_direction.py); they are taken in turns, best first, up to `candidates` in all. Each part can be replaced:

    the archive's matcher           v_t . v_q                       s(t, a)
    has sentence vectors (CNTN)     from the stored vectors         from the stored vectors
    has none (MV-LSTM, Match-SRNN)  BM25 share of t with q          by the matcher, at every search
    there is none                   BM25 share of t with q          BM25 share of t with a
    `rerank` is given               as above                        by that scorer, at every search

v_t and v_q have a length of one: CNTN's do anyway, and those of other models must not bring long questions up. Both
are mixed as they are, without a scale between them: alpha is what makes up for it, and `tune` finds it. A BM25 share is
BM25 of stems over what the question scores with itself (see normalized_bm25.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchloom.data.ids import digest
from matchloom.explanation import explain as explain_pair
from matchloom.matcher import Matcher
from matchloom.progress import bar
from matchloom.retrieval import encoder
from matchloom.retrieval.archive import BATCH, Archive
from matchloom.retrieval.candidate_direction import CandidateDirection
from matchloom.retrieval.manifest import ArchiveManifest, prepare, read_manifest, size_of, writing
from matchloom.retrieval.normalized_bm25 import NormalizedBM25, asked
from matchloom.retrieval.snapshot import Added, Answer, Gathered, MixtureScores, Snapshot, check_search
from matchloom.retrieval.store import TEXTS, VECTORS, RowIds, Store, Vectors, connect, unit, vectors_of
from matchloom.retrieval.tuning import Tuned, tune_alpha
from matchloom.text.tokenize import Tokenizer, replace_surrogates
from matchloom.types import MatchloomError, Pair, Scorer, Scores

_log = logging.getLogger(__name__)

_SAMPLE = 20_000  # pairs in which words are counted


class QuestionIndex(Archive):
    """An archive of questions with their answers, in a folder that one may write and many may read at a time.

    >>> index = QuestionIndex.create("faq.archive", "runs/faq")  # doctest: +SKIP
    >>> index.add(read_pairs("faq.tsv", fill_ids=False))  # doctest: +SKIP
    >>> index.search("how do I get my money back?", top=3)  # doctest: +SKIP
    """

    def __init__(self, folder: Path, manifest: ArchiveManifest, matcher: Matcher | None, database: Any) -> None:
        """Not for callers: use `create` or `open`."""
        super().__init__(folder, manifest, matcher, database)
        self._counted: Gathered[tuple[NormalizedBM25, NormalizedBM25]] | None = None
        self._sampled: Gathered[CandidateDirection] | None = None

    @classmethod
    def create(
        cls, folder: Path | str, matcher: Matcher | Path | str | None = None, *, tokenizer: Tokenizer | None = None
    ) -> QuestionIndex:
        """A new archive in an empty folder. Without a matcher it searches by BM25 alone.

        Args:
            folder: Where; it is made, and must be empty if it exists.
            matcher: What encodes the archive, or its folder.
            tokenizer: How the full-text index and BM25 find words; a matcher brings its own.
        """
        folder = Path(folder)
        if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
            raise MatchloomError(f"tokenizer is {tokenizer!r}; expected Tokenizer({tokenizer!r})")
        loaded = encoder.load(matcher)
        prepare(folder)
        with writing(folder):
            prepare(folder)  # another may have made it meanwhile
            manifest = encoder.manifest_of("pairs-1", loaded, matcher, tokenizer or Tokenizer())
            database = connect(folder)
            Store.create(database, folder, manifest.table, manifest.vector_size)
            manifest.write(folder)
        return cls(folder, manifest, loaded, database)

    @classmethod
    def open(cls, folder: Path | str, matcher: Matcher | Path | str | None = None) -> QuestionIndex:
        """An archive that is there. Its matcher is loaded when first needed, from where it was, unless it is given.

        A matcher that is not the one which made the vectors is refused.

        Args:
            folder: The archive's.
            matcher: The archive's matcher, or its folder, where it was moved.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        given = None if matcher is None else encoder.fitting(folder, manifest, matcher)
        opened = cls(folder, manifest, given, connect(folder))
        if isinstance(matcher, Path | str) and manifest.matcher is not None:
            opened._moved = (manifest.matcher, str(Path(matcher).resolve()))  # kept with the next write
        opened._current()
        return opened

    def __len__(self) -> int:
        return len(self._current()[1])

    @property
    def matcher(self) -> Matcher | None:
        """What encodes the archive, if anything does."""
        self._refresh()
        return self._matcher_of(self._manifest)

    @property
    def tokenizer(self) -> Tokenizer:
        """How the archive's texts become words."""
        self._refresh()
        return self._manifest.tokenizer

    @property
    def alpha(self) -> float:
        """The weight of the similarity of questions, unless a search is given another."""
        self._refresh()
        return self._manifest.alpha

    # ---- writing

    def add(self, pairs: Iterable[Pair], *, progress: bool = False) -> Added:
        """Add pairs (query is the question, text the answer) as a stream; those with label 0 are left out.

        A pair's id is its `query_id` and `text_id`, those that are not empty, joined by '/'; without either, a digest
        of both texts. A pair whose id is there already takes its place. Each batch of 10,000 is on the disk, whole,
        before the next is read: what a killed process had reported is there.

        Args:
            pairs: Questions with their answers.
            progress: Whether to show a bar.
        """
        new = replaced = wrong = 0
        pairs = iter(pairs)
        with bar() as shown:
            task = shown.add_task("Indexing", total=None, note="", visible=progress)
            try:
                while batch := list(islice(pairs, BATCH)):
                    right = [pair for pair in batch if pair.label is None or pair.label > 0]
                    rows = {pair_id(pair): pair for pair in right}  # of two with one id, the last
                    questions, answers = [pair.query for pair in rows.values()], [pair.text for pair in rows.values()]
                    with self._writing() as store:
                        there = store.upsert(self._encoded(list(rows), questions, answers)) if rows else 0
                        self._keep(written=self._manifest.written + len(rows))
                    new += len(rows) - there
                    replaced += len(right) - len(rows) + there
                    wrong += len(batch) - len(right)
                    shown.update(task, completed=new + replaced)
            except KeyboardInterrupt:
                _log.warning("stopped; %s new pairs are in the archive, go on with the rest", f"{new:,}")
                raise
            shown.update(task, note="bringing indices up to date")
            self._maintain()
        return Added(new, replaced, wrong)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove pairs by id; how many there were. Their texts stay in files until these are merged: see `compact`.

        Args:
            ids: As `search` gives them; unknown ones are left alone.
        """
        if isinstance(ids, str):
            raise MatchloomError(f"ids is the text {ids!r}; expected a list of ids, such as [{ids!r}]")
        ids = list(ids)
        for one in ids:
            if not isinstance(one, str) or replace_surrogates(one) != one:
                raise MatchloomError(f"the id {one!r} is no text; expected ids as `search` gives them")
        with self._writing() as store:
            count = store.delete(ids)
            self._keep(written=self._manifest.written + count)
        self._maintain()
        return count

    def reencode(self, matcher: Matcher | Path | str, *, progress: bool = False) -> None:
        """Encode every pair again, with a matcher that was trained anew or another one.

        The vectors go into a second table, and one small file says which of both is in use. So readers see all old
        vectors or all new ones, and a run that is cut off leaves the archive as it was. alpha goes back to its start:
        it was tuned for other scores.

        Args:
            matcher: What is to encode the archive from now on, or its folder.
            progress: Whether to show a bar.
        """
        loaded = encoder.load(matcher)
        with writing(self.folder):
            old = read_manifest(self.folder)
            manifest = encoder.manifest_of(old.next_table, loaded, matcher, old.tokenizer)

            def encoded(batch: pa.RecordBatch) -> pa.Table:
                return encoder.rows(manifest, loaded, *(batch.column(name).to_pylist() for name in TEXTS))

            self._copy(old, manifest, TEXTS, encoded, progress)
            self._loaded = None if loaded is None or manifest.matcher is None else (manifest.matcher, loaded)
        with writing(self.folder):  # sweeps the old table away; a search that still reads it starts again
            pass

    def compact(self, *, progress: bool = False) -> None:
        """Copy the archive, so that nothing of what was deleted or replaced is left on the disk. Others may search.

        Args:
            progress: Whether to show a bar.
        """
        with writing(self.folder):
            old = read_manifest(self.folder)
            manifest = replace(old, table=old.next_table)
            self._copy(old, manifest, None, lambda batch: pa.Table.from_batches([batch]), progress)
        with writing(self.folder):
            pass

    def tune(
        self, pairs: Iterable[Pair], *, rerank: Scorer | None = None, candidates: int = 100, progress: bool = False
    ) -> Tuned:
        """Find the alpha, on a grid of 0.05, with the highest mean average precision, and keep it.

        Where every question has both labels, the judged pairs alone are ranked; else all candidates are, and what was
        not judged counts as wrong. With `rerank` the result is returned but not kept: it holds for that scorer only.

        Args:
            pairs: Judged pairs: query is a new question, `text_id` the id of an archived pair (or text its question),
                label 1 where that answers it.
            rerank: A scorer in place of the archive's own match.
            candidates: How many pairs are looked at for each question.
            progress: Whether to show a bar.
        """
        if rerank is None:
            with writing(self.folder):  # where nothing can be kept, nothing need be measured
                pass
        snapshot = self.snapshot()
        tuned = tune_alpha(self, snapshot, list(pairs), rerank, candidates, progress)
        if rerank is None:
            with self._writing():
                if self._manifest.matcher != snapshot.manifest.matcher:
                    raise MatchloomError(f"{self.folder} was encoded anew meanwhile; tune it again")
                self._keep(alpha=tuned.alpha)
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

        Args:
            question: The new question.
            top: At most this many answers.
            candidates: How many pairs get a full score, found by words and by vectors.
            alpha: The weight of the questions' similarity; the archive's own by default.
            rerank: A scorer in place of the archive's own match s(t, a).
            explain: Add to each answer why it matched.
        """
        check_search(question, top, candidates, alpha, rerank)
        while True:
            snapshot = self.snapshot()
            try:
                return self._search(snapshot, question, top, candidates, alpha, rerank, explain)
            except MatchloomError:
                if self._in_use(snapshot.manifest):
                    raise  # else the table was replaced in between

    def _search(
        self,
        snapshot: Snapshot,
        question: str,
        top: int,
        candidates: int,
        alpha: float | None,
        rerank: Scorer | None,
        explain: bool,
    ) -> list[Answer]:
        weight = snapshot.manifest.alpha if alpha is None else alpha
        vector = snapshot.vector(question)
        rows = self.candidates(snapshot, question, vector, candidates, weight)
        if not rows:
            return []
        found = self.mixture(snapshot, question, vector, rows, rerank)
        scores = weight * found.similarity + (1 - weight) * found.match
        if not np.isfinite(scores).all():
            raise MatchloomError(f"{found.scorer.name} gave a score that is no number; rerank by another scorer")
        last = np.partition(scores, -min(top, len(rows)))[-min(top, len(rows))]
        first = np.flatnonzero(scores >= last)  # only what is shown is read and sorted
        shown = snapshot.store.take([rows[n] for n in first], TEXTS).to_pylist()
        answers = []
        for n, row in zip(first.tolist(), shown, strict=True):
            parts = (float(scores[n]), float(found.similarity[n]), float(found.match[n]))
            answers.append(Answer(row["id"], row["question"], row["answer"], *parts))
        answers = sorted(answers, key=lambda answer: (-answer.score, answer.id))[:top]
        if explain:
            answers = [one._replace(explanation=explain_pair(found.scorer, question, one.answer)) for one in answers]
        return answers

    def snapshot(self) -> Snapshot:
        """The archive as it is now; it stays so while others write."""
        manifest, store = self._current()
        return Snapshot(manifest, store, self._matcher_of(manifest))

    def candidates(self, snapshot: Snapshot, question: str, vector: Vectors | None, count: int, alpha: float) -> RowIds:
        """The rows worth a full score with this alpha: by words and by vectors in turns, the best of each first.

        Args:
            snapshot: The archive as it was at one time.
            question: The new question.
            vector: Its sentence vector, where the archive has any.
            count: At most this many.
            alpha: The weight of the questions' similarity.
        """
        towards = None
        if snapshot.matcher is not None and vector is not None:
            towards = self._direction(snapshot).towards(snapshot.matcher, vector, alpha)
        by_words, by_vector = snapshot.store.nearest(asked(snapshot.manifest.tokenizer(question)), towards, count)
        turns = chain.from_iterable(zip_longest(by_vector, by_words))
        return list(dict.fromkeys(row for row in turns if row is not None))[:count]

    def mixture(
        self, snapshot: Snapshot, question: str, vector: Vectors | None, rows: RowIds, rerank: Scorer | None = None
    ) -> MixtureScores:
        """Similarity and match of these rows, not mixed yet, and what made the second.

        Args:
            snapshot: The archive as it was at one time.
            question: The new question.
            vector: Its sentence vector, where the archive has any.
            rows: Those of `candidates`.
            rerank: A scorer in place of the archive's own match.
        """
        if snapshot.matcher is None or vector is None:
            of_question, of_answer = self._counts(snapshot)
            scorer = rerank or snapshot.matcher or of_answer
            taken = snapshot.store.take(rows, ["question", "answer"])
            similarity = of_question.score([Pair(question, other) for other in taken["question"].to_pylist()])
            return MixtureScores(similarity, _scores(scorer, question, taken), scorer)
        taken = snapshot.store.take(rows, [VECTORS] if rerank is None else [VECTORS, "answer"])
        v_q, v_a = vectors_of(taken)
        match = snapshot.matcher.match_vectors(vector, v_a) if rerank is None else _scores(rerank, question, taken)
        return MixtureScores(v_q @ unit(vector), match, rerank or snapshot.matcher)

    def texts(self, side: str = "answer") -> list[str]:
        """The questions or answers of at most 20,000 pairs, evenly spread: what lexical scorers count words in.

        Args:
            side: "question" or "answer".
        """
        if side not in ("question", "answer"):
            raise MatchloomError(f"side is {side!r}; expected 'question' or 'answer'")
        found: list[str] = self._current()[1].sample([side], _SAMPLE)[side].to_pylist()
        return found

    def status(self) -> dict[str, Any]:
        """What there is: pairs, how many of them the indices hold, the matcher, alpha, and the bytes on the disk."""
        manifest, store = self._current()
        return {
            "pairs": len(store),
            **store.status(),
            "matcher": manifest.matcher_name,
            "matcher_folder": manifest.matcher_folder,
            "vector_size": manifest.vector_size,
            "tokenizer": manifest.tokenizer.kind,
            "alpha": manifest.alpha,
            "bytes": size_of(self.folder),
        }

    # ---- inside

    def _encoded(self, ids: list[str], questions: list[str], answers: list[str]) -> pa.Table:
        return encoder.rows(self._manifest, self._matcher_of(self._manifest), ids, questions, answers)

    def _maintain(self) -> None:
        with self._writing() as store:
            trained_on = store.maintain(self._manifest.trained_on)
            if trained_on != self._manifest.trained_on:
                self._keep(trained_on=trained_on)

    def _counts(self, snapshot: Snapshot) -> tuple[NormalizedBM25, NormalizedBM25]:
        """BM25 over the archive's questions and over its answers."""
        counted = self._counted  # other threads may replace it
        if counted is None or counted.stale(snapshot.manifest):
            found = snapshot.store.sample(("question", "answer"), _SAMPLE)
            sides = [found[name].to_pylist() or [""] for name in ("question", "answer")]
            questions, answers = (NormalizedBM25.fit(texts, snapshot.manifest.tokenizer) for texts in sides)
            self._counted = counted = Gathered((questions, answers), snapshot)
        return counted.value

    def _direction(self, snapshot: Snapshot) -> CandidateDirection:
        """What the answer vectors of this table look like."""
        sampled = self._sampled
        if sampled is None or sampled.stale(snapshot.manifest):
            _, answers = vectors_of(snapshot.store.sample([VECTORS], CandidateDirection.SAMPLE))
            self._sampled = sampled = Gathered(CandidateDirection(answers), snapshot)
        return sampled.value


def pair_id(pair: Pair) -> str:
    """The id under which a pair is archived."""
    return "/".join(part for part in (pair.query_id, pair.text_id) if part) or digest(pair.query, pair.text)


def _scores(scorer: Scorer, question: str, taken: pa.Table) -> Scores:
    return scorer.score([Pair(question, answer) for answer in taken["answer"].to_pylist()])
