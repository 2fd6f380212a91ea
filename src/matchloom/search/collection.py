"""Collection: answers with their questions, that are asked, changed while they are asked, and kept in a folder.

What `fit` keeps and what `index` makes is a collection, with or without weights that its questions taught. How it is
searched is in `state.py`, how it learns anew in `refitting.py`, what its folder holds in `stored.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from matchloom import artifact
from matchloom.basics.extras import named_extras
from matchloom.basics.parallel import side_by_side, usable_cores
from matchloom.basics.progress import track
from matchloom.basics.validation import at_least_one, many_texts, one_path, one_text
from matchloom.data.entries import Entry
from matchloom.data.unanswerable import has_answer
from matchloom.explanation import Explanation, explanation_of
from matchloom.explanation.budget import CellBudget
from matchloom.lexical.columns import Floats
from matchloom.search.aside import Since, clear_aside, open_aside, write_aside
from matchloom.search.calibration import Calibration
from matchloom.search.changes import added, checked, entries_of, removed, rows_of
from matchloom.search.confidence import Confidence
from matchloom.search.entries import Entries
from matchloom.search.explaining import with_known_question
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.feedback import Judgement, Judgements, as_judgements
from matchloom.search.folder import KIND, REFIT_LOCK, refuse_used, stamp
from matchloom.search.fusion import Fusion, LeaveOneOut
from matchloom.search.journal import Change, Journal
from matchloom.search.learning import Settings, learn
from matchloom.search.refitting import Refit, learn_anew
from matchloom.search.state import ENCODER_ALONE, FITTED, WITH_ENCODER, State
from matchloom.search.stored import About, read_state, write_state
from matchloom.search.view import View, Where
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Added, Hits, MatchloomError, Pair, Scores, Trace

if TYPE_CHECKING:
    from matchloom.data.formats import PairsLike
    from matchloom.data.formats.columns import Columns
    from matchloom.matcher import Matcher
    from matchloom.search.checkup import CheckUp

__all__ = ["ENCODER_ALONE", "FITTED", "WITH_ENCODER", "Collection", "Refit", "entries_of"]

Feedback = str | Path | Judgements | Iterable[Judgement]
LANCE, STORES = "archive", ("files", "lance")
_IN_VAIN = 10_000  # questions without an answer that are kept
_PERHAPS = 3  # answers that are given where none is sure enough
_AT_ONCE = 256  # questions that are compared together
_WORTH = 64  # questions that are worth a thread
_QUICK = 2_000  # entries that were changed since the fit, up to which a search takes a millisecond or two
_TRIES, _PAUSE = 5, 0.02  # while another fit is switched to; seconds


class Collection:
    """Answers with their questions. Made by `fit` or `create`, opened by `open`; changed by `add` and `remove`.

    >>> pairs = [Pair("how do I weave?", "Use a loom."), Pair("how do I grind corn?", "Use a mill.")]
    >>> faq = Collection.fit(pairs)
    >>> [hit.text for hit in faq.search("griding corn")]
    ['Use a mill.', 'Use a loom.']
    >>> faq.add([("how do I bake?", "Use an oven.")])
    Added(new=1, replaced=0, wrong=0)
    >>> faq.search("baking", top=1)[0].text
    'Use an oven.'
    """

    patience: float = 30.0  # seconds that a change waits for another writer

    def __init__(self, state: State, sentences: SentenceVectors | None = None) -> None:
        """Not for callers: use `fit`, `create` or `open`."""
        self.name = state.name
        self.folder: Path | None = None
        self.report: dict[str, Any] | None = None  # what `fit` measured
        self.page: bytes | None = None  # the report for people
        self.since_report = 0  # entries that were changed between the report and the last fit
        self._state, self._sentences = state, sentences
        self._confidence = Confidence()
        self._journal: Journal | None = None
        self._stamp: tuple[int, int] = (0, 0)
        self._held = 0  # bytes of the journal that the state holds
        self._changes: list[Change] = []  # since the fit
        self._lock = threading.RLock()

    # ---- making

    @classmethod
    def fit(
        cls,
        pairs: PairsLike | Entries,
        *,
        tokenizer: Tokenizer | None = None,
        sentences: SentenceVectors | None = None,
        words: bool = True,
        use_questions: bool = True,
        learn_weights: bool = True,
        features: Sequence[str] = (),
        baseline: str | None = None,
        unanswerable: Sequence[str] = (),
        seed: int = 0,
        progress: bool = False,
    ) -> Collection:
        """Learn from pairs of questions and their answers; `Entries.of` says which pairs are of one answer.

        With `sentences`, what a pretrained encoder makes of the texts is compared, too; without `words`, the cosine
        with the nearest known text is all there is: what one would do with such an encoder and nothing else. Without
        `use_questions` a question is compared with the answers' texts alone, and known questions only teach how. With
        `baseline`, one of `search/baselines.py` ranks: what is kept where nothing that is learnt is better. `features`
        names the only ones to make, such as bm25_doc for plain BM25; `unanswerable` are questions that have no answer
        here, which teach when there is none. Nothing is drawn at random: `seed` is taken as
        every fit takes it and changes nothing.

        Args:
            pairs: Questions with their answers: Pairs, tuples, dicts, a data frame or the path of a file; or Entries.
            tokenizer: How texts become words.
            sentences: The sentence vectors of a pretrained encoder.
            words: Whether words and characters are compared.
            use_questions: Whether known questions are compared with the one asked.
            learn_weights: Learn from left-out questions how much each feature counts.
            features: The only features to make; all that pay by default.
            baseline: The name of a baseline that ranks in place of features.
            unanswerable: Questions that have no answer here: they teach when there is none.
            seed: Changes nothing.
            progress: Whether to show a bar.
        """
        entries = pairs if isinstance(pairs, Entries) else entries_of(pairs)
        learns = learn_weights and baseline is None
        settings = Settings(
            tokenizer or Tokenizer(),
            words,
            use_questions,
            learns,
            baseline,
            tuple(features),
            tuple(sorted(set(unanswerable)))[:_IN_VAIN],
        )
        return cls(State.of(learn(entries, settings, sentences, progress=progress), settings), sentences)

    @classmethod
    def create(
        cls,
        folder: Path | str,
        pairs: PairsLike,
        *,
        encoder: Matcher | Path | str | None = None,
        tokenizer: Tokenizer | None = None,
        learn_weights: bool = False,
        features: Sequence[str] = (),
        columns: Columns | None = None,
        store: str = "files",
        progress: bool = False,
    ) -> Collection:
        """A new collection in an empty folder. Without `learn_weights` features count as they did elsewhere.

        Args:
            folder: Where; it is made, and must be empty if it exists.
            pairs: Questions with their answers: Pairs, tuples, dicts, a data frame or the path of a file.
            encoder: A matcher with sentence vectors, or its folder; they are compared, too.
            tokenizer: How texts become words.
            learn_weights: Learn from the questions how much each feature counts, as `fit` does.
            features: The only features to make, such as ("bm25_doc",) for plain BM25; all that pay by default.
            columns: Your names of the columns, such as {"query": "title", "text": "body"}.
            store: "files", which are mapped; or "lance", a LanceDB table for millions of pairs, which learns nothing.
            progress: Whether to show a bar.
        """
        path = one_path("folder", folder)
        if store not in STORES:
            raise MatchloomError(f"store is {store!r}; expected one of {', '.join(STORES)}", code="unknown_name")
        if store == "lance":
            return _created_in_lance(path, pairs, encoder, tokenizer, columns, progress)
        refuse_used(path)
        sentences = None if encoder is None else SentenceVectors(_matcher(encoder))
        entries = entries_of(pairs, columns)
        made = cls.fit(
            entries,
            tokenizer=tokenizer,
            sentences=sentences,
            learn_weights=learn_weights,
            features=features,
            progress=progress,
        )
        made.save(path)
        return cls.open(path)

    @classmethod
    def open(cls, folder: Path | str) -> Collection:
        """A collection that is there. What others write into its folder is found by the next search.

        What was made with `store="lance"` has the same methods, but for those that learn.

        Args:
            folder: What `save`, `create` or `fit` wrote.
        """
        path = one_path("folder", folder)
        if artifact.kind_of(path) == LANCE:
            return cast(Collection, artifact.load(path))
        made = cls.__new__(cls)
        made._lock = threading.RLock()
        made._confidence = Confidence()
        made.folder = path
        made._sentences = None
        made._load()
        return made

    @staticmethod
    def check(folder: Path | str) -> CheckUp:
        """Read every file and every entry of a collection, and say what is damaged. The result is true if nothing is.

        Args:
            folder: The collection's; it need not open.
        """
        from matchloom.search.checkup import check_collection

        path = one_path("folder", folder)
        if artifact.kind_of(path) == LANCE:
            from matchloom.search.lance.collection import LanceCollection

            return LanceCollection.check(path)
        return check_collection(path)

    @property
    def settings(self) -> Settings:
        """What questions are compared with."""
        return self._state.settings

    @property
    def tokenizer(self) -> Tokenizer:
        """How texts become words."""
        return self.settings.tokenizer

    @property
    def encoder(self) -> Matcher | None:
        """What makes its sentence vectors; None where only words are compared."""
        return None if self._sentences is None else self._sentences.matcher

    @property
    def fusion(self) -> Fusion:
        """The features and their weights."""
        return self._state.fusion

    @property
    def calibration(self) -> Calibration | None:
        """What makes probabilities of scores; None where there is nothing that they could rest on."""
        return self._state.calibration

    @property
    def leave_one_out(self) -> LeaveOneOut | None:
        """How often known questions found their answer when they were left out, as it was last fitted."""
        return self._state.figures

    @property
    def is_quick(self) -> bool:
        """Whether a search takes a millisecond or two: no encoder, few entries, and nothing to read before."""
        small = self._sentences is None and self.settings.baseline is None and self._state.is_small
        return small and self._state.view.changes <= _QUICK and self._is_current()

    @property
    def changed(self) -> int:
        """How many entries were changed since the last fit."""
        return self._current().view.changes

    @property
    def changed_since_report(self) -> int | None:
        """How many entries were changed since `fit` measured it; None where it was never measured."""
        return None if self.report is None else self.since_report + self.changed

    @property
    def version(self) -> tuple[object, int]:
        """What differs when anything was changed, by whomever."""
        self._current()
        return self._stamp, len(self._changes)

    @property
    def entries(self) -> Entries:
        """All entries as they are now, by id."""
        return self._current().view.entries()

    def __len__(self) -> int:
        return len(self._current().view)

    def __repr__(self) -> str:
        return f"Collection({len(self):,} answers, searched by {self.name})"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._current().view.row_of(name) is not None

    def find(self, text: str) -> Entry | None:
        """The entry of a text, case and spaces apart.

        Args:
            text: Of an answer.
        """
        view = self._current().view
        row = view.row_of_text(text)
        return None if row is None else view.entry(row)

    def __getitem__(self, name: str) -> Entry:
        view = self._current().view
        row = view.row_of(name)
        if row is None:
            raise MatchloomError(f"no entry has the id {name[:80]!r}; a search shows ids", code="missing")
        return view.entry(row)

    def status(self) -> dict[str, Any]:
        """What there is: entries, questions, what compares them, and what has changed since it was measured."""
        view = self._current().view
        entries = view.entries()
        questions = sum(len(own) for own in entries.questions)
        figures = self.leave_one_out
        return {
            "entries": len(entries),
            "questions": questions,
            "scorer": self.name,
            "features": list(self.fusion.names),
            "learnt": self.settings.learn,
            "changed_since_fit": view.changes,
            "changed_since_report": self.changed_since_report,
            "left_out_precision": None if figures is None else figures.precision_at_1,
            "judged": len(self._state.judged),
        }

    # ---- searching

    @overload
    def search(  # type: ignore[overload-overlap]  # a text is many letters too
        self,
        question: str,
        *,
        top: int | None = 10,
        where: Where | None = None,
        explain: bool | int = False,
        precision: float | None = None,
    ) -> Hits: ...

    @overload
    def search(
        self,
        question: Iterable[str],
        *,
        top: int | None = 10,
        where: Where | None = None,
        explain: bool | int = False,
        precision: float | None = None,
        progress: bool = False,
    ) -> list[Hits]: ...

    def search(
        self,
        question: str | Iterable[str],
        *,
        top: int | None = 10,
        where: Where | None = None,
        explain: bool | int = False,
        precision: float | None = None,
        progress: bool = False,
    ) -> Hits | list[Hits]:
        """The answers that fit a question best, each once, the best first; equal scores are ordered by id.

        None where nothing of the question is known. `known` of what is found says how likely it is that any answer is
        right; the probabilities of all answers add up to it. `confident` says whether the first is sure enough to be
        given as the answer (`search/confidence.py`). An answer that was judged wrong for exactly this question
        (`refit`) is left out.

        Args:
            question: The question; many of them, in a list, give a list each.
            top: At most this many answers; None for all.
            where: Values that entries must have in your own columns, such as {"language": "en"}.
            explain: Add to each answer why it got its score; the question is still read once. A number explains the
                best ones while their maps have so many cells in all (pairs of words in one channel).
            precision: State that of the answers you show so many are right, such as 0.95: `answered` of what is found
                says whether the first one is sure enough. Where it is not, the nearest three are given.
            progress: Whether to show a bar.
        """
        if top is not None:
            at_least_one("top", top)
        threshold = None if precision is None else self.threshold(precision)
        if isinstance(question, str):
            if not question.strip():
                raise MatchloomError(f"the question is {question!r}; expected a text", code="no_data")
            return self._found([question], top, where, CellBudget(explain), threshold)[0]
        if isinstance(question, bytes) or not isinstance(question, Iterable):
            raise MatchloomError(f"the question is {question!r}; expected a text, or many in a list", code="wrong_type")
        asked = many_texts("question", question)
        budget = CellBudget(explain)
        # Few entries are compared so quickly that Python's own part, which holds its lock, is most of the time; an
        # encoder has all cores to itself; explanations share a budget.
        alone = budget or self._sentences is not None or self.settings.baseline is not None or self._state.is_small
        cores = 1 if alone else usable_cores()
        size = min(_AT_ONCE, max(_WORTH, -(-len(asked) // cores)))
        blocks = [asked[n : n + size] for n in range(0, len(asked), size)]
        found = side_by_side(lambda block: self._found(block, top, where, budget, threshold), blocks, cores)
        shown = track(found, self.name, total=len(blocks), show=progress)
        return [hits for block in shown for hits in block]

    def _found(
        self, questions: Sequence[str], top: int | None, where: Where | None, budget: CellBudget, least: float | None
    ) -> list[Hits]:
        """The answers to questions that are compared together, and whether the first ones are sure."""
        state = self._current()
        found = state.search(questions, top=top, where=where, budget=budget)
        for hits in found:
            hits.confident = self._confidence.of(state.calibration, hits)
        return [_answered(hits, least) for hits in found]

    def threshold(self, precision: float) -> float:
        """The least probability from which on so many of the answers are right, by what left-out questions prove.

        Args:
            precision: Such as 0.95, for at least 95 right answers among 100 that are shown.
        """
        if not 0 < precision < 1:
            raise MatchloomError(f"precision is {precision}; expected a number between 0 and 1", code="bad_value")
        calibration = self._current().calibration
        found = None if calibration is None else calibration.threshold(precision)
        if found is None:
            count = 0 if calibration is None else len(calibration.shown)
            raise MatchloomError(
                f"a precision of {precision} cannot be promised by {count:,} left-out questions; state a lower one, or "
                "add questions and refit",
                code="not_supported",
            )
        return found

    def signals(self, questions: Sequence[str]) -> Floats:
        """What `p(answerable)` is made of, for each question (`search/calibration.py`). (N, 5)

        Args:
            questions: The questions.
        """
        return self._current().signals(questions)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair of a question and an answer; higher matches better.

        A known answer, told by its text or else its id, gets its score in the ranking. Another text is scored by the
        same features as an answer without questions; classifiers, which do not know it, give it nothing.

        Args:
            pairs: Pairs of a question and a text.
            progress: Whether to show a bar.
        """
        return self._current().score(pairs, progress=progress)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Why a text got its score: the words of the question against those of the matched question and the text.

        Args:
            query: The question.
            text: An answer, or any other text.
        """
        return self._current().trace(query, text)

    def explain(self, question: str, answer: str) -> Explanation:
        """Why an answer got its score: what each word of the question and of the answer added.

        Args:
            question: The question.
            answer: The id of an answer, as `search` gives it; or any text.
        """
        question, answer = one_text("question", question), one_text("answer", answer)
        text = self[answer].text if answer in self else answer
        made = explanation_of(self, question, text, self.trace(question, text))
        return with_known_question(self, made, question, text)

    # ---- changing

    def add(self, pairs: PairsLike, *, columns: Columns | None = None, progress: bool = False) -> Added:
        """Add questions and answers: found by every reader, and on the disk, when this returns.

        A question of an answer that is there is one more of its questions. An answer whose id is there with another
        text takes the new text. Pairs with label 0 are left out, and those whose text is empty or no_answer.

        Args:
            pairs: Pairs, tuples, dicts, a data frame or the path of a file; several questions of one answer are
                several pairs with the same text or text_id.
            columns: Your names of the columns, such as {"query": "title", "text": "body"}.
            progress: Whether to show a bar.
        """
        rows = list(rows_of(pairs, columns))
        wrong = sum(not (pair.is_positive and has_answer(pair)) for pair, _ in rows)
        if wrong == len(rows):
            return Added(0, 0, wrong)
        entries = Entries.of([pair for pair, _ in rows], [own for _, own in rows])
        with self._writing():
            change, new = added(self._state.view, entries)
            self._change(change)
        return Added(new, len(change.put) - new, wrong)

    def replace(self, entries: Iterable[Entry]) -> int:
        """Put entries as they are given, questions and columns too, in place of those with the same ids.

        Args:
            entries: Entries (`matchloom.data.entries.Entry`), each with an id and a text.
        """
        put = [checked(entry) for entry in entries]
        with self._writing():
            if put:
                self._change(Change(put))
        return len(put)

    def apply(
        self,
        put: Iterable[Entry] = (),
        remove: Iterable[str] = (),
        *,
        check: Callable[[Mapping[str, Entry | None]], None] | None = None,
    ) -> dict[str, Entry | None]:
        """Put entries and remove others as one change, which is there whole or not at all; what was there before.

        Args:
            put: As for `replace`.
            remove: Ids of others; unknown ones are left alone.
            check: Is given what is there before, by id; what it raises keeps everything as it is.
        """
        entries, names = [checked(entry) for entry in put], list(remove)
        with self._writing():
            view = self._state.view
            rows = {name: view.row_of(name) for name in (*(entry.id for entry in entries), *names)}
            before = {name: None if row is None else view.entry(row) for name, row in rows.items()}
            if check is not None:
                check(before)
            gone = sorted({old.id for name in names if (old := before[name]) is not None})
            if gone and len(gone) == len(view) and not entries:
                raise MatchloomError("a collection keeps one entry at least; remove its folder instead", code="no_data")
            if entries or gone:
                self._change(Change(entries, gone))
        return before

    def remove(self, ids: Iterable[str]) -> int:
        """Remove entries; how many there were.

        Args:
            ids: As `search` gives them; unknown ones are left alone.
        """
        if isinstance(ids, str):
            raise MatchloomError(f"ids is {ids!r}; expected a list of ids, such as [{ids!r}]", code="wrong_type")
        names = list(ids)
        with self._writing():
            change = removed(self._state.view, names)
            if change.remove:
                self._change(change)
        return len(change.remove)

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """Those of the ids that no entry has.

        Args:
            ids: As for `remove`.
        """
        view = self._current().view
        return [name for name in dict.fromkeys(ids) if view.row_of(name) is None]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The folder's lock. It comes before the lock of threads, so that nobody who searches waits for it."""
        if self.folder is None:
            yield
            return
        if not artifact.holds(self.folder, KIND):
            raise MatchloomError(f"{self.folder} is no longer there, or no collection any more", code="missing")
        with artifact.writing(self.folder, wait=self.patience):
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the one who changes the collection, as it is now."""
        with self._locked(), self._lock:
            self._current()
            yield

    def _change(self, change: Change) -> None:
        view = self._state.view.changed(change)  # what cannot be read is refused before it is written
        if self._journal is not None:
            try:
                self._journal.append([change])
            except BaseException:
                self._load()  # as the folder has it: no word of the change is known
                raise
        self._changes.append(change)
        self._take(view)

    def _take(self, view: View) -> None:
        """From now on searches see this. What it holds of the journal is said last: till then others wait for it."""
        self._state = self._state.having(view)
        self._held = 0 if self._journal is None else self._journal.size

    # ---- learning anew

    def keep_columns(self, entries: Entries) -> None:
        """Take the user's own columns from entries with the same ids, as a file has them.

        Args:
            entries: As `Entries.of` makes them of a file.
        """
        with self._lock:
            view = self._state.view
            own = dict(zip(entries.ids, entries.columns, strict=True))
            table = replace(view.base.entries, columns=[own.get(name, {}) for name in view.base.entries.ids])
            segments = (replace(view.base, entries=table), *view.segments[1:])
            self._state = self._state.having(replace(view, segments=segments))

    def refit(
        self,
        *,
        feedback: Feedback | None = None,
        system: str | None = None,
        aside: bool = False,
        progress: bool = False,
    ) -> Refit:
        """Learn from all entries as they are now; searches and changes go on meanwhile.

        The new fit takes the place of the old one whole, and only if left-out questions do not find their answer less
        often by more than chance. So with judgements: a question is learnt as one of the entry that is right for it,
        and an entry that is wrong for a question is no answer to it any more. They stay learnt until others come.

        Args:
            feedback: Judgements, or the file of them that 'matchloom serve' kept.
            system: The name under which it was judged, where the file has judgements of several collections.
            aside: Keep the new fit aside, for `promote`, whatever it found; nothing is switched to.
            progress: Whether to show a bar.
        """
        given = None if feedback is None else as_judgements(feedback)
        if given is not None:
            given = given.of_system(system or self._served_name, alone=system is not None)
        with self._refitting():
            return self._refit(given, aside, progress)

    def promote(self) -> Refit:
        """Switch to the fit that `refit(aside=True)` made, with all that was changed since.

        Refused where there is none, where another fit was kept since, or where it was worse.
        """
        with self._writing():
            found = open_aside(self.folder, self._stamp)
            made = Collection.open(found.folder)
            self._keep(made._state, self._changes[found.learnt :], found.changes)
        clear_aside(self.folder)
        return Refit(**found.refit)._replace(kept=True, aside=False, feedback=None)

    def _refit(self, given: Judgements | None, aside: bool, progress: bool) -> Refit:
        with self._lock:
            state, count = self._current(), len(self._changes)
            seen = self._stamp
        made, done = learn_anew(state, given, self._sentences, progress=progress)
        if aside:
            waiting = done._replace(kept=False, aside=True)
            self._keep_aside(made, waiting, not done.kept, Since(seen, count, state.view.changes))
            return waiting
        if not done.kept:
            return done
        with self._writing():
            if self._stamp != seen:
                return done._replace(kept=False, why="another fit was kept meanwhile")
            self._keep(made, self._changes[count:], state.view.changes)
        return done

    def _made_of(self, entries: Entries) -> State:
        """Other entries, learnt in the same way."""
        return State.of(learn(entries, self.settings, self._sentences), self.settings)

    @property
    def _served_name(self) -> str:
        """The name under which the folder is served, unless it is given another."""
        return "" if self.folder is None else self.folder.resolve().name

    @contextmanager
    def _refitting(self) -> Iterator[None]:
        """Be the one who refits: a second one would do the same work for nothing."""
        if self.folder is None:
            yield
            return
        with artifact.try_lock(self.folder / REFIT_LOCK) as ours:
            if not ours:
                raise MatchloomError(f"{self.folder} is being refitted by another process; wait for it", code="busy")
            yield

    def _keep_aside(self, state: State, done: Refit, worse: bool, since: Since) -> None:
        if self.folder is None:
            raise MatchloomError("only a collection in a folder keeps a fit aside; save it first", code="not_supported")
        made = Collection(state, self._sentences)
        made.report, made.page, made.since_report = self.report, self.page, self.since_report
        plain = {**done._asdict(), "feedback": None}
        write_aside(self.folder, made.save, plain, worse, since)

    def _keep(self, state: State, later: Sequence[Change], number: int) -> None:
        """Switch to a fit that has learnt so many changes, and to what was changed while it was made."""
        view = state.view
        for change in later:
            view = view.changed(change)
        before = self._state, self._changes, self.since_report
        self._state, self._changes = state.having(view), list(later)
        self.since_report += number
        if self.folder is not None:
            try:
                self._write(self.folder)
            except BaseException:
                self._state, self._changes, self.since_report = before
                raise
            self._load()

    # ---- the folder

    def save(self, folder: Path | str) -> None:
        """Write the collection as a folder: all of it or nothing; no pickle.

        Args:
            folder: Where; it is made if it is new.
        """
        path = one_path("folder", folder)
        if self.folder is None or not path.exists() or not path.samefile(self.folder):
            with self._lock:
                self._write(path)
            return
        with self._writing():  # what others have changed is kept
            self._write(path)
            self._load()

    def _write(self, folder: Path) -> None:
        about = About(self.report, self.page, self.since_report)
        write_state(folder, self._state, self._changes, about, self._sentences)

    def _load(self) -> None:
        """Read the folder as it is now."""
        assert self.folder is not None
        for left in reversed(range(_TRIES)):
            seen = stamp(self.folder) if artifact.holds(self.folder, KIND) else (0, 0)
            try:
                self._read(self.folder)
                self._stamp = seen
                return
            except MatchloomError:
                if not left or not artifact.holds(self.folder, KIND):
                    raise
                if stamp(self.folder) == seen and not artifact.is_written(self.folder):
                    raise  # else another fit is switched to meanwhile
                time.sleep(_PAUSE)

    def _read(self, folder: Path) -> None:
        stored = read_state(folder, self._sentences)
        self._sentences = stored.sentences
        self.report, self.page, self.since_report = stored.about
        self._state, self._journal = stored.state, stored.journal
        self.name = self._state.name
        self._changes, self._held = stored.changes, stored.journal.size

    def _current(self) -> State:
        """The state as it is now, with what other processes wrote."""
        if not self._is_current() and self.folder is not None:
            with self._lock:
                self._follow(self.folder)
        return self._state

    def _is_current(self) -> bool:
        """Whether nobody has written since this was read."""
        journal, folder = self._journal, self.folder
        if folder is None or journal is None:
            return True
        try:
            return stamp(folder) == self._stamp and not journal.changed(self._held)
        except OSError:
            return True  # the folder is gone: what was read goes on

    def _follow(self, folder: Path) -> None:
        """Read what others have written since."""
        assert self._journal is not None
        if stamp(folder) != self._stamp:
            self._load()
            return
        try:
            changes = self._journal.read()
        except MatchloomError:
            self._load()  # another fit was switched to, or what could not be written was taken back
            return
        view = self._state.view
        for change in changes:
            view = view.changed(change)
        self._changes += changes
        self._take(view)


@named_extras("an encoder", "encoder")
def _matcher(given: Matcher | Path | str) -> Matcher:
    from matchloom.matcher import Matcher

    return given if isinstance(given, Matcher) else Matcher.load(given)


@named_extras("an archive (LanceDB)")
def _created_in_lance(
    folder: Path,
    pairs: PairsLike,
    encoder: Matcher | Path | str | None,
    tokenizer: Tokenizer | None,
    columns: Columns | None,
    progress: bool,
) -> Collection:
    from matchloom.data.formats import as_pairs
    from matchloom.search.lance.collection import LanceCollection

    made = LanceCollection.create(folder, encoder, tokenizer=tokenizer)
    made.add(as_pairs(pairs, columns=columns), progress=progress)
    return cast(Collection, made)


def _answered(hits: Hits, threshold: float | None) -> Hits:
    """Say whether the first answer is sure enough; where it is not, the nearest few are what there is."""
    if threshold is None:
        return hits
    answered = bool(hits) and (hits[0].probability or 0.0) >= threshold
    return Hits(hits if answered else hits[:_PERHAPS], hits.known, answered, hits.confident)
