"""`fit`: from a user's file to a system that was chosen on development questions, measured once on test, and kept."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import regex

from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.kinds import ANSWERS, LISTS, PAIRS, Kind, kind_of
from matchloom.evaluation.significance import paired_randomisation
from matchloom.files import is_there
from matchloom.fitting.answers_task import AnswersTask, held_out, questions_of, texts_alone
from matchloom.fitting.encoder import AUTO, encoder_for
from matchloom.fitting.fitted import ABOUT, Fitted
from matchloom.fitting.lists_task import ListsTask
from matchloom.fitting.measured import FILE, Measured, key_of
from matchloom.fitting.pairs_task import PairsTask
from matchloom.fitting.report import FitReport, SystemFigures
from matchloom.fitting.systems import Candidate, Data, Outcome, Task
from matchloom.fitting.verdict import verdict
from matchloom.ranking.answers import Answers
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scorer

_log = logging.getLogger("matchloom")

TASKS: dict[str, Callable[[Path | None], Task]] = {ANSWERS: AnswersTask, LISTS: ListsTask, PAIRS: PairsTask}
CHANCE = 0.05  # a baseline is kept in place of the better-equipped system where it wins with a smaller p
WORK = "work"  # what a fit works in, inside its folder
_CURVE = (0.25, 0.5, 1.0)  # parts of the training questions
_CURVE_SECONDS = 60.0  # what a learning curve may cost
_HAN = regex.compile(r"\p{Han}")
_LETTER = regex.compile(r"\p{L}")


def fit(
    *sources: PairsLike,
    out: Path | str | None = None,
    test: PairsLike | None = None,
    kind: str | None = None,
    minutes: float = 10.0,
    tokenizer: Tokenizer | None = None,
    columns: Mapping[str, str] | None = None,
    encoder: Path | str | None = AUTO,
    seed: int = 0,
    overwrite: bool = False,
    resume: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> Fitted:
    """Find out what the pairs are, train a short list of systems, choose, measure, and keep the best.

    Systems are compared on development questions that they have not learnt from, each ranked against every answer (or
    all of its own candidates). Then they learn from these too and are measured once on test questions, and what was
    chosen among rankers of answers is made again from everything.

    Args:
        sources: Files of pairs, or pairs; several are joined.
        out: The folder to write; without, nothing is written.
        test: Pairs to measure on, where you have your own; else a part of the sources is held out.
        kind: answers, lists or pairs, where it should not be told from the file.
        minutes: How long it may take; systems that would take longer are left out.
        tokenizer: How texts become words; told from their script by default.
        columns: Your names of the columns, such as {"query": "title", "text": "body"}.
        encoder: A pretrained encoder that may be used, a folder or a name of 'matchloom encoders'; "auto" takes the
            first that is found, if there is one, and None none.
        seed: Of the split and the draws.
        overwrite: Replace a folder that `fit` wrote before.
        resume: Go on with a fit that was stopped: what it measured in `out` is not measured again.
        on_note: Called with each line that says what goes on.
    """
    start, say = time.perf_counter(), on_note or (lambda line: None)
    folder = None if out is None else Path(out)
    _look_at(folder, overwrite=overwrite, resume=resume)
    if not minutes > 0:
        raise MatchloomError(f"minutes must be above 0, found {minutes}")
    pairs = [pair for source in sources for pair in as_pairs(source, columns=columns)]
    found = kind_of(pairs, kind)
    if found.name not in TASKS:
        raise MatchloomError(f"pairs of kind {found.name!r} cannot be fitted")
    say(f"Found {found}.")
    cut = tokenizer or tokenizer_for(pairs)
    pretrained = encoder_for(encoder, say)
    task = TASKS[found.name](None if pretrained is None else pretrained.folder)
    data = task.split(pairs, seed) if test is None or found.name != ANSWERS else Data(pairs, [], [])
    if test is not None:  # what would have been held out for it is learnt from
        own = [] if found.name == ANSWERS else data.test
        data = Data([*data.train, *own], data.development, list(as_pairs(test, columns=columns)))
    work = None if folder is None else folder / WORK
    name = "" if pretrained is None else pretrained.name
    key = key_of(pairs, data.test if test is not None else [], found.name, cut, seed, name)
    measured = Measured(work, key, resume=resume)
    run = _Run(task, found, cut, seed, start + 60 * minutes, work, measured, say)
    if measured.resumed:
        say(f"Going on with a fit that was stopped: {measured.resumed} measurements are kept.")
    run.tidy(measurements=False)
    try:
        fitted = run.go(data, pairs)
    except KeyboardInterrupt:
        run.tidy(measurements=False)
        raise
    except BaseException:
        run.tidy()
        raise
    if folder is not None:
        fitted.save(folder)
    run.tidy(measurements=not run.stopped)
    return fitted


def _look_at(folder: Path | None, *, overwrite: bool, resume: bool) -> None:
    """Refuse to write over what is there, or to go on where there is nothing to go on with."""
    if resume and (folder is None or overwrite):
        raise MatchloomError("resume needs the folder of the fit that was stopped (--out), and cannot overwrite it")
    if folder is None or overwrite or not is_there(folder / ABOUT):
        return
    stopped = is_there(folder / WORK / FILE)
    if resume and not stopped:
        raise MatchloomError(f"the fit in {folder} was not stopped, there is nothing to resume; overwrite fits anew")
    if not resume:
        other = "resume (--resume) to go on with it, " if stopped else ""
        raise MatchloomError(
            f"{folder} holds a fitted system already; add {other}overwrite (--overwrite), or choose another"
        )


class _Run:
    """One fit: what was made and measured so far."""

    def __init__(
        self,
        task: Task,
        kind: Kind,
        tokenizer: Tokenizer,
        seed: int,
        deadline: float,
        work: Path | None,
        measured: Measured,
        say: Callable[[str], None],
    ) -> None:
        self.task, self.kind, self.tokenizer, self.seed, self.say = task, kind, tokenizer, seed, say
        self.deadline, self.start = deadline, time.perf_counter()
        self.work, self.measured, self.stopped = work, measured, False
        self.notes: list[str] = []
        self.developed: dict[str, Outcome] = {}
        self.failed: dict[str, str] = {}
        self.seconds: dict[str, float] = {}

    def go(self, data: Data, pairs: list[Pair]) -> Fitted:
        """Choose on development, measure on test, make the chosen one from everything."""
        noted = Answers.of(pairs).note if self.kind.name == ANSWERS else ""
        if noted:
            self.say(noted)
            self.notes.append(noted)
        candidates = self.task.candidates(data.train, self.tokenizer, self.seed)
        rounds = self.rounds(data)
        # Networks of lists and pairs are trained once, what ranks answers again for the test questions and at last.
        guess = sum(one.seconds for one in candidates) * (len(rounds) + 2 if self.kind.name == ANSWERS else 1)
        left = self.deadline - time.perf_counter()
        told = f"about {_duration(guess)}" if guess < left else f"at most {_duration(left)}"
        self.say(f"Trying {', '.join(one.name for one in candidates)}: {told}.")
        tried = self.develop(candidates, rounds)
        chosen = self.choose(tried)
        curve = self.curve(rounds[0], [one for one in tried if one in (chosen, _best_baseline(tried, self))])
        systems, scorer, each = self.test(tried, chosen, data)
        details = self.task.details(scorer, data.test)
        self.say(f"Chosen: {chosen.name}.")
        final = scorer
        # Answers are made again from all that the user gave to learn from; a test file of theirs stays unseen. Networks
        # of lists and pairs are kept as they were measured: another training might end elsewhere.
        if self.kind.name == ANSWERS and len(questions_of(data.train)) < len(questions_of(pairs)):
            if self.late(self.seconds[chosen.name]) and not texts_alone(data.train):
                self.notes.append(
                    "There was no time to learn from the test questions too: it is kept as it was measured."
                )
            else:
                self.say("It learns from everything now.")
                final = self.make(chosen, pairs, [])
        report = FitReport(
            kind=self.kind.name,
            about=str(self.kind),
            measure=self.task.measure,
            measures=list(self.task.measures),
            systems=[*systems, *(SystemFigures(n, "", error=e) for n, e in self.failed.items())],
            chosen=chosen.name,
            tested=len(each),
            developed=len(self.developed[chosen.name].each[self.task.measure]),
            verdict=[],
            minutes=round((time.perf_counter() - self.start) / 60, 2),
            curve=curve,
            notes=self.notes,
            texts_alone=texts_alone(data.train),
            **details,
        )
        report = FitReport(**{**vars(report), "verdict": verdict(report)})
        return Fitted(final, report, self.kind.name)

    def rounds(self, data: Data) -> list[tuple[list[Pair], list[Pair]]]:
        """Training and development pairs: those of the split, or as many pairs of parts as the task wants."""
        made: Callable[[Sequence[Pair], int], list[tuple[list[Pair], list[Pair]]]] | None
        made = getattr(self.task, "rounds", None)
        return [(data.train, data.development)] if made is None else made(data.train, self.seed)

    def develop(self, candidates: list[Candidate], rounds: list[tuple[list[Pair], list[Pair]]]) -> list[Candidate]:
        """Measure each candidate on the development questions of all rounds; Ctrl-C goes on with what is done."""
        done: list[Candidate] = []
        for one in candidates:
            left = self.deadline - time.perf_counter()
            if done and not self.measured.has("development", one.name, 0) and self.needed(one, done, rounds) > left:
                self.failed[one.name] = f"left out: it would take longer than the {_duration(max(0.0, left))} left"
                continue
            try:
                found = [self.outcome(one, *parts, "development", one.name, n) for n, parts in enumerate(rounds)]
            except MatchloomError as error:
                self.failed[one.name] = str(error)
                continue
            except KeyboardInterrupt:
                if not done:
                    raise
                self.stopped = True
                self.notes.append(f"Stopped while {one.name} was tried; the best of those before it is kept.")
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

    def needed(self, one: Candidate, done: list[Candidate], rounds: Sequence[object]) -> float:
        """The seconds that a system will take, if the guess is as far off as it was for the others.

        What ranks answers is made once more for the test questions, and what is done is measured there too; networks
        of lists and pairs are not trained again.
        """
        if self.kind.name != ANSWERS:
            return one.seconds * len(rounds)
        pace = sum(self.seconds[each.name] for each in done) / max(sum(each.seconds for each in done), 1e-9)
        return one.seconds * max(1.0, pace) * (len(rounds) + 1) + sum(self.seconds.values())

    def choose(self, tried: list[Candidate]) -> Candidate:
        """The best-equipped system, which is tried last, unless another beats it by more than chance."""
        measure = self.task.measure
        chosen = [one for one in tried if not (one.baseline or one.doubtful)][-1:] or tried
        first = chosen[-1]
        ours = self.developed[first.name]
        better = [first]
        for one in tried:
            if one.shown_only:
                continue
            each, theirs = ours.each[measure], self.developed[one.name]
            higher = theirs.values[measure] > ours.values[measure] and len(theirs.each[measure]) == len(each)
            if higher and paired_randomisation(theirs.each[measure], each) < CHANCE:
                better.append(one)
        return max(better, key=lambda one: self.developed[one.name].values[measure])

    def curve(self, first: tuple[list[Pair], list[Pair]], shown: list[Candidate]) -> list[tuple[int, dict[str, float]]]:
        """The measure with a part of the training questions, on the development questions of one round."""
        train, development = first
        cost = len(_CURVE) * sum(self.seconds[one.name] for one in shown)
        if self.kind.name != ANSWERS or len(questions_of(train)) < 40 or cost > _CURVE_SECONDS or self.late(2 * cost):
            return []
        if texts_alone(train):  # what more questions of each answer would do is not to be seen there
            return []
        points = []
        for part in _CURVE:
            kept = train if part == 1.0 else held_out(train, 1 - part, self.seed + 7)[0]
            values = {
                one.name: self.outcome(one, kept, development, "curve", one.name, part)[0].values[self.task.measure]
                for one in shown
            }
            points.append((len(questions_of(kept)), values))
        return points

    def test(
        self, tried: list[Candidate], chosen: Candidate, data: Data
    ) -> tuple[list[SystemFigures], Scorer, np.ndarray[Any, Any]]:
        """Every system learns from training and development questions, and is measured once."""
        measured = len(data.test) if self.kind.name == PAIRS else len(questions_of(data.test))
        self.say(f"Measuring once on {measured:,} test {'pairs' if self.kind.name == PAIRS else 'questions'}.")
        order = [chosen, *(one for one in tried if one is not chosen)]
        figures: list[SystemFigures] = []
        scorer: Scorer | None = None
        ours: np.ndarray[Any, Any] = np.zeros(0)
        for one in order:
            if one is not chosen and self.kind.name == ANSWERS and self.late(self.seconds[one.name]):
                self.failed[one.name] = "there was no time to measure it on the test questions"
                continue
            made = self.make(one, data.train, data.development) if one is chosen else None
            found, _ = self.outcome(one, data.train, data.development, "test", one.name, asked=data.test, made=made)
            each = found.each[self.task.measure]
            if made is not None:
                scorer, ours = made, each
            p = None if one is chosen or len(each) != len(ours) else paired_randomisation(each, ours)
            developed = self.developed[one.name].values
            figures.append(
                SystemFigures(
                    one.name,
                    one.about,
                    dict(developed),
                    dict(found.values),
                    p,
                    self.seconds[one.name],
                    baseline=one.baseline,
                )
            )
        assert scorer is not None
        figures.sort(key=lambda one: -one.test[self.task.measure])
        return figures, scorer, ours

    def outcome(
        self,
        one: Candidate,
        train: Sequence[Pair],
        development: Sequence[Pair],
        *name: object,
        asked: Sequence[Pair] | None = None,
        made: Scorer | None = None,
    ) -> tuple[Outcome, float]:
        """The figures of a system and its seconds: from now, or from the fit that this one goes on with.

        It is measured on development pairs unless others are `asked`, and made here unless it is `made` already.
        """
        kept = self.measured.outcome(*name)
        if kept is not None:
            return kept
        begun = time.perf_counter()
        try:
            scorer = made if made is not None else self.make(one, train, development)
            found = self.task.measure_on(scorer, development if asked is None else asked)
        except MatchloomError as error:
            self.measured.keep(error, 0.0, *name)
            raise
        seconds = time.perf_counter() - begun
        self.measured.keep(found, seconds, *name)
        return found, seconds

    def make(self, one: Candidate, train: Sequence[Pair], development: Sequence[Pair]) -> Scorer:
        """The system, made of these pairs. What ranks answers needs no development pairs to learn from."""
        folder = Path() if self.work is None else self.work / one.name
        dev = [] if self.kind.name == ANSWERS else development
        return one.make(train, dev, folder, max(1.0, self.deadline - time.perf_counter()))

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


def tokenizer_for(pairs: Sequence[Pair]) -> Tokenizer:
    """Segmentation for Chinese, told by the letters of the texts; else the English regex."""
    sample = "".join(text[:200] for pair in pairs[:: max(1, len(pairs) // 500)] for text in (pair.query, pair.text))
    letters = len(_LETTER.findall(sample))
    return Tokenizer("chinese" if letters and len(_HAN.findall(sample)) > 0.3 * letters else "english")


def _best_baseline(tried: list[Candidate], run: _Run) -> Candidate | None:
    baselines = [one for one in tried if one.baseline]
    return max(baselines, key=lambda one: run.developed[one.name].values[run.task.measure], default=None)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
