"""What `fit` does alike for every kind of file: make systems, choose one on development questions, measure it once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from matchloom.basics import clock
from matchloom.data.identity import count_known, questions_of
from matchloom.data.kinds import ANSWERS, Kind
from matchloom.data.similar import similar_questions
from matchloom.data.splits import hold_out_clusters, texts_alone
from matchloom.evaluation.significance import paired_randomisation
from matchloom.fitting.distance import FEWEST_ASKED, MOST_COMPARED, distance
from matchloom.fitting.fitted import Fitted, as_kept
from matchloom.fitting.outcomes import OutcomeStore
from matchloom.fitting.report import FitReport, Likeness, SystemFigures
from matchloom.fitting.systems import Candidate, Data, Outcome, Round, Task
from matchloom.fitting.verdict import verdict
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scorer

Result = TypeVar("Result")
CHANCE = 0.05  # another is kept in place of the best-equipped system where it wins with a smaller p
CLEAR = 0.01  # the same on test questions, which then have chosen
_GUESSED = 1.2  # times the guess of what a chosen system does once more, which must be left for it
_POINTS, _CURVE_SECONDS = 3, 60.0  # of a learning curve, and what it may cost


class Tested(NamedTuple):
    """The result on test questions: the figures of all systems, which one is kept, and on how many questions."""

    systems: list[SystemFigures]
    kept: Candidate
    scorer: Scorer
    tested: int


class Trial:
    """One fit: systems are made, compared on development questions, and measured once; what was done so far."""

    def __init__(
        self,
        task: Task,
        kind: Kind,
        tokenizer: Tokenizer,
        seed: int,
        deadline: float,
        work: Path | None,
        measured: OutcomeStore,
        say: Callable[[str], None],
    ) -> None:
        self.task, self.kind, self.tokenizer, self.seed, self.say = task, kind, tokenizer, seed, say
        self.deadline, self.start = deadline, time.perf_counter()
        self.work, self.measured, self.stopped = work, measured, False
        self.notes: list[str] = []
        self.developed: dict[str, Outcome] = {}
        self.failed: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.finished: dict[str, float] = {}  # seconds of what was made with more time

    def go(self, data: Data, pairs: list[Pair]) -> Fitted:
        """Choose on development, measure on test, make the chosen one from everything."""
        if noted := self.task.note(pairs):
            self.say(noted)
            self.notes.append(noted)
        candidates = self.task.candidates(data.train, self.tokenizer, self.seed)
        rounds = self.task.rounds(data, self.seed)
        guess = self.task.guess(candidates, len(rounds))
        left = self.deadline - time.perf_counter()
        takes = f"about {_duration(guess)}" if guess < left else f"at most {_duration(left)}"
        self.say(f"Trying {', '.join(one.name for one in candidates)}: {takes}.")
        tried = self.develop(candidates, rounds)
        chosen = self.choose(tried)
        shown = [one for one in tried if one in (chosen, _best_baseline(tried, self))]
        curve = self.optional("the learning curve", lambda: self.curve(rounds[0], shown)) or []
        systems, kept, scorer, tested = self.test(tried, chosen, data)
        if learnt := self.task.learnt(scorer):
            self.say(learnt)
            self.notes.append(learnt)
        details = {
            **(self.optional("the examples", lambda: self.task.details(scorer, data.test)) or {}),
            **(self.optional("how similar the questions are", lambda: self.promise(kept, data, rounds[0])) or {}),
        }
        before, chosen = chosen.name, kept
        self.say(f"Chosen: {chosen.name}.")
        final = scorer
        if self.task.learns_more(data, pairs) and (self.task.made_again or chosen.learns_all):
            longest = max(self.seconds[chosen.name], self.finished.get(chosen.name, 0.0))
            if self.late(longest) and not texts_alone(data.train):
                self.notes.append(
                    "There was no time to learn from the test questions, too: the system is kept as it was measured."
                )
            else:
                self.say("It now learns from all questions.")
                again = self.optional(
                    "learning from the test questions too", lambda: self.make(chosen, pairs, [], finish=True)
                )
                final = scorer if again is None else again
        report = FitReport(
            kind=self.kind.name,
            about=str(self.kind),
            measure=self.task.measure,
            measures=list(self.task.measures),
            systems=[*systems, *(SystemFigures(n, "", error=e) for n, e in self.failed.items())],
            chosen=chosen.name,
            chosen_before="" if chosen.name == before else before,
            tested=tested,
            developed=len(self.developed[chosen.name].each[self.task.measure]),
            verdict=[],
            minutes=clock.written(round((time.perf_counter() - self.start) / 60, 2)),
            curve=curve,
            notes=self.notes,
            texts_alone=texts_alone(data.train),
            known=count_known(data.test, (pair.query for pair in pairs)) if self.task.own_test else 0,
            language=self.tokenizer.reads,
            **details,
        )
        report = FitReport(**{**vars(report), "verdict": verdict(report)})
        return Fitted(as_kept(final), report, self.kind.name)

    def develop(self, candidates: list[Candidate], rounds: list[Round]) -> list[Candidate]:
        """Measure each candidate on the development questions of all rounds; Ctrl-C goes on with what is done."""
        done: list[Candidate] = []
        for one in candidates:
            left = self.deadline - time.perf_counter()
            spent = {each: self.seconds[each.name] for each in done}
            known = not done or self.measured.has("development", one.name, 0)
            if not known and self.task.needed(one, spent, len(rounds)) > left:
                self.failed[one.name] = f"skipped: it would take longer than the {_duration(max(0.0, left))} left"
                continue
            try:
                found = [self.outcome(one, *parts, "development", one.name, n) for n, parts in enumerate(rounds)]
            except MatchloomError as error:
                self.failed[one.name] = str(error)
                continue
            except KeyboardInterrupt:
                if not done:
                    raise
                self.stop(f"Stopped during {one.name}; the best of the systems before it is kept.")
                break
            outcomes = [outcome for outcome, _ in found]
            self.seconds[one.name] = sum(seconds for _, seconds in found) / len(rounds)
            each = {name: np.concatenate([outcome.each[name] for outcome in outcomes]) for name in self.task.measures}
            values = {name: float(np.nanmean(x)) for name, x in each.items()}
            if len(rounds) == 1:
                values = dict(outcomes[0].values)
            self.developed[one.name] = Outcome(values, each)
            done.append(one)
            self.say(f"  {one.name:<20} {self.task.measure} {values[self.task.measure]:.3f} on development data")
        if not done:
            raise MatchloomError(f"no system could be made; {next(iter(self.failed.values()))}")
        return done

    def optional(self, what: str, work: Callable[[], Result]) -> Result | None:
        """What a fit can do without: Ctrl-C leaves it out, and the fit goes on to its end with what there is."""
        try:
            return work()
        except KeyboardInterrupt:
            self.stop(f"Stopped; skipped: {what}.")
            return None

    def stop(self, line: str) -> None:
        """Remember that Ctrl-C was pressed, and say what follows."""
        self.stopped = True
        self.notes.append(line)
        self.say(line)

    def choose(self, tried: list[Candidate]) -> Candidate:
        """The best-equipped system, which is tried last, unless another beats it by more than chance.

        What is chosen then is beaten by none by more than chance.
        """
        chosen = ([one for one in tried if not (one.baseline or one.needs_significance)][-1:] or tried)[-1]
        outcomes = {one.name: self.developed[one.name] for one in tried}
        while better := self._better(tried, outcomes, chosen, CHANCE):
            chosen = max(better, key=lambda one: outcomes[one.name].values[self.task.measure])
        return chosen

    def _better(
        self, tried: list[Candidate], outcomes: Mapping[str, Outcome], chosen: Candidate, chance: float
    ) -> list[Candidate]:
        """Those that may be chosen and are better than this one by more than chance."""
        measure, ours = self.task.measure, outcomes[chosen.name]
        found = []
        for one in tried:
            theirs = outcomes.get(one.name)
            if one.report_only or theirs is None or not theirs.values[measure] > ours.values[measure]:
                continue
            p = self._p(theirs, ours)
            if p is not None and p < chance:
                found.append(one)
        return found

    def _p(self, theirs: Outcome, ours: Outcome) -> float | None:
        """How likely such a difference is, were both equally good; None where they are not of the same questions."""
        each, other = theirs.each[self.task.measure], ours.each[self.task.measure]
        return paired_randomisation(each, other) if len(each) == len(other) else None

    def curve(self, first: Round, shown: list[Candidate]) -> list[tuple[int, dict[str, float]]]:
        """The measure with a part of the training questions, on the development questions of one round."""
        train, development = first
        cost = _POINTS * sum(self.seconds[one.name] for one in shown)
        if cost > _CURVE_SECONDS or self.late(2 * cost):
            return []
        points = []
        for questions, kept in self.task.curve(train, self.seed):
            # All of them is what the first round was.
            names = {
                one: ("development", one.name, 0) if kept is train else ("curve", one.name, questions) for one in shown
            }
            values = {one.name: self.outcome(one, kept, development, *names[one])[0] for one in shown}
            points.append((questions, {name: found.values[self.task.measure] for name, found in values.items()}))
        return points

    def test(self, tried: list[Candidate], chosen: Candidate, data: Data) -> Tested:
        """Every system learns from training and development questions, and is measured once.

        Where one is clearly better than what was chosen, it is kept in its place: the test figure has chosen, then.
        """
        self.say(f"Measuring once on {self.task.count(data.test):,} test {self.task.unit}.")
        outcomes: dict[str, Outcome] = {}
        scorers: dict[str, Scorer] = {}
        for one in [chosen, *(one for one in tried if one is not chosen)]:
            if one is not chosen and self.task.made_again and self.late(self.seconds[one.name]):
                self.failed[one.name] = "there was no time to measure it on the test questions"
                continue
            try:
                self._test_one(one, chosen, data, outcomes, scorers)
            except KeyboardInterrupt:
                self.stop(f"Stopped while measuring {one.name} on the test {self.task.unit}; {chosen.name} is kept.")
                if one is chosen:  # a folder without its figure would be no use; a second Ctrl-C ends the fit
                    self._test_one(one, chosen, data, outcomes, scorers)
                left = (other.name for other in tried if other.name not in outcomes)
                self.failed |= dict.fromkeys(left, f"stopped before it was measured on the test {self.task.unit}")
                break
        better = self._better(tried, outcomes, chosen, CLEAR)
        kept = max(better, key=lambda one: outcomes[one.name].values[self.task.measure], default=chosen)
        scorer = scorers.get(kept.name) or self.make(kept, *self._learnt(kept, data))
        figures = [self._figures(one, outcomes, kept) for one in tried if one.name in outcomes]
        figures.sort(key=lambda one: -one.test[self.task.measure])
        return Tested(figures, kept, scorer, len(outcomes[kept.name].each[self.task.measure]))

    def _test_one(
        self,
        one: Candidate,
        chosen: Candidate,
        data: Data,
        outcomes: dict[str, Outcome],
        scorers: dict[str, Scorer],
    ) -> None:
        """Make a system and measure it; the scorer is kept of the chosen one, and of one that is clearly better."""
        learnt = self._learnt(one, data)
        again = one is chosen or not self.measured.has("test", one.name)
        made = self.make(one, *learnt, finish=one is chosen) if again else None
        outcomes[one.name], _ = self.outcome(one, *learnt, "test", one.name, asked=data.test, made=made)
        if made is not None and (one is chosen or self._better([one], outcomes, chosen, CLEAR)):
            scorers[one.name] = made

    def promise(self, chosen: Candidate, data: Data, first: Round) -> dict[str, Any]:
        """What the figure holds for: how similar the questions are, how far test questions are from them.

        The chosen system is made once more, without what is similar to held-out questions: those of the test set, or
        of the first round where the test set is the user's own.
        """
        if self.kind.name != ANSWERS or self.task.count(data.train) > MOST_COMPARED:
            return {}
        found: dict[str, Any] = {}
        if self.task.own_test:
            found["distance"] = distance(data.train, data.test, self.tokenizer)
        if texts_alone(first[0]):
            return found
        train, held = first if self.task.own_test else (data.train, data.test)
        name = ("development", chosen.name, 0) if self.task.own_test else ("test", chosen.name)
        clusters = similar_questions([*train, *held])
        kept, asked = hold_out_clusters(train, held, clusters.of)
        count = max(1, len(clusters.of))
        likeness = Likeness(len(clusters.of), clusters.copies / count, clusters.similar / count)
        found["likeness"] = likeness
        seconds = max(self.seconds[chosen.name], self.finished.get(chosen.name, 0.0))
        known = self.measured.outcome(*name)
        too_long = seconds > _CURVE_SECONDS or self.late(2 * seconds)
        if known is None or too_long or kept == list(train) or len(questions_of(asked)) < FEWEST_ASKED:
            return found
        finish = chosen.name in self.finished
        again, _ = self.outcome(chosen, kept, [], "by cluster", chosen.name, asked=asked, finish=finish)
        remaining = questions_of(asked)
        among = np.array([question in remaining for question in questions_of(held)], dtype=bool)
        figures = float(known[0].each[self.task.measure][among].mean()), again.values[self.task.measure]
        found["likeness"] = replace(likeness, asked=int(among.sum()), random=figures[0], by_cluster=figures[1])
        return found

    def _learnt(self, one: Candidate, data: Data) -> Round:
        """What a system learns from before it is measured, and the development pairs it may choose by."""
        return ([*data.train, *data.development], []) if one.learns_all else (data.train, data.development)

    def _figures(self, one: Candidate, outcomes: Mapping[str, Outcome], kept: Candidate) -> SystemFigures:
        found = outcomes[one.name]
        p = None if one is kept else self._p(found, outcomes[kept.name])
        developed = dict(self.developed[one.name].values)
        seconds = clock.written(self.finished.get(one.name, self.seconds[one.name]))
        return SystemFigures(one.name, one.about, developed, dict(found.values), p, seconds, baseline=one.baseline)

    def outcome(
        self,
        one: Candidate,
        train: Sequence[Pair],
        development: Sequence[Pair],
        *name: object,
        asked: Sequence[Pair] | None = None,
        made: Scorer | None = None,
        finish: bool = False,
    ) -> tuple[Outcome, float]:
        """The figures of a system and its seconds: from now, or from the fit that this one goes on with.

        It is measured on development pairs unless others are `asked`, and made here unless it is `made` already.
        """
        kept = self.measured.outcome(*name)
        if kept is not None:
            return kept
        begun = time.perf_counter()
        try:
            scorer = made if made is not None else self.make(one, train, development, finish=finish)
            found = self.task.measure_on(scorer, development if asked is None else asked)
        except MatchloomError as error:
            self.measured.keep(error, 0.0, *name)
            raise
        seconds = time.perf_counter() - begun
        self.measured.keep(found, seconds, *name)
        return found, seconds

    def make(
        self, one: Candidate, train: Sequence[Pair], development: Sequence[Pair], *, finish: bool = False
    ) -> Scorer:
        """The system, made of these pairs. What is made again needs no development pairs to stop by."""
        folder = Path() if self.work is None else self.work / one.name
        dev = [] if self.task.made_again or one.learns_all else development
        make = one.finish if finish and one.finish is not None and self._finishes(one) else one.make
        begun = time.perf_counter()
        made = make(train, dev, folder, max(1.0, self.deadline - begun))
        if make is one.finish:
            self.finished[one.name] = time.perf_counter() - begun
        return made

    def _finishes(self, one: Candidate) -> bool:
        """Whether there is time for what a chosen system does beside what it did in the rounds.

        To do it again for everything there may be none: then it stays as it was measured.
        """
        wanted = _GUESSED * one.finish_seconds
        if one.name in self.finished:
            return True
        if self.stopped:
            return False
        if not self.late(wanted):
            return True
        self.notes.append(f"There was no time to tune the encoder on the questions (about {_duration(wanted)}).")
        return False

    def late(self, seconds: float) -> bool:
        """Whether so much more would go beyond the time."""
        return time.perf_counter() + seconds > self.deadline

    def tidy(self, *, measurements: bool = True) -> None:
        """Drop what systems worked in, and what was measured, unless the fit may go on later."""
        if self.work is not None and measurements:
            shutil.rmtree(self.work, ignore_errors=True)
        elif self.work is not None and self.work.is_dir():
            for inside in self.work.iterdir():
                if inside.is_dir():
                    shutil.rmtree(inside, ignore_errors=True)


def _best_baseline(tried: list[Candidate], run: Trial) -> Candidate | None:
    baselines = [one for one in tried if one.baseline]
    return max(baselines, key=lambda one: run.developed[one.name].values[run.task.measure], default=None)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
