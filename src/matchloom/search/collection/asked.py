"""A collection as it is asked: what there is in it, what fits a question, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from matchloom.basics.growing import Announce
from matchloom.basics.validation import at_least_one, many_texts, one_text
from matchloom.data.entries import Entry
from matchloom.explanation import Explanation, explanation_of
from matchloom.explanation.budget import CellBudget
from matchloom.lexical.columns import Floats
from matchloom.search.calibration import Calibration
from matchloom.search.collection.asking import Asking, threshold_of
from matchloom.search.collection.living import LivingState
from matchloom.search.entries import Entries
from matchloom.search.explaining import with_known_question
from matchloom.search.fusion import Fusion, LeaveOneOut
from matchloom.search.learning import Settings, Tuning
from matchloom.search.reranking import ranked
from matchloom.search.view import View, Where
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Hits, MatchloomError, Pair, Ranking, Scores, Sureness, Trace

if TYPE_CHECKING:
    from matchloom.matcher import Matcher


class Asked:
    """What only reads of a collection."""

    def __init__(self, living: LivingState) -> None:
        """Not for callers: use `Collection.fit`, `create` or `open`."""
        self._living, self._asking = living, Asking(living)

    @property
    def name(self) -> str:
        """What ranks: words, words and an encoder, an encoder alone, or a baseline."""
        return self._living.state.name

    @property
    def folder(self) -> Path | None:
        """Where it is kept; None in memory alone."""
        return self._living.folder

    @property
    def report(self) -> dict[str, Any] | None:
        """What `fit` measured."""
        return self._living.about.report

    @report.setter
    def report(self, report: dict[str, Any] | None) -> None:
        self._living.about = self._living.about._replace(report=report)

    @property
    def page(self) -> bytes | None:
        """The report for people."""
        return self._living.about.page

    @page.setter
    def page(self, page: bytes | None) -> None:
        self._living.about = self._living.about._replace(page=page)

    @property
    def since_report(self) -> int:
        """How many entries were changed between the report and the last fit."""
        return self._living.about.since_report

    @property
    def patience(self) -> float:
        """How many seconds a change waits for another writer."""
        return self._living.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self._living.patience = seconds

    @property
    def announce(self) -> Announce | None:
        """The function that is called with each change before it is written."""
        return self._living.announce

    @announce.setter
    def announce(self, announce: Announce | None) -> None:
        self._living.announce = announce

    @property
    def settings(self) -> Settings:
        """What questions are compared with."""
        return self._living.state.settings

    @property
    def tokenizer(self) -> Tokenizer:
        """How texts become words."""
        return self.settings.tokenizer

    @property
    def encoder(self) -> Matcher | None:
        """What makes its sentence vectors; None where only words are compared."""
        sentences = self._living.state.sentences
        return None if sentences is None else sentences.matcher

    @property
    def fusion(self) -> Fusion:
        """The features and their weights."""
        return self._living.state.fusion

    @property
    def tuning(self) -> Tuning | None:
        """What tuning its encoder on the questions brought; None where it was not tried."""
        return self._living.state.tuning

    @property
    def calibration(self) -> Calibration | None:
        """What makes probabilities of scores; None where there is nothing that they could rest on."""
        return self._living.state.calibration

    @property
    def leave_one_out(self) -> LeaveOneOut | None:
        """How often known questions found their answer when they were held out, at the last fit."""
        return self._living.state.figures

    @property
    def is_quick(self) -> bool:
        """Whether a search takes a millisecond or two: no encoder, few entries, and nothing to read before."""
        return self._asking.is_quick

    @property
    def changed(self) -> int:
        """How many entries were changed since the last fit."""
        return self._view.changes

    @property
    def changed_since_report(self) -> int | None:
        """How many entries were changed since `fit` measured it; None if it was never measured."""
        return None if self.report is None else self.since_report + self.changed

    @property
    def version(self) -> tuple[object, int]:
        """What differs when anything was changed, by whomever."""
        self._living.current()
        return self._living.stamp, len(self._living.changes)

    @property
    def entries(self) -> Entries:
        """All entries as they are now, by id."""
        return self._view.entries()

    @property
    def _view(self) -> View:
        return self._living.current().view

    def __len__(self) -> int:
        return len(self._view)

    def __repr__(self) -> str:
        return f"Collection({len(self):,} answers, searched by {self.name})"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._view.row_of(name) is not None

    def find(self, text: str) -> Entry | None:
        """The entry of a text, case and spaces apart.

        Args:
            text: Of an answer.
        """
        view = self._view
        row = view.row_of_text(text)
        return None if row is None else view.entry(row)

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """Those of the ids that no entry has.

        Args:
            ids: As for `remove`.
        """
        view = self._view
        return [name for name in dict.fromkeys(ids) if view.row_of(name) is None]

    def __getitem__(self, name: str) -> Entry:
        view = self._view
        row = view.row_of(name)
        if row is None:
            raise MatchloomError(f"no entry has the id {name[:80]!r}; a search shows ids", code="missing")
        return view.entry(row)

    def status(self) -> dict[str, Any]:
        """What there is: entries, questions, what compares them, and what has changed since it was measured."""
        view = self._view
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
            "judged": len(self._living.state.judged),
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
        coverage: float | None = None,
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
        coverage: float | None = None,
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
        coverage: float | None = None,
        progress: bool = False,
    ) -> Hits | list[Hits]:
        """The answers that fit a question best, each once, the best first; equal scores are ordered by id.

        None if nothing of the question is known. `known` of the result is the probability that any answer is right; the
        probabilities of all answers add up to it. `confident` is true if the first is certain enough to be given as the
        answer (`search/confidence.py`). An answer that was judged wrong for exactly this question (`refit`) is not
        shown.

        Args:
            question: The question; many of them, in a list, give a list each.
            top: At most this many answers; None for all.
            where: Values that entries must have in your own columns, such as {"language": "en"}.
            explain: Add to each answer why it got its score; the question is still read once. A number explains the
                best ones while their maps have so many cells in all (pairs of words in one channel).
            precision: The share of shown answers that must be right, such as 0.95: `answered` of the result is true if
                the first one is certain enough. If not, the best three are given.
            coverage: The share of questions like the collection's own that shall get an answer, such as 0.8: the most
                certain ones do. `precision` and this exclude each other.
            progress: Whether to show a bar.
        """
        if top is not None:
            at_least_one("top", top)
        threshold = self._threshold(precision, coverage)
        if isinstance(question, str):
            if not question.strip():
                raise MatchloomError(f"the question is {question!r}; expected a text", code="no_data")
            return self._asking.together([question], top, where, CellBudget(explain), threshold)[0]
        if isinstance(question, bytes) or not isinstance(question, Iterable):
            raise MatchloomError(f"the question is {question!r}; expected a text, or many in a list", code="wrong_type")
        asked, budget = many_texts("question", question), CellBudget(explain)
        return self._asking.many(asked, top=top, where=where, budget=budget, least=threshold, progress=progress)

    def threshold(self, precision: float | None = None, *, coverage: float | None = None) -> float:
        """The least probability that an answer needs to be shown, as proven on held-out questions.

        Args:
            precision: Such as 0.95, for at least 95 right answers among 100 that are shown.
            coverage: Such as 0.8, for an answer to 80 of 100 questions, the most certain ones; instead of a precision.
        """
        found = self._threshold(precision, coverage)
        if found is None:
            raise MatchloomError("state a precision or a coverage, such as 0.95", code="bad_value")
        return found

    def _threshold(self, precision: float | None, coverage: float | None) -> float | None:
        return threshold_of(self._living.current().calibration, precision, coverage)

    def rank(
        self,
        question: str,
        candidates: Iterable[str],
        *,
        top: int | None = None,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> Ranking:
        """Texts of your own, such as answers that another engine found, by falling score; equal ones by their text.

        `sureness` of the ranking has the probability of each text that is an answer of the collection, and whether the
        first one is certain enough, as for `search`.

        Args:
            question: The question.
            candidates: The texts.
            top: At most this many; None for all.
            precision: As of `search`.
            coverage: As of `search`.
        """
        texts = many_texts("candidates", candidates)
        if top is not None:
            at_least_one("top", top)
        found = ranked(self, one_text("question", question), texts, top)
        sureness = self.sureness(question, [one.text for one in found], precision=precision, coverage=coverage)
        return Ranking(found, sureness)

    def sureness(
        self,
        question: str,
        texts: Sequence[str],
        *,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> Sureness:
        """How certain the collection is of texts that it ranked for a question, best first.

        Args:
            question: The question.
            texts: The ranked texts.
            precision: As of `search`.
            coverage: As of `search`.
        """
        return self._asking.sureness(question, texts, self._threshold(precision, coverage))

    def signals(self, questions: Sequence[str]) -> Floats:
        """What `p(answerable)` is made of, for each question (`search/calibration.py`). (N, 5)

        Args:
            questions: The questions.
        """
        return self._living.current().signals(questions)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair of a question and an answer; higher matches better.

        A known answer, identified by its text or else its id, gets its score in the ranking. Another text is scored by
        the same features as an answer without questions; classifiers, which do not know it, add nothing.

        Args:
            pairs: Pairs of a question and a text.
            progress: Whether to show a bar.
        """
        return self._living.current().score(pairs, progress=progress)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Why a text got its score: the words of the question against those of the matched question and the text.

        Args:
            query: The question.
            text: An answer, or any other text.
        """
        return self._living.current().trace(query, text)

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
