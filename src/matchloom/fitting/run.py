"""`fit`: from a user's file to a system that was chosen on development questions, measured once on test, and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from matchloom.artifact import holds, writing
from matchloom.artifact import kind_of as kind_of_folder
from matchloom.data.checkup import Placed, check
from matchloom.data.formats import PairsLike
from matchloom.data.formats.shards import refuse_many
from matchloom.data.formats.sources import as_rows
from matchloom.data.formats.values import own_columns
from matchloom.data.kinds import ANSWERS, kind_of
from matchloom.data.unanswerable import is_unanswerable, without_unanswerable
from matchloom.fitting.encoder import AUTO, encoder_for
from matchloom.fitting.fitted import Fitted
from matchloom.fitting.outcomes import OutcomeStore, key_of
from matchloom.fitting.systems import Data
from matchloom.fitting.tasks import task_for
from matchloom.fitting.trial import Trial
from matchloom.search.collection import Feedback
from matchloom.search.entries import Entries
from matchloom.search.features.linear import machines_once
from matchloom.search.feedback import Judgements, as_judgements, is_feedback
from matchloom.text.tokenize import Tokenizer, words_once
from matchloom.types import MatchloomError, Pair

WORK = "work"  # what a fit works in, inside its folder
_CHECKED = 30_000  # pairs that are checked before a fit; it takes seconds there
_SHOWN = 4  # kinds of finds that a fit tells of
MOST = 1_000_000  # pairs of shards: a fit holds all of them, and looks at them many times
_INSTEAD = "give some of the shards, or index all of them without learning: 'matchloom index --store lance --engine'"


def fit(
    *sources: PairsLike,
    out: Path | str | None = None,
    test: PairsLike | None = None,
    feedback: Feedback | None = None,
    kind: str | None = None,
    minutes: float = 10.0,
    tokenizer: Tokenizer | None = None,
    columns: Mapping[str, str] | None = None,
    encoder: Path | str | None = AUTO,
    tune: bool = True,
    seed: int = 0,
    overwrite: bool = False,
    resume: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> Fitted:
    """Detect the kind of the pairs, train a short list of systems, choose one, measure it, and keep it.

    Systems are compared on held-out development questions, each ranked against every answer (or
    all of its own candidates). Then they learn from these, too, and are measured once on test questions; a chosen
    ranker of answers is finally made again from all questions.

    Questions with answers need no extra, judged lists and labelled pairs need the extra `networks`, and a pretrained
    encoder needs the extra `encoder`.

    Args:
        sources: Files of pairs, or pairs; several are joined.
        out: The folder to write; without, nothing is written.
        test: Your own pairs to measure on; by default a part of the sources is held out.
        feedback: Judgements of answers, or the file of them that 'matchloom serve' kept. They are used at the end, if
            held-out questions do not get worse (`Collection.refit`); the figures are those of the sources alone.
        kind: answers, lists or pairs; detected from the file by default.
        minutes: The time limit; systems that would take longer are skipped.
        tokenizer: How texts become words; detected from their script by default.
        columns: Your names of the columns, such as {"query": "title", "text": "body"}.
        encoder: A pretrained encoder that may be used, a folder or a name of 'matchloom encoders'; "auto" takes the
            first that is found, if there is one, and None none.
        tune: Tune the last layers of the encoder on your questions or pairs, if there is time; kept if it improves
            held-out ones.
        seed: Of the split and the draws.
        overwrite: Replace a folder that `fit` wrote before.
        resume: Continue a stopped fit: what it measured in `out` is not measured again.
        on_note: Called with each line of progress.
    """
    start, say = time.perf_counter(), on_note or (lambda line: None)
    folder = None if out is None else Path(out)
    _look_at(folder, overwrite=overwrite, resume=resume)
    if not minutes > 0:
        raise MatchloomError(f"minutes must be above 0, found {minutes}")
    judgements = None if feedback is None else as_judgements(feedback)
    _refuse_judgements(sources)
    read = [list(_placed(source, columns, several=len(sources) > 1)) for source in sources]
    rows = [row for own in read for row in own]
    answered, unanswerable = without_unanswerable((row.pair, (row, own)) for row, own in rows)
    if kind is None:
        _refuse_negatives(sources, [[row.pair for row, _ in own] for own in read])
    found = kind_of([pair for pair, _ in answered], kind)
    if judgements is not None and found.name != ANSWERS:
        raise MatchloomError(f"feedback= needs questions with answers, and this is {found}", code="conflict")
    if unanswerable and found.name == ANSWERS:
        say(f"{len(unanswerable):,} questions have no answer in the file: from these it learns when to give none.")
        rows = [row for _, row in answered]
    pairs = [row.pair for row, _ in rows]
    say(f"Found {found}.")
    tokenize = tokenizer or tokenizer_for(pairs)
    say(f"Language: {tokenize.reads}.")
    pretrained = encoder_for(encoder, say)
    task = task_for(found.name, None if pretrained is None else pretrained.folder)
    task.unanswerable, task.tune = tuple(unanswerable), tune
    tests = [] if test is None else [row for row, _ in _placed(test, columns)]
    own = None if test is None else [row.pair for row in tests if not is_unanswerable(row.pair)]
    task.own_test = own is not None
    _say_finds([row for row, _ in rows], tests, say)
    data = task.split(pairs, seed) if own is None else task.split_with(pairs, own, seed)
    name = "" if pretrained is None else pretrained.name
    key = key_of(pairs, own or [], found.name, tokenize, seed, name)
    with nullcontext() if folder is None else writing(folder):
        _look_at(folder, overwrite=overwrite, resume=resume)  # another fit may have ended meanwhile
        work = None if folder is None else folder / WORK
        measured = OutcomeStore(work, key, resume=resume, measures=task.measures)
        run = Trial(task, found, tokenize, seed, start + 60 * minutes, work, measured, say)
        return _run(run, data, pairs, [own for _, own in rows], folder, judgements)


def _run(
    run: Trial,
    data: Data,
    pairs: list[Pair],
    own: list[Mapping[str, str]],
    folder: Path | None,
    judgements: Judgements | None,
) -> Fitted:
    """Fit, save and tidy up; what a fit that was stopped had measured stays."""
    if run.measured.resumed:
        run.say(f"Resuming a stopped fit: {run.measured.resumed} measurements are reused.")
    run.tidy(measurements=False)
    try:
        with machines_once(), words_once():
            fitted = run.go(data, pairs)
    except KeyboardInterrupt:
        run.tidy(measurements=False)
        raise
    except BaseException:
        run.tidy()
        raise
    if fitted.collection is not None:
        fitted.collection.keep_columns(Entries.of(pairs, own))
        if judgements is not None:
            _learn_judgements(run, fitted, judgements.of_system("" if folder is None else folder.resolve().name))
    if folder is not None:
        try:
            fitted.save(folder)
        except KeyboardInterrupt:  # half a folder would be none
            run.stop("Stopped while writing the folder; the folder is completed first.")
            fitted.save(folder)
    run.tidy(measurements=not run.stopped)
    return fitted


def _learn_judgements(run: Trial, fitted: Fitted, judgements: Judgements) -> None:
    """Learn from judgements what helps, and say so in the report."""
    assert fitted.collection is not None  # they are of answers
    collection = fitted.collection
    refitted = run.optional("learning from the judgements", lambda: collection.refit(feedback=judgements))
    done = None if refitted is None else refitted.feedback
    lines = [] if done is None else done.lines()
    for line in lines:
        run.say(line)
    fitted.report = replace(fitted.report, notes=[*fitted.report.notes, *lines])


def _refuse_judgements(sources: Sequence[PairsLike]) -> None:
    """A file of judgements is no file of pairs: as such it would make something else of an FAQ."""
    for source in sources:
        if isinstance(source, str | Path) and is_feedback(source):
            raise MatchloomError(
                f"{source} holds judgements of answers; give it as feedback='{source}', beside the "
                "questions with their answers",
                code="conflict",
            )


def _refuse_negatives(sources: Sequence[PairsLike], read: Sequence[Sequence[Pair]]) -> None:
    """Negatives of one source must not turn the questions and answers of another, which has no labels, into pairs."""
    plain = next((n for n, own in enumerate(read) if own and all(pair.label is None for pair in own)), None)
    wrong = next((n for n, own in enumerate(read) if any(not pair.is_positive for pair in own)), None)
    if plain is not None and wrong is not None:
        names = [str(one) if isinstance(one, str | Path) else f"source {n + 1}" for n, one in enumerate(sources)]
        raise MatchloomError(
            f"{names[wrong]} has pairs with label 0, and {names[plain]} has questions with answers and no labels; give "
            f"judgements of these as feedback='{names[wrong]}', or name the kind of both with kind=",
            code="conflict",
        )


def _placed(
    source: PairsLike, columns: Mapping[str, str] | None, *, several: bool = False
) -> Iterator[tuple[Placed, Mapping[str, str]]]:
    """The pairs of a source, each with its place (of several sources with the file's name), and its own columns."""
    name = f"{source}, " if several and isinstance(source, str | Path) else ""
    refuse_many(source, columns, most=MOST, instead=_INSTEAD)
    for pair, row in as_rows(source, columns=columns, whole=True):
        yield Placed(pair, f"{name}{row.place}"), own_columns(row)


def _say_finds(rows: Sequence[Placed], tests: Sequence[Placed], say: Callable[[str], None]) -> None:
    """The first lines of what `matchloom check` finds."""
    if len(rows) > _CHECKED:
        return
    found = check(rows, test=tests).summary()
    for line in found[:_SHOWN]:
        say(line)
    if found:
        say("'matchloom check' shows each of these with its lines.")


def _look_at(folder: Path | None, *, overwrite: bool, resume: bool) -> None:
    """Refuse to write over what is there, or to go on where there is nothing to go on with."""
    if resume and (folder is None or overwrite):
        raise MatchloomError("resume=True needs the folder of the fit that was stopped (out=), and cannot overwrite it")
    if folder is None or overwrite or kind_of_folder(folder) not in ("fit", "collection"):
        return
    stopped = holds(folder / WORK, "measured")
    if resume and not stopped:
        raise MatchloomError(
            f"the fit in {folder} was not stopped, so there is nothing to resume; overwrite=True fits again"
        )
    if not resume:
        other = "resume=True to continue it, " if stopped else ""
        raise MatchloomError(
            f"{folder} holds a fitted system already; add {other}overwrite=True, or choose another folder"
        )


def tokenizer_for(pairs: Sequence[Pair]) -> Tokenizer:
    """What suits the language of the texts, which a sample tells."""
    sample = pairs[:: max(1, len(pairs) // 500)]
    return Tokenizer.for_texts(text[:200] for pair in sample for text in (pair.query, pair.text))
