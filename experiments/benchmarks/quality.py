"""How good a collection's answers are, and whether it knows when it has none, at several sizes and beside rivals.

    python -m experiments.benchmarks.quality                       # from scratch, to experiments/results/quality.json
    python -m experiments.benchmarks.quality --encoder             # with the first encoder found, tuned where it pays
    python -m experiments.benchmarks.quality --encoder --no-tune   # as it comes
    python -m experiments.benchmarks.quality --only hwu64 --sizes 10

Data (the folder MATCHLOOM_DATA, or ../shared/data): CovidFAQ, its German cousin, HWU64, StackOverflow, sofmattress,
each with 1, 2, 5, 10, 20 or all training questions an answer, drawn by digests. Test questions are the official ones;
with --development the development parts, where there are any. No constant is chosen here: `development` does that, on
training parts alone. Vectors of texts are kept in the user's cache.

    P@1      the first answer is right; beside it scikit-learn's linear SVM (TF-IDF of words 1-2 and letters 2-5), BM25
             of an answer with its questions, and, with an encoder, its nearest known question and logistic
             regression over the vectors of the known questions (C = 10)
    ECE      expected calibration error of the first answer's probability, ten bins
    AUROC    p(answerable) of test questions against questions that have no answer here: those of a fifth of the
             answers, which were taken away before fitting (`near`), or questions of another field (`far`)
    recall   of the questions without an answer, the part that is refused where 95% of the others are kept
    >= .9    of the far questions, the part whose first answer is shown with nine tenths or more
    tuned    1 where held-out questions kept the encoder that was tuned on the known questions
    .95      asked for a precision of .95: what it was, and for how many questions
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments import places
from experiments.corpora.labelled import labelled_pairs, rows_of
from experiments.reproduction.provenance import commit
from matchloom import Collection, Pair
from matchloom.basics.files import atomic_write
from matchloom.evaluation.answerability import auroc, calibration_error, recall_at_kept
from matchloom.fitting.run import tokenizer_for
from matchloom.lexical.columns import Floats
from matchloom.search.entries import Entries
from matchloom.search.features.dense import SentenceVectors
from matchloom.types import Hits

RESULTS = places.RESULTS / "quality.json"
SIZES = (1, 2, 5, 10, 20, 0)  # 0 for all
_FAR = 100  # questions of another field
CACHE = Path.home() / ".cache" / "matchloom-development"  # vectors of texts, and features of development tasks
_VECTORS = "vectors.npz"


class Corpus(NamedTuple):
    """Training pairs, and questions with the id of their answer."""

    train: list[Pair]
    asked: list[tuple[str, str]]
    unanswerable: Sequence[str] = ()

    def texts(self) -> Iterator[str]:
        """All that an encoder would read."""
        for pair in self.train:
            yield from (pair.query, pair.text)
        yield from (question for question, _ in self.asked)
        yield from self.unanswerable


def corpora(development: bool) -> dict[str, Corpus]:
    """What is there."""
    faq, intents = places.DATA / "faq", places.DATA / "intents"

    def asked(path: Path) -> list[tuple[str, str]]:
        return [(row["query"], row["text_id"]) for row in rows_of(path)]

    found = {
        name: Corpus(
            labelled_pairs(intents / f"{name}_train.tsv"),
            asked(intents / f"{name}_{part if development else 'test'}.tsv"),
        )
        for name, part in (("hwu64", "valid"), ("stackoverflow", "dev"))
    }
    if not development:
        out = [row["query"] for row in rows_of(intents / "sofmattress_oos.tsv")]
        found["sofmattress"] = Corpus(
            labelled_pairs(intents / "sofmattress_train.tsv"), asked(intents / "sofmattress_test.tsv"), out
        )
        covid = faq / "covid_faq.tsv"
        found["covid"] = Corpus(labelled_pairs(covid, faq / "covid_train.tsv"), asked(faq / "covid_test.tsv"))
        found["covid, the FAQ alone"] = Corpus(labelled_pairs(covid), asked(faq / "covid_test.tsv"))
        german = faq / "covidsim_de_faq.tsv"
        found["german"] = Corpus(labelled_pairs(german), asked(faq / "covidsim_de_test.tsv"))
    return found


def _digest(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def some(pairs: Iterable[Pair], size: int) -> list[Pair]:
    """At most so many questions an answer, drawn by digests; all with 0."""
    counts: dict[str, int] = {}
    kept = []
    for pair in sorted(pairs, key=lambda pair: _digest(pair.query)):
        counts[pair.text_id] = counts.get(pair.text_id, 0) + 1
        if not size or counts[pair.text_id] <= size:
            kept.append(pair)
    return kept


def far_questions() -> list[str]:
    """Questions about products and health: no corpus here has answers to them."""
    with gzip.open(places.DATA / "cqa" / "cqa_5_50.tsv.gz", "rt", encoding="utf-8") as file:
        questions = {line.split("\t")[2] for line in file}
    return sorted(questions, key=_digest)[:_FAR]


def fitted(pairs: list[Pair], sentences: SentenceVectors | None, tune: bool) -> Collection:
    """As `matchloom fit` makes it, in the language of the texts."""
    return Collection.fit(Entries.of(pairs), tokenizer=tokenizer_for(pairs), sentences=sentences, tune=tune)


def measure(
    corpus: Corpus, size: int, sentences: SentenceVectors | None, far: Sequence[str], tune: bool
) -> dict[str, float]:
    """All figures of one corpus at one size."""
    train = some(corpus.train, size)
    collection = fitted(train, sentences, tune)
    questions, gold = [one for one, _ in corpus.asked], [name for _, name in corpus.asked]
    hits = collection.search(questions, top=1)
    right = np.array([bool(one) and one[0].id == name for one, name in zip(hits, gold, strict=True)])
    likely = np.array([one[0].probability or 0.0 if one else 0.0 for one in hits])
    outside = collection.search(list(far), top=1)
    found = {
        "P@1": float(right.mean()),
        **rivals(train, corpus, sentences),
        "far AUROC": auroc(_known(hits), _known(outside)),
        "far >= .9": float(np.mean([bool(one) and (one[0].probability or 0.0) >= 0.9 for one in outside])),
    }
    if collection.tuning is not None:
        found["tuned"] = float(collection.tuning.kept)
    calibration = collection.calibration
    if calibration is not None and calibration.earned:
        found["ECE"] = calibration_error(likely, right)
    threshold = None if calibration is None else calibration.threshold(0.95)
    if threshold is not None and (likely >= threshold).any():
        found |= {".95 precision": float(right[likely >= threshold].mean())}
        found |= {".95 coverage": float((likely >= threshold).mean())}
    return found | near(corpus, train, sentences, tune)


def near(corpus: Corpus, train: list[Pair], sentences: SentenceVectors | None, tune: bool) -> dict[str, float]:
    """Whether questions whose answer was taken away are told from others; real ones where the corpus has some."""
    gone: set[str] = set()
    if not corpus.unanswerable:
        gone = set(sorted({pair.text_id for pair in train}, key=_digest)[::5])
    kept = fitted([pair for pair in train if pair.text_id not in gone], sentences, tune)
    inside = [question for question, name in corpus.asked if name not in gone]
    outside = list(corpus.unanswerable) or [question for question, name in corpus.asked if name in gone]
    if not outside or not inside:
        return {}
    a, b = (_known(kept.search(side, top=1)) for side in (inside, outside))
    return {"near AUROC": auroc(a, b), "near recall": recall_at_kept(a, b)}


def _known(found: Iterable[Hits]) -> Floats:
    return np.array([one.known or 0.0 for one in found])


def rivals(train: list[Pair], corpus: Corpus, sentences: SentenceVectors | None) -> dict[str, float]:
    """P@1 of what one would have used instead."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    questions, gold = [one for one, _ in corpus.asked], [name for _, name in corpus.asked]

    def right(answers: Iterable[str]) -> float:
        return float(np.mean([one == name for one, name in zip(answers, gold, strict=True)]))

    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    both = make_union(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), letters)
    machine = make_pipeline(both, LinearSVC()).fit([one.query for one in train], [one.text_id for one in train])
    found = {"SVM": right(machine.predict(questions))}
    entries = Entries.of(train)
    plain = Collection.fit(entries, learn_weights=False, features=("bm25_doc",))
    found["BM25"] = right(one[0].id if one else "" for one in plain.search(questions, top=1))
    if sentences is not None:
        nearest = Collection.fit(entries, sentences=sentences, words=False)
        found["nearest by encoder"] = right(one[0].id if one else "" for one in nearest.search(questions, top=1))
        regression = LogisticRegression(C=10, max_iter=1000)
        regression.fit(sentences.of([one.query for one in train]), [one.text_id for one in train])
        found["LR over vectors"] = right(regression.predict(sentences.of(questions)))
    return found


def encoder_vectors(cache: Path = CACHE) -> SentenceVectors:
    """The sentence vectors of the first encoder that is found, and those that `keep_vectors` has kept."""
    from matchloom.encoders.library import found_encoders
    from matchloom.matcher import Matcher

    known: dict[str, Any] = {}
    if (cache / _VECTORS).exists():
        with np.load(cache / _VECTORS) as file:
            known = dict(zip(bytes(file["texts"]).decode().split("\0"), file["vectors"], strict=True))
    return SentenceVectors(Matcher.untrained(found_encoders()[0].folder, model="sentence_bert"), known)


def keep_vectors(sentences: SentenceVectors, texts: Iterable[str], cache: Path = CACHE) -> None:
    """Encode texts once for all runs on this machine: an encoder reads a few hundred in a second."""
    count = len(sentences.vectors)
    sentences.of([text for text in dict.fromkeys(texts) if "\0" not in text], progress=True)
    if len(sentences.vectors) > count:
        cache.mkdir(parents=True, exist_ok=True)
        said = np.frombuffer("\0".join(sentences.vectors).encode(), dtype=np.uint8)
        np.savez(cache / _VECTORS, texts=said, vectors=np.stack(list(sentences.vectors.values())))


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", action="store_true")
    parser.add_argument("--no-tune", dest="tune", action="store_false")
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    arguments = parser.parse_args()
    console = Console(width=200)
    sentences = encoder_vectors() if arguments.encoder else None
    far = far_questions()
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    way = ("encoder" if arguments.tune else "encoder as it comes") if sentences else "words"
    table = Table("corpus", "questions an answer")
    rows: list[tuple[str, str, dict[str, float]]] = []
    chosen = {
        name: corpus
        for name, corpus in corpora(arguments.development).items()
        if not arguments.only or name in arguments.only
    }
    if sentences is not None:
        texts = (text for corpus in chosen.values() for text in corpus.texts())
        keep_vectors(sentences, [*far, *texts])
    for name, corpus in chosen.items():
        most = max(np.unique([pair.text_id for pair in corpus.train], return_counts=True)[1])
        for size in arguments.sizes:
            if size >= most:
                continue
            figures = measure(corpus, size, sentences, far, arguments.tune)
            rows.append((name, str(size or "all"), figures))
            part = "development" if arguments.development else "test"
            key = f"{name}, {size or 'all'}, {way}, {part}"
            kept[key] = {**figures, "commit": commit()}
            console.print(key, {measure: round(value, 3) for measure, value in figures.items()})
            with atomic_write(RESULTS) as file:
                file.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    measures = list(dict.fromkeys(measure for _, _, figures in rows for measure in figures))
    for one in measures:
        table.add_column(one, justify="right")
    for name, size_name, figures in rows:
        table.add_row(name, size_name, *(f"{figures[one]:.3f}" if one in figures else "" for one in measures))
    console.print(table, f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
