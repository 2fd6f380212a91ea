"""Questions with answers: an FAQ, a support archive. Every question is ranked against all answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from matchloom.data.identity import answers_of, questions_of
from matchloom.data.splits import asked_once, hold_out_questions, texts_alone
from matchloom.explanation import explain
from matchloom.explanation.cells import cells
from matchloom.fitting.encoder import Encoded
from matchloom.fitting.report import Asked, Confusion, Promise
from matchloom.fitting.systems import Candidate, Data, Outcome, Round, Task
from matchloom.search.baselines import BASELINES, RankingBaseline
from matchloom.search.collection import ENCODER_ALONE, FITTED, WITH_ENCODER, Collection
from matchloom.search.entries import Entries
from matchloom.search.features.dense import encoding_seconds
from matchloom.search.features.linear import SOLVED
from matchloom.search.features.ridge import LARGEST
from matchloom.search.features.tuned import tuning_pays, tuning_seconds
from matchloom.search.segment import WHOLE
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Explains, Hits, MatchloomError, Pair, Scorer

RANKER, NEAREST = FITTED, ENCODER_ALONE
ABOUT = {
    "bm25_stemmed": "stemmed BM25 of the question with each answer",
    "nearest_question": "stemmed BM25 with each known question; an answer is as good as its best one",
    "trans_lm": "translation-based language model, learnt from questions and answers",
    "linear_classifier": "scikit-learn: TF-IDF of words and character n-grams, linear SVM, one class per answer",
    RANKER: "a learnt fusion of classifiers, centroids, BM25 of questions and answers, and translations",
    NEAREST: "the pretrained encoder without tuning: cosine with each known question and answer",
    WITH_ENCODER: "the same fusion, with the pretrained encoder's vectors of questions and answers",
}
_TEST, _FOLDS = 0.2, 5
_LEAST = 5  # questions to learn from and to measure on
_CURVED = 40  # questions from which a learning curve says something
_MOST_TESTED = 1000  # questions: more make no figure better
_VAST = 50_000  # answers from which a third of them must do: each question meets all answers
_ENOUGH = 1000  # development questions, where there are so many
_TRANSLATED = 300_000  # questions times answers up to which TransLM, which is slow, meets them all
_CLASSES = 2000  # answers up to which a classifier with one class each is worth its time
_FIRST = 100  # ranks that count in RR
_SHOWN = 5
_MADE = 8  # rounds whose entries are kept
_LOADED = 0.7  # seconds, for what is imported when it is first used
_STATED = (0.8, 0.9, 0.95, 0.99)  # precisions that the report has
_COVERED = (0.5, 0.7, 0.8, 0.9)  # and coverages


class Ranker(Protocol):
    """What ranks all answers."""

    @property
    def entries(self) -> Entries:
        """Answers with their questions."""
        ...

    def search(self, question: Sequence[str], *, top: int | None = 10) -> list[Hits]:
        """The best answers to each question, the best first."""
        ...


class AnswersTask(Task):
    """Ranks every answer of the collection for held-out questions.

    What ranks answers is made in seconds: for each round, for the test questions, and at last from everything.
    """

    measure = "P@1"
    measures = ("P@1", "R@3", "RR")
    made_again = True

    def split(self, pairs: Sequence[Pair], seed: int) -> Data:
        """A fifth of the questions for testing, drawn by their digests; the development set is drawn in `rounds`."""
        train, test = _held_out(pairs, _TEST, seed)
        return Data(train, [], test)

    def split_with(self, pairs: Sequence[Pair], test: Sequence[Pair], seed: int) -> Data:
        """Everything is learnt from, and nothing held out."""
        return Data(list(pairs), [], list(test))

    def rounds(self, data: Data, seed: int) -> list[Round]:
        """Training and development pairs: so many of five folds that there are development questions enough."""
        folds = _rounds(len(questions_of(data.train)))
        if folds == 1:
            return [_held_out(data.train, _TEST, seed + 1)]
        return [_held_out(data.train, 1 / _FOLDS, seed + 1, fold_number=n) for n in range(folds)]

    def note(self, pairs: Sequence[Pair]) -> str:
        """How answers are identified, where text_ids do not name them."""
        return Entries.of(pairs).note

    def learnt(self, scorer: Scorer) -> str:
        """Whether its encoder was tuned, and the figures of held-out questions."""
        tuning = scorer.tuning if isinstance(scorer, Collection) else None
        if tuning is None:
            return ""
        count, before, after = tuning.questions, tuning.before, tuning.after
        done = "was tuned on your questions" if tuning.kept else "is used without tuning: tuning was not clearly better"
        return f"The encoder {done} ({count:,} held-out questions: P@1 {before:.3f} without, {after:.3f} with tuning)."

    def guess(self, candidates: Sequence[Candidate], rounds: int) -> float:
        """Each is made for every round, for the test questions, and at last; something is loaded once."""
        finish = max((one.finish_seconds for one in candidates), default=0.0)
        return _LOADED + super().guess(candidates, rounds) * (rounds + 2) + 2 * finish

    def needed(self, one: Candidate, done: Mapping[Candidate, float], rounds: int) -> float:
        """If the guess is as far off as it was for the others, and with time to measure those on test questions."""
        pace = sum(done.values()) / max(sum(each.seconds for each in done), 1e-9)
        return one.seconds * max(1.0, pace) * (rounds + 1) + sum(done.values())

    def curve(self, train: list[Pair], seed: int) -> list[tuple[int, list[Pair]]]:
        """A quarter, a half and all of the questions, where there are enough.

        Where answers stand without their only question, what more questions of each would do is not to be seen.
        """
        if len(questions_of(train)) < _CURVED or texts_alone(train):
            return []
        parts = [hold_out_questions(train, part, seed=seed + 7, keep_answers=True)[0] for part in (0.75, 0.5)]
        return [(len(questions_of(kept)), kept) for kept in (*parts, train)]

    def learns_more(self, data: Data, pairs: Sequence[Pair]) -> bool:
        """All that the user gave to learn from; a test file of theirs stays unseen."""
        return len(questions_of(data.train)) < len(questions_of(pairs))

    def candidates(self, pairs: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Candidate]:
        """The baselines that suit the collection, and the ranker."""
        entries = _EntriesOnce()
        answers = entries.of(pairs, [])
        asked = sum(map(len, answers.questions))
        per_answer = asked / len(answers)
        texts = [*answers.texts, *(one for own in answers.questions for one in own)]
        work = 0.02 + 1e-6 * sum(map(len, texts))
        alone = asked_once(pairs)
        chosen = [("bm25_stemmed", work)]
        if not texts_alone(pairs):  # else there are no known questions to be near to
            chosen.append(("nearest_question", work))
        if asked * len(answers) <= _TRANSLATED:
            chosen.append(("trans_lm", work + 1e-6 * asked * len(answers)))
        if per_answer >= 1.2 and len(answers) <= _CLASSES:
            chosen.append(("linear_classifier", 7e-6 * (asked + len(answers)) * len(answers)))
        # What is as good with texts alone says nothing of an answer's own question, which it has in use.
        made = [
            Candidate(name, ABOUT[name], _baseline(name, tokenizer, entries), True, cost, report_only=alone)
            for name, cost in chosen
        ]
        examples = asked + len(answers)
        seconds = 3.5 * work
        if len(answers) <= WHOLE:  # classifiers, each of them six times
            seconds += 6e-6 * examples * len(answers)
        if examples <= LARGEST:
            seconds += 4e-10 * examples**3
        if examples > SOLVED:  # a sparse regression goes through all texts, again and again
            seconds += 2e-6 * sum(map(len, texts))
        made.append(Candidate(RANKER, ABOUT[RANKER], _ranker(tokenizer, self.unanswerable, entries), False, seconds))
        if self.encoder is not None:
            encoded = Encoded(self.encoder, tokenizer)
            # Every text is encoded once, in the first round.
            rounds = 1 + _rounds(asked)
            once = encoding_seconds(texts) / rounds
            make = _ranker(tokenizer, self.unanswerable, entries, encoded, words=False)
            made.append(Candidate(NEAREST, ABOUT[NEAREST], make, True, work + once, report_only=alone))
            make = _ranker(tokenizer, self.unanswerable, entries, encoded)
            fused = Candidate(WITH_ENCODER, ABOUT[WITH_ENCODER], make, False, seconds + work)
            if self.tune and len(answers) <= WHOLE and tuning_pays(asked, per_answer):
                finish = _ranker(tokenizer, self.unanswerable, entries, encoded, tune=True)
                fused = replace(fused, finish=finish, finish_seconds=tuning_seconds(texts, asked))
            made.append(fused)
        return made

    def measure_on(self, scorer: Scorer, pairs: Sequence[Pair]) -> Outcome:
        """P@1, recall in the first three, and RR of the first hundred, question by question."""
        found = np.array([r or 0 for r in right_ranks(_ranks_all(scorer), pairs)], dtype=np.float64)
        each: dict[str, NDArray[np.float64]] = {
            "P@1": (found == 1).astype(np.float64),
            "R@3": ((found >= 1) & (found <= 3)).astype(np.float64),
            "RR": np.divide(1.0, found, out=np.zeros_like(found), where=found > 0),
        }
        return Outcome({name: float(values.mean()) if len(values) else 0.0 for name, values in each.items()}, each)

    def details(self, scorer: Scorer, pairs: Sequence[Pair]) -> dict[str, Any]:
        """Which answers are taken for one another, and questions at either end."""
        ranker = _ranks_all(scorer)
        asked = []
        confused: Counter[tuple[str, str]] = Counter()
        examples: dict[tuple[str, str], str] = {}
        questions = list(questions_of(pairs))
        firsts = dict(zip(questions, ranker.search(questions, top=1), strict=True))
        for (question, golds), rank in zip(questions_of(pairs).items(), right_ranks(ranker, pairs), strict=True):
            first = firsts[question]
            if not first:
                continue
            right = golds[0].text
            if rank != 1:
                key = (right, first[0].text)
                confused[key] += 1
                examples.setdefault(key, question)
            asked.append(Asked(question, right, first[0].text, rank, first[0].score))
        promises, coverages = _promises(ranker, pairs) if isinstance(ranker, Collection) else ([], [])
        return {
            "promises": promises,
            "coverages": coverages,
            "confusions": [Confusion(*key, n, examples[key]) for key, n in confused.most_common(8) if n > 1],
            "best": [_explained(scorer, one) for one in _ends(asked, lambda one: one.rank == 1)],
            "worst": [_explained(scorer, one) for one in _ends(asked, lambda one: one.rank != 1)],
        }


def _promises(collection: Collection, pairs: Sequence[Pair]) -> tuple[list[Promise], list[Promise]]:
    """What stated precisions, and coverages, give on test questions: how many get an answer, how often it is right."""
    calibration = collection.calibration
    if calibration is None or not calibration.shown:
        return [], []
    asked = list(questions_of(pairs))
    first = [hits[0].probability or 0.0 if hits else 0.0 for hits in collection.search(asked, top=1)]
    likely, right = np.array(first), np.array([rank == 1 for rank in right_ranks(collection, pairs)], dtype=bool)

    def promise(stated: float, threshold: float | None) -> Promise:
        shown = likely >= (2.0 if threshold is None else threshold)
        precision = float(right[shown].mean()) if shown.any() else None
        return Promise(stated, threshold, float(shown.mean()) if len(shown) else 0.0, precision)

    precisions = [promise(stated, calibration.threshold(stated)) for stated in _STATED]
    return precisions, [promise(stated, calibration.threshold_for(stated)) for stated in _COVERED]


def _held_out(
    pairs: Sequence[Pair], part: float, seed: int, *, fold_number: int | None = None
) -> tuple[list[Pair], list[Pair]]:
    """Training pairs, in which every answer still stands, and pairs of questions that were held out."""
    asked = len(questions_of(pairs))
    if asked < _LEAST:
        raise MatchloomError(
            f"found {asked} different questions; fit needs {_LEAST} or more, to learn from some and measure on others"
        )
    vast = len(pairs) > _VAST and len(set(answers_of([pair for pair in pairs if pair.is_positive]))) > _VAST
    most = _MOST_TESTED // 3 if vast else _MOST_TESTED
    return hold_out_questions(pairs, part, seed=seed, most=most, fold_number=fold_number, keep_answers=True)


def right_ranks(ranker: Ranker, pairs: Sequence[Pair]) -> list[int | None]:
    """Where the first right answer of each question stands, from 1; None where it is not among the first hundred."""
    asked, entries = questions_of(pairs), ranker.entries
    ranks = []
    if isinstance(ranker, RankingBaseline):
        found = ranker.best(list(asked), _FIRST)
    else:
        found = [[hit.id for hit in hits] for hits in ranker.search(list(asked), top=_FIRST)]
    for golds, ids in zip(asked.values(), found, strict=True):
        rows = (entries.find(pair.text, pair.text_id) for pair in golds)
        positives = {entries.ids[row] for row in rows if row is not None}
        ranks.append(next((n for n, one in enumerate(ids, start=1) if one in positives), None))
    return ranks


def _ranks_all(scorer: Scorer) -> Ranker:
    assert isinstance(scorer, Collection | RankingBaseline)
    return scorer


class _EntriesOnce:
    """The entries of the same pairs, made once for all systems of a round."""

    def __init__(self) -> None:
        self._kept: list[tuple[Sequence[Pair], Sequence[Pair], Entries]] = []

    def of(self, train: Sequence[Pair], development: Sequence[Pair]) -> Entries:
        """The entries of both."""
        for one, other, made in self._kept:
            if one is train and (other is development or not (other or development)):
                return made
        made = Entries.of([*train, *development])
        self._kept = [*self._kept[1 - _MADE :], (train, development, made)]
        return made


def _baseline(
    name: str, tokenizer: Tokenizer, entries: _EntriesOnce
) -> Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]:
    return lambda train, development, folder, seconds: BASELINES[name](entries.of(train, development), tokenizer)


def _ranker(
    tokenizer: Tokenizer,
    unanswerable: Sequence[str],
    entries: _EntriesOnce,
    encoded: Encoded | None = None,
    *,
    words: bool = True,
    tune: bool = False,
) -> Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]:
    def make(train: Sequence[Pair], development: Sequence[Pair], folder: Path, seconds: float) -> Scorer:
        pairs, sentences = [*train, *development], None if encoded is None else encoded.sentences
        return Collection.fit(
            entries.of(train, development),
            tokenizer=tokenizer,
            sentences=sentences,
            words=words,
            use_questions=not texts_alone(pairs),
            unanswerable=unanswerable,
            tune=tune,
        )

    return make


def _rounds(questions: int) -> int:
    """How many of the folds are development questions once."""
    return min(_FOLDS, max(1, -(-_ENOUGH * _FOLDS // max(1, questions))))


def _ends(asked: list[Asked], wanted: Callable[[Asked], bool]) -> list[Asked]:
    """The questions with the highest score of those wanted: the clearest hits, the most confident mistakes."""
    return sorted(filter(wanted, asked), key=lambda one: (-one.score, one.question))[:_SHOWN]


def _explained(scorer: Scorer, asked: Asked) -> Asked:
    """The same with the words that moved the score of the first answer most."""
    if not isinstance(scorer, Explains):
        return asked
    added: Counter[str] = Counter()
    for cell in cells(explain(scorer, asked.question, asked.first)):
        same = cell.query_word == cell.text_word
        added[cell.query_word if same else f"{cell.query_word} ~ {cell.text_word}"] += cell.contribution  # type: ignore[assignment]
    words = sorted(added.items(), key=lambda item: (-abs(item[1]), item[0]))[:6]
    return Asked(asked.question, asked.right, asked.first, asked.rank, asked.score, [(w, float(v)) for w, v in words])
