"""From a question to ranked answers, learnt from the user's own file. No seeds, seconds.

Several pieces of evidence look at each answer (`svm`, `ridge`, `bm25_doc`, `centroid`, `bm25_ans`, `text`,
`translation`) and a mixture weighs them as known questions ask for when they are left out. They need nothing but the
file; with a pretrained encoder, three more (`meaning`) compare what texts mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from matchloom.artifact import as_saved
from matchloom.basics.progress import track
from matchloom.explanation import explanation_of
from matchloom.search.calibration import Certainty, learn_certainty
from matchloom.search.entries import Answers, Floats, best_first
from matchloom.search.features.dense import Meanings
from matchloom.search.fusion import LeftOut, Mixture, learn_mixture, left_out_figures, prior_of
from matchloom.search.memory import AskedCollection, Weighed, known_questions
from matchloom.search.ranker_files import REMEDY, MeaningVectors, SavedRanker, read_ranker, write_ranker
from matchloom.search.reader import Query
from matchloom.search.tracing import RightSide, trace_of
from matchloom.text.tokenize import Tokenizer, replace_surrogates
from matchloom.types import Hit, Hits, MatchloomError, Pair, Scores, Trace

if TYPE_CHECKING:
    pass

_MOST = 1e30  # of a weight
ENCODER_ALONE = "encoder_nearest"  # the name of a ranker that has no evidence but an encoder's


@dataclass
class AnswerRanker:
    """Ranks the answers of a collection for any question. Made by `fit` from pairs, or by `load`.

    >>> pairs = [Pair("how do I weave?", "Use a loom."), Pair("how do I grind corn?", "Use a mill.")]
    >>> [answer.text for answer in AnswerRanker.fit(pairs).rank("griding corn")]
    ['Use a mill.', 'Use a loom.']
    """

    answers: Answers
    mixture: Mixture
    left_out: LeftOut | None
    collection: AskedCollection = field(repr=False)
    certainty: Certainty = field(default_factory=Certainty)
    name: str = "answer_ranker"

    def __repr__(self) -> str:
        return f"AnswerRanker({self.answers!r})"

    @classmethod
    def fit(
        cls,
        pairs: Iterable[Pair],
        *,
        tokenizer: Tokenizer | None = None,
        meanings: Meanings | None = None,
        words: bool = True,
        asked: bool = True,
        seed: int = 0,
        progress: bool = False,
    ) -> AnswerRanker:
        """Learn from pairs of questions and right answers; `Answers.of` says which pairs are of one answer.

        With `meanings`, what a pretrained encoder makes of the texts is evidence, too; without `words`, the cosine with
        the nearest known text is all there is: what one would do with such an encoder and nothing else. Without `asked`
        a question is compared with the answers' texts alone, and known questions only teach how. Nothing is drawn at
        random: `seed` is taken as every fit takes it and changes nothing.
        """
        answers = Answers.of(_mended(pair) for pair in pairs)
        cut = tokenizer or Tokenizer()
        collection = AskedCollection(
            answers.sorted(), cut, meanings=meanings, words=words, asked=asked, progress=progress
        )
        cases = collection.cases(progress=progress)
        mixture = learn_mixture(collection.names, cases, prior_of(collection.names, asked=asked))
        certainty = learn_certainty(cases, mixture.weights)
        name = "answer_ranker" if meanings is None else "encoder_ranker" if words else ENCODER_ALONE
        return cls(answers, mixture, left_out_figures(cases, mixture.weights), collection, certainty, name)

    @property
    def tokenizer(self) -> Tokenizer:
        """How texts become words."""
        return self.collection.reading.tokenizer

    def scores(self, question: str) -> Floats:
        """The score of each answer, in the order of `answers`."""
        weighed = self.collection.weigh(self.collection.reading.read(question))
        found = np.empty(len(self.answers))
        found[self.answers.order] = self.mixture.score(weighed.raw, weighed.mean, weighed.spread)
        return found

    def rank(self, question: str, top: int | None = 10, *, explain: bool = False) -> Hits:
        """The best answers, each once, the best first; equal scores are ordered by id. With `explain` each says why.

        In a collection of more than 5,000 answers the candidates are ranked, which are some hundreds. The question is
        read and compared once, for scores, probabilities and explanations.
        """
        read = self.collection.reading.read(question)
        weighed = self.collection.weigh(read)
        rows = weighed.candidates
        scores = self.mixture.score(weighed.raw[rows], weighed.mean, weighed.spread)
        strength = self.collection.strength(read, weighed)
        likely = self.certainty.probabilities(scores, strength)
        best = best_first(scores, top)
        ranked = Hits(known=self.certainty.known(strength))
        for n, nearest in zip(best.tolist(), self.collection.nearest(read, rows[best].tolist()), strict=True):
            row = int(rows[n])
            index = int(self.answers.order[row])
            name, text = self.answers.ids[index], self.answers.texts[index]
            why = (
                explanation_of(self, question, text, self._trace(read, weighed, row, nearest, text))
                if explain
                else None
            )
            score, probability = float(scores[n]), float(likely[n])
            ranked.append(Hit(name, text, score, probability, nearest, index, explanation=why))
        return ranked

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair of a question and an answer; higher matches better.

        A known answer, told by its text or else its id, gets its score in the ranking. Another text is weighed by the
        same mixture as an answer without questions; the classifier, which does not know it, gives it nothing.
        """
        places: dict[str, list[int]] = {}
        for n, pair in enumerate(pairs):
            places.setdefault(pair.query, []).append(n)
        scores = np.zeros(len(pairs), dtype=np.float32)
        texts: dict[str, Query] = {}
        for question, own in track(places.items(), self.name, total=len(places), show=progress):
            read = self.collection.reading.read(question)
            weighed = self.collection.weigh(read)
            raw = np.empty((len(own), len(self.collection.evidence)))
            for row, n in zip(raw, own, strict=True):
                known = self.collection.answers.find(pairs[n].text, pairs[n].text_id)
                if known is not None:
                    row[:] = weighed.raw[known]
                else:
                    if pairs[n].text not in texts:
                        texts[pairs[n].text] = self.collection.reading.read_text(pairs[n].text)
                    text = texts[pairs[n].text]
                    row[:] = [piece.outside(read, text).sum() for piece in self.collection.evidence]
            scores[own] = self.mixture.score(raw, weighed.mean, weighed.spread)
        return scores

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Why a text got its score: the words of the question against those of the matched question and the text."""
        read = self.collection.reading.read(query)
        weighed = self.collection.weigh(read)
        known = self.collection.answers.find(text)
        question = None if known is None else self.collection.nearest(read, [known])[0]
        return self._trace(read, weighed, known, question, text)

    def _trace(
        self, read: Query, weighed: Weighed, known: int | None, question: str | None, text: str
    ) -> tuple[list[str], list[str], Trace]:
        """The trace of a question that was compared; `known` is the place of the answer, if it is one."""
        if known is None:
            outside = self.collection.reading.read_text(text)
            contributions = [piece.outside(read, outside) for piece in self.collection.evidence]
        else:
            contributions = [piece.contributions(read, known) for piece in self.collection.evidence]
        words = list(read.words)
        right = RightSide(question, text, self.tokenizer(question or ""), self.tokenizer(text))
        trace = trace_of(self.collection, self.mixture, weighed, contributions, read, words, right)
        return words, [*right.matched, *right.told], trace

    def save(self, folder: Path | str) -> None:
        """Write the ranker as a folder, all of its files or none; no pickle."""
        settings: dict[str, Any] = {
            "ranker": self.name,
            "tokenizer": self.tokenizer._asdict(),
            "evidence": list(self.mixture.names),
            "weights": self.mixture.weights.tolist(),
            "why": self.mixture.why,
            "certainty": self.certainty._asdict(),
            "left_out": None if self.left_out is None else self.left_out._asdict(),
            "words": self.collection.words_digest,
            "asked": self.collection.asked,
        }
        table = self.collection.translation
        translations = None if table is None else table.translations
        machine, meaning = self.collection.svm, self.collection.meaning
        weights = None if machine is None else machine.weights
        vectors = None
        if meaning is not None:
            vectors = MeaningVectors(meaning.questions.astype(np.float32), meaning.texts.astype(np.float32))
        encoder = None if meaning is None else meaning.meanings.matcher
        write_ranker(Path(folder), SavedRanker(settings, self.answers, translations, weights, vectors), encoder)

    @classmethod
    def load(cls, folder: Path | str) -> AnswerRanker:
        """Read a saved ranker and compute its evidence again; a folder that was cut off or altered is refused."""
        (about, answers, translations, weights, vectors), matcher = read_ranker(Path(folder))
        with as_saved(folder, REMEDY):
            tokenizer = Tokenizer.from_dict(about["tokenizer"])
            meanings = None
            if matcher is not None and vectors is not None:
                texts = [*known_questions(answers.sorted())[0], *answers.sorted().texts]
                known = np.concatenate([vectors.questions, vectors.texts])
                meanings = Meanings(matcher, dict(zip(texts, known, strict=True)))
            collection = AskedCollection(
                answers.sorted(),
                tokenizer,
                translations=translations,
                weights=weights,
                meanings=meanings,
                words=about["ranker"] != ENCODER_ALONE,
                asked=about["asked"],
                learning=False,
            )
            if collection.words_digest != about["words"] or list(collection.names) != about["evidence"]:
                raise MatchloomError(
                    f"{folder} was saved by a matchloom that reads texts differently; fit the ranker again"
                )
            learnt = np.array(about["weights"], dtype=np.float64)
            machine = collection.svm
            fits = weights is None or (machine is not None and weights.fits(machine.seen.size, len(answers)))
            if not fits or learnt.shape != (len(about["evidence"]),) or not (np.abs(learnt) < _MOST).all():
                raise MatchloomError(f"{folder} holds weights that no scores can be made of; {REMEDY}", code="damaged")
            mixture = Mixture(tuple(about["evidence"]), learnt, about["why"])
            left_out = None if about["left_out"] is None else LeftOut(**about["left_out"])
            certainty = Certainty(**about.get("certainty", {}))
            return cls(answers, mixture, left_out, collection, certainty, str(about["ranker"]))


def _mended(pair: Pair) -> Pair:
    """Half characters could not be saved."""
    return pair._replace(query=replace_surrogates(pair.query), text=replace_surrogates(pair.text))
