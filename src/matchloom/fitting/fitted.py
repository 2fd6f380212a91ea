"""What `fit` found, and the folder that it writes: of questions with answers their collection, with the report in it;
else `fit.json` with the report, the chosen system inside. `report.html` shows the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from matchloom.artifact import as_saved, kind_of, read, write
from matchloom.basics.validation import many_texts, one_path, one_text
from matchloom.data.formats import PairsLike, scorable
from matchloom.data.kinds import ANSWERS
from matchloom.fitting.report import FitReport
from matchloom.search.baselines import RankingBaseline
from matchloom.search.collection import Collection
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Calibrates, Explains, Hits, MatchloomError, Pair, Scorer, Scores, Trace

FORMAT = 2  # 1 had no checksums
PAGE = "report.html"


@dataclass
class Fitted:
    """What `fit` chose, ready to use: it ranks, scores and explains, whatever it is."""

    scorer: Scorer
    report: FitReport
    kind: str
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.scorer.name

    def __repr__(self) -> str:
        return f"Fitted({self.name}, fitted to {self.kind})"

    @property
    def tokenizer(self) -> Tokenizer:
        """How the chosen system cuts texts into words."""
        found = getattr(self.scorer, "tokenizer", None)
        return found if isinstance(found, Tokenizer) else Tokenizer()

    @property
    def collection(self) -> Collection | None:
        """The collection of answers; None if there is none."""
        return self.scorer if isinstance(self.scorer, Collection) else None

    @overload
    def score(self, pairs: str, text: str) -> float: ...

    @overload
    def score(self, pairs: PairsLike, *, progress: bool = False) -> Scores: ...

    def score(self, pairs: PairsLike, text: str | None = None, *, progress: bool = False) -> Scores | float:
        """The score of each pair, or of one query and text; higher matches better.

        Args:
            pairs: Pairs, tuples, dicts or a data frame, whose labels are not used; or one query.
            text: The text to that one query.
            progress: Whether to show a bar.
        """
        if text is not None:
            return float(self.score([Pair(one_text("query", pairs), one_text("text", text))])[0])
        return self.scorer.score(scorable(pairs), progress=progress)

    @property
    def threshold(self) -> float | None:
        """The score from which on a pair matches, if the chosen system has a threshold."""
        return self.scorer.threshold if isinstance(self.scorer, Calibrates) else None

    def probabilities(self, scores: Scores) -> Scores | None:
        """The probability that pairs with these scores match, if the chosen system has probabilities.

        Args:
            scores: What `score` gave.
        """
        return self.scorer.probabilities(scores) if isinstance(self.scorer, Calibrates) else None

    @overload
    def rank(  # type: ignore[overload-overlap]  # a text is many letters too
        self,
        question: str,
        *,
        top: int | None = 10,
        explain: bool = False,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> Hits: ...

    @overload
    def rank(
        self,
        question: Iterable[str],
        *,
        top: int | None = 10,
        explain: bool = False,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> list[Hits]: ...

    def rank(
        self,
        question: str | Iterable[str],
        *,
        top: int | None = 10,
        explain: bool = False,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> Hits | list[Hits]:
        """The best answers of the collection, each once; none if nothing of the question is known.

        Only for files of questions with answers. `known` of what is found says how likely it is that any answer is
        right; the probabilities of all answers add up to it.

        Args:
            question: The question; many of them, in a list, give a ranking each.
            top: At most this many; None for all.
            explain: Add to each answer why it got its score; the question is still read once.
            precision: The share of shown answers that must be right, as for `Collection.search`.
            coverage: The share of questions that shall get an answer, as for `Collection.search`.
        """
        return self._collection().search(question, top=top, explain=explain, precision=precision, coverage=coverage)

    def known(self, question: str) -> float | None:
        """The probability that any answer is right; None if that is unknown.

        The probabilities of all answers add up to it; the rest to 1 is the probability that none is right.

        Args:
            question: The question.
        """
        return self._collection().search(question, top=1).known

    def search(self, questions: Iterable[str], *, top: int | None = 10, progress: bool = False) -> list[Hits]:
        """`rank` for many questions, with a bar.

        Args:
            questions: The questions.
            top: At most this many for each; None for all.
            progress: Whether to show a bar.
        """
        return self._collection().search(many_texts("questions", questions), top=top, progress=progress)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Why a text got its score.

        Args:
            query: The question, or one text.
            text: The answer, or the other.
        """
        if not isinstance(self.scorer, Explains):
            raise MatchloomError(f"{self.name} cannot explain its scores; answer_ranker and matchers can")
        return self.scorer.trace(query, text)

    def _collection(self) -> Collection:
        if self.collection is None:
            raise MatchloomError(
                f"this was fitted to {self.kind}, which have no collection of answers; rank candidates with "
                "'matchloom rank', or score pairs",
                code="not_supported",
            )
        return self.collection

    def save(self, folder: Path | str) -> None:
        """Write the folder, or leave it as it was; what was fitted there before is replaced at once.

        Args:
            folder: Where; it is made if it is new.
        """
        from matchloom.fitting.page import render

        page = render(self.report).encode(errors="replace")
        if self.collection is not None:
            self.collection.report, self.collection.page = self.report.to_dict(), page
            self.collection.save(folder)
            (Path(folder) / "fit.json").unlink(missing_ok=True)  # of what was fitted there before
            return
        system: Any = self.scorer
        if not hasattr(system, "save"):
            raise MatchloomError(f"{self.name} cannot be kept in a folder", code="not_supported")
        settings = {"kind": self.kind, "report": self.report.to_dict()}
        write(folder, "fit", FORMAT, settings, {PAGE: page}, inside={"system": system})
        (Path(folder) / "collection.json").unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: Path | str) -> Fitted:
        """Read what `save` wrote; a folder that is no such one, cut off, altered or newer is refused in one line.

        Args:
            folder: What `fit` wrote.
        """
        folder = one_path("folder", folder)
        if kind_of(folder) == "collection":
            made = Collection.open(folder)
            if made.report is None:
                raise MatchloomError(
                    f"{folder} is a collection that was not measured; open it with matchloom.load", code="not_supported"
                )
            with as_saved(folder, "fit it again"):
                return cls(made, FitReport.from_dict(made.report), ANSWERS)
        saved = read(folder, "fit", FORMAT, remedy="'matchloom fit' makes it again")
        with as_saved(folder, "fit it again"):
            report = FitReport.from_dict(saved.settings["report"])
            return cls(saved.inside("system"), report, str(saved.settings["kind"]))


def as_kept(scorer: Scorer) -> Scorer:
    """What is kept of a chosen system: a baseline of answers becomes a collection that it ranks."""
    if not isinstance(scorer, RankingBaseline):
        return scorer
    return Collection.fit(scorer.entries, tokenizer=scorer.tokenizer, baseline=scorer.name)
